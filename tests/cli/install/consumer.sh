#!/usr/bin/env bash
# consumer.sh: install into an empty root, and build a program there with
# pkg-config alone, in C and C++, against the shared and the static library, and
# again with CMake.
# shellcheck source=tests/tools/support/script.sh
. "$(dirname "$0")/../../tools/support/script.sh"
make=${MAKE:-make}

root=$dir/root

# SETUP=no: a test installs no packages.
build_args=(SETUP=no "DESTDIR=$root" PREFIX=/opt/sqlock "BUILD=$dir/build"
    LIBDIR=/opt/sqlock/lib/here)
# A copy, so that another prefix does not touch what was built.
cp -a "$build" "$dir/build"
# LDCONFIG: with DESTDIR, make must not run ldconfig; this one leaves a file.
printf '#!/bin/sh\ntouch "%s/has_run"\n' "$dir" >"$dir/ldconfig"
chmod +x "$dir/ldconfig"
install_here() {
    "$make" --no-print-directory install "LDCONFIG=$dir/ldconfig" \
        "${build_args[@]}" >"$dir/said"
}
check "make install DESTDIR=... PREFIX=... LIBDIR=..." install_here
check "it says where things went" grep -qx \
    "  library   /opt/sqlock/lib/here/libsqlock.so[0-9.]*" "$dir/said"
check "and below what" grep -qx "sqlock [0-9.]* is installed below $root:" \
    "$dir/said"
check "it does not run ldconfig" test ! -e "$dir/has_run"
(cd "$root" && find . ! -type d | sort) >"$dir/installed"
check "nothing is installed outside the prefix" \
    test -z "$(grep -v '^\./opt/sqlock/' "$dir/installed")"
for file in man/man1/sqlock.1 man/man1/sqlock-run.1 man/man3/sqlock.3 \
    man/man7/sqlock-failures.7 man/man7/sqlock-waiting.7 \
    bash-completion/completions/sqlock zsh/site-functions/_sqlock; do
    check "share/$file is installed" test -s "$root/opt/sqlock/share/$file"
done
while read -r file; do
    [ "${file##*/}" = migrate.sh ] ||
        check "$file is installed" cmp "src/$file" \
            "$root/opt/sqlock/share/doc/sqlock/$file"
done < <(cd src && find examples -type f)
check "migrate.sh is installed, to be run" \
    test -x "$root/opt/sqlock/share/sqlock/migrate.sh"
for header in include/*.h include/*.hpp include/sqlock/*.h \
    include/sqlock/*.hpp; do
    check "$header is installed" cmp "$header" "$root/opt/sqlock/$header"
done
check "no installed text names the staging directory" \
    bash -c '! grep -rIl -e "$1" "$2"' - "$dir" "$root"

export PKG_CONFIG_SYSROOT_DIR=$root
PKG_CONFIG_LIBDIR=$(pkg-config --variable=pc_path pkg-config)
export PKG_CONFIG_LIBDIR=$root/opt/sqlock/lib/here/pkgconfig:$PKG_CONFIG_LIBDIR
unset PKG_CONFIG_PATH
lib=$root/opt/sqlock/lib/here
mkdir "$dir/app"
cp tests/cli/install/consumer.c "$dir/app/app.c"
cp tests/cli/install/consumer.c "$dir/app/app.cc"
cd "$dir/app" || exit 1

check "pkg-config knows the version" test "$(pkg-config --modversion sqlock)" \
    = "$(sed -n 's/^Version: //p' "$lib/pkgconfig/sqlock.pc")"
check "pkg-config names the MySQL client library" \
    test -n "$(pkg-config --variable=mysql_client sqlock)" -o \
    "$(pkg-config --variable=drivers sqlock | grep -c mysql)" = 0
check "pkg-config requires the packages of private libraries" \
    bash -c 'pkg-config --print-requires-private sqlock | grep -qx libmd'
check "and names no library of these itself" bash -c \
    '! grep -E "^Libs.private:.*-l(md|sqlite3)" "$1"' - \
    "$lib/pkgconfig/sqlock.pc"
# shellcheck disable=SC2046 # lists of flags
check "a C program builds against the shared library" \
    ${CC:-cc} -std=c99 -Wall -Wextra -Werror app.c -o shared \
    $(pkg-config --cflags --libs sqlock)
check "it runs on SQLite" env LD_LIBRARY_PATH="$lib" ./shared sqlite:shared.db
check "it needs the soname" bash -c \
    'readelf -d shared | grep -q "NEEDED.*libsqlock\.so\.[0-9.]*\]"'
check "it needs no client library itself" bash -c \
    '! readelf -d shared | grep -E "NEEDED.*(libpq|maria|mysql|sqlite3)"'
# shellcheck disable=SC2046
check "a C++ program builds against the shared library" \
    ${CXX:-c++} -std=c++11 -Wall -Wextra -Werror app.cc -o shared++ \
    $(pkg-config --cflags --libs sqlock)
check "it runs on SQLite" \
    env LD_LIBRARY_PATH="$lib" ./shared++ sqlite:shared++.db
# Without the shared library only the static one is found.
mkdir away && mv "$lib"/libsqlock.so* away/
# shellcheck disable=SC2046
check "a C program builds against the static library" \
    ${CC:-cc} -std=c99 app.c -o static \
    $(pkg-config --static --cflags --libs sqlock)
check "it runs on SQLite" ./static sqlite:static.db
# shellcheck disable=SC2046
check "a C++ program builds against the static library" \
    ${CXX:-c++} -std=c++11 app.cc -o static++ \
    $(pkg-config --static --cflags --libs sqlock)
check "it runs on SQLite" ./static++ sqlite:static++.db
mv away/libsqlock.so* "$lib"/

# CMake does not search this LIBDIR by itself, so sqlock_DIR names a folder in
# it.
mkdir "$dir/cmake"
cp app.c "$dir/cmake"
cat >"$dir/cmake/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.13)
project(app C)
find_package(sqlock ${WANTED} REQUIRED)
add_executable(with_shared app.c)
target_link_libraries(with_shared sqlock::sqlock)
add_executable(with_static app.c)
target_link_libraries(with_static sqlock::static)
END
with_cmake() { # VERSION
    rm -rf "$dir/cmade"
    cmake -S "$dir/cmake" -B "$dir/cmade" -DWANTED="$1" \
        -Dsqlock_DIR="$lib/cmake/sqlock" && cmake --build "$dir/cmade"
}
finds_no() { # VERSION
    ! with_cmake "$1" && grep -q 'version: 0' "$dir/out"
}
if command -v cmake >/dev/null; then
    version=$(pkg-config --modversion sqlock)
    check "CMake refuses a later version" finds_no "$version.1"
    check "and another minor one, before 1.0" finds_no 0.0
    check "CMake builds with the version that is there" with_cmake "$version"
    check "the program runs with the shared library" \
        "$dir/cmade/with_shared" sqlite:cmake.db
    check "which it needs by its soname" bash -c \
        'readelf -d "$1" | grep -q "NEEDED.*libsqlock\.so\.[0-9.]*\]"' - \
        "$dir/cmade/with_shared"
    mv "$lib"/libsqlock.so* away/
    check "and the other with the static one" \
        "$dir/cmade/with_static" sqlite:cmake.db
    mv away/libsqlock.so* "$lib"/
else
    echo "skip - CMake: cmake is not installed"
fi

cd - >/dev/null || exit 1
command=$root/opt/sqlock/bin/sqlock
check "the installed command runs" "$command" --version
check "make uninstall" \
    "$make" --no-print-directory -s uninstall "${build_args[@]}"
check "make uninstall leaves nothing" \
    test -z "$(find "$root" ! -type d -o -name '*sqlock*' ! -path \
        "$root/opt/sqlock")"
exit $status
