#!/usr/bin/env bash
# programs.sh: the programs of this folder are built with sqlock.hpp and
# sqlock/*.hpp as C++20, and pass their tests on each database.
# shellcheck source=tests/tools/support/script.sh
. "$(dirname "$0")/../../tools/support/script.sh"
programs=(mutex cancel shared leader quorum topics lifetime scoped_lock)
flags=(-Iinclude -pthread)
case " ${DRIVERS-sqlite} " in
*' sqlite '*) flags+=(-DHAVE_SQLITE) ;;
esac
read -ra libs <<<"$(PKG_CONFIG_PATH=$build/lib/pkgconfig pkg-config --static \
    --libs-only-l sqlock)"
read -ra cxx <<<"${CXX:-g++}" # may have words: "ccache g++"
# As C++20, which has std::stop_token.
for program in "${programs[@]}"; do
    check "$program is built" "${cxx[@]}" -std=c++20 "${flags[@]}" \
        "tests/conformance/cpp/$program.cc" -o "$dir/$program" \
        -L"$build/lib" "${libs[@]}" -Wl,-rpath,"$build/lib"
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
