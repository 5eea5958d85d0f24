#!/usr/bin/env bash
# setup.sh LEVEL...: what the build, the tests or the checks need, from apt.
# setup.sh --for GOAL...: the same for targets of the Makefile.
#
# Looks first and does nothing when all is there.  Installs as root or through
# `sudo -n`, never with a prompt; otherwise prints the names of the packages.
# No package here starts a service or makes a user: PostgreSQL's server and
# PgBouncer would do both, so these are unpacked under build/ instead.
#
# Levels: build programs test wheel package lint format clang fuzz valgrind
#     chart matrix doc
# Environment: DRIVERS MYSQL_CLIENT MYSQL_CLIENT_TREE CC SQLOCK_TEST_SERVERS;
#     SETUP_LEVELS: of `make setup` (build test package); SUITES: of `make test`
set -u
cd "$(dirname "$0")/.." || exit 1

: "${DRIVERS=sqlite postgres mysql}" "${MYSQL_CLIENT:=auto}"
: "${MYSQL_CLIENT_TREE:=}" "${CC:=cc}"
PATH=$PATH:/usr/sbin:/sbin
missing=()

need() { # PACKAGE, to be called when something is not there
    case " ${missing[*]} " in
    *" $1 "*) ;; # of two levels
    *) missing+=("$1") ;;
    esac
}

have() {
    command -v "$1" >/dev/null 2>&1
}

wants() { # DRIVER
    case " $DRIVERS " in
    *" $1 "*) return 0 ;;
    *) return 1 ;;
    esac
}

# Whether tests/tools/servers/with.sh is to start a server of that database.
serves() { # postgres|mysql
    local servers=" ${SQLOCK_TEST_SERVERS-postgres mariadb} "
    wants "$1" || return 1
    case $1 in
    postgres)
        [ -z "${SQLOCK_TEST_POSTGRES_URL:-}" ] &&
            [[ $servers =~ \ (postgres|pgbouncer|standby|patroni) ]]
        ;;
    mysql)
        [ -z "${SQLOCK_TEST_MYSQL_URL:-}" ] &&
            [[ $servers =~ \ (mariadb|mysql|galera|replica|group) ]]
        ;;
    esac
}

module() { # PKG-CONFIG-MODULE PACKAGE
    pkg-config --exists "$1" 2>/dev/null || need "$2"
}

header() { # HEADER PACKAGE
    # shellcheck disable=SC2086 # CC may have words: "ccache gcc"
    printf '#include <stddef.h>\n#include <sys/types.h>\n#include <%s>\n' "$1" |
        $CC -E -x c - >/dev/null 2>&1 || need "$2"
}

python() { # MODULE PACKAGE
    /usr/bin/python3 -c "import $1" >/dev/null 2>&1 || need "$2"
}

# The first of these packages that apt knows: some are called otherwise in
# other releases.
known() {
    local name
    for name in "$@"; do
        if [ -n "$(apt-cache show "$name" 2>/dev/null | head -c 1)" ]; then
            echo "$name"
            return
        fi
    done
    echo "$1"
}

probe_build() {
    if ! have "${CC%% *}"; then
        case $CC in
        clang*) need clang ;;
        *) need gcc ;;
        esac
        need libc6-dev
    elif ! echo 'int main(void){return 0;}' |
        $CC -x c - -o /dev/null 2>/dev/null; then
        need libc6-dev
    fi
    have make || need make
    have pkg-config || need pkg-config
    ! wants sqlite || module sqlite3 libsqlite3-dev
    ! wants postgres || module libpq libpq-dev
    if wants mysql && [ -z "$MYSQL_CLIENT_TREE" ]; then
        case $MYSQL_CLIENT in
        mysqlclient) module mysqlclient libmysqlclient-dev ;;
        libmariadb) module libmariadb libmariadb-dev ;;
        *) pkg-config --exists libmariadb 2>/dev/null ||
            module mysqlclient libmariadb-dev ;;
        esac
    fi
    module jansson libjansson-dev
    header uthash.h uthash-dev
    header md5.h libmd-dev
    # Reads the statements of sql/, and makes manual pages of the headers.
    have perl || need perl-base
}

# The manual as HTML.
probe_doc() {
    have mandoc || need mandoc
    have perl || need perl-base
}

faketime() {
    local library
    for library in /usr/lib/*/faketime/libfaketimeMT.so.1 \
        /usr/lib/faketime/libfaketimeMT.so.1; do
        [ ! -e "$library" ] || return 0
    done
    return 1
}

# The test programs, without the scripts and the servers.
probe_programs() {
    module cmocka libcmocka-dev
    module popt libpopt-dev
}

# The package for Python as a wheel.
probe_wheel() {
    python setuptools python3-setuptools
    python wheel python3-wheel
    python pip python3-pip
}

probe_test() {
    probe_programs
    probe_wheel
    # The headers have to compile as C++, too.
    have "${CXX:-c++}" || need g++
    # Users of the installed library may use CMake.
    have cmake || need cmake
    have pgrep || need procps
    # Some tests have mounts of their own.
    have mount || need mount
    # The Python package is tested by Debian's Python, on the connections of
    # each database's modules, and as a wheel in a virtual environment.
    python pytest python3-pytest
    python ensurepip python3-venv
    # Greenlets wait without stopping their loop.
    python gevent python3-gevent
    python eventlet python3-eventlet
    ! wants postgres || python psycopg python3-psycopg
    ! wants postgres || python psycopg2 python3-psycopg2
    ! wants sqlite || python apsw python3-apsw
    ! wants mysql || python MySQLdb python3-mysqldb
    # A database's own command, for upgrade scripts, too; the manuals; the
    # completions.
    ! wants sqlite || have sqlite3 || need sqlite3
    have mandoc || need mandoc
    have zsh || need zsh
    have jq || need jq
    # Prometheus' own parser reads the output of `sqlock metrics`.
    python prometheus_client python3-prometheus-client
    # The recipe for Kubernetes is a YAML document.
    python yaml python3-yaml
    # Certificates for servers that speak TLS.
    have openssl || need openssl
    # The models of tests/model.
    have spin || need spin
    # Servers whose clock is set.
    faketime || need libfaketime
    if serves postgres; then
        # A server says nothing sensible about UTC without it.
        [ -e /usr/share/zoneinfo/UTC ] || need tzdata
    fi
    if serves mysql; then
        if ! have mariadbd && ! have mysqld; then
            need "$(known mariadb-server-core mariadb-server-core-10.6 \
                mariadb-server-core-10.5)"
        fi
        if ! have mariadb && ! have mysql; then
            need "$(known mariadb-client-core mariadb-client-core-10.6 \
                mariadb-client-core-10.5)"
        fi
    fi
}

# Debian packages are built, with their tests, and looked over.
probe_deb() {
    module cmocka libcmocka-dev
    module popt libpopt-dev
    have dpkg-buildpackage || need dpkg-dev
    # A package's build may take these for granted.
    dpkg-query -s build-essential >/dev/null 2>&1 || need build-essential
    have dh || need debhelper
    have dh_python3 || need dh-python
    have lintian || need lintian
    have xz || need xz-utils
}

# Debian packages are tried in a Debian with nothing else; the library's binary
# interface is compared with the recorded one; the example in Go is built, and
# the C++ headers are compiled by a second compiler (450 MB and more once
# installed, so not for each test).
probe_package() {
    probe_deb
    have abidiff || need abigail-tools
    have mmdebstrap || need mmdebstrap
    have go || [ -x /usr/local/go/bin/go ] || need golang-go
    have clang++ || need clang
}

# One major version formats and checks alike everywhere.
probe_format() {
    have clang-format-14 ||
        { clang-format --version 2>/dev/null | grep -q 'version 14\.'; } ||
        need clang-format-14
}

probe_lint() {
    have clang-tidy-14 || have clang-tidy || need clang-tidy-14
    have cppcheck || need cppcheck
    have shellcheck || need shellcheck
    have mandoc || need mandoc
    python black black
    python mypy mypy
    python pyflakes python3-pyflakes
}

probe_clang() {
    have clang || need clang
}

# libFuzzer comes with clang's runtime libraries, in a package of its own or not.
probe_fuzz() {
    local version
    have clang || need clang
    version=$(clang --version 2>/dev/null | sed -nE 's/.*version ([0-9]+).*/\1/p')
    echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' |
        clang -fsanitize=fuzzer,address -x c - -o /dev/null 2>/dev/null ||
        need "$(known "libclang-rt-${version:-14}-dev" \
            "libclang-common-${version:-14}-dev")"
}

probe_valgrind() {
    have valgrind || need valgrind
}

# Servers of other suites are unpacked, and told where their libraries are.
probe_matrix() {
    have patchelf || need patchelf
}

probe_chart() {
    have gnuplot || need gnuplot-nox
    have jq || need jq
}

probe() {
    local level
    missing=()
    for level in "$@"; do
        case $level in
        build | programs | test | wheel | deb | package | lint | format | clang | fuzz | valgrind | \
            chart | matrix | doc)
            "probe_$level"
            ;;
        *)
            echo "setup: no level $level" >&2
            exit 2
            ;;
        esac
    done
}

install_missing() {
    local as_root=()
    local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -q
        -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=120)

    if ! have apt-get; then
        echo "setup: no apt-get here; install what these Debian packages hold:"
        echo "    ${missing[*]}"
        return 1
    fi
    if [ "$(id -u)" -ne 0 ]; then
        if ! sudo -n true 2>/dev/null; then
            echo "setup: not root, and $(have sudo &&
                echo sudo asks for a password ||
                echo there is no sudo); please run as root:"
            echo "    apt-get install --no-install-recommends ${missing[*]}"
            return 1
        fi
        as_root=(sudo -n)
    fi
    echo "setup: installs by apt-get, as root and without asking (SETUP=no" \
        "leaves it out): ${missing[*]}"
    "${as_root[@]}" "${apt[@]}" install -y --no-install-recommends \
        "${missing[@]}" >build/setup.log 2>&1 && return 0
    # No package lists yet, or lists that name what the mirror has replaced.
    "${as_root[@]}" "${apt[@]}" update >>build/setup.log 2>&1
    probe "$@" # the lists may know a better name
    [ ${#missing[@]} -gt 0 ] || return 0
    "${as_root[@]}" "${apt[@]}" install -y --no-install-recommends \
        "${missing[@]}" >>build/setup.log 2>&1 && return 0
    tail -n 20 build/setup.log
    echo "setup: apt-get failed, see build/setup.log"
    return 1
}

# Packages, bindings and other compilers are those of the suite `install`.
levels_of() { # GOAL
    case $1 in
    setup) echo "${SETUP_LEVELS:-build test package}" ;;
    demo) echo build ;;
    chart | picture) echo build test chart ;;
    test | check)
        case " ${SUITES:-install} " in
        *' install '*) echo build test package ;;
        *) echo build test ;;
        esac
        ;;
    test-matrix | campaign) echo build test matrix ;;
    deb) echo build deb ;;
    quick | tests-build) echo build programs ;;
    wheel) echo build wheel ;;
    abi | abi-record) echo build test package ;;
    lint) echo build test lint ;;
    doc) echo doc ;;
    format | format-check) echo format ;;
    fuzz) echo build fuzz ;;
    valgrind) echo build test valgrind ;;
    *) echo build test ;;
    esac
}

if [ "${1:-}" = --for ]; then
    shift
    goals=("$@")
    set --
    for goal in "${goals[@]}"; do
        # shellcheck disable=SC2046 # levels are words
        set -- "$@" $(levels_of "$goal")
    done
fi

probe "$@"
if [ ${#missing[@]} -gt 0 ]; then
    mkdir -p build
    install_missing "$@" || exit 1
    hash -r
    probe "$@"
    if [ ${#missing[@]} -gt 0 ]; then
        echo "setup: still not found after installing: ${missing[*]}"
        exit 1
    fi
fi

case " $* " in
*" test "*)
    if serves postgres; then
        bash tests/tools/servers/fetch-postgres.sh || exit 1
    fi
    ;;
esac
exit 0
