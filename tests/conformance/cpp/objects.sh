#!/usr/bin/env bash
# objects.sh: the shared objects of a process, each with sqlock.hpp in it, agree
# on the number of a thread, also where they hide their symbols and are loaded
# apart, as plugins are.
# shellcheck source=tests/tools/support/script.sh
. "$(dirname "$0")/../../tools/support/script.sh"

cat >"$dir/plugin.cc" <<'END'
#include <sqlock/turn.hpp>

extern "C" [[gnu::visibility("default")]] std::uint64_t number()
{
    return sqlock::detail::this_actor();
}
END
cat >"$dir/main.cc" <<'END'
#include <cstdint>
#include <cstdio>
#include <set>
#include <thread>

#include <dlfcn.h>

using function = std::uint64_t (*)();

static function load(const char *path)
{
    void *const object = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (object == nullptr)
        std::fprintf(stderr, "%s\n", dlerror());
    return object == nullptr ? nullptr
                             : reinterpret_cast<function>(dlsym(object, "number"));
}

int main(int, char **argv)
{
    const function one = load(argv[1]), other = load(argv[2]);
    std::set<std::uint64_t> seen;
    bool do_agree = true;

    if (one == nullptr || other == nullptr)
        return 2;
    /* Both count differently, where each does so by itself. */
    std::thread([&] { seen.insert(one()); }).join();
    for (int i = 0; i < 3; i++)
        std::thread([&] {
            const auto first = i % 2 == 0 ? other() : one();

            do_agree = do_agree && one() == first && other() == first;
            seen.insert(first);
        }).join();
    std::printf("%s %zu", do_agree ? "agree" : "differ", seen.size());
    return 0;
}
END
read -ra cxx <<<"${CXX:-g++}" # may have words: "ccache g++"
for plugin in one other; do
    check "the plugin $plugin is built" "${cxx[@]}" -std=c++17 -Iinclude -fPIC \
        -fvisibility=hidden -fvisibility-inlines-hidden -shared -pthread \
        "$dir/plugin.cc" -o "$dir/$plugin.so" -L"$build/lib" -lsqlock \
        -Wl,-rpath,"$build/lib"
done
check "the program is built" "${cxx[@]}" -std=c++17 -pthread "$dir/main.cc" \
    -o "$dir/main" -ldl
is "plugins agree on the number of each of four threads" \
    "$("$dir/main" "$dir/one.so" "$dir/other.so" 2>&1)" "agree 4"
exit $status
