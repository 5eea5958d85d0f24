/*
 * topics.cc - the C++ headers in sqlock/ on a database: many locks, requests,
 * transactions, stock, once, counters
 *
 *     topics URL REGION
 *
 * Prints "ok - what" or "not ok - what" of each test.
 */
#include "check.hpp"

#include <sqlock/async.hpp>
#include <sqlock/many.hpp>
#include <sqlock/once.hpp>
#include <sqlock/stats.hpp>
#include <sqlock/tx.h>

/* What retry() gave to C. */
static sqlock_retry_options retried;

static int noted_retry(sqlock_registry *registry, sqlock_tx_fn work,
                       void *context, const sqlock_retry_options *how,
                       sqlock_error *err)
{
    retried = *how;
    return sqlock_tx_retry(registry, work, context, how, err);
}
#define sqlock_tx_retry noted_retry
#include <sqlock/stock.hpp>
#include <sqlock/tx.hpp>

#include <array>
#include <atomic>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include <poll.h>
#include <sys/resource.h>
#if defined(HAVE_SQLITE)
#include <sqlite3.h>
#endif

template <class T>
constexpr bool moves_only =
    !std::is_copy_constructible_v<T> && !std::is_copy_assignable_v<T> &&
    std::is_nothrow_move_constructible_v<T> &&
    std::is_nothrow_move_assignable_v<T>;

static_assert(moves_only<sqlock::leases>);
static_assert(moves_only<sqlock::transaction>);
static_assert(moves_only<sqlock::rows>);
static_assert(moves_only<sqlock::stock>);
static_assert(moves_only<sqlock::acquisition>);
static_assert(moves_only<sqlock::releasing>);

static bool is(const char *scheme)
{
    return url.compare(0, std::string(scheme).size(), scheme) == 0;
}

static bool readable(int fd)
{
    pollfd on = {fd, POLLIN, 0};

    return ::poll(&on, 1, 0) == 1;
}

/* Return a name that no other run of this program uses: unlike locks, items do
 * not belong to a region. */
static std::string own(const char *name)
{
    return options.region + "/" + name;
}

/* ------------------------------------------------------------------ many -- */

static void test_many()
{
    const auto registry = open_registry();
    const auto other = open_registry();
    const std::vector<std::string> names{"many/b", "many/a", "many/c"};

    {
        auto all = sqlock::acquire_many(registry, names, patience);
        check(all && all.size() == 3 && all.remaining() > 0ms &&
                  all.name(0) == "many/b" && all.token(2) > 0 &&
                  all.native_handle(3) == nullptr &&
                  !other.try_acquire("many/a"),
              "many are held together");
        all.check();
        check(sqlock_renew(all.native_handle(1), 600000, nullptr) == 0 &&
                  all.remaining() < 100s,
              "the first deadline counts");
        check(thrown([&] { (void)registry.acquire("many/a", patience); }) ==
                  SQLOCK_EDEADLOCK,
              "a thread that waits for one of its several is told");
        all.renew();
        check(
            sqlock::acquire_many(std::nothrow, other, {"many/c", "many/d"}, 0s)
                        .error()
                        .code == SQLOCK_EBUSY &&
                other.try_acquire("many/d"),
            "who does not get all gets none");
        check(in_thread([&] {
                  return thrown([&] {
                      (void)sqlock::acquire_many(other, {"many/c", "many/d"},
                                                 20ms);
                  });
              }) == SQLOCK_ETIMEDOUT,
              "nor after a wait");
        auto some = sqlock::acquire_many(other, {"many/d", "many/e"}, 0s);
        check(some.held() && some.size() == 2 && some.name(0) == "many/d" &&
                  some.name(1) == "many/e",
              "others are");

        auto moved = std::move(all);
        check(moved.held() && !all.held() && all.empty() &&
                  all.remaining() == 0ms &&
                  thrown([&] { all.check(); }) == SQLOCK_EEXPIRED &&
                  thrown([&] { all.release(); }) == SQLOCK_EOWNER &&
                  thrown([&] { all.renew(); }) == SQLOCK_EOWNER &&
                  thrown([&] { (void)all.token(0); }) == SQLOCK_EINVAL,
              "what was moved from holds nothing");
        moved = std::move(some);
        check(static_cast<bool>(other.try_acquire("many/a")),
              "assigned to, it gives back what it had");
    }
    auto again = sqlock::acquire_many(other, names, 0s);
    again.release();
    check(!again && again.empty() && other.try_acquire("many/b"),
          "all are released together");
    check(sqlock::acquire_many(std::nothrow, registry, {nul_inside}, 0s)
                      .error()
                      .code == SQLOCK_EINVAL &&
              thrown([&] {
                  (void)sqlock::acquire_many(registry, {"many/a", "\xff"}, 0s);
              }) == SQLOCK_EINVAL,
          "one name that is wrong refuses all");
}

static sqlock::registry open_owned_by_thread()
{
    auto how = options;

    how.ownership = SQLOCK_OWNED_BY_THREAD;
    return sqlock::registry::open(url, how);
}

/* Where threads own locks, each acquire of the owner is released once. */
static void test_many_nested()
{
    const auto other = open_registry();
    const auto registry = open_owned_by_thread();
    const std::vector<std::string> names{"nested/1", "nested/2"};
    auto outer = sqlock::acquire_many(registry, names, patience);
    {
        auto inner = sqlock::acquire_many(registry, names, 0s);
        inner.release();
        check(inner.empty() && outer.held(),
              "a release of nested leases leaves the outer ones");
    }
    {
        const auto inner = sqlock::acquire_many(registry, names, 0s);
    }
    check(outer.held() && !other.try_acquire("nested/1"),
          "and so does their end");
    outer.release();
    check(outer.empty() && other.try_acquire("nested/1"),
          "the outer ones are released after that");
}

/* A thread that does not own the leases cannot release them: the locks stay
 * held, and may still be lost. */
static void test_ended_by_another_thread()
{
    const auto registry = open_owned_by_thread();
    const auto used = std::make_shared<int>(0);
    sqlock::acquire_options each;

    each.on_lost = [used](int) {};
    auto one = registry.acquire("thread/1", patience, each);
    auto two = sqlock::acquire_many(registry, {"thread/2", "thread/3"},
                                    patience, each);
    each.on_lost = nullptr;
    std::thread([&] {
        const auto first = std::move(one);
        const auto second = std::move(two);
    }).join();
    check(used.use_count() == 3,
          "on_lost is there as long as a lease is of another thread");
}

/* The owner has acquired the lock twice, and the first lease ends first: the
 * lock stays held, and may still be lost. */
static void test_ended_before_the_nested_one()
{
    const auto registry = open_owned_by_thread();
    const auto used = std::make_shared<int>(0);
    sqlock::acquire_options each;

    each.on_lost = [used](int) {};
    auto outer = registry.acquire("nested/3", patience, each);
    each.on_lost = nullptr;
    const auto inner = registry.acquire("nested/3", 0s);
    {
        const auto ended = std::move(outer);
    }
    check(inner.held() && used.use_count() == 2,
          "on_lost is there as long as the owner has the lock");
}

static void test_many_lost()
{
    const auto registry = open_registry();
    std::atomic<int> told{0}, code{0};
    sqlock::acquire_options how;

    how.ttl = 2s;
    how.on_lost = [&](int why) {
        code = why;
        told++;
    };
    auto all =
        sqlock::acquire_many(registry, {"lost/1", "lost/2"}, patience, how);
    end_lease(registry, "lost/2");
    check(comes_true([&] { return told == 1; }) && code == SQLOCK_ELOST,
          "the loss of one of many is told");
    check(!all.held() && thrown([&] { all.check(); }) == SQLOCK_EEXPIRED &&
              all.renew(std::nothrow).error().code == SQLOCK_ELOST,
          "and by check() and renew()");
    check(thrown([&] { all.release(); }) == SQLOCK_ELOST && all.empty(),
          "and by release()");
}

/* Four threads, with a registry each, acquire overlapping sets of two locks. */
static void test_crosswise()
{
    std::array<std::atomic<int>, 4> inside{};
    std::atomic<int> overlaps{0}, errors{0};
    std::vector<std::thread> threads;

    for (std::size_t i = 0; i < 4; i++)
        threads.emplace_back([&, i] {
            try {
                const auto registry = open_registry();
                const std::size_t one = i, two = (i + 1) % 4;
                const std::vector<std::string> names{
                    "cross/" + std::to_string(two),
                    "cross/" + std::to_string(one)};

                for (int round = 0; round < 8; round++) {
                    auto all = sqlock::acquire_many(registry, names, patience);
                    if (++inside[one] != 1 || ++inside[two] != 1)
                        overlaps++;
                    std::this_thread::sleep_for(1ms);
                    --inside[one], --inside[two];
                }
            } catch (const sqlock::error &why) {
                std::printf("# %s\n", why.what());
                errors++;
            }
        });
    for (auto &thread : threads)
        thread.join();
    check(overlaps == 0 && errors == 0,
          "sets that lie crosswise neither overlap nor wait for ever");
}

/* -------------------------------------------------------------- requests -- */

static void test_async()
{
    const auto registry = open_registry();
    auto holder = registry.acquire("async", 0s);
    auto coming = sqlock::acquire_async(registry, "async", patience);

    check(coming.valid() && !coming.ready() && !readable(coming.fd()) &&
              coming.wait_for(20ms) == std::future_status::timeout,
          "a request waits");
    auto moved = std::move(coming);
    check(!coming.valid() && coming.fd() == -1 &&
              thrown([&] { (void)coming.get(); }) == SQLOCK_EINVAL,
          "and moves");
    auto going = sqlock::release_async(std::move(holder));
    check(!holder.held(), "from here it is not held");
    going.get();
    check(moved.wait_for(patience) == std::future_status::ready &&
              readable(moved.fd()),
          "its descriptor tells of the grant");
    auto lease = moved.get();
    check(lease.held() && lease.token() > 0 && !moved.valid() &&
              !registry.try_acquire("async"),
          "whoever gets it holds the lock");
    lease.release();
    check(thrown([&] { (void)sqlock::release_async(std::move(lease)); }) ==
              SQLOCK_EOWNER,
          "what is not held is not released");

    auto late = sqlock::acquire_async(registry, "async", patience);
    auto held = late.get();
    auto busy = sqlock::acquire_async(registry, "async", 0s);
    check(busy.get(std::nothrow).error().code == SQLOCK_EBUSY,
          "a request that is refused is told in a result");
    auto timed = sqlock::acquire_async(registry, "async", 20ms);
    check(thrown([&] { (void)timed.get(); }) == SQLOCK_ETIMEDOUT,
          "or by an exception");
    auto cancelled = sqlock::acquire_async(registry, "async", sqlock::forever);
    std::thread([&] { cancelled.cancel(); }).join();
    check(thrown([&] { (void)cancelled.get(); }) == SQLOCK_ECANCELED,
          "a request is cancelled");
    check(sqlock::acquire_async(std::nothrow, registry, nul_inside, 0s)
                  .error()
                  .code == SQLOCK_EINVAL,
          "a request of a wrong name does not begin");

    sqlock::mutex mutex(registry, "async of a mutex");
    auto borrowed = mutex.acquire(0s);
    check(
        sqlock::release_async(std::nothrow, std::move(borrowed)).error().code ==
                SQLOCK_EINVAL &&
            borrowed.held(),
        "a lease of a mutex is not released by a request");
    auto assigned = registry.acquire("async assigned", 0s);
    assigned = std::move(borrowed);
    check(
        sqlock::release_async(std::nothrow, std::move(assigned)).error().code ==
            SQLOCK_EINVAL,
        "nor one that was assigned");
}

static void test_async_given_up()
{
    const auto registry = open_registry();
    sqlock::acquire_options watched;
    std::atomic<int> told{0};

    watched.on_lost = [&](int) { told++; };
    {
        auto held = registry.acquire("given up", 0s);
        auto one = sqlock::acquire_async(registry, "given up", sqlock::forever);
        auto two = sqlock::acquire_async(registry, "given up", sqlock::forever,
                                         watched);
        one = sqlock::acquire_async(registry, "given up", sqlock::forever);
    }
    check(registry.acquire(std::nothrow, "given up", patience).has_value(),
          "requests that are given up leave no lock");
    {
        auto one = sqlock::acquire_async(registry, "given up", patience);
        one.wait();
        auto two =
            sqlock::acquire_async(registry, "given up", patience, watched);
        one = std::move(two);
        one.wait();
    }
    check(registry.acquire(std::nothrow, "given up", patience).has_value() &&
              told == 0,
          "nor do those that were granted");
}

/* A wait that could not be cancelled does not begin. */
static void test_no_descriptor()
{
    const auto registry = open_registry();
    sqlock::mutex one(registry, "no fd/1"), two(registry, "no fd/2");
    auto held = registry.acquire("no fd/3", 0s);
    rlimit limits, none;
    const auto refused = [](auto call) {
        return thrown(call) == SQLOCK_ERESOURCE;
    };

    getrlimit(RLIMIT_NOFILE, &limits);
    none = limits;
    none.rlim_cur = 0;
    setrlimit(RLIMIT_NOFILE, &none);
    const bool waits = refused([&] { one.lock(); }) &&
                       refused([&] { sqlock::scoped_lock both(one, two); });
    const bool requests =
        refused([&] {
            (void)sqlock::acquire_async(registry, "no fd/1", patience);
        }) &&
        refused([&] { (void)sqlock::release_async(std::move(held)); });
#if defined(__cpp_lib_jthread)
    const bool stops = refused([&] {
        (void)sqlock::acquire(registry, "no fd/1", patience, std::stop_token());
    });
#else
    const bool stops = true;
#endif
    setrlimit(RLIMIT_NOFILE, &limits);
    check(waits && requests && stops, "without a descriptor none waits");
    check(held.held() && one.try_lock() && two.try_lock(),
          "which leaves everything as it was");
    one.unlock();
    two.unlock();
}

/* A release that is dropped after its end, without get(), does not release a
 * second time. */
static void test_async_release_given_up()
{
    auto shared = options;
    sqlock::acquire_options watched;

    shared.ownership = SQLOCK_OWNED_BY_THREAD;
    watched.on_lost = [](int) {};
    const auto registry = sqlock::registry::open(url, shared);
    auto released = sqlock::release_async(
        registry.acquire("released once", patience, watched));
    released.wait();
    const auto next = registry.acquire("released once", patience);
    {
        const auto gone = std::move(released);
    }
    check(next.held(), "a release that is given up releases nothing else");
}

/* As of a moment that has passed; without it, it would be for ever. */
static void test_past_options()
{
    const auto registry = open_registry();
    sqlock::acquire_options how;
    sqlock::registry_options past;

    past.ttl = -1s;
    check(thrown([&] { (void)sqlock::registry::open(url, past); }) ==
              SQLOCK_EINVAL,
          "a TTL below zero is refused");
    how.ttl = 300ms;
    how.max_hold = -1s;
    const auto lease = registry.acquire("past", patience, how);
    check(comes_true([&] { return !lease.held(); }),
          "one that may be held until a moment that has passed is not renewed");
}

static void test_async_lost()
{
    const auto registry = open_registry();
    sqlock::acquire_options how;

    how.ttl = 2s;
    auto lease = sqlock::acquire_async(registry, "async lost", 0s, how).get();
    const int fd = sqlock::lost_fd(lease);
    check(!readable(fd), "a descriptor of a lease that is held is silent");
    end_lease(registry, "async lost");
    check(comes_true([&] { return readable(fd); }) && !lease.held(),
          "and tells of its loss");
    auto going = sqlock::release_async(std::move(lease));
    check(thrown([&] { going.get(); }) == SQLOCK_ELOST,
          "and so does a request that releases it");
    check(thrown([&] { (void)sqlock::lost_fd(lease); }) == SQLOCK_EOWNER,
          "one that is not held has none");
}

static void test_stop()
{
#if defined(__cpp_lib_jthread)
    const auto registry = open_registry();
    std::stop_source source;
    auto free = sqlock::acquire(registry, "stop", 0s, source.get_token());
    check(free.held(), "a lock is taken with a stop_token");
    std::thread stopper([&] {
        std::this_thread::sleep_for(30ms);
        source.request_stop();
    });
    check(in_thread([&] {
              return thrown([&] {
                  (void)sqlock::acquire(registry, "stop", sqlock::forever,
                                        source.get_token());
              });
          }) == SQLOCK_ECANCELED,
          "a stop that is requested ends a wait");
    stopper.join();
    check(sqlock::acquire(std::nothrow, registry, "stop", sqlock::forever,
                          source.get_token())
                  .error()
                  .code == SQLOCK_ECANCELED,
          "also one that was requested before");
    check(thrown([&] { (void)registry.acquire("stop", patience); }) ==
                  SQLOCK_EDEADLOCK &&
              thrown([&] {
                  (void)sqlock::acquire(registry, "stop", patience,
                                        std::stop_token());
              }) == SQLOCK_EDEADLOCK,
          "a thread that waits for what it got so is told, and by such a wait");
    const auto other = open_registry();
    const auto held = other.acquire("stop/1", patience);
    std::stop_source several;
    std::thread second([&] {
        (void)is_waited_for(registry, "stop/1");
        several.request_stop();
    });
    check(in_thread([&] {
              return thrown([&] {
                  (void)sqlock::acquire_many(registry, {"stop/1", "stop/2"},
                                             sqlock::forever,
                                             several.get_token());
              });
          }) == SQLOCK_ECANCELED,
          "a stop ends a wait for several locks, too");
    second.join();
    check(
        sqlock::acquire_many(registry, {"stop/2"}, patience, std::stop_token())
                .held() &&
            sqlock::acquire_many(registry, {"stop/3"}, patience, {}).held(),
        "which leaves none of them held");
#endif
}

static void test_async_itself()
{
    const auto registry = open_registry();
    auto lease =
        sqlock::acquire_async(registry, "async itself", patience).get();

    check(thrown([&] { (void)registry.acquire("async itself", patience); }) ==
              SQLOCK_EDEADLOCK,
          "a thread that waits for what a request got is told");
    lease.detach();
    check(registry.acquire(std::nothrow, "async itself", 20ms).error().code ==
              SQLOCK_ETIMEDOUT,
          "unless it gives it away");
}

/* ---------------------------------------------------------- transactions -- */

static const char update[] = "UPDATE INT_STOCK SET QUANTITY = ? WHERE ITEM = ?";
static const char insert[] = "INSERT INTO INT_STOCK (ITEM, QUANTITY) VALUES "
                             "(?, ?)";

/* row(): insert a row of the application's, with the quantity 1, and return its
 * item.  quantity(): return the quantity in such a row; -1: there is none. */
static std::string row(const sqlock::registry &registry, const char *name)
{
    auto tx = sqlock::transaction::begin(registry);

    tx.execute(insert, own(name), 1);
    tx.commit();
    return own(name);
}

static std::int64_t quantity(const sqlock::registry &registry,
                             const std::string &item)
{
    auto tx = sqlock::transaction::begin(registry);
    auto rows =
        tx.execute("SELECT QUANTITY FROM INT_STOCK WHERE ITEM = ?", item);

    return rows.integer(0, 0).value_or(-1);
}

static const char wrong[] = "SELECT nonsense FROM nowhere";

/* Whether the call throws an exception of the application. */
template <class Call> static bool other_than_ours(Call call)
{
    try {
        call();
    } catch (const std::out_of_range &why) {
        return why.what() == std::string("of the application");
    }
    return false;
}

static void test_tx()
{
    const auto registry = open_registry();
    const std::string item = row(registry, "tx");

    {
        auto tx = sqlock::transaction::begin(registry);
        check(tx.execute(update, 5, item).affected() == 1,
              "a statement tells how many rows it changed");
    }
    check(quantity(registry, item) == 1,
          "what is not committed is rolled back");
    {
        auto tx = sqlock::transaction::begin(registry);
        tx.execute(update, std::vector<sqlock::value>{7, item});
        auto moved = std::move(tx);
        check(thrown([&] { tx.execute("SELECT 1"); }) == SQLOCK_EINVAL &&
                  thrown([&] { tx.commit(); }) == SQLOCK_EINVAL &&
                  thrown([&] { tx.rollback(); }) == SQLOCK_EINVAL &&
                  tx.native_handle() == nullptr,
              "a transaction that was moved from has ended");
        check(thrown([&] { moved.leave(); }) == SQLOCK_EINVAL &&
                  moved.native_handle() != nullptr,
              "one that is not adopted is not left");
        moved.commit();
        check(thrown([&] { moved.commit(); }) == SQLOCK_EINVAL,
              "one that was committed has ended");
    }
    check(quantity(registry, item) == 7, "what is committed stays");

    auto tx = sqlock::transaction::begin(registry);
    auto rows = tx.execute("SELECT ITEM, QUANTITY, NULL, '12', 'x' FROM "
                           "INT_STOCK WHERE ITEM = ?",
                           item);
    check(rows.size() == 1 && rows.columns() == 5 && rows.text(0, 0) == item &&
              rows.integer(0, 1) == 7 && rows.text(0, 1) == "7" &&
              !rows.text(0, 2) && !rows.integer(0, 2) &&
              rows.integer(0, 3) == 12,
          "cells are read, and null is no value");
    check(thrown([&] { (void)rows.integer(0, 4); }) == SQLOCK_EINVAL &&
              thrown([&] { (void)rows.text(1, 0); }) == SQLOCK_EINVAL &&
              thrown([&] { (void)rows.text(0, 5); }) == SQLOCK_EINVAL,
          "a cell that is not there is an error");
    auto other = std::move(rows);
    check(rows.empty() && other.size() == 1, "rows move");
    check(tx.execute(std::nothrow, update, 9, nul_inside).error().code ==
                  SQLOCK_EINVAL &&
              tx.execute(std::nothrow, nul_inside).error().code ==
                  SQLOCK_EINVAL,
          "a text with a NUL byte is not sent");
    check(tx.execute("SELECT 1 WHERE 1 = ?", std::optional<int>()).empty(),
          "what is no value is sent as null");
    tx.rollback();
    check(thrown([&] {
              auto broken = sqlock::transaction::begin(registry);
              broken.execute(update, 99, item);
              broken.execute(wrong);
          }) == SQLOCK_ESCHEMA &&
              quantity(registry, item) == 7,
          "a statement that fails is an exception, which rolls back");
    check(other_than_ours([&] {
              auto left = sqlock::transaction::begin(registry);
              left.execute(update, 99, item);
              throw std::out_of_range("of the application");
          }) &&
              quantity(registry, item) == 7,
          "and so does any other");
}

/* A failure has what the database has told, also behind retry(). */
static void test_failures()
{
    const auto registry = open_registry();
    auto tx = sqlock::transaction::begin(registry);
    const sqlock::failure why = tx.execute(std::nothrow, wrong).error();

    tx.rollback();
    check(is("mysql") ? why.native == 1146 && why.sqlstate == "42S02"
                      : why.sqlstate == (is("postgres") ? "42P01" : ""),
          "a failure has the numbers of the database");
    check(why.code == SQLOCK_ESCHEMA && why.left == -1 && why.line == 0 &&
              why.message.find("nowhere") != std::string::npos,
          "and its text");
    const auto came =
        sqlock::retry(std::nothrow, registry, [](sqlock::transaction &in) {
            const auto rows = in.execute(std::nothrow, wrong);
            return rows ? sqlock::result<void>() : rows.error();
        });
    const auto thrown_on =
        sqlock::retry(std::nothrow, registry,
                      [](sqlock::transaction &in) { (void)in.execute(wrong); });
    for (const auto &one : {came, thrown_on})
        check(one.error().code == why.code &&
                  one.error().native == why.native &&
                  one.error().sqlstate == why.sqlstate &&
                  one.error().message == why.message,
              "retry() passes it on");
    check(sqlock::failure(SQLOCK_EBUSY).message ==
              sqlock_strerror(SQLOCK_EBUSY),
          "one without a text has that of its code");
    check(sqlock::retry(std::nothrow, registry,
                        [](sqlock::transaction &) {
                            return sqlock::result<void>(sqlock::failure(5));
                        })
                  .error()
                  .code == SQLOCK_EINVAL,
          "one whose code is none is a failure");
}

/* Leases that end in a transaction that guards them leave nothing behind. */
static void test_guarded_to_the_end()
{
    const auto registry = open_registry();
    const auto used = std::make_shared<int>(0);
    sqlock::acquire_options how;

    how.ttl = 60s;
    how.on_lost = [used](int) {};
    auto one = registry.acquire("guarded 1", patience, how);
    auto two = sqlock::acquire_many(registry, {"guarded 2"}, patience, how);
    how.on_lost = nullptr;
    auto tx = sqlock::transaction::begin(registry);
    tx.guard(one);
    tx.guard(two);
    {
        const auto first = std::move(one);
        const auto second = std::move(two);
    }
    check(used.use_count() == 1,
          "on_lost ends with a lease, also if that is guarded");
}

static void test_tx_guard()
{
    const auto registry = open_registry();
    const auto other = open_registry();
    const std::string item = row(registry, "guard");
    sqlock::acquire_options how;

    how.ttl = 60s;
    auto lease = registry.acquire("guard", 0s, how);
    {
        auto tx = sqlock::transaction::begin(registry);
        tx.guard(lease);
        tx.execute(update, 2, item);
        check(lease.release(std::nothrow).error().code == SQLOCK_EINUSE,
              "a lease that is guarded is not released");
        tx.commit();
    }
    check(quantity(registry, item) == 2, "a guarded write is committed");
    auto many = sqlock::acquire_many(registry, {"guard/1", "guard/2"}, 0s, how);
    {
        auto tx = sqlock::transaction::begin(registry);
        tx.guard(many);
        tx.guard(lease);
        check(many.release(std::nothrow).error().code == SQLOCK_EINUSE &&
                  many.held() && many.size() == 2,
              "nor are several");
        tx.execute(update, 3, item);
        tx.commit();
    }
    check(quantity(registry, item) == 3, "and one that many guard");
    end_lease(other, "guard/2");
    {
        auto tx = sqlock::transaction::begin(registry);
        check(thrown([&] { tx.guard(many); }) == SQLOCK_ELOST,
              "the guard sees the loss of one of many");
    }
    end_lease(other, "guard");
    auto successor = other.acquire("guard", patience);
    {
        auto tx = sqlock::transaction::begin(registry);
        check(thrown([&] { tx.guard(lease); }) == SQLOCK_ELOST,
              "the guard sees that another owner has the lock");
        check(!tx.execute(std::nothrow, update, 99, item) &&
                  thrown([&] { tx.commit(); }) == SQLOCK_ELOST,
              "and nothing is written");
    }
    check(quantity(registry, item) == 3, "as a look at the row shows");
    check(thrown([&] { lease.release(); }) == SQLOCK_ELOST && successor.held(),
          "the successor keeps the lock");
    sqlock::mutex free(registry, "not locked");
    const auto refused = [&](const auto &held) {
        auto tx = sqlock::transaction::begin(registry);

        return tx.guard(std::nothrow, held).error().code == SQLOCK_EOWNER &&
               !tx.execute(std::nothrow, update, 98, item) &&
               thrown([&] { tx.commit(); }) < 0;
    };
    (void)many.release(std::nothrow);
    check(refused(lease) && refused(many) && refused(free) &&
              quantity(registry, item) == 3,
          "what is not held guards nothing, and nothing is written");
}

static void test_tx_rows()
{
    const auto registry = open_registry();
    const std::string item = row(registry, "rows");
    sqlock::table table;

    table.name = is("postgres") ? "int_stock" : "INT_STOCK";
    table.key_column = is("postgres") ? "item" : "ITEM";
    table.version_column = is("postgres") ? "version" : "VERSION";
    const char *column = is("postgres") ? "quantity" : "QUANTITY";
    {
        auto tx = sqlock::transaction::begin(registry);
        tx.lock({"rows/2", "rows/1"}, 5s);
        check(tx.lock_row(table, item, 5s) &&
                  !tx.lock_row(table, own("no such row"), 5s),
              "a row is locked, and one that is not there is told");
        const auto read = tx.version(table, item);
        const auto next = tx.update(table, item, read, {{column, 40}});
        check(next.integer == read.integer + 1, "an update raises the version");
        check(thrown([&] {
                  tx.update(table, item, read, {{column, 50}});
              }) == SQLOCK_ECONFLICT,
              "an old version is refused");
        const std::string cut = std::string(column) + '\0' + "x";
        sqlock::table unknown = table;
        unknown.key_column += std::string("\0x", 2);
        check(thrown([&] {
                  tx.update(table, item, next, {{cut, 60}});
              }) == SQLOCK_EINVAL &&
                  thrown([&] { (void)tx.version(unknown, item); }) ==
                      SQLOCK_EINVAL,
              "a column with a NUL byte is refused");
        check(thrown([&] { (void)tx.version(table, own("no such row")); }) ==
                  SQLOCK_ENOTFOUND,
              "a row that is not there has no version");
        tx.commit();
    }
    check(quantity(registry, item) == 40, "the update is committed");
    if (!is("sqlite")) {
        auto one = sqlock::transaction::begin(registry);
        auto two = sqlock::transaction::begin(registry);
        one.lock({"rows/1"}, 5s);
        check(thrown([&] { two.lock({"rows/1"}, 0s); }) == SQLOCK_EBUSY,
              "a name that is locked is refused");
        check(one.lock_row(table, item, 5s, true) &&
                  two.lock_row(table, item, 0s, true) &&
                  thrown([&] { (void)two.lock_row(table, item, 0s); }) ==
                      SQLOCK_EBUSY,
              "a row is shared");
    }
}

static void test_retry()
{
    const auto registry = open_registry();
    const std::string item = row(registry, "retry");
    unsigned attempts = 0;

    sqlock::retry(registry, [&](sqlock::transaction &tx) {
        tx.execute(update, ++attempts * 10, item);
        if (attempts < 3)
            throw sqlock::error(sqlock::failure(SQLOCK_ERETRY));
    });
    check(attempts == 3 && quantity(registry, item) == 30,
          "what asks to be run again is run again");
    sqlock::retry(registry, [&](sqlock::transaction &tx) {
        return attempts++ < 5
                   ? sqlock::result<void>(sqlock::failure(SQLOCK_ECONFLICT))
                   : (tx.execute(update, 31, item), sqlock::result<void>());
    });
    check(attempts == 6 && quantity(registry, item) == 31, "also by a result");
    check(other_than_ours([&] {
              sqlock::retry(registry, [&](sqlock::transaction &tx) {
                  tx.execute(update, 99, item);
                  throw std::out_of_range("of the application");
              });
          }) &&
              quantity(registry, item) == 31,
          "any other exception rolls back, and is thrown on");
    sqlock::retry_options few;
    few.attempts = 2;
    few.deadline = 40s;
    few.longest_pause = -1s;
    attempts = 0;
    check(sqlock::retry(
              std::nothrow, registry,
              [&](sqlock::transaction &) {
                  attempts++;
                  throw sqlock::error(sqlock::failure(SQLOCK_ECONFLICT));
              },
              few)
                      .error()
                      .code == SQLOCK_ECONFLICT &&
              attempts == 2 && retried.attempts == 2 &&
              retried.deadline_ms == 40000 && retried.pause_ms == 1,
          "attempts are limited, and so are their time and pauses");
    check(thrown([&] {
              sqlock::retry(registry, [&](sqlock::transaction &tx) {
                  tx.execute(update, 99, item);
                  tx.commit();
              });
          }) == SQLOCK_EINVAL &&
              quantity(registry, item) == 31,
          "the work does not end the transaction");
}

static void test_adopt()
{
#if defined(HAVE_SQLITE)
    if (!is("sqlite"))
        return;
    const auto registry = open_registry();
    const std::string item = row(registry, "adopt");
    const std::string file = url.substr(url.find(':') + 1);
    sqlite3 *own_connection = nullptr;

    sqlite3_open(file.substr(0, file.find('?')).c_str(), &own_connection);
    {
        auto tx = sqlock::transaction::adopt(registry, own_connection);
        const std::string sql =
            "UPDATE INT_STOCK SET QUANTITY = 8 WHERE ITEM = '" + item + "'";
        check(sqlite3_exec(own_connection, sql.c_str(), nullptr, nullptr,
                           nullptr) == SQLITE_OK,
              "the application's own statement runs in what was adopted");
        tx.commit();
    }
    check(quantity(registry, item) == 8, "and is committed with it");
    check(other_than_ours([&] {
              auto tx = sqlock::transaction::adopt(registry, own_connection);
              tx.execute(update, 99, item);
              throw std::out_of_range("of the application");
          }) &&
              sqlite3_get_autocommit(own_connection) != 0 &&
              quantity(registry, item) == 8,
          "or rolled back by an exception");
    {
        auto tx = sqlock::transaction::adopt(registry, own_connection);
        tx.leave();
        check(sqlite3_exec(own_connection, "ROLLBACK", nullptr, nullptr,
                           nullptr) == SQLITE_OK,
              "what is left is the application's to end");
    }
    check(thrown([&] {
              (void)sqlock::transaction::adopt(registry, nullptr);
          }) == SQLOCK_EINVAL,
          "no connection is refused");
    sqlite3_close(own_connection);
#endif
}

/* A table of the application's own.  Only on SQLite, where no rights are needed
 * to create one. */
static void test_fences_and_states()
{
    const auto registry = open_registry();
    const sqlock::table table{"CPP_FENCED",         "K",     "STATE",
                              SQLOCK_VERSION_STATE, "FENCE", "OWNER"};
    const sqlock::value cut(nul_inside);
    auto tx = sqlock::transaction::begin(registry);
    tx.execute("CREATE TABLE CPP_FENCED (K VARCHAR(90) PRIMARY KEY, "
               "STATE VARCHAR(90), OWNER VARCHAR(90), FENCE BIGINT)");
    tx.execute("INSERT INTO CPP_FENCED VALUES ('row', 'new', 'before', 5)");
    tx.fence(table, "row", 7, "me");
    const auto rows = tx.execute("SELECT FENCE, OWNER FROM CPP_FENCED");
    check(rows.integer(0, 0) == 7 && rows.text(0, 1) == "me" &&
              thrown([&] { tx.fence(table, "row", 6, "late"); }) ==
                  SQLOCK_ECONFLICT,
          "a fence refuses an old token");
    const auto read = tx.version(table, "row");
    check(std::string(read.text) == "new" &&
              tx.update(table, "row", read, {{"STATE", "sold"}}).text ==
                  std::string("sold") &&
              thrown([&] {
                  (void)tx.update(table, "row", read, {{"STATE", "lost"}});
              }) == SQLOCK_ECONFLICT,
          "a state of the application's is a version");
    check(thrown([&] { (void)tx.lock_row(table, cut, 0s); }) == SQLOCK_EINVAL,
          "a key with a NUL byte is refused");
}

static void test_options()
{
    sqlock::registry_options of;
    sqlock::acquire_options how;
    sqlock::stock_options stock;

    of.region = "a", of.table_prefix = "b", of.holder_note = "c";
    of.ttl = 1ms, of.margin = 2ms, of.connect_timeout = 3ms;
    of.statement_timeout = 4ms, of.poll = 5ms, of.renew_period = 6ms;
    of.peer_ttl = 7ms, of.pool_size = 8, of.key_rule = SQLOCK_KEY_LEGACY;
    of.waiting = SQLOCK_WAITING_POLL, of.no_peers = true;
    of.detect_deadlocks = true, of.ownership = SQLOCK_OWNED_BY_REGISTRY;
    of.event_level = SQLOCK_LEVEL_ERROR;
    auto out = of.native();
    check(out.region == of.region && out.table_prefix == of.table_prefix &&
              out.holder_note == of.holder_note && out.ttl_ms == 1 &&
              out.margin_ms == 2 && out.connect_timeout_ms == 3 &&
              out.statement_timeout_ms == 4 && out.poll_ms == 5 &&
              out.renew_period_ms == 6 && out.peer_ttl_ms == 7 &&
              out.pool_size == 8 && out.key_rule == of.key_rule &&
              out.waiting == of.waiting && out.no_peers &&
              out.detect_deadlocks && out.ownership == of.ownership &&
              out.event_level == of.event_level,
          "each option of a registry has its field");
    of.margin = -1s, of.poll = 1200h, of.ttl = -1s; /* 50 days */
    out = of.native();
    check(out.margin_ms == 0 && out.poll_ms == UINT32_MAX && out.ttl_ms == 1,
          "times have bounds");
    how.ttl = 1ms, how.max_hold = 2ms, how.fenced = how.fail_fast = true;
    how.mode = SQLOCK_SHARED, how.permits = 3, how.weight = 4;
    const auto c = how.native();
    check(c.ttl_ms == 1 && c.max_hold_ms == 2 && c.fenced && c.fail_fast &&
              c.auto_renew && c.mode == SQLOCK_SHARED && c.permits == 3 &&
              c.weight == 4,
          "so has each of an acquisition");
    stock.strategy = SQLOCK_STOCK_OPTIMISTIC, stock.table = "a";
    stock.item_column = "b", stock.quantity_column = "c";
    stock.version_column = "d", stock.batch = 1, stock.attempts = 2;
    stock.deadline = 3ms;
    const auto s = stock.native();
    check(s.strategy == stock.strategy && s.table == stock.table &&
              s.item_column == stock.item_column &&
              s.quantity_column == stock.quantity_column &&
              s.version_column == stock.version_column && s.batch == 1 &&
              s.attempts == 2 && s.deadline_ms == 3,
          "and of a stock");
}

static void test_values()
{
    const auto registry = open_registry();
    auto tx = sqlock::transaction::begin(registry);
    const char *none = nullptr;
    auto cast = is("mysql") ? "SELECT CAST(? AS CHAR)"
                            : "SELECT CAST(? AS VARCHAR(20))";
    const auto rows = tx.execute(cast, none);
    check(rows.size() == 1 && !rows.text(0, 0),
          "a null pointer to a text is null");
    const auto most = tx.execute(cast, UINT64_MAX);
    check(most.text(0, 0) == "18446744073709551615" &&
              thrown([&] { (void)most.integer(0, 0); }) == SQLOCK_EINVAL,
          "a number of 64 bits is sent as text, and too great for an integer");
    auto one = tx.execute("SELECT 1"), two = tx.execute("SELECT 2");
    one = std::move(two);
    check(one.integer(0, 0) == 2 && two.empty() && two.columns() == 0,
          "rows that were moved from are empty");
    tx.rollback();
}

/* ----------------------------------------------------------------- stock -- */

static void test_stock()
{
    const auto registry = open_registry();
    auto stock = sqlock::stock::open(registry);
    const std::string item = own("widget"), more = own("gadget");
    const std::string order = own("order");

    stock.set(item, 10);
    check(stock.deduct(item, 3).left == 7 && stock.read(item) == 7 &&
              stock.restore(item, 1).left == 8,
          "stock is deducted and restored");
    auto first = stock.deduct(item, 2, order);
    auto again = stock.deduct(item, 2, order);
    check(!first.duplicate && again.duplicate && again.left == 6 &&
              stock.read(item) == 6,
          "an order is carried out once");
    check(stock.deduct(std::nothrow, item, 3, order).error().code ==
              SQLOCK_EORDER,
          "an order id is of one operation");
    const auto constant = stock.read(std::nothrow, item);
    check(constant && *constant == 6 && constant->has_value() &&
              constant.value() == 6,
          "a result that is const can be read");
    auto refused = stock.deduct(std::nothrow, item, 7);
    check(!refused && refused.error().code == SQLOCK_EINSUFFICIENT &&
              refused.error().left == 6 && stock.read(item) == 6,
          "who asks for too much is told what is there");
    check(thrown([&] { stock.deduct(item, 7); }) == SQLOCK_EINSUFFICIENT &&
              thrown([&] { stock.deduct(own("none")); }) == SQLOCK_ENOTFOUND &&
              !stock.read(own("none")) &&
              thrown([&] { stock.deduct(nul_inside); }) == SQLOCK_EINVAL,
          "what is not there is an exception, or no value");

    stock.set(more, 1);
    auto both = stock.deduct_many({{item, 1}, {more, 1}});
    check(both.lines.size() == 2 && both.lines[0] == 5 && both.lines[1] == 0,
          "several items are deducted together");
    auto none = stock.deduct_many(std::nothrow, {{item, 1}, {more, 1}});
    check(!none && none.error().code == SQLOCK_EINSUFFICIENT &&
              none.error().line == 1 && none.error().left == 0 &&
              stock.read(item) == 5 && !both.left,
          "all or none");
    check(stock.restore_many(std::nothrow, {{item, 1}, {own("none"), 1}})
                      .error()
                      .line == 1 &&
              thrown([&] {
                  stock.restore_many({{item, 1}, {std::string(nul_inside), 1}});
              }) == SQLOCK_EINVAL,
          "of several the one that is not there is told");
    stock.restore_many({{item, 1}, {more, 1}});
    check(stock.read(item) == 6 && stock.read(more) == 1,
          "several are restored together");

    {
        auto tx = sqlock::transaction::begin(registry);
        stock.deduct(item, 4, std::nullopt, &tx);
        tx.rollback();
        check(stock.deduct(std::nothrow, item, 4, std::nullopt, &tx)
                      .error()
                      .code == SQLOCK_EINVAL,
              "one that has ended has no operations");
    }
    check(stock.read(item) == 6, "in a transaction it is part of that");
    bool listed = false;
    for (const auto &one : stock.list())
        listed = listed || (one.name == item && one.quantity == 6);
    check(listed, "items are listed");
    check(stock.reap(90min, true).reservations == 0 &&
              stock.statistics().operations > 10,
          "old orders are counted, and so are operations");

    auto moved = std::move(stock);
    check(moved.read(item) == 6 && stock.native_handle() == nullptr &&
              thrown([&] { stock.deduct(item); }) == SQLOCK_EINVAL &&
              thrown([&] { (void)stock.list(); }) == SQLOCK_EINVAL &&
              thrown([&] { (void)stock.expire(); }) == SQLOCK_EINVAL &&
              stock.statistics().operations == 0,
          "a stock that was moved from refuses");
    sqlock::stock_options mistaken;
    mistaken.table = "no_such_table";
    mistaken.item_column = "item";
    mistaken.quantity_column = "quantity";
    check(thrown([&] { (void)sqlock::stock::open(registry, mistaken); }) ==
              SQLOCK_ESCHEMA,
          "a table that is not there is refused");
    mistaken.table += std::string("\0x", 2);
    check(thrown([&] { (void)sqlock::stock::open(registry, mistaken); }) ==
                  SQLOCK_EINVAL &&
              thrown([] {
                  auto cut = options;
                  cut.table_prefix += std::string("\0x", 2);
                  sqlock::create_stock_schema(url, cut);
              }) == SQLOCK_EINVAL &&
              thrown([] {
                  auto cut = options;
                  cut.table_prefix += std::string("\0x", 2);
                  sqlock::create_once_schema(url, cut);
              }) == SQLOCK_EINVAL,
          "and so is one with a NUL byte inside");
}

/* A table of the application's own.  Only on SQLite, where no rights are needed
 * to create one. */
static void test_quantity_below_zero()
{
    const auto registry = open_registry();
    sqlock::stock_options theirs;

    theirs.table = "CPP_STOCK";
    theirs.item_column = "ITEM";
    theirs.quantity_column = "QUANTITY";
    auto tx = sqlock::transaction::begin(registry);
    tx.execute("CREATE TABLE CPP_STOCK (ITEM VARCHAR(190) PRIMARY KEY, "
               "QUANTITY BIGINT)");
    tx.execute("INSERT INTO CPP_STOCK VALUES ('owed', -5)");
    tx.commit();
    auto stock = sqlock::stock::open(registry, theirs);
    const auto items = stock.list();
    check(items.size() == 1 && items[0].quantity == -5 &&
              stock.restore("owed", 2).left == -3,
          "a quantity below zero is told");
}

static void test_reservations()
{
    const auto registry = open_registry();
    auto stock = sqlock::stock::open(registry);
    const std::string item = own("reserved");
    const std::string one = own("r1"), two = own("r2"), three = own("r3");

    stock.set(item, 10);
    stock.reserve(one, {{item, 2}}, 15min);
    stock.reserve(two, {{item, 3}}, 15min);
    stock.reserve(three, {{item, 1}}, 1ms);
    auto status = stock.status(one);
    check(stock.read(item) == 4 && status &&
              status->state == SQLOCK_STOCK_RESERVED &&
              status->remaining > 14min && !stock.status(own("none")),
          "items are reserved");
    stock.claim(one);
    stock.cancel(two);
    check(stock.status(one)->state == SQLOCK_STOCK_CLAIMED &&
              stock.status(two)->state == SQLOCK_STOCK_CANCELLED &&
              stock.read(item) == 7 &&
              thrown([&] { stock.cancel(one); }) == SQLOCK_ECONFLICT &&
              thrown([&] { stock.claim(own("none")); }) == SQLOCK_ENOTFOUND,
          "a reservation is claimed or cancelled");
    check(comes_true([&] { return stock.status(three)->remaining == 0ms; }) &&
              thrown([&] { stock.claim(three); }) == SQLOCK_EEXPIRED,
          "one whose time is over cannot be claimed");
    check(comes_true([&] {
              stock.expire();
              return stock.read(item) == 8;
          }),
          "and gives its items back");
}

/* -------------------------------------------------------- once, counters -- */

static void test_once()
{
    const auto registry = open_registry();
    const auto other = open_registry();
    const std::string name = "once";
    int done = 0;
    const auto work = [&](const sqlock::lease &held) { done += held.held(); };

    check(!sqlock::is_done(registry, name),
          "what was not done is not recorded");
    bool caught = false;
    try {
        sqlock::do_once(registry, name, 0s, [](const sqlock::lease &) {
            throw std::out_of_range("of the application");
        });
    } catch (const std::out_of_range &) {
        caught = true;
    }
    check(caught && !sqlock::is_done(registry, name) &&
              registry.try_acquire(name),
          "work that fails is not recorded, and leaves the lock");
    check(sqlock::do_once(registry, name, 0s, work) &&
              !sqlock::do_once(other, name, 0s, work) && done == 1 &&
              sqlock::is_done(other, name),
          "work is done once");
    auto first = other.acquire("once later", 0s);
    auto late = std::async(std::launch::async, [&] {
        return sqlock::do_once(registry, "once later", patience, work);
    });
    (void)is_waited_for(other, "once later");
    sqlock::record_done(first);
    first.release();
    check(!late.get() && done == 1, "nor by one who has waited for it");
    auto lease = registry.acquire("once lost", 0s);
    end_lease(registry, "once lost");
    check(thrown([&] { sqlock::record_done(lease); }) == SQLOCK_ELOST &&
              !sqlock::is_done(registry, "once lost"),
          "a holder that has lost its lock records nothing");
    check(thrown([&] { (void)sqlock::is_done(registry, nul_inside); }) ==
              SQLOCK_EINVAL,
          "a name with a NUL byte is refused");
}

static void test_stats()
{
    auto registry = open_registry();

    check(sqlock::mean(sqlock::stats(registry).wait) == 0us &&
              !sqlock::quantile(sqlock::stats(registry).wait, 0.5),
          "where nothing was waited for there is no mean");
    sqlock_times hundred = {};
    hundred.count = 100;
    hundred.buckets[0] = 7;
    hundred.buckets[3] = 93;
    hundred.sum_us = 250;
    sqlock_times longest = {};
    longest.count = longest.buckets[SQLOCK_STATS_BUCKETS - 1] = 1;
    check(sqlock::mean(hundred) == 2us && !sqlock::quantile(longest, 0.5) &&
              !sqlock::quantile(hundred, 1.1),
          "a mean is of all, and the last bucket has no bound");
    check(sqlock::quantile(hundred, 0.07) == 16us &&
              sqlock::quantile(hundred, 0.08) == 128us,
          "a quantile is the bound of its bucket");
    for (int i = 0; i < 3; i++)
        registry.acquire("stats", 0s).release();
    const auto now = sqlock::stats(registry);
    check(now.granted == 3 && now.released == 3 && now.wait.count == 3 &&
              sqlock::mean(now.wait) > 0us &&
              sqlock::quantile(now.wait, 0.5) <= sqlock::quantile(now.wait, 1),
          "acquisitions are counted");
    auto moved = std::move(registry);
    check(sqlock::stats(std::nothrow, registry).error().code == SQLOCK_EINVAL &&
              sqlock::stats(moved).granted == 3,
          "of a registry that was moved from, none");
}

int main(int argc, char **argv)
{
    return run(argc, argv, "tests/conformance/cpp", [] {
        sqlock::create_stock_schema(url);
        sqlock::create_once_schema(url);
        test_many();
        test_many_nested();
        test_ended_by_another_thread();
        test_ended_before_the_nested_one();
        test_many_lost();
        test_crosswise();
        test_async();
        test_async_given_up();
        test_async_release_given_up();
        test_no_descriptor();
        test_past_options();
        test_async_lost();
        test_stop();
        test_async_itself();
        test_tx();
        test_failures();
        test_tx_guard();
        test_guarded_to_the_end();
        test_tx_rows();
        test_values();
        test_retry();
        test_adopt();
        test_stock();
        if (is("sqlite")) {
            test_quantity_below_zero();
            test_fences_and_states();
        }
        test_options();
        test_reservations();
        test_once();
        test_stats();
    });
}
