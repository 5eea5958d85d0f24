#!/usr/bin/env bash
# places.sh: a program that is built after `make install`, as README shows it,
# starts: the loader finds the library, or install says what is still to be
# done.  Runs in a mount namespace, so that changes to /usr/local and /etc are
# dropped at its end.
# shellcheck source=tests/tools/support/script.sh
. "$(dirname "$0")/../../tools/support/script.sh"
make=${MAKE:-make}

if [ "${1-}" != inside ]; then
    namespace=(unshare -m)
    [ "$(id -u)" -eq 0 ] || namespace=(unshare -rm)
    # Within a chroot "/" is no mount point whose mounts could be made private.
    "${namespace[@]}" true 2>/dev/null ||
        namespace+=(--propagation unchanged)
    "${namespace[@]}" true 2>/dev/null ||
        skip_all "install into the system: there are no mount namespaces"
    cp -a "$build" "$dir/build"
    SQLOCK_SCRIPT_DIR=$dir "${namespace[@]}" bash "$0" inside
    exit
fi

forget() {
    cd / && umount /usr/local /etc "$dir/layers" 2>/dev/null
}
trap forget EXIT
mkdir "$dir/layers"
mount -t tmpfs layers "$dir/layers" || exit 1
for place in usr/local etc; do
    mkdir -p "$dir/layers/$place"/{up,work}
    mount -t overlay "$place" -o "lowerdir=/$place,upperdir=$dir/layers/$place/up,workdir=$dir/layers/$place/work" \
        "/$place" ||
        skip_all "install into the system: there is no overlay file system"
done
# SETUP=no: a test installs no packages.
install_in() { # VARIABLE=VALUE...
    "$make" --no-print-directory install SETUP=no DESTDIR= \
        "BUILD=$dir/build" "$@" >"$dir/said"
}
says() { # LINE
    cat "$dir/said"
    grep -qxF -- "$1" "$dir/said"
}

PATH=/usr/local/bin:$PATH
unset LD_LIBRARY_PATH PKG_CONFIG_PATH PKG_CONFIG_LIBDIR
read -ra cc <<<"${CC:-cc}" # may have words: "ccache gcc"
library=$(basename "$(readlink "$build/lib/libsqlock.so")")
block() { # LANGUAGE NUMBER
    awk -v open="\`\`\`$1" -v wanted="$2" '
        $0 == open && ++seen == wanted { inside = 1; next }
        $0 == "```" { inside = 0 }
        inside' README.md
}
block sh 1 >"$dir/install.sh"
block sh 2 >"$dir/commands.sh"
block sh 3 >"$dir/compile.sh"
block c 1 >"$dir/example.c"

# The script is root already, and installs no packages: sudo only runs its
# command, apt-get only says what it would install, if there are lists of
# packages, and make uses the copy of the build.
mkdir "$dir/bin"
cat >"$dir/bin/sudo" <<'END'
#!/bin/sh
exec "$@"
END
cat >"$dir/bin/apt-get" <<'END'
#!/bin/sh
[ -z "$(find /var/lib/apt/lists -maxdepth 1 -name '*_Packages*')" ] ||
    exec /usr/bin/apt-get --simulate "$@"
END
cat >"$dir/bin/make" <<END
#!/bin/sh
exec $(command -v "${make%% *}") --no-print-directory SETUP=no DESTDIR= \
    "BUILD=$dir/build" "\$@"
END
chmod +x "$dir"/bin/*
as_shown() {
    PATH=$dir/bin:$PATH bash -eu "$dir/install.sh" >"$dir/said"
}
check "README's commands install it" as_shown
check "it says that ldconfig has been run" \
    says "  library   /usr/local/lib/$library (ldconfig has been run)"
check "and where pkg-config looks anyway" \
    says "  flags     /usr/local/lib/pkgconfig/sqlock.pc"
cd "$dir" || exit 1
check "README's commands run" bash -eu commands.sh
# Keep the present PATH for the compiler: ccache looks in PATH for the real
# `cc`, and would find this script in the new one.
printf '#!/bin/sh\nPATH=%s exec %s "$@"\n' "$PATH" \
    "$(command -v "${cc[0]}") ${cc[*]:1}" >bin/cc
chmod +x bin/cc
built_as_shown() {
    PATH=$dir/bin:$PATH bash -eu compile.sh
}
check "README's example is built, and runs" built_as_shown
check "the command is there" sqlock --version
cd - >/dev/null || exit 1

check "make install into a folder that the loader does not search" \
    install_in "PREFIX=$dir/elsewhere"
check "it says how the library is found" says "  library   $dir/elsewhere/lib/\
$library; found with LD_LIBRARY_PATH=$dir/elsewhere/lib"
check "and how pkg-config finds it" says "  flags     $dir/elsewhere/lib/\
pkgconfig/sqlock.pc; found with PKG_CONFIG_PATH=$dir/elsewhere/lib/pkgconfig"

printf '#!/bin/sh\necho 1000\n' >"$dir/id"
chmod +x "$dir/id"
PATH=$dir:$PATH check "make install without being root" \
    install_in PREFIX=/usr/local
check "says what is left to be done" \
    says "  library   /usr/local/lib/$library; found once root has run ldconfig"
exit $status
