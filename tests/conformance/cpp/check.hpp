/*
 * check.hpp - what the programs of this folder share
 *
 * A program is called with a URL and a region, and prints "ok - WHAT" or "not
 * ok - WHAT" for each check.
 */
#ifndef SQLOCK_TESTS_CHECK_HPP
#define SQLOCK_TESTS_CHECK_HPP

#include <sqlock.hpp>
#include <sqlock/admin.h>

#include <chrono>
#include <cstdio>
#include <future>
#include <string>
#include <string_view>
#include <thread>

using namespace std::chrono_literals;

/* Time limit for anything that takes an instant on an idle machine. */
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

/* Return the code of the sqlock::error that the call throws; 0: it throws
 * nothing.  Return 1 if what() is not the message of the failure. */
template <class Call> int thrown(Call call)
{
    try {
        call();
    } catch (const sqlock::error &why) {
        return why.what() == why.why().message ? why.code() : 1;
    }
    return 0;
}

/* Call it in another thread, which has no lock; return what it returns. */
template <class Call> auto in_thread(Call call)
{
    return std::async(std::launch::async, call).get();
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

inline sqlock::acquire_options long_lease()
{
    sqlock::acquire_options how;

    how.ttl = 120s; /* longer than the test waits */
    return how;
}

/* Whether another registry gets the lock, long before its lease would end. */
inline bool is_free(const sqlock::registry &other, const std::string &name)
{
    return comes_true([&] { return bool(other.try_acquire(name)); });
}

/* Wait until somebody waits for the lock. */
inline bool is_waited_for(const sqlock::registry &registry, const char *name)
{
    return comes_true([&] {
        sqlock_info *row = nullptr;
        const bool some =
            sqlock_show(registry.native_handle(), name, &row, nullptr) == 0 &&
            row->waiters > 0;

        sqlock_info_free(row, row != nullptr ? 1 : 0);
        return some;
    });
}

/* End the holder's lease at once, as an operator does.  A failure is reported
 * as a check that failed. */
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
