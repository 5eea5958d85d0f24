#!/usr/bin/env bash
# debian.sh: the Debian packages are built without a complaint of lintian's,
# installed into a Debian with nothing else, used there by a script and by
# programs in C, C++ and Python, which take a lock and notice its loss, and
# purged without a trace.
#
# Needs root, for chroot, and apt's archive.  Uses a mount namespace if it can
# make one.
#
# Do not use the folder that tests/run.sh removes, with all that is mounted in
# it.
unset SQLOCK_TEST_DIR
# shellcheck source=tests/tools/support/script.sh
. "$(dirname "$0")/../../tools/support/script.sh"
make=${MAKE:-make}

if [ "${1-}" != inside ]; then
    [ "$(id -u)" -eq 0 ] || skip_all "Debian packages: only root may chroot"
    for tool in dpkg-buildpackage dh lintian mmdebstrap; do
        command -v $tool >/dev/null ||
            skip_all "Debian packages: $tool is not installed"
    done
    # In a chroot "/" is no mount point, so its propagation cannot be changed;
    # in a container without privileges no namespace can be made at all.
    namespace=(unshare -m)
    "${namespace[@]}" true 2>/dev/null ||
        namespace=(unshare -m --propagation unchanged)
    "${namespace[@]}" true 2>/dev/null || namespace=()
    # shellcheck disable=SC2016 # these are apt's own
    archive=$(apt-get indextargets --format '$(REPO_URI) $(ORIGIN) $(LABEL)' |
        awk '($2 == "Debian" || $2 == "Ubuntu") && $3 == $2 { print $1; exit }')
    [ -n "$archive" ] ||
        skip_all "Debian packages: apt has no archive of a distribution"
    SQLOCK_SCRIPT_DIR=$dir "${namespace[@]}" bash "$0" inside "$archive"
    exit
fi
archive=$2
root=$dir/root
in_root() { # COMMAND...
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/root \
        DEBIAN_FRONTEND=noninteractive chroot "$root" "$@" </dev/null
}
apt() { # COMMAND PACKAGE...
    in_root apt-get -q -y --no-install-recommends "$@"
}
# Print the files of the root, without lists, logs and caches of the package
# system, which remain after a purge.
files() {
    (cd "$root" && find . -xdev \( -path ./proc -o -path ./var/lib/apt -o \
        -path ./var/lib/dpkg -o -path ./var/cache -o -path ./var/log -o \
        -path ./packages \) -prune -o -print | sort)
}

unset MAKEFLAGS MFLAGS
. /etc/os-release
build_here() {
    DEB_BUILD_OPTIONS=nocheck "$make" --no-print-directory SETUP=no \
        "BUILD=$dir/build" deb
}
check "make deb; lintian is content" build_here
set -- "$dir"/build/deb/*.deb
[ $# -eq 6 ] || {
    ls "$dir/build/deb"
    echo "not ok - there are four packages, and symbols for debuggers of two"
    exit 1
}
include=()
case $archive in
https:*) include=(--include=ca-certificates) ;;
esac
check "a Debian with nothing else is made" mmdebstrap --variant=apt \
    --skip=cleanup/apt/lists --dpkgopt=force-unsafe-io "${include[@]}" \
    "$VERSION_CODENAME" "$root" "$archive"
! mount -t proc proc "$root/proc" 2>/dev/null ||
    trap 'umount "$root/proc"' EXIT
# Use this machine's name servers and settings of apt.
cp /etc/resolv.conf "$root/etc/resolv.conf" || exit 1
grep -l Acquire /etc/apt/apt.conf.d/* 2>/dev/null |
    xargs -r cp -t "$root/etc/apt/apt.conf.d"
check "it knows the archive" apt update
files >"$dir/before"
mkdir "$root/packages"
cp "$@" "$root/packages" && rm "$root"/packages/*-dbgsym_*

# Wait until a word is in a file.  Return 1 if it is not after 30 s.
wait_for() { # WORD FILE
    local i
    for ((i = 0; i < 300; i++)); do
        ! grep -q "$1" "$2" || return 0
        sleep 0.1
    done
    return 1
}
break_lock() { # NAME
    local id
    id=$(in_root sqlock --url sqlite:/root/locks.db show "$1" --json |
        sed -n 's/.*"client_id": "\(.*\)".*/\1/p')
    in_root sqlock --url sqlite:/root/locks.db break "$1" --client-id "$id" \
        --reason test --now
}
loses() { # STATUS COMMAND...: it prints "held"; its lock is "job"
    local expected=$1 holder
    shift
    : >"$dir/says" # what the one before it said is not waited for
    in_root "$@" >"$dir/says" 2>&1 &
    holder=$!
    wait_for held "$dir/says" && break_lock job
    wait "$holder"
    [ $? -eq "$expected" ] || {
        cat "$dir/says"
        return 1
    }
}

check "the command is installed alone" apt install \
    "./packages/$(cd "$root/packages" && echo sqlock_*.deb)"
check "it makes a table" in_root sqlock --url sqlite:/root/locks.db init
check "a script takes a lock, and is ended when it is lost" \
    loses 76 sqlock --url sqlite:/root/locks.db run --ttl 2 job -c \
    'echo held; sleep 60'
check "its completion is where bash looks" \
    test -s "$root/usr/share/bash-completion/completions/sqlock"
check "and its manual where man does" \
    test -s "$root/usr/share/man/man1/sqlock.1.gz"
check "migrate.sh is there to be run" in_root sh -c \
    '/usr/share/sqlock/migrate.sh 2>&1 | grep -q usage'

check "the library is installed alone" apt install \
    "./packages/$(cd "$root/packages" && echo libsqlock0.1_*.deb)"
# apt has not run ldconfig for it: dpkg has, by a trigger.
check "the loader knows it" bash -c \
    'chroot "$1" /sbin/ldconfig -p | grep -q libsqlock.so.0.1' - "$root"
check "so are its headers, and compilers" apt install \
    "./packages/$(cd "$root/packages" && echo libsqlock-dev_*.deb)" \
    gcc g++ libc6-dev pkg-config
cp tests/cli/install/loses.c tests/cli/install/loses.cc "$root/root" 2>/dev/null
for language in c cc; do
    [ -e "tests/cli/install/loses.$language" ] || continue
    compiler=gcc
    [ $language = c ] || compiler="g++ -std=c++17"
    check "loses.$language is built as the manual says" in_root sh -c \
        "$compiler -Wall -Wextra -Werror /root/loses.$language \
         \$(pkg-config --cflags --libs sqlock) -o /root/loses"
    check "it takes a lock, and notices that it is lost" \
        loses 0 /root/loses sqlite:/root/locks.db job
done
check "a program without shared library is built" in_root sh -c \
    'gcc /root/loses.c -static-libgcc -Wl,-Bstatic -lsqlock -Wl,-Bdynamic \
     $(pkg-config --static --libs sqlock) -o /root/static &&
     ! ldd /root/static | grep libsqlock'
check "examples are there" \
    test -s "$root/usr/share/doc/libsqlock-dev/examples/mutex.c"

check "the Python package is installed, and Python with it" apt install \
    "./packages/$(cd "$root/packages" && echo python3-sqlock_*.deb)"
cp tests/cli/install/loses.py "$root/root"
check "a program in Python takes a lock, and notices that it is lost" \
    loses 0 python3 /root/loses.py sqlite:/root/locks.db job

check "the packages are purged" apt purge sqlock libsqlock-dev \
    libsqlock0.1 python3-sqlock
check "and what came with them" apt purge --auto-remove gcc g++ libc6-dev \
    pkg-config python3
rm -rf "$root/root/locks.db"* "$root"/root/loses* "$root/root/static"
files >"$dir/after"
grep -v '__pycache__' "$dir/after" >"$dir/left"
check "nothing is left of them" bash -c \
    '! comm -13 "$1" "$2" | grep -v "^./etc/ld.so.cache" | grep .' - \
    "$dir/before" "$dir/left"
check "nor does the package system know them" bash -c \
    '! chroot "$1" dpkg -l "*sqlock*" 2>/dev/null | grep -E "^[a-z][^n]"' - \
    "$root"
exit $status
