#!/usr/bin/env bash
# go.sh: the example of a package for Go is built as its comments say, vetted,
# and its program keeps goroutines apart, or lets them share, on SQLite.
# SQLOCK_TEST_GO names the folder of an older go.
# shellcheck source=tests/tools/support/script.sh
. "$(dirname "$0")/../../tools/support/script.sh"
PATH=$PATH:/usr/local/go/bin
trap 'chmod -R u+w "$dir"; finish' EXIT
command -v go >/dev/null || skip_all "go is not installed"
case " ${DRIVERS-sqlite} " in
*' sqlite '*) ;;
*) skip_all "the library has no driver of SQLite" ;;
esac

# Fetch nothing, and leave nothing in the user's folders.  Go's cache is kept
# for the next run, with Go's compiled standard library.  Go compares only the
# names of C headers, so a flag with a checksum tells it that ours have changed.
headers=$(cat include/*.h include/sqlock/*.h | cksum | cut -d ' ' -f 1)
export GOTOOLCHAIN=local GOPROXY=off GOFLAGS=-buildvcs=false GOWORK=off
export GOCACHE=$build/go GOPATH=$dir/path GOENV=off HOME=$dir
export PKG_CONFIG_PATH=$build/lib/pkgconfig
export CGO_CFLAGS="-I$PWD/include -O1 -DSQLOCK_HEADERS=$headers"
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
# Build also by the version that go.mod names, if Debian's package is there.
oldest=/usr/lib/go-$(sed -n 's/^go //p' go.mod)/bin
for bin in "$(dirname "$(command -v go)")" "${SQLOCK_TEST_GO:-$oldest}"; do
    [ -x "$bin/go" ] || continue
    PATH=$bin:$PATH
    version=$(go version | cut -d ' ' -f 3)
    check "the program is built by $version" go build -o "$dir/workers" \
        ./workers
    check "go vet of $version has no complaint" go vet ./...
    check "goroutines take turns, share permits, wait, read and forget, $version" \
        "$dir/workers" "sqlite:$dir/locks.db"
    rm -f "$dir"/locks.db*
done
check "a URL that leads nowhere is an error" bash -c \
    '! "$1" nonsense://x 2>&1 | grep -q panic && ! "$1" nonsense://x' - \
    "$dir/workers"
# Of several hosts the first that can be used is.
case ${SQLOCK_TEST_MYSQL_URL-}/${DRIVERS-} in
*@*/*mysql*)
    check "goroutines do so on the second of two MySQL hosts" \
        "$dir/workers" "${SQLOCK_TEST_MYSQL_URL/@/@127.0.0.1:1,}"
    ;;
esac
exit $status
