#!/usr/bin/env bash
# places.sh: what is built after `make install`, as README shows it, starts: the
# loader is told about a folder of its own, and where that cannot be, install
# says what it takes.  Runs in a mount namespace, whose /usr/local and /etc are
# forgotten at its end.
set -u
cd "$(dirname "$0")/../../.." || exit 1
build=${SQLOCK_BUILD:-build}
make=${MAKE:-make}

if [ "${1-}" != inside ]; then
    namespace=(unshare -m)
    [ "$(id -u)" -eq 0 ] || namespace=(unshare -rm)
    # Within a chroot "/" is no mount point whose mounts could be made private.
    "${namespace[@]}" true 2>/dev/null ||
        namespace+=(--propagation unchanged)
    "${namespace[@]}" true 2>/dev/null || {
        echo "skip - install into the system: there are no mount namespaces"
        exit 77
    }
    work=$(mktemp -d /tmp/sqlock-places.XXXXXX) || exit 1
    trap 'rm -rf "$work"' EXIT
    cp -a "$build" "$work/build"
    "${namespace[@]}" bash "$0" inside "$work"
    exit
fi

work=$2
status=0
forget() {
    cd / && umount /usr/local /etc "$work/layers" 2>/dev/null
}
trap forget EXIT
mkdir "$work/layers"
mount -t tmpfs layers "$work/layers" || exit 1
for place in usr/local etc; do
    mkdir -p "$work/layers/$place"/{up,work}
    mount -t overlay "$place" -o "lowerdir=/$place,upperdir=$work/layers/$place/up,workdir=$work/layers/$place/work" \
        "/$place" || {
        echo "skip - install into the system: there is no overlay file system"
        exit 77
    }
done

check() { # WHAT COMMAND...
    local what=$1
    shift
    if "$@" >"$work/out" 2>&1; then
        echo "ok - $what"
    else
        cat "$work/out"
        echo "not ok - $what"
        status=1
    fi
}
# SETUP=no: a test installs no packages.
install_in() { # VARIABLE=VALUE...
    "$make" --no-print-directory install SETUP=no DESTDIR= \
        "BUILD=$work/build" "$@" >"$work/said"
}
says() { # LINE
    cat "$work/said"
    grep -qxF -- "$1" "$work/said"
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
block sh 1 >"$work/install.sh"
block sh 2 >"$work/commands.sh"
block sh 3 >"$work/compile.sh"
block c 1 >"$work/example.c"

# As root, and on a machine where the packages are: apt only says what it would
# install, if its lists are there.
mkdir "$work/bin"
cat >"$work/bin/sudo" <<'END'
#!/bin/sh
exec "$@"
END
cat >"$work/bin/apt-get" <<'END'
#!/bin/sh
[ -z "$(find /var/lib/apt/lists -maxdepth 1 -name '*_Packages*')" ] ||
    exec /usr/bin/apt-get --simulate "$@"
END
cat >"$work/bin/make" <<END
#!/bin/sh
exec $(command -v "${make%% *}") --no-print-directory SETUP=no DESTDIR= \
    "BUILD=$work/build" "\$@"
END
chmod +x "$work"/bin/*
as_shown() {
    PATH=$work/bin:$PATH bash -eu "$work/install.sh" >"$work/said"
}
check "README's commands install it" as_shown
check "it says that ldconfig has been run" \
    says "  library   /usr/local/lib/$library (ldconfig has been run)"
check "and where pkg-config looks anyway" \
    says "  flags     /usr/local/lib/pkgconfig/sqlock.pc"
cd "$work" || exit 1
check "README's commands run" bash -eu commands.sh
# With the PATH of before: ccache looks there for what is called like itself.
printf '#!/bin/sh\nPATH=%s exec %s "$@"\n' "$PATH" \
    "$(command -v "${cc[0]}") ${cc[*]:1}" >bin/cc
chmod +x bin/cc
built_as_shown() {
    PATH=$work/bin:$PATH bash -eu compile.sh
}
check "README's example is built, and runs" built_as_shown
check "the command is there" sqlock --version
cd - >/dev/null || exit 1

check "make install into a folder that the loader does not search" \
    install_in "PREFIX=$work/elsewhere"
check "it says how the library is found" says "  library   $work/elsewhere/lib/\
$library; found with LD_LIBRARY_PATH=$work/elsewhere/lib"
check "and how pkg-config finds it" says "  flags     $work/elsewhere/lib/\
pkgconfig/sqlock.pc; found with PKG_CONFIG_PATH=$work/elsewhere/lib/pkgconfig"

printf '#!/bin/sh\necho 1000\n' >"$work/id"
chmod +x "$work/id"
PATH=$work:$PATH check "make install without being root" \
    install_in PREFIX=/usr/local
check "says what is left to be done" \
    says "  library   /usr/local/lib/$library; found once root has run ldconfig"
exit $status
