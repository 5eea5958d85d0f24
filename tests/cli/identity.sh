#!/usr/bin/env bash
# identity.sh: a SQLite file that two processes reach in two ways, or that is
# replaced while a lock in it is held: nobody gets a lock that another holds, and
# a holder whose file is gone is told why.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck disable=SC2154,SC2034 # variables of lib.sh
tool json jansson

# Make $base/a.db anew, with a lock table, and hold L in it.
hold_anew() { # WAY
    base=$(mktemp -d "$dir/identity.XXXXXX")
    SQLOCK_URL=sqlite:$base/${2:-a.db}
    export SQLOCK_URL
    "$SQLOCK" -q --url "sqlite:$base/a.db" --table-prefix "$prefix" init
    [ $# -lt 2 ] || ln -s a.db "$base/$2"
    database=$1
    hold L -t 3
}
# Try to get the lock by another name of the file.
second() { # NAME
    SQLOCK_URL=sqlite:$base/$1 run run -n L -- echo "it runs"
}
# The holder ends by itself, and says so.
is_told() { # STATUS TEXT
    ends
    is "the holder ends by itself" "$?" "$1"
    has "the holder is told" "$(cat "$dir/holder.err")" "$2"
}

prefix=INT_
export SQLOCK_REGION=DEFAULT

hold_anew "hard link"
ln "$base/a.db" "$base/b.db"
second b.db
is "the second is refused" "$status/$out" 64/
has "it is said why" "$err" "hard link"
is_told 76 "hard link"

hold_anew "two names by a symbolic link"
ln -s a.db "$base/l.db"
second l.db
is "the second waits for the first" "$status/$out" 75/
let_go

# The next process gets the lock after the holder has been told.
for gone in a.db-wal a.db-shm "a.db-wal a.db-shm"; do
    hold_anew "without $gone"
    # shellcheck disable=SC2086 # names without blanks
    (cd "$base" && rm $gone)
    case $gone in
    *wal*) is_told 76 "lost" ;;
    *) let_go ;;
    esac
    second a.db
    is "the next one gets the lock" "$status/$out" "0/it runs"
done

hold_anew "the file was removed"
rm "$base/a.db"
is_told 76 "is not there any more"

hold_anew "an empty table took its place"
"$SQLOCK" -q --url "sqlite:$base/b.db" --table-prefix "$prefix" init
rm "$base/a.db-wal" "$base/a.db-shm"
mv "$base/b.db" "$base/a.db"
is_told 76 "lost"

hold_anew "a symbolic link leads elsewhere" l.db
"$SQLOCK" -q --url "sqlite:$base/b.db" --table-prefix "$prefix" init
ln -sf b.db "$base/l.db"
is_told 76 "lost"
second l.db
is "the next one gets the lock" "$status/$out" "0/it runs"

# As a container does that is given the file and not its directory.
hold_anew "the file alone is mounted"
touch "$base/m.db"
# shellcheck disable=SC2016 # for the inner shell
if unshare -m sh -c 'mount --bind "$1" "$2"' sh "$base/a.db" "$base/m.db" \
    2>/dev/null; then
    # shellcheck disable=SC2016
    out=$(unshare -m sh -c 'mount --bind "$1" "$2"; shift 2; exec "$@"' sh \
        "$base/a.db" "$base/m.db" "$SQLOCK" --url "sqlite:$base/m.db" \
        run -n L -- echo "it runs" 2>"$dir/err")
    is "the second is refused" "$?/$out" 64/
    has "it is said why" "$(cat "$dir/err")" "mount its directory"
    # shellcheck disable=SC2016
    out=$(unshare -m sh -c 'mkdir "$1.d"; mount --bind "$1" "$1.d"; shift
        exec "$@"' sh "$base" "$SQLOCK" --url "sqlite:$base.d/a.db" \
        run -n L -- echo "it runs" 2>"$dir/err")
    is "by its mounted directory it is the same lock" "$?/$out" 75/
else
    skip "the file alone is mounted" "no right to mount"
fi
let_go

done_testing
