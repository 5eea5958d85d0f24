#!/bin/bash
# fetch-mysql.sh DIR - unpack Oracle's MySQL (server, shell, client library and
# headers) from Debian's unstable suite under DIR.  Nothing is installed, and
# the programs run with the C library of that suite.
#
# The script makes
#     DIR/usr        the unpacked packages
#     DIR/include    headers, for -IDIR/include -IDIR/include/mysql
#     DIR/lib        a link to the folder of the libraries and the loader
#     DIR/mysqld     DIR/mysql      scripts that start the server and the shell
#     DIR/version    the version, such as "9.7.4-2"; made last
#
# If there is DIR/version, the script does nothing.  It needs Debian with apt
# and its archive keyring, network, and about 350 MB.  The archive does not keep
# old versions, so the script takes the current one.
set -euo pipefail

fail() {
    echo "fetch-mysql: $*" >&2
    exit 1
}

[ $# -eq 1 ] || fail "usage: fetch-mysql.sh DIR"
for tool in apt-get dpkg-deb; do
    command -v "$tool" >/dev/null || fail "$tool is missing"
done
mkdir -p "$1"
dir=$(cd "$1" && pwd)
[ -e "$dir/version" ] && exit 0

keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -r "$keyring" ] || fail "$keyring is missing"

# The mirror that apt uses on this machine for Debian's main archive.
mirror=$(apt-get indextargets --format '$(REPO_URI) $(ORIGIN) $(LABEL)' |
    awk '$2 == "Debian" && $3 == "Debian" { print $1; exit }')
[ -n "$mirror" ] || mirror=$(apt-get indextargets --format '$(REPO_URI)' |
    grep -v -e security | head -n 1)
[ -n "$mirror" ] || fail "apt has no archive to fetch from"

# Configure apt with lists and a cache of its own, and without any installed
# package, so that it names all packages that MySQL depends on.
work=$dir/.fetch
rm -rf "$work" "${dir:?}/usr" "$dir/include" "${dir:?}/lib"
mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/debs" \
    "$work/root"
echo "deb [signed-by=$keyring] $mirror sid main" >"$work/sources.list"
apt=(apt-get -q
    -o Dir::Etc::sourcelist="$work/sources.list"
    -o Dir::Etc::sourceparts=/dev/null
    -o Dir::State::lists="$work/lists"
    -o Dir::State::status=/dev/null
    -o Dir::Cache="$work/cache"
    -o APT::Sandbox::User=root
    -o APT::Get::List-Cleanup=0
    -o Acquire::Languages=none
    -o Debug::NoLocking=1)
"${apt[@]}" update >"$work/log" 2>&1 || {
    cat "$work/log" >&2
    fail "cannot read the archive's index"
}

# Packages to leave out: those that only maintainer scripts need, which do not
# run; and the C headers, which would be found before the host's.
useless='^(perl|libperl|libdb|libgdbm|dpkg|tar|debconf|adduser|passwd|login'
useless+='|base-|init|sysv|apt|libc6-dev|libc-dev|linux-libc|libssl-dev'
useless+='|libzstd-dev|zlib1g-dev|rpcsvc|libcrypt-dev|gcc-.*-base|libc-gconv)'
mapfile -t packages < <("${apt[@]}" -s install --no-install-recommends \
    mysql-server-core mysql-client-core libmysqlclient-dev 2>>"$work/log" |
    awk '$1 == "Inst" { print $2 }' | grep -vE "$useless")
[ ${#packages[@]} -gt 0 ] || fail "MySQL cannot be had from the archive today"
(cd "$work/debs" && "${apt[@]}" download "${packages[@]}") >>"$work/log" 2>&1 ||
    fail "cannot download: $(tail -n 1 "$work/log")"
for package in "$work"/debs/*.deb; do
    dpkg-deb -x "$package" "$work/root"
done
version=$(dpkg-deb -f "$work"/debs/mysql-server-core_*.deb Version)

mv "$work/root/usr" "$dir/usr"
rm -rf "$dir"/usr/share/{doc,man,lintian,locale,apport}
loader=$(cd "$dir/usr/lib" && echo */ld-linux-*.so.*)
[ -e "$dir/usr/lib/$loader" ] || fail "the packages hold no loader"
ln -s "usr/lib/${loader%/*}" "$dir/lib"
# Only MySQL's headers: others in usr/include are for another C library.
mkdir "$dir/include"
ln -s ../usr/include/mysql "$dir/include/mysql"

# Write the scripts that start the programs.  A program's path is absolute
# there, and its directories are options, since it was built for other
# directories.
for program in sbin/mysqld bin/mysql; do
    name=${program#*/}
    {
        echo '#!/bin/sh'
        echo "exec '$dir/lib/${loader#*/}' --argv0 '$dir/usr/$program' \\"
        echo "    --library-path '$dir/lib' '$dir/usr/$program' \\"
        if [ "$name" = mysqld ]; then
            echo "    --no-defaults --basedir='$dir/usr' \\"
            echo "    --lc-messages-dir='$dir/usr/share/mysql' \\"
            echo "    --plugin-dir='$dir/usr/lib/mysql/plugin' \\"
            echo "    --secure-file-priv= \\"
        else
            echo "    --no-defaults \\"
        fi
        echo "    --character-sets-dir='$dir/usr/share/mysql/charsets' \"\$@\""
    } >"$dir/$name"
    chmod 755 "$dir/$name"
done
"$dir/mysqld" --version >/dev/null || fail "the server does not start"
rm -rf "$work"
echo "$version" >"$dir/version"
