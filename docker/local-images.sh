#!/usr/bin/env bash
# local-images.sh [NAME...]: make images for the compose files where no registry
# is reachable, all or those that are named.
#
# Their contents come from the Debian archive that apt uses on this machine:
# PostgreSQL and MariaDB of the stable suite, Oracle's MySQL as
# tests/tools/servers/fetch-mysql.sh unpacks it.  They are named
#     sqlock-local/postgres  sqlock-local/mariadb  sqlock-local/mysql
# beside sqlock-local/base, Debian and nothing more, and take the same settings
# as the official images, as far as the compose files use them.  The image
# sqlock-local/command, only made when named, has the command that `make` has
# built here, and is made anew each time.  Needs root,
# debootstrap, and a Docker daemon of this machine; network for this script only,
# not for the daemon.  An image that is there is kept.
#
# SQLOCK_TEST_MYSQL_TREE names a MySQL tree that was fetched before.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
suite=bookworm

fail() {
    echo "local-images: $*" >&2
    exit 1
}

[ "$(id -u)" -eq 0 ] || fail "must be root, for debootstrap"
for tool in docker debootstrap apt-get; do
    command -v "$tool" >/dev/null || fail "$tool is missing"
done
docker info >/dev/null 2>&1 || fail "no Docker daemon answers"
# shellcheck disable=SC2016 # these are apt's own
archive=$(apt-get indextargets --format '$(REPO_URI) $(ORIGIN) $(LABEL)' |
    awk '$2 == "Debian" && $3 == "Debian" { print $1; exit }')
[ -n "$archive" ] || fail "apt has no Debian archive to fetch from"

work=$(mktemp -d /tmp/sqlock-images.XXXXXX)
trap 'rm -rf --one-file-system "$work"' EXIT

# Unpack the distribution once; each image starts from a copy.
need_base() {
    [ ! -d "$work/base" ] || return 0
    echo "local-images: unpacking $suite"
    debootstrap --variant=minbase "$suite" "$work/base" "$archive" \
        >"$work/log" 2>&1 || {
        tail -n 20 "$work/log" >&2
        fail "debootstrap failed"
    }
    # Packages may not start services, and nobody needs a ready-made cluster.
    printf '#!/bin/sh\nexit 101\n' >"$work/base/usr/sbin/policy-rc.d"
    chmod 755 "$work/base/usr/sbin/policy-rc.d"
    mkdir -p "$work/base/etc/postgresql-common"
    echo 'create_main_cluster = false' \
        >"$work/base/etc/postgresql-common/createcluster.conf"
}

add_packages() { # ROOT PACKAGE...
    local root=$1
    shift
    DEBIAN_FRONTEND=noninteractive LC_ALL=C chroot "$root" apt-get -q install \
        -y --no-install-recommends "$@" </dev/null >"$work/log" 2>&1 || {
        tail -n 20 "$work/log" >&2
        fail "cannot install $*"
    }
}

# How a node gives its data to another is in mariadb-server, whose settings and
# service nobody needs here.
add_mariadb() { # ROOT
    add_packages "$1" mariadb-server-core mariadb-client-core galera-4 rsync \
        lsof iproute2 procps
    chroot "$1" sh -ec 'cd /tmp && apt-get -q download mariadb-server
        dpkg-deb --fsys-tarfile mariadb-server_*.deb |
            tar -x -C / --wildcards "./usr/bin/wsrep_sst_*"
        rm mariadb-server_*.deb' >"$work/log" 2>&1 ||
        fail "cannot unpack mariadb-server"
}

# The tree's programs find each other by absolute paths, so those are rewritten.
add_mysql() { # ROOT
    local tree=${SQLOCK_TEST_MYSQL_TREE:-$work/mysql}
    bash "$here/../tests/tools/servers/fetch-mysql.sh" "$tree"
    tree=$(cd "$tree" && pwd)
    mkdir -p "$1/opt/mysql"
    cp -a "$tree/usr" "$tree/lib" "$1/opt/mysql/"
    local program
    for program in mysqld mysql; do
        sed "s#$tree#/opt/mysql#g" "$tree/$program" \
            >"$1/usr/local/bin/$program"
        chmod 755 "$1/usr/local/bin/$program"
    done
}

# With the libraries that it is linked with, from the packages that hold them.
add_command() { # ROOT
    local build=${SQLOCK_BUILD:-$here/../build}
    add_packages "$1" libsqlite3-0 libpq5 libmariadb3 libmd0 libjansson4
    [ -x "$build/bin/sqlock" ] || fail "build the command first: make"
    install -m 755 "$build/bin/sqlock" "$1/usr/bin/sqlock"
    chroot "$1" sqlock --version >"$work/log" 2>&1 ||
        fail "the command does not start: $(cat "$work/log")"
}

make_image() { # NAME ENTRYPOINT COMMAND
    local name=sqlock-local/$1 root=$work/root entrypoint=entrypoint
    [ "$2" != sqlock ] || entrypoint=sqlock
    if [ "$1" != command ] && docker image inspect "$name" >/dev/null 2>&1; then
        echo "local-images: $name is there"
        return
    fi
    need_base
    echo "local-images: making $name"
    rm -rf --one-file-system "$root"
    cp -a "$work/base" "$root"
    case $1 in
    command) add_command "$root" ;;
    postgres) add_packages "$root" postgresql ;;
    mariadb) add_mariadb "$root" ;;
    mysql) add_mysql "$root" ;;
    esac
    rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*
    if [ "$2" != sqlock ]; then
        install -m 755 "$here/images/$2" "$root/usr/local/bin/entrypoint"
        mkdir -p "$root/docker-entrypoint-initdb.d"
    fi
    import_root "$root" --change "ENTRYPOINT [\"$entrypoint\"]" \
        --change "CMD [$3]" --change "ENV PATH=$path" - "$name"
}

import_root() { # ROOT, as for docker import
    local root=$1
    shift
    tar -C "$root" --exclude=./dev --exclude=./proc --exclude=./sys -c . |
        docker import "$@" >/dev/null
}

# The distribution alone, for ../Dockerfile to begin with.
make_base() {
    local name=sqlock-local/base
    if docker image inspect "$name" >/dev/null 2>&1; then
        echo "local-images: $name is there"
        return
    fi
    need_base
    echo "local-images: making $name"
    import_root "$work/base" - "$name"
}

path=/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin
path+=:/usr/lib/postgresql/15/bin
[ $# -gt 0 ] || set -- base postgres mariadb mysql
for name; do
    case $name in
    base) make_base ;;
    postgres) make_image postgres postgres.sh '"postgres"' ;;
    command) make_image command sqlock '"help"' ;;
    mariadb | mysql) make_image "$name" mysql.sh '' ;;
    *) fail "there is no image $name" ;;
    esac
done
