#!/usr/bin/env bash
# with.sh [COMMAND...]: build the Spring services, and run a command with them
# and with database servers.
#
# The command finds in its environment
#     SQLOCK_TEST_SPRING           a folder spring5, spring6, spring7 for each
#                                  line, with classes/ and lib/ in it
#     SQLOCK_TEST_SPRING_FAKETIME  libfaketime's library; not set: there is none
#     SQLOCK_TEST_SPRING_MYSQL     set: mysql:// leads to Oracle's MySQL, which
#                                  takes Oracle's JDBC driver
# If there is no JDK or Maven, or Maven cannot fetch what it needs, this script
# says so in one line and exits with status 77.
set -u
cd "$(dirname "$0")/../../.." || exit 1
build=${SQLOCK_BUILD:-build}
case $build in
/*) ;;
*) build=$PWD/$build ;;
esac
export SQLOCK_TEST_SPRING=$build/spring
export SQLOCK=${SQLOCK:-$build/bin/sqlock}

absent() { # WHAT
    echo "skip - spring: $1"
    exit 77
}
command -v javac >/dev/null || absent "there is no JDK here"
command -v mvn >/dev/null || absent "there is no Maven here"

# Run Maven offline first, which needs no network if all was fetched before.
build_line() { # LINE
    local log=$SQLOCK_TEST_SPRING/$1.log stamp=$SQLOCK_TEST_SPRING/$1/built
    [ -z "$(find tests/interplay/spring/pom.xml tests/interplay/spring/src -newer "$stamp" \
        2>&1)" ] && return
    echo "spring: building $1" >&2
    rm -rf "${SQLOCK_TEST_SPRING:?}/$1"
    local maven=(mvn -B -f tests/interplay/spring -P "$1" -Dout="$SQLOCK_TEST_SPRING")
    if "${maven[@]}" -o compile >"$log" 2>&1 ||
        "${maven[@]}" compile >"$log" 2>&1; then
        touch "$stamp"
        return
    fi
    if grep -qE 'Could not (resolve|transfer)|could not be resolved' "$log"; then
        absent "Maven cannot fetch what $1 needs: see $log"
    fi
    grep '^\[ERROR\]' "$log" | head -n 20
    echo "not ok - spring: $1 does not build: see $log"
    exit 1
}
mkdir -p "$SQLOCK_TEST_SPRING"
exec {lock}>"$SQLOCK_TEST_SPRING/lock"
flock "$lock"
for line in spring5 spring6 spring7; do
    build_line "$line"
done
exec {lock}>&-
[ $# -gt 0 ] || exit 0

for library in /usr/lib/*/faketime/libfaketimeMT.so.1 \
    /usr/lib/faketime/libfaketimeMT.so.1; do
    [ ! -e "$library" ] || export SQLOCK_TEST_SPRING_FAKETIME=$library
done
case " ${SQLOCK_TEST_SERVERS:-} " in
*' mysql '*) export SQLOCK_TEST_SPRING_MYSQL=1 ;;
esac
exec bash tests/tools/servers/with.sh "$@"
