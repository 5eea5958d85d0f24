#!/usr/bin/env bash
# go.sh: the example of a package for Go is built as its comments say, vetted,
# and its program keeps goroutines apart on SQLite.  SQLOCK_TEST_GO names the
# folder of an older go.
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
# Options and flags of a calling make do not apply to these builds.
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
# Also by the version of go.mod, where Debian's package of that is installed.
oldest=/usr/lib/go-$(sed -n 's/^go //p' go.mod)/bin
for bin in "$(dirname "$(command -v go)")" "${SQLOCK_TEST_GO:-$oldest}"; do
    [ -x "$bin/go" ] || continue
    PATH=$bin:$PATH
    version=$(go version | cut -d ' ' -f 3)
    check "the program is built by $version" go build -o "$work/workers" \
        ./workers
    check "go vet of $version has no complaint" go vet ./...
    check "goroutines take turns, and a wait ends with its context, $version" \
        "$work/workers" "sqlite:$work/locks.db"
    rm -f "$work"/locks.db*
done
check "a URL that leads nowhere is an error" bash -c \
    '! "$1" nonsense://x 2>&1 | grep -q panic && ! "$1" nonsense://x' - \
    "$work/workers"
exit $status
