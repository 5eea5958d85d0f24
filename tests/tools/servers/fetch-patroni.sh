#!/usr/bin/env bash
# fetch-patroni.sh DIR: unpack Patroni, etcd and HAProxy from this machine's
# Debian under DIR, for patroni.sh.  Nothing is installed, since the packages
# would start services.  These three come even where they are installed, and with
# them what they need and this machine lacks; Python is this machine's.  DIR/version is made last, and with it there is
# nothing to do.
set -eu -o pipefail

fail() {
    echo "fetch-patroni: $*" >&2
    exit 1
}

[ $# -eq 1 ] || fail "usage: fetch-patroni.sh DIR"
[ ! -e "$1/version" ] || exit 0
for tool in apt-get dpkg-deb; do
    command -v "$tool" >/dev/null || fail "$tool is missing"
done
rm -rf "${1:?}"
mkdir -p "$1/debs"
cd "$1/debs"
named=(patroni etcd-server haproxy)
packages=$(apt-get -s install --no-install-recommends "${named[@]}" 2>/dev/null |
    awk '$1 == "Inst" { print $2 }') || fail "apt does not know ${named[*]}"
# shellcheck disable=SC2086 # several
apt-get -q -o APT::Sandbox::User=root download "${named[@]}" $packages >log 2>&1 ||
    fail "cannot download: $(tail -n 1 log)"
for deb in *.deb; do
    dpkg-deb -x "$deb" ..
done
dpkg-deb -f patroni_*.deb Version >../version
rm -rf ../debs
