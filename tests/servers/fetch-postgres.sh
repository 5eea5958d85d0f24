#!/usr/bin/env bash
# fetch-postgres.sh: where PostgreSQL's server programs are, after unpacking
# them under build/servers/postgres when there are none.  Prints nothing;
# postgres-bin.sh says where they are.
#
# Debian's server package would start a service and make a user, so it is not
# installed: it and those libraries it needs that are not here are downloaded
# and unpacked.  PostgreSQL finds its files relative to its programs.
set -u
cd "$(dirname "$0")/../.." || exit 1
root=$PWD
tree=build/servers/postgres

bash tests/servers/postgres-bin.sh >/dev/null && exit 0

if ! command -v apt-get >/dev/null; then
    echo "tests: no PostgreSQL server programs (initdb, postgres) here;"
    echo "    put them on PATH or set SQLOCK_TEST_POSTGRES_URL"
    exit 1
fi

# The packages that would be installed: libraries, server and client only.
# libllvm serves just-in-time compilation, which the tests switch off.
wanted() {
    local server
    server=$(apt-cache depends postgresql 2>/dev/null |
        sed -n 's/^ *Depends: \(postgresql-[0-9][0-9]*\)$/\1/p' | head -n 1)
    [ -n "$server" ] || return 1
    apt-get -s install --no-install-recommends "$server" 2>/dev/null |
        sed -n 's/^Inst \([^ ]*\) .*/\1/p' |
        grep -E "^(lib|postgresql-(client-)?[0-9]+$)" |
        grep -vE '^lib(llvm|clang|z3|gdbm|perl|python)|-perl$'
}

refresh() {
    if [ "$(id -u)" -eq 0 ]; then
        apt-get -q update >/dev/null 2>&1
    else
        sudo -n apt-get -q update >/dev/null 2>&1
    fi
}

# Into the present folder.  As root apt would download as another user, who may
# not write here.
download() {
    wanted | xargs apt-get -q -o APT::Sandbox::User=root download >log 2>&1
}

# No package lists yet, or lists that name what the mirror has replaced.
[ -n "$(wanted)" ] || refresh
if [ -z "$(wanted)" ]; then
    echo "tests: apt knows no PostgreSQL server; install its programs (initdb,"
    echo "    postgres) or set SQLOCK_TEST_POSTGRES_URL"
    exit 1
fi

echo "setup: unpacking PostgreSQL's packages under $tree"
rm -rf "$tree" "$tree.new"
mkdir -p "$tree.new/debs"
cd "$tree.new/debs" || exit 1
download || { refresh && download; } || {
    tail -n 5 log
    echo "tests: cannot download PostgreSQL's packages"
    exit 1
}
for deb in *.deb; do
    dpkg-deb -x "$deb" .. || exit 1
done
cd "$root" || exit 1
# Where /lib is a link to /usr/lib, packages may still use the one or the other.
if [ -d "$tree.new/lib" ]; then
    cp -a "$tree.new"/lib/. "$tree.new/usr/lib/" || exit 1
    rm -rf "$tree.new/lib"
fi
rm -rf "$tree.new"/debs "$tree.new"/usr/share/{doc,man,locale,lintian}
mv "$tree.new" "$tree"

bash tests/servers/postgres-bin.sh >/dev/null || {
    echo "tests: no usable PostgreSQL among the unpacked packages"
    exit 1
}
