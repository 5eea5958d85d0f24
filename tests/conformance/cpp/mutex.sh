#!/usr/bin/env bash
# mutex.sh: sqlock.hpp and sqlock/*.hpp compile with each compiler as C++17,
# C++20 and C++23, under flags stricter than most applications use, and programs
# that are built with them pass their tests on each database.
# shellcheck source=tests/tools/support/script.sh
. "$(dirname "$0")/../../tools/support/script.sh"
strict=(-Iinclude -Wall -Wextra -Wpedantic -pedantic-errors -Wshadow -Wundef
    -Wconversion -Wsign-conversion -Wold-style-cast -Werror)

headers=(include/*.hpp include/sqlock/*.hpp)
headers=("${headers[@]#include/}")
programs=(mutex shared leader quorum topics lifetime)
case " ${DRIVERS-sqlite} " in
*' sqlite '*) strict+=(-DHAVE_SQLITE) ;;
esac

# Each header by itself, included twice to test its include guard.
for header in "${headers[@]}"; do
    printf '#include "%s"\n#include "%s"\n' "$header" "$header" \
        >"$dir/header.cc"
    check "$header by itself" g++ -std=c++17 "${strict[@]}" \
        -fsyntax-only "$dir/header.cc"
done
printf '#include "%s"\n' "${headers[@]}" >"$dir/header.cc"
for cxx in g++ clang++; do
    command -v $cxx >/dev/null || {
        echo "skip - sqlock.hpp by $cxx: it is not installed"
        continue
    }
    # Together they include all headers.  g++ builds the programs as C++20 below, so
    # that case is left out here.
    for std in c++17 c++20 c++2b; do
        [ "$cxx $std" = "g++ c++20" ] || for program in "${programs[@]}"; do
            check "$program.cc as $std by $cxx" $cxx -std=$std "${strict[@]}" \
                -fsyntax-only "tests/conformance/cpp/$program.cc"
        done
    done
    check "all headers by $cxx without exceptions" $cxx -std=c++17 \
        "${strict[@]}" -fno-exceptions -fsyntax-only "$dir/header.cc"
done

read -ra libs <<<"$(PKG_CONFIG_PATH=$build/lib/pkgconfig pkg-config --static \
    --libs-only-l sqlock)"
read -ra cxx <<<"${CXX:-g++}" # may have words: "ccache g++"
# As C++20, which has std::stop_token.
for program in "${programs[@]}"; do
    check "$program is built" "${cxx[@]}" -std=c++20 "${strict[@]}" \
        -pthread "tests/conformance/cpp/$program.cc" -o "$dir/$program" -L"$build/lib" \
        "${libs[@]}" -Wl,-rpath,"$build/lib"
done

for url in ${SQLOCK_TEST_POSTGRES_URL-} ${SQLOCK_TEST_MYSQL_URL-} \
    "sqlite:$dir/locks.db"; do
    case " ${DRIVERS-sqlite postgres mysql} " in
    *" ${url%%[:q]*}"*) ;;
    *) continue ;;
    esac
    for program in "${programs[@]}"; do
        [ ! -x "$dir/$program" ] ||
            "$dir/$program" "$url" "cpp-$$" || status=1
    done
done
exit $status
