#!/usr/bin/env bash
# ca.sh DIR: create DIR, with the certificates that the tests of TLS need.
#
#     DIR/ca.pem          the certificate authority that clients trust
#     DIR/foreign-ca.pem  another certificate authority
#     DIR/{good,wrong-name,expired,foreign}/{cert,key}.pem  of a server:
#         good        for localhost and 127.0.0.1, signed by ca.pem
#         wrong-name  for another host and address, signed by ca.pem
#         expired     as good, but expired since yesterday
#         foreign     as good, but signed by foreign-ca.pem
#     DIR/{postgres,mysql}  a link to the folder whose certificate this server
#         presents, at first good.  To change the certificate, change the link
#         and have the server read its files again.
#
# The keys belong to the user as which servers run (common.sh).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/tools/servers/common.sh
. "$here/common.sh"

command -v openssl >/dev/null || absent "no openssl"
mkdir -p "$1"
dir=$(cd "$1" && pwd)
chmod 711 "$dir"
umask 077
cd "$dir"

# The configuration of `openssl ca`, which is used because it can date a
# certificate back.
cat >config <<'END'
[req]
distinguished_name = name
[name]
[ca]
database = issued
new_certs_dir = .
default_md = sha256
policy = any
rand_serial = yes
unique_subject = no
[any]
commonName = supplied
[authority]
basicConstraints = critical,CA:TRUE
keyUsage = critical,keyCertSign
END
: >issued

quietly() {
    "$@" >>log 2>&1 || {
        tail -n 5 log >&2
        fail "$1 $2 failed"
    }
}

authority() { # NAME
    quietly openssl req -config config -x509 -newkey ec \
        -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=sqlock tests $1" \
        -extensions authority -days 30 -keyout "$1.key" -out "$1.pem"
    chmod 644 "$1.pem"
}

server() { # NAME AUTHORITY HOST ADDRESS FROM TO
    mkdir "$1"
    chmod 711 "$1"
    quietly openssl req -config config -new -newkey ec \
        -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$3" \
        -keyout "$1/key.pem" -out "$1.csr"
    printf 'subjectAltName = DNS:%s, IP:%s\n' "$3" "$4" >extensions
    quietly openssl ca -batch -notext -config config -name ca \
        -extfile extensions -cert "$2.pem" -keyfile "$2.key" \
        -startdate "$5" -enddate "$6" -in "$1.csr" -out "$1/cert.pem"
    chmod 644 "$1/cert.pem"
    if [ ${#as_server[@]} -gt 0 ]; then
        chown nobody "$1/key.pem"
    fi
}

day() { # date(1)'s words for it
    date -u -d "$1" +%y%m%d%H%M%SZ
}

before=$(day '10 days ago') yesterday=$(day '1 day ago') then=$(day '20 days')
authority ca
authority foreign-ca
server good ca localhost 127.0.0.1 "$before" "$then"
server wrong-name ca elsewhere.invalid 192.0.2.1 "$before" "$then"
server expired ca localhost 127.0.0.1 "$before" "$yesterday"
server foreign foreign-ca localhost 127.0.0.1 "$before" "$then"
rm -f config issued* extensions ./*.csr ./*.key log ./[0-9A-F]*.pem
ln -s good postgres
ln -s good mysql
