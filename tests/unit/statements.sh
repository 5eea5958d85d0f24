#!/usr/bin/env bash
# statements.sh: the build (.make/statements.pl) makes of sql/*/statements.sql what
# it should, and refuses what could not be sent, with the line that is wrong.
# shellcheck source=tests/tools/support/script.sh
. "$(dirname "$0")/../tools/support/script.sh"

mkdir -p "$dir/sql/x"
cd "$dir" || exit 1
question='-- ---- parameters are ?'
dollar='-- ---- parameters are $1'

# Print what is made of a file of these lines.
made_of() { # LINE...
    printf '%s\n' "$@" >sql/x/statements.sql
    perl "$root/.make/statements.pl" sql/x/statements.sql 2>&1
}
# That C is among what is made of the lines.
makes() { # C LINE...
    local c=$1 out
    shift
    out=$(made_of "$@")
    echo "$out"
    [[ $out == *"$c"* ]]
}
# The file is refused for what is in that line of it.
refuses() { # NUMBER MESSAGE LINE...
    local message="sql/x/statements.sql:$1: $2" out
    shift 2
    out=$(made_of "$@") && return 1
    echo "$out"
    [[ $out == "$message"* ]]
}

check 'a statement is one line, without comments and semicolon' \
    makes "\"SELECT 1, 'a  b'\", .count = 0," "$question" '-- ---- claim' \
    '-- Takes it.' 'SELECT 1,' '  -- and' "    'a  b';"
check 'each ? is a parameter of its own' \
    makes '"? = ? OR ?", .count = 3, .order = {SQLOCK_P_KEY, SQLOCK_P_REGION, SQLOCK_P_KEY}' \
    "$question" '-- ---- claim' '-- It.' ':key = :region OR :key'
check 'a parameter has one number' \
    makes '"$1 = $2 OR $1::text", .count = 2, .order = {SQLOCK_P_KEY, SQLOCK_P_REGION}' \
    "$dollar" '-- ---- claim' '-- It.' ':key = :region OR :key::text'
check 'a text and a cast are no parameters' \
    makes '.count = 0,' \
    "$question" '-- ---- claim' '-- It.' "'a:key' || x::key || 'it''s :key'"
check 'a table is put in later, in a text, too' \
    makes "\"'{INT_LOCK}' || {INT_LOCK}.XINT_LOCK\"" \
    "$question" '-- ---- claim' '-- It.' "'INT_LOCK' || INT_LOCK.XINT_LOCK"
check 'a quote and a backslash stay' \
    makes "\"'%\\\\_' || \\\"x\\\"\"" "$question" '-- ---- claim' '-- It.' "'%\\_' || \"x\""
check 'a fragment is put in, with those in it' \
    makes '"1, 1 + 1"' "$question" '-- ---- claim' '-- It.' '{a}, {b}' \
    '-- ---- define a' '1' '-- ---- define b' '{a} + {a}'
check 'nothing is left of an empty fragment' \
    makes '"a b"' \
    "$question" '-- ---- claim' '-- It.' 'a {none} b {none}' '-- ---- define none'
check 'a fragment may depend on the variant' \
    makes '.variants = LK_SQLOCK_POLL, .text = "1"' "$question" \
    '-- ---- claim' '-- It.' '{a}' '-- ---- define a (sqlock poll)' 1 \
    '-- ---- define a (sqlock queue)' 2 '-- ---- define a (spring7 spring6)' 3
check 'variants with one text have one statement' \
    makes '.variants = LK_SPRING7_QUEUE | LK_SPRING7_POLL | LK_SPRING6_QUEUE | LK_SPRING6_POLL, .text = "1"' \
    "$question" '-- ---- claim (spring7 spring6)' '-- It.' 1
check 'what is noted of a statement is kept' \
    makes '.insert_id = SQLOCK_INSERT_ID_ROW, .is_unprepared = true, .is_nowait = true, .text' \
    "$question" '-- ---- claim many [insert id, not prepared, never waits]' '-- It.' 1

check 'an unknown fragment is refused' \
    refuses 2 'there is no {a} for (sqlock queue)' \
    "$question" '-- ---- claim' '-- It.' '{a}'
check 'a fragment that a variant lacks is refused' \
    refuses 2 'there is no {a} for (sqlock poll)' \
    "$question" '-- ---- claim' '-- It.' '{a}' '-- ---- define a (queue)' 1
check 'an unused fragment is refused' \
    refuses 5 '{a} is not used here' \
    "$question" '-- ---- claim' '-- It.' 1 '-- ---- define a' 1
check 'a fragment in itself is refused' \
    refuses 5 '{b} contains itself' "$question" '-- ---- claim' '-- It.' '{a}' \
    '-- ---- define a' '{b}' '-- ---- define b' '{a}'
check 'two fragments for one variant are refused' \
    refuses 7 'line 5 has the same for (sqlock poll)' \
    "$question" '-- ---- claim' '-- It.' '{a}' '-- ---- define a' 1 \
    '-- ---- define a (poll)' 2
check 'two statements for one variant are refused' \
    refuses 5 'line 2 has the same for (sqlock queue)' \
    "$question" '-- ---- claim (sqlock)' '-- It.' 1 '-- ---- claim' '-- It.' 2
check 'an unknown tag is refused' refuses 2 '(spring5) is unknown' \
    "$question" '-- ---- claim (spring5)' '-- It.' 1
check 'an unknown note is refused' refuses 2 '[prepared] is unknown' \
    "$question" '-- ---- claim [prepared]' '-- It.' 1
check 'an unknown table is refused' refuses 2 'there is no table INT_LOCKS' \
    "$question" '-- ---- claim' '-- It.' INT_LOCKS
check 'a section without a name is refused' \
    refuses 2 "'Claim it!' is no title" "$question" '-- ---- Claim it!' 1
check 'a statement without a comment is refused' \
    refuses 2 'say in a comment what it does' "$question" '-- ---- claim' 1
check 'its variants need none' makes '.text = "2"' "$question" \
    '-- ---- claim (sqlock)' '-- It.' 1 '-- ---- claim (spring7)' 2
check 'an empty statement is refused' refuses 2 'the statement is empty' \
    "$question" '-- ---- claim' '-- It.' '-- nothing'
check 'a text in no section is refused' refuses 2 'this is in no section' \
    "$question" 'SELECT 1'
check 'a file without a notation of parameters is refused' \
    refuses 1 'say: -- ---- parameters are ?' '-- ---- claim' '-- It.' 1

# The compiler knows the names of statements and parameters.
compiles() { # LINE...
    made_of "$@" >made.c && cc -fsyntax-only "-I$root/include" "-I$root/src" made.c
}
# It refuses such a file for a name in that line.
is_refused_by_cc() { # NUMBER NAME LINE...
    local line=$1 name=$2
    shift 2
    ! compiles "$@" 2>errors && cat errors &&
        grep -q "^sql/x/statements.sql:$line:.*$name" errors
}
check 'a good file compiles' compiles "$question" '-- ---- claim' '-- It.' :key
check 'an unknown parameter does not' is_refused_by_cc 3 SQLOCK_P_KYE \
    "$question" '' '-- ---- claim' '-- It.' :kye
check 'an unknown statement does not' is_refused_by_cc 2 SQLOCK_SQL_CLAM \
    "$question" '-- ---- clam' '-- It.' :key
exit $status
