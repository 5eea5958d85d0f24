#!/usr/bin/env bash
# rules.sh: the house's rules that no compiler checks: which way includes point,
# that files call downwards, calls that are not made, how long files and lines
# get, which codes stand for scenarios of failure.  Prints each breach as
# file:line: what; exit status 1 if there is any.
#
# A comment "lint: allow NAME" on the line lets one call of NAME through; it has
# to say why.
set -u
cd "${1:-$(dirname "$0")/../../..}" || exit 1
breaches=$(mktemp) || exit 1
trap 'rm -f "$breaches"' EXIT

mapfile -t sources < <(find include src -name '*.[ch]' 2>/dev/null | sort)
mapfile -t all < <(find include src tests .ci .make docker sql Makefile \
    \( -name '*.[ch]' -o -name '*.hpp' -o -name '*.sh' -o -name '*.sql' -o -name '*.mk' \
    -o -name '*.scene' -o -name Makefile \) \
    2>/dev/null | sort)

# ------------------------------------------------- includes point one way --

# The contract of drivers, and what several of them use.
driver_may_use="db/driver.h db/dialect.h drivers/hosts.h drivers/library.h drivers/lookup.h drivers/peer.h
    drivers/bell.h"

# The folders of src that a file of this folder may include.
may_use() { # FOLDER
    case $1 in
    base) echo base ;;
    drivers) echo "base $driver_may_use" ;;
    drivers/*) echo "base $driver_may_use $1" ;;
    db) echo "base db" ;;
    lease) echo "base db lease" ;;
    lock) echo "base db lease lock" ;;
    # a leader, observed; a lock, to be given an id
    admin) echo "base db lease admin lock/observer.h lock/guarded.h" ;;
    tx) echo "base db lease tx lock/guarded.h" ;; # a lock, to be guarded
    # A quorum and stock stand on the headers as an application would.
    quorum) echo "base quorum" ;;
    stock) echo "base stock/stock.h stock/combine.h stock/sql/tables.h" ;;
    stock/sql) echo "base db lease tx stock/sql" ;;
    cli) echo "base cli/cli.h" ;;
    cli/*) echo "base cli/cli.h $1" ;;
    examples/* | examples) echo "$1" ;;
    *) echo "" ;;
    esac
}

for file in "${sources[@]}"; do
    case $file in
    include/*) folder= ;;
    src/drivers/*/* | src/cli/*/* | src/examples/*/* | src/stock/*/*)
        folder=${file#src/}
        rest=${folder#*/*/}
        folder=${folder%/"$rest"}
        ;;
    src/*)
        folder=${file#src/}
        folder=${folder%%/*}
        ;;
    esac
    allowed=$(may_use "$folder")
    here=${file%/*}
    while IFS=: read -r line text; do
        name=${text#*\"}
        name=${name%%\"*}
        if [ -e "include/$name" ]; then
            continue
        elif [ -e "$here/$name" ]; then
            target=$here/$name
        else
            target=src/$name
        fi
        ok=
        for folder_ok in $allowed; do
            case $target in
            "src/$folder_ok" | "src/$folder_ok"/*) ok=yes ;;
            esac
        done
        [ -n "$ok" ] ||
            echo "$file:$line: includes $name, which is not below it"
    done < <(grep -nE '^ *# *include *"' "$file")
    # A database is reached through its driver only; examples are applications.
    case $file in
    src/drivers/* | src/examples/*) ;;
    *)
        grep -nE '^ *# *include *<(libpq-fe|libpq/|postgresql/|mysql|mariadb|sqlite3)' \
            "$file" | while IFS=: read -r line text; do
            echo "$file:$line: a client library outside src/drivers"
        done
        ;;
    esac
done >>"$breaches"

# The files of a room stand on floors.
[ ! -d src/lease ] || perl tests/tools/lint/knots.pl >>"$breaches"

# ------------------------------------------------------ calls not made ----

banned='strcpy|strcat|sprintf|vsprintf|gets|atoi|atol|atoll|atof|strtok|system'
banned+='|popen|rand|srand|random|time|sleep|usleep|localtime|gmtime|asctime'
banned+='|ctime|tmpnam|mktemp|alloca|PQescape[A-Za-z]*|mysql_real_escape[a-z_]*'
banned+='|mysql_escape_string'

# Without comments and strings, with lines as they were.
code_of() { # FILE
    sed -e 's/\\./__/g' -e 's/"[^"]*"/""/g' "$1" | awk '
    {
        out = ""
        while (length($0) > 0) {
            if (inside) {
                at = index($0, "*/")
                if (at == 0) { $0 = ""; break }
                $0 = substr($0, at + 2); inside = 0
                continue
            }
            at = index($0, "/*"); to = index($0, "//")
            if (to > 0 && (at == 0 || to < at)) {
                out = out substr($0, 1, to - 1); break
            }
            if (at == 0) { out = out $0; break }
            out = out substr($0, 1, at - 1)
            $0 = substr($0, at + 2); inside = 1
        }
        print out
    }'
}

allowed_here() { # FILE LINE NAME
    sed -n "$2p" "$1" | grep -q "lint: allow $3\\>"
}

for file in "${sources[@]}"; do
    pattern="(^|[^A-Za-z0-9_>.])($banned)[ ]*\\("
    case $file in
    src/base/* | src/examples/*) ;; # applications have no src/base
    *) pattern="(^|[^A-Za-z0-9_>.])($banned|strto[a-z]+)[ ]*\\(" ;;
    esac
    code_of "$file" | grep -nE "$pattern" | while IFS=: read -r line text; do
        name=$(sed -E "s/.*$pattern.*/\\2/" <<<"$text")
        allowed_here "$file" "$line" "$name" ||
            echo "$file:$line: $name() is not used here"
    done
    # One function wipes secrets, so that no place forgets how.
    case $file in
    src/base/secret.c) ;;
    *)
        code_of "$file" |
            grep -nE '\<(explicit_bzero|memset_s|memset_explicit) *\(' |
            while IFS=: read -r line text; do
                echo "$file:$line: secrets are wiped by base/secret.h"
            done
        ;;
    esac
    # The library neither prints nor ends the program.
    case $file in
    src/cli/* | src/examples/* | include/*) ;;
    *)
        code_of "$file" |
            grep -nE '(^|[^A-Za-z0-9_])(printf|puts|putchar|perror|exit|abort|setlocale|signal|atexit) *\(|\<(stdout|stderr)\>' |
            while IFS=: read -r line text; do
                case $text in
                *'->abort('* | *'.abort('*) continue ;;
                esac
                echo "$file:$line: the library does not print, exit or handle signals"
            done
        ;;
    esac
done >>"$breaches"

# --------------------------------------------------------------- texts ----

for file in "${all[@]}"; do
    lines=$(wc -l <"$file")
    case $file in
    *.c | *.h | *.hpp)
        case $file in
        include/sqlock.h) most=500 ;; # what every application reads
        include/sqlock.hpp) most=750 ;; # its topics are headers of their own
        *) most=600 ;;
        esac
        [ "$lines" -le "$most" ] ||
            echo "$file:$lines: more than $most lines"
        awk -v file="$file" 'length > 80 { print file ":" FNR \
            ": more than 80 columns" }' "$file"
        ;;
    esac
    grep -nE '\<(TODO|FIXME|XXX)\>' "$file" | while IFS=: read -r line text; do
        case $file in
        tests/tools/lint/rules.sh) continue ;;
        esac
        echo "$file:$line: an open end"
    done
    grep -nE '((/\*\*?|///| \*|//|#|--) |\.  )(What|Who|Whoever|Whatever|Likewise)\>' \
        "$file" | grep -v 'What a lock promises$' |
        while IFS=: read -r line text; do
            echo "$file:$line: a sentence without a subject"
        done
    case $file in
    Makefile | *.mk) ;;
    *) grep -nP '\t| +$' "$file" | while IFS=: read -r line text; do
        echo "$file:$line: a tab or a blank at the end"
    done ;;
    esac
done >>"$breaches"

# ----------------------------------------------------------- scenarios ----

# F42 is a failure scenario of tests/SCENARIOS.md, with the files that test it;
# nobody outside knows these codes.
scenarios=tests/SCENARIOS.md
code='(\<|test_)F[0-9]{1,3}(\>|_)'
grep -rnE "$code" include | while IFS=: read -r file line text; do
    echo "$file:$line: a scenario's code in a public header"
done >>"$breaches"
if [ -e "$scenarios" ]; then
    grep -rnoE --include='*.[ch]' --include='*.sh' --include='*.scene' \
        --include='*.statements' "$code" src tests |
        grep -v '^tests/tools/lint/' | sed -E 's/:(test_)?(F[0-9]+)_?$/:\2/' |
        awk -F '|' -v scenarios="$scenarios" '
        FILENAME == scenarios {
            if ($2 ~ /^ F[0-9]+ $/) {
                gsub(/ /, "", $2)
                line[$2] = FNR
                files[$2] = $4
                sub(/ $/, "", files[$2])
            }
            next
        }
        { used[$3] = 1 }
        !($3 in line) {
            print $1 ":" $2 ": " $3 " is not in " scenarios
            next
        }
        $1 ~ /^tests\/.*\.(c|sh|scene|statements)$/ &&
        index(files[$3] ",", " " substr($1, 7) ",") == 0 &&
        !told[$1 $3]++ {
            print scenarios ":" line[$3] ": " $3 " is in " $1 ", too"
        }
        END {
            for (one in line) {
                if (!(one in used))
                    print scenarios ":" line[one] ": nothing refers to " one
                n = split(files[one], list, /[ ,]+/)
                for (i = 1; i <= n; i++)
                    if (list[i] != "" &&
                        (getline text <("tests/" list[i])) <= 0)
                        print scenarios ":" line[one] ": no " list[i]
            }
        }' "$scenarios" FS=: -
fi >>"$breaches"

# A .c file opens with what it is for.
for file in "${sources[@]}"; do
    [ "$(head -c 2 "$file")" = "/*" ] ||
        echo "$file:1: does not open with a comment"
done >>"$breaches"

# The README of a folder names each .c file, as `name` or name.c, and no file that
# is not there: in a table of files, each `name` of the first column is one.
for readme in src/lease/README.md src/stock/README.md src/lock/README.md \
    src/cli/run/README.md src/cli/stock/README.md; do
    folder=${readme%/*}
    [ -e "$readme" ] || continue
    for file in "$folder"/*.c; do
        name=${file##*/}
        grep -qE "\`${name%.c}\`|\<$name\>" "$readme" ||
            echo "$readme:1: does not name $name"
    done
    awk '/^\| *file / { on = 1; next } !/^\|/ { on = 0 }
        { line = on ? substr($0, 1, index(substr($0, 2), "|")) : $0
          gsub(on ? /[^a-z_]+/ : /`[^`]*[^`a-z_.][^`]*`/, " ", line)
          n = split(line, word, /[^a-z_.]+/)
          for (i = 1; i <= n; i++)
              if (on && word[i] != "")
                  print FNR, word[i] ".c", word[i] ".h"
              else if (word[i] ~ /^[a-z_]+\.[ch]$/)
                  print FNR, word[i], word[i] }' "$readme" |
        while read -r line name other; do
            [ -e "$folder/$name" ] || [ -e "$folder/$other" ] ||
                echo "$readme:$line: there is no $name in $folder"
        done
done >>"$breaches"

# ---------------------------------------------- symbols of the package ----

# A function that is declared is listed for the Debian package, with the
# version that it came with; its build would fail later.
for list in .debian/libsqlock*.symbols; do
    [ -e "$list" ] || continue
    comm -3 <(find include -name '*.h' -printf '#include "%p"\n' |
        ${CC:-cc} -E -P -Iinclude -I. -x c - | tr '\n' ' ' |
        tr ';{}' '\n\n\n' | grep -v '\<typedef\>' | grep visibility |
        sed 's/__attribute__ *(([^()]*\(([^()]*)\)*[^()]*))//g' |
        grep -oE '\<sqlock_[a-z0-9_]+ *\(' | tr -d ' (' | sort -u) \
        <(sed -n 's/^ \(.*\)@Base .*/\1/p' "$list" | sort -u) |
        while read -r name; do
            echo "$list:1: $name() is here or in a header, not in both" \
                "(make abi-record)"
        done
done >>"$breaches"

[ ! -s "$breaches" ] || {
    cat "$breaches"
    exit 1
}
