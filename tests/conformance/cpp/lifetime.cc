/*
 * lifetime.cc - objects that end in another order than they began, or in a
 * callback
 *
 *     lifetime URL REGION
 *
 * Prints "ok - what" or "not ok - what" of each test.
 */
#include "check.hpp"

#include <sqlock/async.hpp>
#include <sqlock/many.hpp>
#include <sqlock/stock.hpp>
#include <sqlock/tx.hpp>

#include <array>
#include <atomic>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <vector>

#if defined(HAVE_SQLITE)
#include <sqlite3.h>
#endif

/* ------------------------------------------------- before a transaction -- */

static void test_before_a_transaction()
{
    const auto registry = open_registry(), other = open_registry();
    const auto used = std::make_shared<int>(0);
    auto how = long_lease();

    how.on_lost = [used](int) {};
    {
        std::optional<sqlock::transaction> tx;
        {
            auto lease = registry.acquire("order/lease", 0s, how);
            auto mutex = registry.mutex("order/mutex", how);
            auto many =
                sqlock::acquire_many(registry, {"order/1", "order/2"}, 0s, how);
            mutex.lock();
            tx = sqlock::transaction::begin(registry);
            tx->guard(lease);
            tx->guard(mutex);
            tx->guard(many);
        }
        check(!other.try_acquire("order/lease"),
              "a lease that ended stays as long as it is guarded");
        tx->rollback();
    }
    for (const char *name :
         {"order/lease", "order/mutex", "order/1", "order/2"})
        check(is_free(other, name), "and is released with the transaction");
    how.on_lost = nullptr;
    check(used.use_count() == 1, "what on_lost had is freed");
}

/* A mutex outlives the lock and the transaction, and is used again. */
static void test_unlocked_under_a_guard()
{
    const auto registry = open_registry(), other = open_registry();
    auto mutex = registry.mutex("order/again", long_lease());

    {
        std::optional<sqlock::transaction> tx;
        {
            const std::lock_guard<sqlock::mutex> hold(mutex);
            tx = sqlock::transaction::begin(registry);
            tx->guard(mutex);
        }
        check(!mutex.held() && mutex.unlocked() == 0 && !mutex.try_lock(),
              "a mutex that is unlocked under a guard is not held");
        tx->commit();
    }
    check(is_free(other, "order/again"), "and free after the transaction");
    mutex.lock();
    check(mutex.held(), "it can be locked again");
    mutex.unlock();
    check(mutex.unlocked() == 0, "and unlocked");
}

/* A lease of the work ends before retry() commits; each attempt takes it
 * anew. */
static void test_inside_retry()
{
    const auto registry = open_registry(), other = open_registry();
    int attempts = 0;

    if (url.compare(0, 6, "sqlite") == 0) /* the transaction keeps the file */
        return;
    sqlock::retry(registry, [&](sqlock::transaction &tx) {
        auto lease = registry.acquire("order/retry", patience, long_lease());
        tx.guard(lease);
        if (++attempts < 3)
            throw sqlock::error(sqlock::failure(SQLOCK_ERETRY));
    });
    check(attempts == 3 && is_free(other, "order/retry"),
          "a lease within retry() is released with each attempt");
}

static void test_any_order()
{
    auto registry = std::make_unique<sqlock::registry>(open_registry());
    const auto other = open_registry();
    auto mutex =
        std::make_unique<sqlock::mutex>(*registry, "order/any", long_lease());
    auto lease = mutex->acquire(0s);
    auto moved = std::make_unique<sqlock::mutex>(std::move(*mutex));

    check(lease.held() && moved->held() && !mutex->held(),
          "a mutex moves while it has a lease");
    mutex.reset();
    moved.reset();
    registry.reset();
    check(lease.held() && !other.try_acquire("order/any"),
          "a lease outlives its mutex and registry");
    lease.release();
    check(is_free(other, "order/any"), "and is released");
}

static void test_moved_onto()
{
    const auto registry = open_registry(), other = open_registry();
    auto one = registry.acquire("onto/1", 0s, long_lease());

    {
        auto two = registry.acquire("onto/2", 0s, long_lease());
        const auto token = two.token();
        one = std::move(two);
        check(is_free(other, "onto/1"),
              "a lease that is moved onto is released");
        check(one.held() && one.token() == token && !two.held(),
              "and holds what was moved");
    }
    check(one.held() && !other.try_acquire("onto/2"),
          "also after the end of where it was");
    one.renew(150s);
    check(one.remaining() > 120s, "and is renewed");
    one.release();
    check(is_free(other, "onto/2"), "and released");

    auto mutex = registry.mutex("onto/3", long_lease());
    auto of_mutex = mutex.acquire(0s);
    of_mutex = registry.acquire("onto/4", 0s, long_lease());
    check(!mutex.held() && is_free(other, "onto/3"),
          "and so is one whose mutex lives on");
}

/* --------------------------------------------------------- in callbacks -- */

/* What a callback owns: it ends with the callback. */
struct owned {
    std::optional<sqlock::registry> registry;
    std::optional<sqlock::lease> lease;
    std::optional<sqlock::mutex> mutex;
    std::optional<sqlock::leases> many;
    std::optional<sqlock::acquisition> coming;
    std::optional<sqlock::transaction> tx;
};

/* on_lost owns the last reference to what it is told of, in `fill`'s way. */
template <class Fill> static void check_owned(const char *what, Fill fill)
{
    const auto other = open_registry();
    auto mine = std::make_shared<owned>();
    const std::weak_ptr<owned> watched = mine;
    std::atomic<int> told{0};
    sqlock::acquire_options how;

    how.ttl = 3s; /* a loss is found in less */
    mine->registry = open_registry();
    how.on_lost = [&told, &mine](int code) {
        /* The last reference of all, taken from the main thread. */
        auto last = std::move(mine);
        told = code;
    };
    fill(*mine, how);
    end_lease(other, "owned");
    check(comes_true([&] { return told != 0 && watched.expired(); }), what);
    check(is_free(other, "owned") && is_free(other, "owned/too"),
          "and what the callback had is free");
    /* The library's thread has survived it. */
    how.on_lost = nullptr;
}

static void test_ends_in_on_lost()
{
    check_owned("on_lost ends its own lease and registry",
                [](owned &in, const sqlock::acquire_options &how) {
                    in.lease = in.registry->acquire("owned", patience, how);
                });
    check_owned("or its mutex", [](owned &in, const auto &how) {
        in.mutex = in.registry->mutex("owned", how);
        in.mutex->lock();
    });
    check_owned("or many", [](owned &in, const auto &how) {
        in.many = sqlock::acquire_many(*in.registry, {"owned", "owned/too"},
                                       patience, how);
    });
    check_owned("or an acquisition", [](owned &in, const auto &how) {
        in.coming = sqlock::acquire_async(*in.registry, "owned", patience, how);
        in.coming->wait();
    });
    check_owned("or a transaction", [](owned &in, const auto &how) {
        in.lease = in.registry->acquire("owned", patience, how);
        if (url.compare(0, 6, "sqlite") != 0) /* it would be the one writer */
            in.tx = sqlock::transaction::begin(*in.registry);
    });
}

/* The lambda itself owns the lease of which it is told: the cycle ends with the
 * callback, and other losses are told after that. */
static void test_owns_itself()
{
    const auto registry = open_registry(), other = open_registry();
    std::weak_ptr<sqlock::lease> watched;
    std::atomic<int> told{0};

    {
        auto cell = std::make_shared<std::shared_ptr<sqlock::lease>>();
        sqlock::acquire_options how;

        how.on_lost = [cell, &told](int code) {
            cell->reset();
            told = code;
            throw std::runtime_error("thrown by on_lost");
        };
        *cell = std::make_shared<sqlock::lease>(
            registry.acquire("itself", patience, how));
        watched = *cell;
    }
    end_lease(other, "itself");
    check(comes_true([&] { return told != 0 && watched.expired(); }) &&
              is_free(other, "itself"),
          "a lambda may end the lease that has it, and throw");
    sqlock::acquire_options how;
    std::atomic<bool> again{false};
    how.on_lost = [&](int) { again = true; };
    auto lease = registry.acquire("itself", patience, how);
    end_lease(other, "itself");
    check(comes_true([&] { return again.load(); }), "the next loss is told");
}

static void test_on_event_throws()
{
    auto with = options;
    std::atomic<int> told{0};

    with.event_level = SQLOCK_LEVEL_DEBUG;
    with.on_event = [&](const sqlock_event &) {
        told++;
        throw std::runtime_error("thrown by on_event");
    };
    const auto registry = sqlock::registry::open(url, with);
    auto lease = registry.acquire("throws", patience);
    lease.release();
    check(told >= 2, "an exception of on_event stays there");
}

/* ------------------------------------------------------- waits and times -- */

/* After a wait that was cancelled the mutex is as it was before. */
static void test_after_a_cancelled_wait()
{
    const auto registry = open_registry(), other = open_registry();
    auto holder = other.mutex("cancelled");
    auto mutex = registry.mutex("cancelled");
    std::atomic<int> code{0};
    std::atomic<bool> over{false};

    holder.lock();
    std::thread waits([&] {
        code = thrown([&] { mutex.lock(); });
        over = true;
    });
    check(comes_true([&] {
              mutex.cancel();
              return over.load();
          }) &&
              code == SQLOCK_ECANCELED,
          "a wait is cancelled");
    waits.join();
    check(!mutex.held() && !mutex.try_lock() &&
              !in_thread([&] { return mutex.try_lock_for(20ms); }),
          "and the next ones wait for the lock, not for the cancelled one");
    holder.unlock();
    check(mutex.try_lock_for(patience) && mutex.held(), "until it is free");
    over = false;
    std::thread next([&] {
        mutex.lock(); /* behind the thread that has the mutex */
        over = true;
        mutex.unlock();
    });
    std::this_thread::sleep_for(50ms);
    check(!over, "an old cancellation does not end a new wait");
    mutex.unlock();
    next.join();
    check(over && mutex.try_lock(), "and threads take turns again");
    mutex.unlock();
}

static void test_points_in_time()
{
    using std::chrono::steady_clock;
    using std::chrono::system_clock;
    using hours = std::chrono::time_point<system_clock, std::chrono::hours>;
    using sqlock::detail::until_ms;
    const auto registry = open_registry(), other = open_registry();
    auto held = other.acquire("time", patience, long_lease());
    auto mutex = registry.mutex("time");
    auto coming = sqlock::acquire_async(registry, "time", patience);

    check(!mutex.try_lock_until(steady_clock::time_point::min()) &&
              !mutex.try_lock_until(system_clock::time_point::min()) &&
              !mutex.try_lock_until(hours::min()),
          "a time long past is past");
    check(coming.wait_until(steady_clock::time_point::min()) ==
              std::future_status::timeout,
          "for a request, too");
    check(until_ms(steady_clock::time_point::max()) == SQLOCK_FOREVER &&
              until_ms(hours::max()) == SQLOCK_FOREVER &&
              until_ms(system_clock::now() - 1ms) == 0 &&
              until_ms(system_clock::now() + 1h) > 3590000 &&
              until_ms(system_clock::now() + 1h) <= 3600000,
          "one long ahead is no limit");
    using sqlock::detail::to_ms;
    check(to_ms(std::chrono::duration<double>(
              std::numeric_limits<double>::quiet_NaN())) == 0,
          "and what is no number is no time");
}

/* An acquisition that is dropped, before the grant or after it, frees what its
 * on_lost owns, and the lock. */
static void test_dropped_acquisition()
{
    const auto registry = open_registry(), other = open_registry();
    const auto used = std::make_shared<int>(0);
    auto how = long_lease();

    how.on_lost = [used](int) {};
    for (int i = 0; i < 10; i++) {
        auto coming = sqlock::acquire_async(registry, "dropped", patience, how);
        if (i % 2 == 0)
            coming.wait();
    }
    how.on_lost = nullptr;
    check(used.use_count() == 1, "a dropped acquisition keeps nothing");
    check(is_free(other, "dropped"), "and its lock is free");
}

static void test_failures_that_were_moved()
{
    sqlock::result<void> failed{sqlock::failure(SQLOCK_EBUSY)};
    const auto taken = std::move(failed);
    sqlock::error why{sqlock::failure(SQLOCK_EBUSY)};
    const auto other = std::move(why);

    check(!failed && failed.error().code == SQLOCK_EBUSY && !taken,
          "a failure that was moved from is no success");
    check(why.code() == SQLOCK_EBUSY && other.code() == SQLOCK_EBUSY,
          "and an exception keeps its code");
}

#if defined(HAVE_SQLITE)

/* leave() fails, since the lease is lost: the transaction is the application's
 * all the same, and is not touched again. */
static void test_failed_leave()
{
    if (url.compare(0, 6, "sqlite") != 0)
        return;
    const auto registry = open_registry(), other = open_registry();
    auto lease = registry.acquire("leave", patience, long_lease());
    sqlite3 *connection = nullptr;
    const auto run = [&](const char *sql) {
        return sqlite3_exec(connection, sql, nullptr, nullptr, nullptr) ==
               SQLITE_OK;
    };

    check(sqlite3_open(url.c_str() + 7, &connection) == SQLITE_OK, "opened");
    {
        auto tx = sqlock::transaction::adopt(registry, connection);
        tx.guard(lease);
        run("ROLLBACK");
        end_lease(other, "leave");
        run("BEGIN");
        check(thrown([&] { tx.leave(); }) == SQLOCK_ELOST &&
                  tx.native_handle() == nullptr,
              "a transaction whose leave() failed has ended");
        check(thrown([&] { tx.leave(); }) == SQLOCK_EINVAL &&
                  thrown([&] { tx.rollback(); }) == SQLOCK_EINVAL,
              "and is not left twice");
    }
    check(sqlite3_get_autocommit(connection) == 0 && run("COMMIT"),
          "it stays as it is for the application");
    sqlite3_close(connection);
}
#endif

int main(int argc, char **argv)
{
    return run(argc, argv, "tests/conformance/cpp", [] {
        test_before_a_transaction();
        test_unlocked_under_a_guard();
        test_inside_retry();
        test_any_order();
        test_moved_onto();
        test_ends_in_on_lost();
        test_owns_itself();
        test_on_event_throws();
        test_after_a_cancelled_wait();
        test_points_in_time();
        test_dropped_acquisition();
        test_failures_that_were_moved();
#if defined(HAVE_SQLITE)
        test_failed_leave();
#endif
    });
}
