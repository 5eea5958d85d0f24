/*
 * quorum.cc - quorum.hpp on a database and two files of SQLite
 *
 *     quorum URL REGION
 *
 * Prints "ok - what" or "not ok - what" of each test.
 */
#include "check.hpp"

#include <sqlock/quorum.hpp>
#include <sqlock/tx.hpp>

#include <atomic>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <unistd.h>
#include <vector>

static_assert(!std::is_copy_constructible_v<sqlock::quorum> &&
              std::is_nothrow_move_constructible_v<sqlock::quorum> &&
              std::is_nothrow_move_assignable_v<sqlock::quorum>);

#ifdef HAVE_SQLITE

/* Two more servers. */
struct files {
    std::string one = path("one"), two = path("two");

    files()
    {
        sqlock::create_schema("sqlite:" + one);
        sqlock::create_schema("sqlite:" + two);
    }
    files(const files &) = delete;
    files &operator=(const files &) = delete;
    ~files()
    {
        (void)std::remove(one.c_str());
        (void)std::remove(two.c_str());
    }
    static std::string path(const char *name)
    {
        return "/tmp/sqlock-cpp-" + std::to_string(getpid()) + "-" + name;
    }
};

struct servers {
    sqlock::registry a = open_registry(), b, c;

    explicit servers(const files &of)
        : b(sqlock::registry::open("sqlite:" + of.one, options)),
          c(sqlock::registry::open("sqlite:" + of.two, options))
    {
    }
    sqlock::registry_list all() const
    {
        return {a, b, c};
    }
};

static void test_exclusion(const files &of)
{
    const servers ours(of), theirs(of);
    std::vector<int> results;

    {
        auto held = sqlock::acquire_quorum(ours.all(), "one", patience);
        check(held && held.remaining() > 0ms && held.results().size() == 3 &&
                  held.held(0) + held.held(1) + held.held(2) >= 2 &&
                  (held.token(0) != 0) + (held.token(1) != 0) +
                          (held.token(2) != 0) >=
                      2,
              "a quorum is held");
        check(thrown([&] {
                  (void)sqlock::acquire_quorum(theirs.all(), "one", 0s);
              }) == SQLOCK_EBUSY &&
                  in_thread([&] {
                      return thrown([&] {
                          (void)sqlock::acquire_quorum(theirs.all(), "one",
                                                       50ms);
                      });
                  }) == SQLOCK_ETIMEDOUT,
              "and excludes another");
        check(thrown([&] {
                  (void)sqlock::acquire_quorum(ours.all(), "one", patience);
              }) == SQLOCK_EDEADLOCK,
              "a thread that waits for its own is told");
        auto moved = std::move(held);
        check(moved.held() && !held.held() && held.token(0) == 0 &&
                  held.results().empty() &&
                  held.release(std::nothrow).error().code == SQLOCK_EOWNER,
              "it moves");
    }
    auto next =
        sqlock::acquire_quorum(std::nothrow, theirs.all(), "one", patience);
    check(next && next->held(), "its end releases it");
    next->release();
    check(!next->held() && thrown([&] { next->check(); }) == SQLOCK_EEXPIRED &&
              thrown([&] { next->release(); }) == SQLOCK_EOWNER,
          "or a release");

    auto rival = theirs.b.acquire("one", patience);
    auto most = sqlock::acquire_quorum(ours.all(), "one", patience);
    check(most.held(0) && !most.held(1) && most.held(2),
          "two of three are enough");
    most.release();
    const auto all =
        sqlock::acquire_quorum(std::nothrow, ours.all(), "one", 0s, {},
                               sqlock::quorum_of::all, &results);
    check(!all && all.error().code == SQLOCK_EBUSY &&
              results[1] == SQLOCK_EBUSY && theirs.a.try_acquire("one") &&
              theirs.c.try_acquire("one"),
          "but not for all, which leaves nothing behind");
}

static void test_stop([[maybe_unused]] const files &of)
{
#if defined(__cpp_lib_jthread)
    const servers ours(of), theirs(of);
    const auto held = sqlock::acquire_quorum(theirs.all(), "stop", patience, {},
                                             sqlock::quorum_of::all);
    std::stop_source source;
    std::thread stopper([&] {
        (void)is_waited_for(theirs.a, "stop");
        source.request_stop();
    });

    check(thrown([&] {
              (void)sqlock::acquire_quorum(ours.all(), "stop", sqlock::forever,
                                           source.get_token());
          }) == SQLOCK_ECANCELED,
          "a stop that is requested ends the wait for a quorum");
    stopper.join();
    check(sqlock::acquire_quorum(ours.all(), "stop/2", patience,
                                 std::stop_token(), {}, sqlock::quorum_of::all)
              .held(),
          "and one that is not requested ends none");
#endif
}

static void test_wrong(const files &of)
{
    const servers ours(of);
    const auto code = [&](const sqlock::registry_list &list,
                          std::string_view name) {
        return thrown(
            [&] { (void)sqlock::acquire_quorum(list, name, patience); });
    };

    check(code({ours.a, ours.b}, "wrong") == SQLOCK_EINVAL &&
              code({ours.a, ours.b, ours.a}, "wrong") == SQLOCK_EINVAL &&
              code({}, "wrong") == SQLOCK_EINVAL &&
              code(ours.all(), nul_inside) == SQLOCK_EINVAL,
          "what is no quorum is refused");
}

static void test_loss(const files &of)
{
    const servers ours(of), theirs(of);
    std::atomic<int> told{0}, code{0};
    sqlock::acquire_options how;

    how.ttl = 2s;
    how.on_lost = [&](int why) {
        code = why;
        told++;
    };
    auto held = sqlock::acquire_quorum(ours.all(), "loss", patience, how,
                                       sqlock::quorum_of::all);
    end_lease(theirs.b, "loss");
    check(comes_true([&] { return told == 1; }) && code == SQLOCK_ELOST &&
              !held.held() && held.held(0) && !held.held(1),
          "a loss is told");
    check(held.release(std::nothrow).error().code == SQLOCK_ELOST &&
              held.results()[1] == SQLOCK_ELOST && held.results()[0] == 0,
          "and so it is by the release");
}

static void test_end_under_a_guard(const files &of)
{
    const servers ours(of), theirs(of);
    sqlock::acquire_options how;

    how.ttl = 60s;
    how.on_lost = [](int) {};
    {
        auto held = std::make_unique<sqlock::quorum>(sqlock::acquire_quorum(
            ours.all(), "guarded", patience, how, sqlock::quorum_of::all));
        auto a = sqlock::transaction::begin(ours.a);
        auto b = sqlock::transaction::begin(ours.b);

        check(sqlock_tx_guard(a.native_handle(),
                              sqlock_quorum_lock(held->native_handle(), 0),
                              nullptr) == 0 &&
                  sqlock_tx_guard(b.native_handle(),
                                  sqlock_quorum_lock(held->native_handle(), 1),
                                  nullptr) == 0,
              "transactions guard locks of a quorum");
        held.reset();
        a.commit();
        b.commit();
    }
    check(sqlock::acquire_quorum(std::nothrow, theirs.all(), "guarded",
                                 patience, {}, sqlock::quorum_of::all)
              .has_value(),
          "which ends, and is free when they do");
}

static void test_registries_that_end(const files &of)
{
    auto held = sqlock::acquire_quorum(servers(of).all(), "kept", patience);

    check(held.held() && held.release(std::nothrow),
          "a quorum keeps its registries open");
}

#endif

int main(int argc, char **argv)
{
    return run(argc, argv, "tests/conformance/cpp/quorum", [] {
#ifdef HAVE_SQLITE
        const files of;

        test_exclusion(of);
        test_stop(of);
        test_wrong(of);
        test_loss(of);
        test_end_under_a_guard(of);
        test_registries_that_end(of);
#endif
    });
}
