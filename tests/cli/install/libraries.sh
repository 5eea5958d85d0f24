#!/usr/bin/env bash
# libraries.sh: a client library is loaded when a URL asks for it and not
# before, and all can be unloaded; one that is missing or too old is a clear line.  A build finds the
# client library of a tree (fetch-mysql.sh), where lib is a link.
# shellcheck source=tests/tools/support/script.sh
. "$(dirname "$0")/../../tools/support/script.sh"

clients='lib(pq|mariadb|mysqlclient)\.so'
shared=$build/lib/libsqlock.so

loads() { # COMMAND...: print the client libraries that it loads
    LD_DEBUG=files "$@" 2>&1 | grep -oE "file=$clients" | sort -u
}
for file in "$SQLOCK" "$shared"; do
    check "${file##*/} names no client library" bash -c \
        '! readelf -d "$1" | grep NEEDED | grep -E "$2"' - "$file" "$clients"
done
is "--version loads none" "$(loads "$SQLOCK" --version)" ''
check "init on SQLite" "$SQLOCK" -q --url "sqlite:$dir/l.db" init
is "SQLite loads none" "$(loads "$SQLOCK" --url "sqlite:$dir/l.db" run x true)" ''

# A program may unload the library, while a thread goes on that has used it.
${CC:-cc} -Iinclude tests/cli/install/unload.c -o "$dir/unload" -pthread -ldl
for url in "sqlite:$dir/l.db" "${SQLOCK_TEST_POSTGRES_URL:-}" \
    "${SQLOCK_TEST_MYSQL_URL:-}"; do
    [ -n "$url" ] || continue
    check "init on ${url%%:*}" "$SQLOCK" -q --url "$url" init
    check "${url%%:*}: it can be unloaded" "$dir/unload" "$shared" "$url"
done

# A library of that soname that is no library, or has none of the functions.
mkdir "$dir/broken" "$dir/empty"
lacks() { # URL SONAME PACKAGE
    local error
    echo text >"$dir/broken/$2"
    ${CC:-cc} -shared -x c /dev/null -o "$dir/empty/$2" -Wl,-soname,"$2"
    for kind in broken empty; do
        error=$(LD_LIBRARY_PATH=$dir/$kind timeout 20 "$SQLOCK" --url "$1" \
            run x true 2>&1)
        is "$2, $kind: the exit status" $? 64
        is "$2, $kind: one line" "$(wc -l <<<"$error")" 1
        check "$2, $kind: it names the library and what to install" \
            grep -q "$2.*install.*$3" <<<"$error"
    done
}
built() { # DRIVER
    "$SQLOCK" --version | sed -n "s/^  $1 (\(.*\))$/\1/p"
}
postgres=$(built postgres) mysql=$(built mysql)
[ -z "$postgres" ] || lacks postgresql://127.0.0.1:1/d "$postgres" libpq5
[ -z "$mysql" ] || lacks mysql://u@127.0.0.1:1/d "$mysql" 'lib'

if [ -n "$mysql" ]; then
    mkdir -p "$dir/tree/usr/lib/here"
    ln -s usr/lib/here "$dir/tree/lib"
    soname=libmysqlclient.so.77
    ${CC:-cc} -shared -x c /dev/null -Wl,-soname,$soname \
        -o "$dir/tree/lib/$soname"
    touch "$dir/tree/lib/ld-linux-here.so.2"
    config=$(CC=${CC:-cc} CFLAGS='' CPPFLAGS='' SAN='' PKG_CONFIG=pkg-config \
        DRIVERS=mysql MYSQL_CLIENT=auto MYSQL_CLIENT_TREE=$dir/tree \
        bash .make/configure.sh)
    check "the client library of a tree is found" \
        grep -qF "$dir/tree/lib/$soname" <<<"$config"
fi
exit $status
