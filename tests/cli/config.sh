#!/usr/bin/env bash
# config.sh: sources of settings and which of them win; passwords in
# configuration files; messages with and without --verbose and --quiet.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
tool json jansson

export XDG_CONFIG_HOME=$dir/xdg HOME=$dir/home
mkdir -p "$XDG_CONFIG_HOME/sqlock" "$HOME/.config/sqlock"
users=$XDG_CONFIG_HOME/sqlock/config
db=$dir/config.db

configured() { # LINE...: the user's file
    printf '%s\n' "$@" >"$users"
    chmod 600 "$users"
}
run_bare() { # without the options that run() adds
    out=$("$SQLOCK" "$@" 2>"$dir/err")
    status=$?
    err=$(cat "$dir/err")
}
region_of() {
    json region <<<"$out"
}

precedence() {
    SQLOCK_URL=sqlite:$db run_bare -q init
    rm -f "$users"
    run_bare ls
    is "no URL at all" "$status" 64
    is_one_line "is said"

    configured "# of the user" "" "url = sqlite:$db" "  region=from file  "
    run_bare ls --json
    is "URL of the file" "$status" 0
    is "region of the file" "$(region_of)" "from file"
    SQLOCK_REGION=from-variable run_bare ls --json
    is "a variable wins over it" "$(region_of)" from-variable
    SQLOCK_REGION=from-variable run_bare ls --json --region from-option
    is "an option wins over both" "$(region_of)" from-option
    SQLOCK_REGION='' run_bare ls --json
    is "an empty variable is none" "$(region_of)" "from file"
    for option in url region rule peer-ttl; do
        run_bare ls "--$option="
        is "--$option= is refused" "$status" 64
        has "by its name" "$err" "--$option is empty"
    done
    SQLOCK_URL=sqlite:/nowhere/at/all run_bare ls
    is "the variable's URL wins" "$status" 64

    configured "url = sqlite:$db" "table-prefix = OTHER_" "rule = raw" \
        "peer-ttl = 20s"
    run_bare key name
    is "a rule of the file" "$out" name
    run_bare ls
    is "a prefix of the file" "$status" 69
    has "makes the table's name" "$err" OTHER_LOCK
    run_bare init -q --layout spring6
    is "init does as the file says" "$status" 0

    mv "$users" "$HOME/.config/sqlock/config"
    run_bare key name
    is "XDG_CONFIG_HOME is set: nothing is read of HOME" "$out" \
        "$("$SQLOCK" key name --rule current)"
    XDG_CONFIG_HOME='' run_bare key name
    is "the home folder without it" "$out" name
    XDG_CONFIG_HOME=xdg run_bare key name
    is "or where it is no absolute path" "$out" name
    rm "$HOME/.config/sqlock/config"
}

# A faulty setting is refused, with one line that says where it is.
refused() { # WHAT PART LINE...
    local what=$1 part=$2
    shift 2
    configured "$@"
    run_bare key name
    is "$what: refused" "$status" 64
    is "$what: nothing is done" "$out" ""
    is_one_line "$what: one line"
    has "$what: tells where" "$err" "$part"
}
mistakes() {
    refused "an unknown setting" "$users:2:" "# first" "ulr = sqlite:$db"
    refused "no setting" "$users:1:" "sqlite:$db"
    refused "no value" "$users:3: region" "" "" "region ="
    refused "a wrong value" "--rule must be" "rule = best"
    printf 'url = sqlite:x\0y\n' >"$users"
    run_bare key name
    is "a NUL byte: refused" "$status" 64
    rm "$users"
    mkdir "$users"
    run_bare key name
    is "a file that cannot be read: refused" "$status" 64
    is_one_line "a file that cannot be read: one line"
    rmdir "$users"
}

secrets() {
    local url
    for url in postgresql://me:c4n4ry@127.0.0.1:1/db \
        'postgresql://127.0.0.1:1/db?user=me&password=c4n4ry' \
        'postgresql://127.0.0.1:1/db?user=me&sslpassword=c4n4ry' \
        mysql://me:c4n4ry@127.0.0.1:1/db; do
        configured "url = $url"
        chmod 644 "$users"
        run_bare ls
        is "$url, readable by all" "$status" 64
        has "is refused" "$err" "other users can read"
        is "and not shown" "$(grep -c c4n4ry <<<"$out$err")" 0
        chmod 600 "$users"
        run_bare ls
        is "and used when it is private" "$status" 69
        is "and not shown, either" "$(grep -c c4n4ry <<<"$out$err")" 0
        is_one_line "one line"
    done
    configured "url = postgresql://me:c4n4ry@127.0.0.1:1/db"
    chmod 640 "$users"
    run_bare ls
    if [ "$(id -u)" -eq 0 ]; then
        is "root's file may be a group's" "$status" 69
    else
        is "a group is others, too" "$status" 64
    fi
    configured "urk = postgresql://me:c4n4ry@127.0.0.1:1/db" \
        "postgresql://me:c4n4ry@127.0.0.1:1/db"
    run_bare ls
    is "a mistake does not show it" "$(grep -c c4n4ry <<<"$out$err")" 0
    configured "url = postgresql://me@127.0.0.1:1/db?password_env=NOTHING"
    chmod 644 "$users"
    run_bare ls
    is "without a password all may read it" \
        "$(grep -c 'other users can read' <<<"$err")" 0
    rm "$users"
}

# A file that others can change or replace is refused, since it says where the
# locks are; one of another user is passed over.
trust() {
    local folder=$XDG_CONFIG_HOME/sqlock one
    for one in "$users" "$folder" "$XDG_CONFIG_HOME"; do
        configured "rule = raw"
        chmod g+w "$one"
        run_bare key name
        is "a group may write to ${one#"$dir/"}: refused" "$status/$out" 64/
        is_one_line "a group may write to ${one#"$dir/"}: it is said"
        has "a group may write to ${one#"$dir/"}: to what" "$err" "change $one:"
        chmod g-w,o+w "$one"
        run_bare key name
        is "all may write to ${one#"$dir/"}: refused" "$status/$out" 64/
        chmod o-w "$one"
        run_bare key name
        is "only its owner may write to ${one#"$dir/"}: it is read" \
            "$status/$out/$err" 0/name/
    done
    mkdir "$dir/open"
    mv "$users" "$dir/open/config"
    ln -s "$dir/open/config" "$users"
    run_bare key name
    is "by a link, too" "$status/$out" 0/name
    chmod 777 "$dir/open"
    run_bare key name
    is "a link into a directory of all: refused" "$status/$out" 64/
    has "a link into a directory of all: it is said" "$err" "change $dir/open:"
    chmod 1777 "$dir/open"
    run_bare key name
    is "a link into one with the sticky bit" "$status/$out" 0/name
    rm "$users"
    if [ "$(id -u)" -ne 0 ]; then
        skip "a file of another user" "not root here"
        return
    fi
    for one in "$users" "$folder" "$XDG_CONFIG_HOME"; do
        configured "rule = raw"
        chown 65534 "$one"
        run_bare key name
        is "${one#"$dir/"} of another user: passed over" "$status/$out" \
            "0/$("$SQLOCK" -q key name --rule current)"
        is_one_line "${one#"$dir/"} of another user: it is said"
        has "${one#"$dir/"} of another user: which" "$err" \
            "$one belongs to another user"
        chown 0 "$one"
    done
    mv "$users" "$dir/open/config"
    chown 65534 "$dir/open/config"
    ln -s "$dir/open/config" "$users"
    run_bare key name
    is "a link to a file of another user: passed over" "$status/$out" \
        "0/$("$SQLOCK" -q key name --rule current)"
    rm "$users"
}

# Make FOLDER a root for chroot(8), with the command as /sqlock, its libraries,
# an empty /etc, and the given files under their own paths.  Return 1 on
# failure.
make_root() { # FOLDER FILE...
    local root=$1 file
    shift
    for file in $(ldd "$SQLOCK" | grep -o '/[^ ]*') "$@"; do
        mkdir -p "$root${file%/*}"
        cp -p "$file" "$root$file" || return 1
    done
    mkdir -p "$root/etc"
    cp "$SQLOCK" "$root/sqlock" && chmod 755 "$root" "$root/sqlock"
}

# The machine's configuration file, /etc/sqlock.conf.
of_the_machine() {
    local root=$dir/root as=(chroot) all
    [ "$(id -u)" -eq 0 ] || as=(unshare -r chroot)
    if ! "${as[@]}" / true 2>/dev/null; then
        skip "/etc/sqlock.conf" "neither root nor namespaces of users here"
        return
    fi
    configured "region = from-user"
    make_root "$root" "$users" "$db"*
    printf 'region = from-etc\nurl = sqlite:%s\n' "$db" >"$root/etc/sqlock.conf"
    chmod 644 "$root/etc/sqlock.conf"
    all=$("${as[@]}" "$root" /sqlock ls --json 2>"$dir/err")
    rm "$root$users"
    all+=$("${as[@]}" "$root" /sqlock ls --json 2>>"$dir/err")
    is "the user's file wins over the machine's" \
        "$(grep -o 'from-[a-z]*' <<<"$all" | paste -sd ' ')" \
        "from-user from-etc"
    [ "$(id -u)" -eq 0 ] || return 0
    echo "region = from-etc" >"$root/etc/sqlock.conf"
    chmod 600 "$root/etc/sqlock.conf"
    chmod -R go+rX "$root/lib"* "$root/usr" 2>/dev/null
    out=$(XDG_CONFIG_HOME=/nonexistent chroot --userspec=65534:65534 "$root" \
        /sqlock key name 2>"$dir/err")
    is "it is passed over by those who may not read it" "$out" \
        "$("$SQLOCK" key name)"
}

loudness() {
    configured "url = sqlite:$db"
    run_bare ls
    is "nothing is said without need" "$err" ""
    run_bare -v ls
    has "--verbose tells which file was read" "$err" "reading $users"
    run_bare init
    has "init tells what is there" "$err" "layout sqlock"
    run_bare -q init
    is "--quiet does not" "$err" ""
    run_bare -q show nothing
    is_one_line "but errors are always said"
    # Colour is for terminals: stderr is none here, and neither is stdout.
    run_bare -v ls
    is "no colour elsewhere" "$(grep -c $'\033' <<<"$out$err")" 0
    rm "$users"
}

precedence
mistakes
secrets
trust
of_the_machine
loudness
done_testing
