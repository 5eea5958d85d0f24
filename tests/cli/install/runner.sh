#!/usr/bin/env bash
# runner.sh: tests/run.sh counts the results that scripts print and their exit
# statuses.  A skip is no failure, unless SKIPS_FAIL=1 says so.  Each failure is
# counted and named at the end of the output, also by .ci/run.  It is tried again
# first, and is none if it passes.
# shellcheck source=tests/tools/support/script.sh
. "$(dirname "$0")/../../tools/support/script.sh"
mkdir -p "$dir/tests/tools"
cp tests/run.sh "$dir/tests"
cp tests/tools/logs.sh "$dir/tests/tools"

# Run a suite of scripts of one line each, and compare the exit status and the
# last line of run.sh.  The suite's name is "install", which needs no servers.
counts() { # WHAT EXPECTED-STATUS EXPECTED-TOTALS SCRIPT...
    local what=$1 expected="$2 $3" i=0 got
    shift 3
    rm -rf "$dir/tests/cli/install"
    mkdir -p "$dir/tests/cli/install"
    for script in "$@"; do
        i=$((i + 1))
        echo "$script" >"$dir/tests/cli/install/$i.sh"
    done
    SQLOCK_BUILD=$dir/build bash "$dir/tests/run.sh" install >"$dir/out" 2>&1
    got="$? $(tail -n 1 "$dir/out")"
    is "$what" "$got" "$expected"
}

# Run a suite that is a program of these lines, which print what cmocka would;
# the last one says how it ends.  Compare the output of run.sh between "failed:"
# and the totals.
names() { # WHAT EXPECTED LINE...
    local what=$1 expected=$2 got
    shift 2
    mkdir -p "$dir/build/tests"
    {
        echo '#!/usr/bin/env bash'
        printf '%s\n' "$@"
    } >"$dir/build/tests/unit"
    chmod +x "$dir/build/tests/unit"
    SQLOCK_BUILD=$dir/build bash "$dir/tests/run.sh" unit >"$dir/out" 2>&1
    got=$(sed -n '/^failed:$/,$p' "$dir/out" | sed '1d;$d' | sed '$d')
    is "$what" "$got" "$expected"
}

# Print what the output names as failed at first, and passed then.
at_first() {
    sed -n '/^failed beside others, passed alone:$/,/^$/p' "$dir/out" |
        sed '1d;$d'
}
# Commands of a script or a program that are different at a second run.
once="{ [ ! -e $dir/once ] && : >$dir/once; }"

unset SKIPS_FAIL SUITE_LOGS SUITE_ARGS SUITE_TESTS SUITE_TELL SUITE_AGAIN V
counts "what passes" 0 "1 passed, 0 failed, 0 skipped" "echo ok - it"
counts "a skip that is said, with 77, is no failure" \
    0 "1 passed, 0 failed, 1 skipped" "echo ok - it" "echo skip - it; exit 77"
counts "nor is one that is not said" \
    0 "1 passed, 0 failed, 1 skipped" "echo ok - it" "exit 77"
counts "nor one that is said with 0" \
    0 "1 passed, 0 failed, 1 skipped" "echo ok - it" "echo skip - it"
SKIPS_FAIL=1 counts "SKIPS_FAIL=1 makes it one" \
    1 "1 passed, 0 failed, 1 skipped" "echo ok - it" "echo skip - it; exit 77"
counts "nothing but skips is no success" \
    1 "0 passed, 0 failed, 1 skipped" "echo skip - it; exit 77"
counts "a failure is one" \
    1 "0 passed, 1 failed, 1 skipped" "echo not ok - it; echo skip - it; exit 77"
counts "an exit status is a failure that nothing was said of" \
    1 "1 passed, 1 failed, 0 skipped" "echo ok - it; exit 1"


fails_once="$once && { echo not ok - it; exit 1; }"
counts "what fails once is no failure" \
    0 "2 passed, 0 failed, 0 skipped" "echo ok - a" "$fails_once; echo ok - it"
is "but is named" "$(at_first)" "  install/2
    not ok - it"
rm "$dir/once"
counts "of two that fail one may pass then" \
    1 "1 passed, 1 failed, 0 skipped" "echo not ok - a; exit 1" \
    "$fails_once; echo ok - it"
rm "$dir/once"
counts "a second run that says nothing passes nothing" \
    1 "0 passed, 1 failed, 0 skipped" "$fails_once; exit 77"
rm "$dir/once"
counts "nor does one that skips what failed" \
    1 "0 passed, 1 failed, 0 skipped" \
    "$fails_once; echo ok - a; echo skip - it"
for many in 0 1; do
    rm -f "$dir/once"
    SUITE_AGAIN=$many counts "of more than $many nothing is tried again" \
        1 "0 passed, 2 failed, 0 skipped" "$fails_once; echo ok - it" \
        "echo not ok - a; exit 1"
done
rm -f "$dir/once"

# Without -s make prints the commands that it runs; run.sh must not hand down
# the -s of a make that calls it.
cat >"$dir/makefile" <<'EOF'
all: ; echo $(A)
EOF
MAKEFLAGS='s -j2 -- A=1' counts "makes in tests are not silent for make -s" \
    0 "1 passed, 0 failed, 0 skipped" \
    "[ \"\$(${MAKE:-make} --no-print-directory -f $dir/makefile)\" = \"\$(printf 'echo 1\n1')\" ] && echo ok - it"

SUITE_TESTS='*/[13]' counts "a pattern chooses scripts" \
    0 "2 passed, 0 failed, 0 skipped" "echo ok - a" "exit 1" "echo ok - c"
SUITE_TESTS=2 counts "so does a word" \
    1 "0 passed, 1 failed, 0 skipped" "echo ok - a" "exit 1" "echo ok - c"
SUITE_TESTS=z counts "a choice of nothing is no success" \
    1 "0 passed, 0 failed, 0 skipped" "echo ok - a"
SUITE_TELL=0.2 SUITE_JOBS=1 counts "a run goes on while it is told" \
    0 "2 passed, 0 failed, 0 skipped" "echo ok - a" "sleep 1; echo ok - b"
grep -q '^  1 of 2 suites have ended after [0-9]* s; running: install/2$' \
    "$dir/out"
is "what is running is told from time to time" $? 0

begins="echo '[ RUN      ] test_a'"
fails="echo '[  FAILED  ] test_a'; exit 1"
names "a run that passed names nothing" "" \
    "$begins" "echo '[       OK ] test_a'"
names "a failed test is named last, with what it said" \
    "  unit
    test_a (unit sqlite ours 1)
        0 != 1
        [   LINE   ] --- test.c:7" \
    "echo 'unit sqlite ours 1'" \
    "echo '[ RUN      ] test_b'; echo 'of b'; echo '[       OK ] test_b'" \
    "$begins" "echo '0 != 1'; echo '[   LINE   ] --- test.c:7'" "$fails"
args='while [ $# -gt 1 ]; do chosen+=" $2"; shift 2; done'
test_b="[ \"\$chosen\" = ' test_a' ] ||
    { echo '[ RUN      ] test_b'; echo '[       OK ] test_b'; }"
second="$once && { echo why; $fails; }; echo '[       OK ] test_a'"
names "a test that passes then is not" "" \
    "$args" "$test_b" "$begins" "$second"
is "but was named before, and only it was repeated" \
    "$(at_first) $(tail -n 1 "$dir/out") $(grep -c test_b \
        "$dir/build/log/unit.log")" \
    "  unit
    test_a
        why 2 passed, 0 failed, 0 skipped 0"
rm "$dir/once"
for proof in 'the history is wrong: two owners' \
    'WARNING: ThreadSanitizer: data race' 'Segmentation fault' \
    'not run after the failure of test_b'; do
    names "what proves a fault is not tried again: ${proof%%:*}" \
        "  unit
    test_a
        $proof" \
        "$begins" "$once && { echo '$proof'; $fails; }
        echo '[       OK ] test_a'"
    rm "$dir/once"
done
names "nor is a program that did not come to a test" \
    "  unit
    exit status 1
        cannot begin" \
    "$once && { echo cannot begin; exit 1; }"
rm "$dir/once"
names "nor one that a checker of memory has ended" \
    "  unit
    test_a
        why" \
    "$begins" "$once && { echo why; echo '[  FAILED  ] test_a'; exit 99; }
    echo '[       OK ] test_a'"
rm "$dir/once"
names "nor is anything of a program that ended in a test" \
    "  unit
    test_a
    test_b: it did not end" \
    "$begins" "$once && { echo '[  FAILED  ] test_a'
    echo '[ RUN      ] test_b'; exit 1; }
    echo '[       OK ] test_a'"
rm "$dir/once"
names "one that printed much, with its last 12 lines" \
    "  unit
    test_a
$(seq -f '        line %.0f' 19 30)" \
    "$begins" "seq -f 'line %.0f' 30" "$fails"
names "of many the first 12 are named" \
    "  unit
$(seq -f '    test_%.0f: it did not end' 1 12)
    and 18 more" \
    "seq -f '[ RUN      ] test_%.0f' 30; exit 1"
names "one that a signal ended is told with the open test" \
    "  unit: ended by SIGSEGV
    test_a: it did not end
        what it said" \
    "$begins" "echo what it said" 'ulimit -c 0; kill -SEGV $$'
SUITE_SECONDS=1 names "so is one that took too long" \
    "  unit: time is up after 1 s
    test_a: it did not end" \
    "$begins" "exec sleep 60"
names "one that ends before any test, with its last lines" \
    "  unit
    exit status 3
        cannot begin" \
    "echo cannot begin; exit 3"
# A program that lists its tests, and prints the arguments with which it is run.
cat >"$dir/build/tests/unit" <<'EOF'
#!/usr/bin/env bash
case "$*" in
'--list -t some') echo test_some ;;
'--list -t '*) ;;
*) echo "ok - $*" ;;
esac
EOF
for chosen in some none; do
    SQLOCK_BUILD=$dir/build SUITE_TESTS=$chosen \
        bash "$dir/tests/run.sh" unit >"$dir/out.$chosen" 2>&1
done
grep -qx 'ok - -t some' "$dir/build/log/unit.log" &&
    grep -qx '  no test and no script matches "none"' "$dir/out.none"
is "a program without such a test is left out" $? 0
rm "$dir"/out.*
names "a line of a script is named, with what follows it" \
    "  unit
    not ok - it
        # stderr: why" \
    "echo ok - a" "echo not ok - it; echo '# stderr: why'; echo ok - b; exit 1"
grep -q 'stderr: why' "$dir"/build/log/failed/*-unit.log
is "the log of a failure is kept" $? 0

# The sections of .ci/run are targets of make.  This make reports that "test"
# failed in the form of run.sh, and that "lint" failed in another form.
mkdir -p "$dir/.ci" "$dir/bin"
cp .ci/run "$dir/.ci"
: >"$dir/.ci/setup.sh"
cat >"$dir/bin/make" <<'EOF'
#!/usr/bin/env bash
case " $* " in
*" WERROR=1 SETUP=no test "*)
    printf '%s\n' 'much' '' 'failed beside others, passed alone:' '  tx' \
        '    test_c' '' 'failed:' '  unit' '    test_a' '        why' '' \
        '7 passed, 1 failed, 0 skipped'
    exit 1
    ;;
*" BUILD=build/beside lint "*)
    echo "a.c:1: not so"
    exit 1
    ;;
esac
EOF
chmod +x "$dir/bin/make"
PATH=$dir/bin:$PATH bash "$dir/.ci/run" clang test lint >"$dir/out" 2>&1
got="$? $(sed -n '/^failed: /,$p' "$dir/out")"
expected='1 failed: test lint

failed beside others, passed alone, in test:
  tx
    test_c

test:
  unit
    test_a
        why
lint:
  a.c:1: not so

7 passed, 1 failed, 0 skipped'
is ".ci/run names what failed in each section last" "$got" "$expected"
exit $status
