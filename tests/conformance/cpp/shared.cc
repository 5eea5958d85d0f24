/*
 * shared.cc - shared.hpp on a database: readers and writers under the standard
 * library's locks, permits, and the modes of what sqlock.hpp has
 *
 *     shared URL REGION
 *
 * Prints "ok - what" or "not ok - what" of each test.
 */
#include "check.hpp"

#include <sqlock/async.hpp>
#include <sqlock/many.hpp>
#include <sqlock/shared.hpp>
#include <sqlock/tx.hpp>

#include <array>
#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <thread>
#include <vector>

template <class T>
constexpr bool moves_only =
    !std::is_copy_constructible_v<T> && !std::is_copy_assignable_v<T> &&
    std::is_nothrow_move_constructible_v<T> &&
    std::is_nothrow_move_assignable_v<T>;

static_assert(moves_only<sqlock::shared_mutex>);
static_assert(moves_only<sqlock::semaphore>);

/* --------------------------------------------------------------- readers -- */

static void test_readers()
{
    const auto one = open_registry();
    const auto other = open_registry();
    sqlock::shared_mutex ours(one, "readers");
    sqlock::shared_mutex theirs(other, "readers");

    {
        const std::shared_lock reads(ours);
        const std::shared_lock also(theirs, std::try_to_lock);
        check(reads.owns_lock() && also.owns_lock() && ours.held_shared() &&
                  theirs.held_shared() && ours.remaining_shared() > 0ms,
              "std::shared_lock shares a mutex with others");
        sqlock::shared_mutex third(open_registry(), "readers");
        std::unique_lock writes(third, std::defer_lock);
        check(thrown([&] { ours.lock(); }) == SQLOCK_EDEADLOCK &&
                  thrown([&] { theirs.lock(); }) == SQLOCK_EDEADLOCK,
              "a reader that locks it alone is told");
        check(!writes.try_lock() && !writes.try_lock_for(20ms) &&
                  !ours.held() && !theirs.held(),
              "and keeps writers out");
    }
    check(!ours.held_shared() && ours.unlocked_shared() == 0 &&
              ours.remaining_shared() == 0ms,
          "until it ends");
    {
        const std::lock_guard writes(theirs);
        std::shared_lock reads(ours, std::defer_lock);
        check(theirs.held() && !reads.try_lock() &&
                  !in_thread([&] { return reads.try_lock_for(20ms); }) &&
                  !reads.try_lock_until(std::chrono::steady_clock::now() - 1h),
              "a writer keeps readers out");
    }
    std::shared_lock timed(ours, patience);
    auto moved = std::move(timed);
    check(moved.owns_lock() && !timed.owns_lock() && ours.held_shared(),
          "a std::shared_lock waits for a time, and moves");
    moved.unlock();
    moved = std::shared_lock(theirs, std::chrono::system_clock::now() + 1h);
    check(!ours.held_shared() && theirs.held_shared(),
          "assigned to, it gives back what it had");
}

/* Threads read and write by one mutex: readers have been together, and writers
 * never with anybody. */
static void test_threads()
{
    const auto registry = open_registry();
    sqlock::shared_mutex mutex(registry, "threads");
    std::atomic<int> readers{0}, writers{0}, together{0}, overlaps{0},
        errors{0};
    std::vector<std::thread> all;

    for (int i = 0; i < 6; i++)
        all.emplace_back([&, i] {
            try {
                if (i < 3) { /* writers come when these have met */
                    const std::shared_lock reads(mutex);
                    together++;
                    if (!comes_true([&] { return together == 3; }))
                        errors++;
                } else if (!comes_true([&] { return together == 3; })) {
                    errors++;
                }
                for (int j = 0; j < 8; j++) {
                    if (i % 2 == 0) {
                        const std::shared_lock reads(mutex);
                        readers++;
                        if (writers != 0 || !mutex.held_shared())
                            overlaps++;
                        std::this_thread::sleep_for(1ms);
                        readers--;
                    } else {
                        const std::scoped_lock writes(mutex);
                        if (writers++ != 0 || readers != 0)
                            overlaps++;
                        std::this_thread::sleep_for(1ms);
                        writers--;
                    }
                }
            } catch (const sqlock::error &why) {
                std::printf("# %s\n", why.what());
                errors++;
            }
        });
    for (auto &thread : all)
        thread.join();
    check(together == 3 && overlaps == 0 && errors == 0,
          "threads read together and write alone, by one mutex");
}

/* What a mutex keeps of a thread is gone with the share, or a program that
 * starts many threads would grow. */
static void test_threads_that_end()
{
    const auto registry = open_registry();
    sqlock::detail::readers readers(registry, "threads that end", {});
    std::weak_ptr<sqlock::detail::lock_state> share;
    bool was_taken = false;

    std::thread([&] {
        was_taken = readers.take(SQLOCK_FOREVER).has_value();
        share = readers.last();
        was_taken = was_taken && !share.expired();
        readers.give_back();
    }).join();
    check(was_taken && share.expired(),
          "a mutex keeps nothing of a share that was given back");
}

static void test_share_of_a_thread()
{
    const auto registry = open_registry();
    sqlock::shared_mutex mutex(registry, "share of a thread");
    auto writer = registry.mutex("share of a thread");

    mutex.lock_shared();
    check(thrown([&] { mutex.lock_shared(); }) == SQLOCK_EINUSE &&
              thrown([&] { (void)mutex.try_lock_shared(); }) == SQLOCK_EINUSE &&
              mutex.held_shared(),
          "a thread that shares a mutex already is told so");
    std::thread([&] {
        mutex.unlock_shared(); /* it has none */
        check(!mutex.held_shared() && mutex.try_lock_shared(),
              "each thread has a share of its own");
        mutex.unlock_shared();
    }).join();
    check(mutex.held_shared() && !writer.try_lock(),
          "which no other thread gives back");
    mutex.unlock_shared();
    check(writer.try_lock(), "but the thread itself");
    writer.unlock();
}

static void test_ends()
{
    const auto registry = open_registry();
    auto writer = registry.mutex("ends");

    try {
        sqlock::shared_mutex mutex(registry, "ends");
        const std::shared_lock reads(mutex);
        throw std::logic_error("of the application");
    } catch (const std::logic_error &) {
        check(writer.try_lock(), "an exception gives a share back");
        writer.unlock();
    }
    {
        sqlock::shared_mutex mutex(registry, "ends");
        mutex.lock_shared();
    }
    check(writer.try_lock(), "and so does the end of the mutex");
    writer.unlock();
    {
        sqlock::shared_mutex mutex(registry, "ends"), two(registry, "other");
        mutex.lock_shared();
        mutex = std::move(two);
        check(writer.try_lock() && mutex.try_lock_shared(),
              "or that another is assigned to it");
        writer.unlock();
        check(two.native_handle() == nullptr && !two.held_shared() &&
                  two.unlocked_shared() == 0 &&
                  thrown([&] { two.lock_shared(); }) == SQLOCK_EINVAL &&
                  thrown([&] { two.lock(); }) == SQLOCK_EINVAL &&
                  two.acquire_shared(std::nothrow, 0s).error().code ==
                      SQLOCK_EINVAL,
              "what was moved from is not shared");
        two.unlock_shared();
        two.cancel();
    }
    check(thrown([&] { sqlock::shared_mutex wrong(registry, nul_inside); }) ==
              SQLOCK_EINVAL,
          "a wrong name is refused");
}

static void test_acquire_shared()
{
    const auto registry = open_registry();
    sqlock::shared_mutex mutex(registry, "acquire shared");

    {
        auto one = mutex.acquire_shared(0s);
        auto two = mutex.acquire_shared(patience);
        check(one.held() && two.held() && one.token() <= two.token() &&
                  thrown([&] { (void)mutex.acquire(0s); }) == SQLOCK_EBUSY,
              "a thread may have several shared leases");
        int code = 1;
        std::thread([moved = std::move(one), &code]() mutable {
            code = moved.release(std::nothrow) ? 0 : 1;
        }).join();
        check(code == 0 && two.held(), "one is released by another thread");
        sqlock::release_async(std::move(two)).get();
        check(mutex.try_lock(), "or by a request");
        check(mutex.acquire_shared(std::nothrow, 0s).error().code ==
                      SQLOCK_EBUSY &&
                  thrown([&] { (void)mutex.acquire_shared(20ms); }) ==
                      SQLOCK_EDEADLOCK,
              "a refusal is a result or an exception");
        mutex.unlock();
    }
    const auto reads = mutex.acquire_shared(0s);
    auto tx = sqlock::transaction::begin(registry);
    check(thrown([&] { tx.guard(reads); }) == SQLOCK_ENOTSUP,
          "a shared lease guards no transaction");
}

static void test_loss()
{
    const auto registry = open_registry();
    std::atomic<int> told{0}, code{0};
    sqlock::acquire_options how;

    how.ttl = 2s;
    how.on_lost = [&](int why) {
        code = why;
        told++;
        throw std::logic_error("ends there");
    };
    sqlock::shared_mutex mutex(registry, "loss of a share", how);
    {
        const std::shared_lock reads(mutex);
        end_lease(registry, "loss of a share");
        check(comes_true([&] { return told == 1; }) && code == SQLOCK_ELOST &&
                  !mutex.held_shared() && mutex.remaining_shared() == 0ms,
              "the loss of a share is told");
    }
    check(mutex.unlocked_shared() == SQLOCK_ELOST, "and by unlocked_shared()");

    how.ttl = 300ms;
    how.auto_renew = false;
    sqlock::shared_mutex brief(registry, "loss of a share", how);
    const std::shared_lock stays(mutex);
    auto runs_out = brief.acquire_shared(patience);
    check(comes_true([&] { return told == 2; }) && code == SQLOCK_EEXPIRED &&
              !runs_out.held() && mutex.held_shared(),
          "one that runs out is lost alone");
}

static void test_downgrade()
{
    const auto registry = open_registry();
    const auto other = open_registry();
    auto lease = registry.acquire("downgrade", patience);
    const auto token = lease.token();
    std::atomic<std::int64_t> wrote{0};
    std::thread writer(
        [&] { wrote = other.acquire("downgrade", patience).token(); });

    check(is_waited_for(registry, "downgrade"), "a writer waits");
    lease.downgrade();
    lease.downgrade();
    check(lease.held() && lease.token() == token && wrote == 0,
          "a writer becomes a reader, and nobody writes in between");
    lease.release();
    writer.join();
    check(wrote > token &&
              lease.downgrade(std::nothrow).error().code == SQLOCK_EOWNER,
          "released it is none");

    sqlock::shared_mutex mutex(registry, "downgrade");
    auto writes = mutex.acquire(patience);
    writes.downgrade();
    check(mutex.try_lock_shared() && !mutex.try_lock(),
          "threads read beside a lease of the mutex that became shared");
    mutex.unlock_shared();
    writes.release();
    check(mutex.try_lock(), "and write when it was released");
    mutex.unlock();
}

/* --------------------------------------------------------------- permits -- */

static void test_permits()
{
    const auto one = open_registry();
    const auto other = open_registry();
    sqlock::semaphore ours(one, "permits", 3), theirs(other, "permits", 3);

    auto first = ours.acquire();
    auto two = theirs.try_acquire_for(patience, 2);
    check(first.held() && two && two->held() && first.token() != two->token() &&
              !ours.try_acquire() && !ours.try_acquire_for(20ms) &&
              !theirs.try_acquire_until(std::chrono::steady_clock::now() - 1h),
          "so many permits are to be had, one or several at once");
    check(thrown([&] { (void)ours.acquire(20ms); }) == SQLOCK_ETIMEDOUT &&
              ours.acquire(std::nothrow, 0s, 2).error().code == SQLOCK_EBUSY,
          "and no more");
    int code = 1;
    std::thread([moved = *std::move(two), &code]() mutable {
        moved.check();
        code = moved.release(std::nothrow) ? 0 : 1;
    }).join();
    check(code == 0 && !two->held() && ours.try_acquire(2),
          "permits move to another thread, which gives them back");
    first.release();
    check(first.release(std::nothrow).error().code == SQLOCK_EOWNER &&
              ours.try_acquire(3),
          "they are given back once");
    {
        auto all = ours.acquire(3);
        check(thrown([&] { (void)ours.acquire(); }) == SQLOCK_EDEADLOCK,
              "a thread that has all permits and wants one is told");
        all.detach();
        check(!ours.try_acquire_for(20ms),
              "unless it has given its lease away");
    }
    try {
        const auto all = ours.acquire(3);
        throw std::logic_error("of the application");
    } catch (const std::logic_error &) {
        check(ours.try_acquire(3).has_value(),
              "an exception gives permits back");
    }
}

static void test_permits_of_threads()
{
    const auto one = open_registry();
    const auto other = open_registry();
    sqlock::semaphore ours(one, "of threads", 3),
        theirs(other, "of threads", 3);
    std::atomic<unsigned> inside{0}, most{0};
    std::atomic<int> done{0}, errors{0};
    std::vector<std::thread> all;

    for (unsigned i = 0; i < 6; i++)
        all.emplace_back([&, i] {
            try {
                for (int j = 0; j < 5; j++) {
                    const unsigned weight = 1 + i % 2;
                    const auto some = (i < 3 ? ours : theirs).acquire(weight);
                    const unsigned now = inside += weight;
                    for (unsigned had = most; now > had;)
                        if (most.compare_exchange_weak(had, now))
                            break;
                    std::this_thread::sleep_for(1ms);
                    inside -= weight;
                    done++;
                }
            } catch (const sqlock::error &why) {
                std::printf("# %s\n", why.what());
                errors++;
            }
        });
    for (auto &thread : all)
        thread.join();
    check(most <= 3 && done == 30 && errors == 0,
          "threads of two registries never have more");
}

static void test_number_of_permits()
{
    const auto registry = open_registry();
    sqlock::semaphore two(registry, "number", 2), three(registry, "number", 3);

    check(registry.set_permits(std::nothrow, "no row of it", 2).error().code ==
              SQLOCK_ENOTFOUND,
          "a lock that nobody had has no permits to change");
    auto held = two.acquire();
    sqlock::semaphore as_it_is(registry, "number");
    check(as_it_is.try_acquire().has_value(), "without a number as it is");
    check(three.try_acquire() && !three.try_acquire(2),
          "a number is for a lock that has none");
    check(thrown([&] { (void)three.try_acquire(3); }) == SQLOCK_ECONFLICT,
          "more than there are is a conflict");
    registry.set_permits("number", 3);
    check(three.try_acquire(2).has_value(), "until the number is changed");
    check(two.try_acquire(2).has_value(), "also for who knows another one");
    check(thrown([&] { (void)three.try_acquire(0); }) == SQLOCK_EINVAL &&
              thrown([&] { (void)three.try_acquire(4); }) == SQLOCK_EINVAL &&
              thrown([&] { registry.set_permits(nul_inside, 1); }) ==
                  SQLOCK_EINVAL &&
              thrown([&] { sqlock::semaphore wrong(registry, "\xff", 1); }) ==
                  SQLOCK_EINVAL,
          "numbers and names that are wrong are refused");
    auto moved = std::move(three);
    check(thrown([&] { (void)three.acquire(); }) == SQLOCK_EINVAL &&
              moved.try_acquire(2),
          "and so is a semaphore that was moved from");
    three.cancel();
}

static void test_lost_permit()
{
    auto registry = std::make_unique<sqlock::registry>(open_registry());
    std::atomic<int> told{0};
    sqlock::acquire_options how;

    how.ttl = 2s;
    how.on_lost = [&](int code) { told = code; };
    auto permits =
        std::make_unique<sqlock::semaphore>(*registry, "lost permit", 2, how);
    auto lease = permits->acquire(patience);
    permits.reset();
    end_lease(*registry, "lost permit");
    registry.reset();
    check(comes_true([&] { return told == SQLOCK_ELOST; }) &&
              thrown([&] { lease.check(); }) == SQLOCK_EEXPIRED &&
              thrown([&] { lease.release(); }) == SQLOCK_ELOST,
          "the loss of a permit is told, though its semaphore has ended");
}

/* ----------------------------------------------------- modes in options -- */

static void test_modes()
{
    const auto registry = open_registry();
    sqlock::acquire_options shared;

    shared.mode = SQLOCK_SHARED;
    auto reads = registry.acquire("modes", patience, shared);
    auto coming = sqlock::acquire_async(registry, "modes", patience, shared);
    auto many =
        sqlock::acquire_many(registry, {"modes", "modes/2"}, patience, shared);
    auto also = coming.get();
    check(reads.held() && also.held() && many.held() &&
              !registry.try_acquire("modes"),
          "all ways to acquire have the option `mode`");
    sqlock::mutex alone(registry, "modes/3"), one(registry, "modes/3", shared),
        two(registry, "modes/4", shared);
    {
        const sqlock::scoped_lock both(one, two);
        check(one.held() && two.held() && !alone.try_lock(),
              "mutexes are shared together");
    }
    check(thrown([&] { sqlock::scoped_lock both(alone, two); }) ==
              SQLOCK_EINVAL,
          "but not of different modes");
    sqlock::shared_mutex mutex(registry, "modes/7", shared);
    mutex.lock();
    check(!mutex.try_lock_shared(),
          "a shared_mutex has both, whatever they say");
    mutex.unlock();
    shared.permits = 2;
    shared.weight = 2;
    auto both = registry.acquire("modes/5", patience, shared);
    shared.weight = 1;
    check(both.held() && !registry.try_acquire("modes/5", shared),
          "and so they have `permits` and `weight`");
    shared.mode = SQLOCK_EXCLUSIVE;
    check(thrown([&] { (void)registry.try_acquire("modes/6", shared); }) ==
              SQLOCK_EINVAL,
          "which are not for those who want it alone");
}

int main(int argc, char **argv)
{
    return run(argc, argv, "tests/conformance/cpp/shared", [] {
        test_readers();
        test_threads();
        test_threads_that_end();
        test_share_of_a_thread();
        test_ends();
        test_acquire_shared();
        test_loss();
        test_downgrade();
        test_permits();
        test_permits_of_threads();
        test_number_of_permits();
        test_lost_permit();
        test_modes();
    });
}
