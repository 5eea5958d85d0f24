#!/usr/bin/env bash
# logs.sh: what the log of a test program or script says; for tests/run.sh.
#
# A program prints the standard output of cmocka.  A script prints lines
# "ok - what", "not ok - what", "skip - what".  If it prints none of them, it
# counts as one test by its exit status.  Exit status 77 is a skip in any case.

# Print "PASSED FAILED SKIPPED", the counts of a log, to which its program's
# exit status may add one.
count() { # LOG STATUS
    awk -v status="$2" '
    function result(kind) {
        n[kind]++
        open = 0
    }
    { sub(/\r$/, "") }
    /^\[ RUN      \]/ { if (open) result("failed"); open = 1; spoke = 1; next }
    # Names come again in the summary of a group, when no test is open.
    open && /^\[       OK \]/ { result("passed"); next }
    open && /^\[  SKIPPED \]/ { result("skipped"); next }
    open && /^\[  FAILED  \]/ { result("failed"); next }
    /^\[  FAILED  \] GROUP (SETUP|TEARDOWN)/ { result("failed"); next }
    /^ok([ :]|$)/ { result("passed"); spoke = 1; next }
    /^not ok([ :]|$)/ { result("failed"); spoke = 1; next }
    /^skip([ :]|$)/ { result("skipped"); spoke = 1; next }
    END {
        if (open)
            result("failed")
        if (!spoke && status == 0)
            n["passed"]++
        else if (status == 77)
            n["skipped"] += !n["skipped"]
        else if (status != 0 && !n["failed"])
            n["failed"]++ # ended by a signal, a sanitizer, the time limit
        print n["passed"] + 0, n["failed"] + 0, n["skipped"] + 0
    }' "$1"
}

# Print how a program ended, if it did not end by itself.  timeout(1) returns
# 124 when the time was up, and ends by SIGKILL, too, if it had to send that.
ended_by() { # STATUS
    if [ "$1" -eq 124 ]; then
        echo "time is up after $SUITE_SECONDS s"
    elif [ "$1" -eq 137 ]; then
        echo "ended by SIGKILL, or time is up after $SUITE_SECONDS s"
    elif [ "$1" -gt 128 ] && kill -l "$1" >/dev/null 2>&1; then
        echo "ended by SIG$(kill -l "$1")"
    fi
}

# Print how the program of a log ended, and its failed tests, at most 12, with
# their last lines: 12 lines in all, or 3 of each test if more than 4 failed.
name_failures() { # NAME LOG STATUS
    local how
    how=$(ended_by "$3")
    awk -v name="$1" -v status="$3" -v how="$how" '
    function keep(line) {
        # The table that ends a report of AddressSanitizer.
        if (line !~ /^(  |=>)0x|^Shadow byte|^  [A-Z].*:  +[0-9a-f][0-9a-f]/)
            lines[++n] = line
    }
    # A test of a program, or a line "not ok", with the lines that are its.
    function fail(what) {
        failed[++f] = what
        first[f] = from
        last[f] = n
        from = n + 1
    }
    function begin() {
        open = ""
        from = n + 1
    }
    BEGIN { from = 1 }
    { sub(/\r$/, "") }
    /^[a-z]+ (postgres|mysql|sqlite)( |$)/ { where = " (" $0 ")"; next }
    /^\[ RUN      \]/ {
        if (open != "")
            fail(open where ": it did not end")
        begin()
        open = substr($0, 14)
        next
    }
    open != "" && /^\[(       OK |  SKIPPED )\]/ { begin(); next }
    open != "" && /^\[  FAILED  \]/ {
        said = substr($0, 14)
        fail(open where (said == open ? "" : ": " said))
        begin()
        next
    }
    /^\[  FAILED  \] GROUP (SETUP|TEARDOWN)/ {
        fail(substr($0, 14) where)
        next
    }
    /^(ok|skip)([ :]|$)/ { begin(); next }
    /^not ok([ :]|$)/ { fail($0); next }
    # Lines "# ..." of a script right after "not ok" belong to that failure.
    f && from == last[f] + 1 && failed[f] ~ /^not ok/ && /^# / {
        keep($0)
        last[f] = n
        from = n + 1
        next
    }
    { keep($0) }
    END {
        if (open != "")
            fail(open where ": it did not end")
        if (!f && how == "")
            fail("exit status " status)
        print "  " name (how == "" ? "" : ": " how)
        shown = f < 12 ? f : 12
        each = shown > 4 ? 3 : shown ? int(12 / shown) : 0
        for (i = 1; i <= shown; i++) {
            print "    " failed[i]
            k = last[i] - each + 1
            for (k = k < first[i] ? first[i] : k; k <= last[i]; k++)
                print "        " substr(lines[k], 1, 200)
        }
        if (f > shown)
            print "    and " f - shown " more"
        # Nothing was said of a test: the end of the log has to do.
        if (!f)
            for (k = n > 12 ? n - 11 : 1; k <= n; k++)
                print "        " substr(lines[k], 1, 200)
    }' "$2"
}

# A failure that printed one of these proves that the code is wrong, or is that
# of a test without those before it.
final='the history (of seed [0-9]+ )?is wrong|the tokens do not rise|two (owners|holders|are (let )?in)|ended by signal'
final+='|GROUP (SETUP|TEARDOWN)|a test hung|not run after the failure of'
final+='|ERROR: [A-Za-z]*Sanitizer|WARNING: ThreadSanitizer|runtime error: '
final+='|Segmentation fault|Aborted|got "13[49]'

# Print the names of a log's failed tests, one on a line, or nothing if they
# must not be tried again.  A script has one line, the script itself.
tests_to_repeat() { # NAME LOG STATUS
    if [ -n "$(ended_by "$3")" ] || grep -qE "$final" "$2"; then
        return
    fi
    case $1 in
    */*)
        echo "$1"
        return
        ;;
    esac
    # Another status is that of a checker of memory, or of with.sh.
    [ "$3" -eq 1 ] || return
    awk '
    { sub(/\r$/, "") }
    /^\[ RUN      \]/ { lost += open != ""; open = substr($0, 14); next }
    open != "" && /^\[(       OK |  SKIPPED )\]/ { open = "" }
    open != "" && /^\[  FAILED  \]/ { names[open]; open = "" }
    END {
        if (open != "" || lost)
            exit # a test did not end
        for (name in names)
            print name
    }' "$2"
}

# Print the part of a log that shows the failure, or all of a short log.
show_failure() { # LOG STATUS
    echo "---- $1 (exit status $2$([ "$2" -ne 124 ] || echo ', time is up'))"
    if grep -q '^not ok' "$1"; then
        grep -v '^ok' "$1" | tail -n 100
    elif [ "$(wc -l <"$1")" -le 120 ]; then
        cat "$1"
    else
        grep -nE -B 12 -A 3 \
            '^\[  (FAILED|ERROR) |ERROR: .*Sanitizer|WARNING: Thread' \
            "$1" | tail -n 150
        echo "---- its last lines"
        tail -n 20 "$1"
    fi
    echo "----"
}
