/*
 * check.hpp - what the programs of this folder share: they take a URL and a
 * region, and print "ok - what" or "not ok - what" of each test
 */
#ifndef SQLOCK_TESTS_CHECK_HPP
#define SQLOCK_TESTS_CHECK_HPP

#include <sqlock.hpp>
#include <sqlock/admin.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <thread>

using namespace std::chrono_literals;

/* A minute, for what comes at once on a machine that is not busy. */
inline constexpr auto patience = 60s;

inline constexpr std::string_view nul_inside("a\0b", 3);

inline int failures;
inline std::string url;
inline sqlock::registry_options options;

inline void check(bool passed, const char *what)
{
    if (!passed)
        failures++;
    std::printf("%s - %s, %s\n", passed ? "ok" : "not ok", what,
                url.substr(0, url.find(':')).c_str());
    std::fflush(stdout);
}

inline sqlock::registry open_registry()
{
    return sqlock::registry::open(url, options);
}

/* The code that a call throws, or 0. */
template <class Call> int thrown(Call call)
{
    try {
        call();
    } catch (const sqlock::error &why) {
        return why.what() == why.why().message ? why.code() : 1;
    }
    return 0;
}

template <class Condition> bool comes_true(Condition condition)
{
    const auto end = std::chrono::steady_clock::now() + patience;

    while (!condition()) {
        if (std::chrono::steady_clock::now() > end)
            return false;
        std::this_thread::sleep_for(5ms);
    }
    return true;
}

/* An operator ends the holder's lease. */
inline void end_lease(const sqlock::registry &registry, const char *name)
{
    sqlock_info *row = nullptr;
    sqlock_break_options how = SQLOCK_BREAK_INIT;
    sqlock_error why = {};

    if (sqlock_show(registry.native_handle(), name, &row, &why) != 0) {
        check(false, why.message);
        return;
    }
    how.client_id = row->client_id;
    how.reason = "test";
    how.now = true;
    if (sqlock_break(registry.native_handle(), name, &how, &why) != 0)
        check(false, why.message);
    sqlock_info_free(row, 1);
}

template <class Tests>
int run(int argc, char **argv, const char *note, Tests tests)
{
    if (argc != 3)
        return 2;
    url = argv[1];
    options.region = argv[2];
    options.holder_note = note;
    try {
        sqlock::create_schema(url);
        tests();
    } catch (const std::exception &why) {
        check(false, why.what());
    }
    return failures != 0;
}

#endif /* SQLOCK_TESTS_CHECK_HPP */
