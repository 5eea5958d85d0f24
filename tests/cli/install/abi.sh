#!/usr/bin/env bash
# abi.sh: the binary interface of the shared library is the one recorded with
# the last release, or an extension of it, so that programs built with that
# release go on working.  Before the first release it is compared with the last
# record.
#
#     abi.sh           check (make abi)
#     abi.sh --record  record the interface, and the list of symbols of the
#                      Debian package, after an intended change (make
#                      abi-record)
#
# A struct with a size may grow at its end, and so may the rows of lists, whose
# size goes with the call, and enums.  Any other struct stays as it is.  Needs
# libabigail's abidw and abidiff, and debugging information in the library (-g).
# shellcheck source=tests/tools/support/script.sh
. "$(dirname "$0")/../../tools/support/script.sh"
library=$build/lib/libsqlock.so
recorded=tests/cli/install/libsqlock.abi
symbols=$(echo .debian/libsqlock*.symbols)
headers=(include/*.h include/sqlock/*.h)

exported() {
    nm -D --defined-only "$library" | awk '{ print $3 }' | LC_ALL=C sort -u
}
# Print the list of symbols for dpkg-gensymbols.  Symbols of the present list
# keep the version in which they came; new ones get VERSION.
symbols_file() { # VERSION
    local soname
    soname=$(readelf -d "$library" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
    echo "$soname $(basename "$symbols" .symbols) #MINVER#"
    exported | awk -v version="$1" '
        listed && /^ / { since[$1] = $2 }
        !listed { name = $1 "@Base"
            print " " name, name in since ? since[name] : version }' \
        listed=1 "$symbols" listed= -
}

write_abi() { # FILE
    abidw --exported-interfaces-only --headers-dir "$PWD/include" \
        --drop-private-types --no-corpus-path --no-comp-dir-path \
        --no-show-locs --no-elf-needed --type-id-style hash \
        --out-file "$1" "$library"
}
# Print the members of a struct: offset, name and type of each.
members_of() { # TYPE FILE
    sed -n "/<class-decl name='$1' size/,/<\/class-decl>/p" "$2" |
        grep -oE "layout-offset-in-bits='[0-9]*'|<var-decl name='[^']*' type-id='[^']*'"
}
has_grown_at_its_end() { # TYPE RECORDED NOW
    local old new
    old=$(members_of "$1" "$2")
    new=$(members_of "$1" "$3")
    [ -n "$old" ] && [ "$new" != "$old" ] && [[ $new == "$old"$'\n'* ]]
}

for tool in abidw abidiff; do
    command -v $tool >/dev/null || {
        skip_all "the binary interface: $tool (abigail-tools) is not installed"
    }
done

if [ "${1-}" = --record ]; then
    version=$(sed -n 's/^Version: //p' "$build/lib/pkgconfig/sqlock.pc")
    symbols_file "$version" >"$dir/symbols" || exit 1
    write_abi "$dir/abi" || exit 1
    cat "$dir/symbols" >"$symbols"
    cat "$dir/abi" >"$recorded"
    exit
fi

check "the Debian package's list of symbols is complete (make abi-record)" \
    diff "$symbols" <(symbols_file "not in the list")

[ "$(uname -m)" = x86_64 ] || {
    echo "skip - the binary interface: it is recorded of x86_64"
    exit $status
}
readelf -S "$library" | grep -q '\.debug_info' || {
    echo "skip - the binary interface: the library was built without -g"
    exit $status
}
write_abi "$dir/now.abi" || exit 1
# The public structs with members, and those of them that may grow: with a size
# in them, or rows of lists, whose size goes with the call.
structs() {
    sed -n 's/^} \(sqlock_[a-z_]*\);$/\1/p; s/^struct \(sqlock_[a-z_]*\) {$/\1/p' \
        "${headers[@]}" | while read -r type; do
        ! grep -q "^typedef enum $type {" "${headers[@]}" || continue
        echo "$type"
    done | sort -u
}
growing() {
    sed -n -e 's/.*sizeof(\(sqlock_[a-z_]*\)).*/\1/p' "${headers[@]}" | sort -u
}
# Write the suppressions for a comparison with a record to $dir/allowed.
# abidiff's rule for a struct that has grown hides all other changes of the
# struct, too: allow only structs that have grown.
write_allowed() { # RECORDED
    local type
    for type in $(growing); do
        ! has_grown_at_its_end "$type" "$1" "$dir/now.abi" ||
            printf '[suppress_type]\nname = %s\n%s\n' "$type" \
                'has_data_member_inserted_at = end'
    done
    # Programs see no members of handles and of internal structs.  abidw takes
    # some of them for public ones, whose internal header has the name of a
    # public one.
    for type in $(sed -n 's/^typedef struct \([a-z_]*\) \1;$/\1/p' \
        "${headers[@]}"); do
        grep -q "^struct $type {" "${headers[@]}" ||
            printf '[suppress_type]\nname = %s\n' "$type"
    done
    printf '[suppress_type]\nname_regexp = ^lk_\n'
}
# Compare with a record.  Return the status of abidiff, a sum of bits: 4 if the
# interface differs, 8 if old programs would break.
same_as() { # RECORDED
    write_allowed "$1" >"$dir/allowed"
    abidiff --suppressions "$dir/allowed" --no-added-syms \
        "$1" "$library"
}
finds() { # WORDS SED-SCRIPT: a difference with a record that was changed so
    sed "$2" "$recorded" >"$dir/changed.abi"
    ! cmp -s "$recorded" "$dir/changed.abi" || return 1
    same_as "$dir/changed.abi"
    [ $? -ge 4 ] && grep -q "$1" "$dir/out"
}
# Write a record from before a struct got a member: its last one, or its first
# one, which has moved all that follow.
write_shorter() { # TYPE last|first FROM TO
    awk -v type="$1" -v which="$2" -v quote="'" '
        function number_at(text, name) {
            sub(".*" name "=" quote, "", text)
            return text + 0
        }
        function replaced(text, name, number) {
            sub(name "=" quote "[0-9]*", name "=" quote number, text)
            return text
        }
        index($0, "<class-decl name=" quote type quote) { head = inside = NR }
        inside && /<data-member / {
            begins[++members] = NR
            offset[members] = number_at($0, "layout-offset-in-bits")
        }
        inside && /<\/data-member>/ { ends[members] = NR }
        inside && /<\/class-decl>/ { inside = 0 }
        { line[NR] = $0 }
        END {
            size = number_at(line[head], "size-in-bits")
            gone = which == "last" ? members : 1
            offset[members + 1] = size
            shift = offset[gone + 1] - offset[gone]
            line[head] = replaced(line[head], "size-in-bits", size - shift)
            for (i = gone + 1; i <= members; i++)
                line[begins[i]] = replaced(line[begins[i]],
                    "layout-offset-in-bits", offset[i] - shift)
            for (i = 1; i <= NR; i++)
                if (i < begins[gone] || i > ends[gone])
                    print line[i]
        }' "$3" >"$4"
    ! cmp -s "$3" "$4"
}
# All that may grow have done so.
all_may_grow() {
    cp "$recorded" "$dir/all.abi"
    for type in $(growing); do
        write_shorter "$type" last "$dir/all.abi" "$dir/shorter.abi" || return 1
        mv "$dir/shorter.abi" "$dir/all.abi"
    done
    same_as "$dir/all.abi"
}
is_found() { # TYPE last|first
    write_shorter "$1" "$2" "$recorded" "$dir/shorter.abi" || return 1
    same_as "$dir/shorter.abi"
    [ $? -ge 4 ] && grep -q "type size changed" "$dir/out"
}
check "the binary interface is the recorded one, or more (make abi-record)" \
    same_as "$recorded"
gone='s/\(<elf-symbol name=.\)sqlock_renew\x27/\1sqlock_renewed\x27/'
check "a function that is gone is found" finds sqlock_renewed "$gone"
fixed="sqlock_assignment sqlock_error sqlock_result sqlock_row_version sqlock_times
sqlock_value"
are_fixed() {
    diff <(structs | grep -vxF "$(growing)") <(tr ' ' '\n' <<<"$fixed")
}
check "each struct may grow, but for those of one shape" are_fixed
check "these may grow at their end" all_may_grow
for type in sqlock_options sqlock_info sqlock_stock_answer sqlock_stock_line; do
    check "$type that has grown elsewhere is found" is_found "$type" first
done
for type in $fixed; do
    check "$type that has grown is found" is_found "$type" last
done
exit $status
