#!/usr/bin/env bash
# go.sh: the example of a package for Go is built as its comments say, vetted,
# and its program keeps goroutines apart on SQLite.
set -u
cd "$(dirname "$0")/../../.." || exit 1
build=$(realpath "${SQLOCK_BUILD:-build}")
PATH=$PATH:/usr/local/go/bin
work=$(mktemp -d /tmp/sqlock-go.XXXXXX) || exit 1
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
status=0

check() { # WHAT COMMAND...
    local what=$1
    shift
    if "$@" >"$work/out" 2>&1; then
        echo "ok - $what"
    else
        tail -n 30 "$work/out"
        echo "not ok - $what"
        status=1
    fi
}
command -v go >/dev/null || {
    echo "skip - go is not installed"
    exit 77
}
case " ${DRIVERS-sqlite} " in
*' sqlite '*) ;;
*)
    echo "skip - the library has no driver of SQLite"
    exit 77
    ;;
esac

# Nothing is fetched, and nothing is left in the user's folders.
export GOTOOLCHAIN=local GOPROXY=off GOFLAGS=-buildvcs=false GOWORK=off
export GOCACHE=$work/cache GOPATH=$work/path GOENV=off HOME=$work
export PKG_CONFIG_PATH=$build/lib/pkgconfig CGO_CFLAGS="-I$PWD/include -O1"
export CGO_LDFLAGS="-L$build/lib -Wl,-rpath,$build/lib"
# What is being built may not be where it will be installed.
unset MAKEFLAGS MFLAGS CFLAGS LDFLAGS

cd src/examples/go || exit 1
gofmt_says() {
    local unformatted
    unformatted=$(gofmt -l .) && [ -z "$unformatted" ] || {
        gofmt -d .
        return 1
    }
}
check "the sources are formatted" gofmt_says
check "the program is built" go build -o "$work/workers" ./workers
check "go vet has no complaint" go vet ./...
check "goroutines take turns, and a wait ends with its context" \
    "$work/workers" "sqlite:$work/locks.db"
check "a URL that leads nowhere is an error" bash -c \
    '! "$1" nonsense://x 2>&1 | grep -q panic && ! "$1" nonsense://x' - \
    "$work/workers"
exit $status
