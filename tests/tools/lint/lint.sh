#!/usr/bin/env bash
# lint.sh CHECK...: check the sources by other people's tools.
#
#     rules      rules.sh: the house's own
#     scripts    shellcheck
#     manuals    mandoc, of the pages in src/man and $SQLOCK_BUILD/man
#     python     pyflakes, black, mypy
#     cppcheck   cppcheck
#     tidy       clang-tidy, of the files that have changed since it passed
#
# Environment: SQLOCK_BUILD (build); TIDY_FLAGS and TIDY_FILES: what to compile,
#     and how; CLANG_TIDY
set -u
cd "$(dirname "$0")/../../.." || exit 1
build=${SQLOCK_BUILD:-build}
here=tests/tools/lint
includes=(-Iinclude -Isrc -Itests -Itests/tools)

check_rules() {
    bash $here/rules.sh
}

# SC2034: variables of a script that others source; SC2104, 2105: `sqlock break`.
check_scripts() {
    local files
    mapfile -t files < <(find .ci .debian .make tests docker src -name '*.sh')
    shellcheck --external-sources --severity=warning --exclude=SC2034,SC2104,SC2105 \
        "${files[@]}" src/cli/completion/sqlock.bash .ci/run
}

check_manuals() {
    local pages
    mapfile -t pages < <(find src/man -name '*.[1-9]' ! -name sqlock.3)
    mandoc -Tlint -Wwarning "${pages[@]}" "$build"/man/*.3
}

# Debian's Python, for which the files are packaged.
check_python() {
    local python=/usr/bin/python3
    local files=(src/python tests/conformance/python tests/history
        tests/cli/install/loses.py tests/tools/bench/buyers.py)
    $python -m pyflakes "${files[@]}" &&
        $python -m black --quiet --check "${files[@]}" &&
        $python -m mypy --strict --cache-dir="$build/lint/mypy" \
            --no-error-summary src/python/sqlock
}

# Tests pass NULL on purpose; arrays handed on as pointers are indexed; uthash's
# macros look like uses of what was never set, which clang-tidy judges better,
# as -Wsequence-point does what happens in which order.  C only: cppcheck does
# not know the literals of std::chrono.
check_cppcheck() {
    local folders
    mapfile -t folders < <(find tests -name '*.c' -printf '%h\n' | sort -u)
    mkdir -p "$build/lint/cppcheck"
    cppcheck --quiet --error-exitcode=1 \
        --enable=warning,performance,portability --std=c11 --inline-suppr \
        --suppress=missingIncludeSystem --suppress=ctunullpointer \
        --suppress=objectIndex --suppress=uninitvar --suppress=ctuuninitvar \
        --suppress=unknownEvaluationOrder \
        --cppcheck-build-dir="$build/lint/cppcheck" -D_GNU_SOURCE \
        "${includes[@]}" -i tests/conformance/cpp src "${folders[@]}"
}

# One process per file: several files in one give false reports.
tidy_one() { # FILE
    local out="$build/lint/$1.tidy" flags
    local analyzer=(-include "$here/analyzer.h")
    [ "$1" != src/base/error.c ] || analyzer=()
    mkdir -p "$(dirname "$out")"
    printf '  %-7s %s\n' TIDY "$1"
    eval "flags=($TIDY_FLAGS)" # words in quotes, as make gives them to a shell
    "$CLANG_TIDY" --quiet --warnings-as-errors='*' "$1" -- -std=gnu11 \
        "${flags[@]}" "${includes[@]}" "${analyzer[@]}" >"$out.log" 2>&1 ||
        { cat "$out.log" && return 1; }
    touch "$out"
}
export -f tidy_one
export build here

stale_files() {
    local newest file
    newest=$(find include src tests .clang-tidy -name '*.h' -printf '%T@ %p\n' \
        -o -name .clang-tidy -printf '%T@ %p\n' | sort -rn | sed -n '1s/^[^ ]* //p')
    for file in $TIDY_FILES; do
        if [ ! "$build/lint/$file.tidy" -nt "$file" ] ||
            [ ! "$build/lint/$file.tidy" -nt "$newest" ]; then
            echo "$file"
        fi
    done
}

check_tidy() {
    CLANG_TIDY=${CLANG_TIDY:-$(command -v clang-tidy-14 clang-tidy | head -n 1)}
    export CLANG_TIDY
    # shellcheck disable=SC2016 # expanded by the other shell
    stale_files | xargs -r -P "$(nproc)" -I FILE \
        bash -c 'includes=(-Iinclude -Isrc -Itests -Itests/tools); tidy_one FILE'
}

status=0
for name in "$@"; do
    printf '  %-7s %s\n' LINT "$name"
    "check_$name" || status=1
done
exit $status
