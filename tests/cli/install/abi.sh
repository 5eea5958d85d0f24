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
# An option struct may grow at its end, since its first member tells its size,
# and so may the rows of a list, whose size goes with the call, and enums.  Needs
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
size_of() { # TYPE FILE
    sed -n "s/.*<class-decl name='$1' size-in-bits='\([0-9]*\)'.*/\1/p" "$2" |
        head -n 1
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
# Write the suppressions for a comparison with a record to $dir/allowed.
# abidiff's rule for a struct that has grown hides all other changes of the
# struct, too: allow only structs that have grown.  They are those with a size in
# them, and the rows of lists, whose size goes with the call.
write_allowed() { # RECORDED
    for type in $(sed -n \
        -e 's/^#define SQLOCK_[A-Z]*_INIT SQLOCK_SIZED(\([a-z_]*\))$/\1/p' \
        -e 's/.*sizeof(\(sqlock_[a-z_]*\)),*.*/\1/p' "${headers[@]}" |
        sort -u); do
        [ "$(size_of "$type" "$dir/now.abi")" -le \
            "$(size_of "$type" "$1")" ] ||
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
# Write a record from before a struct got its last member.
write_shorter() { # TYPE
    awk -v type="$1" -v quote="'" '
        index($0, "<class-decl name=" quote type quote) { inside = NR }
        inside && !last && /<data-member / { begin = NR; offset = $0 }
        inside && /<\/class-decl>/ { last = NR; inside = 0 }
        { line[NR] = $0 }
        END {
            sub(".*layout-offset-in-bits=" quote, "", offset)
            sub(quote ".*", "", offset)
            for (i = 1; i <= NR; i++) {
                if (index(line[i], "<class-decl name=" quote type quote))
                    sub("size-in-bits=" quote "[0-9]*",
                        "size-in-bits=" quote offset, line[i])
                if (i < begin || i > last - 1)
                    print line[i]
            }
        }' "$recorded" >"$dir/shorter.abi"
}
may_grow() { # TYPE
    write_shorter "$1"
    ! cmp -s "$recorded" "$dir/shorter.abi" && same_as "$dir/shorter.abi"
}
may_not_grow() { # TYPE
    write_shorter "$1"
    same_as "$dir/shorter.abi"
    [ $? -ge 4 ] && grep -q "type size changed" "$dir/out"
}
check "the binary interface is the recorded one, or more (make abi-record)" \
    same_as "$recorded"
gone='s/\(<elf-symbol name=.\)sqlock_renew\x27/\1sqlock_renewed\x27/'
check "a function that is gone is found" finds sqlock_renewed "$gone"
for type in sqlock_error sqlock_event sqlock_options sqlock_info \
    sqlock_once_info sqlock_check sqlock_value sqlock_attempt \
    sqlock_retry_stats sqlock_stock_answer sqlock_stock_line sqlock_stock_item \
    sqlock_stock_stats sqlock_stock_reaped; do
    check "$type of another size is found" finds "type size changed from 4096" \
        "s/\(class-decl name='$type' size-in-bits='\)[0-9]*/\14096/"
done
for type in sqlock_options sqlock_stats sqlock_info sqlock_once_info sqlock_check \
    sqlock_stock_item; do
    check "$type may grow" may_grow $type
done
for type in sqlock_value sqlock_attempt sqlock_stock_answer; do
    check "$type that has grown is found" may_not_grow $type
done
exit $status
