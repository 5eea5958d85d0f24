/*
 * scoped_lock.cc - sqlock::scoped_lock
 *
 *     scoped_lock URL REGION
 *
 * Prints "ok - what" or "not ok - what" of each test.
 */
#include "check.hpp"

#include <sqlock/event.h>
#include <sqlock/many.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>
#include <thread>

static_assert(!std::is_copy_constructible_v<
              sqlock::scoped_lock<sqlock::mutex, sqlock::mutex>>);

static void test_locks()
{
    const auto registry = open_registry(), other = open_registry();
    sqlock::mutex one(registry, "scoped/1"), two(registry, "scoped/2");
    auto busy = other.mutex("scoped/2");

    {
        sqlock::scoped_lock both(two, one);
        check(one.held() && two.held() && !busy.try_lock(),
              "scoped_lock takes its mutexes");
    }
    check(!one.held() && !two.held() && one.unlocked() == 0 &&
              two.unlocked() == 0 && busy.try_lock(),
          "and unlocks them");
    {
        std::thread later([&] {
            check(is_free(other, "scoped/1"), "it waits without the others");
            busy.unlock();
        });
        sqlock::scoped_lock<sqlock::mutex, sqlock::mutex> both(one, two);
        later.join();
        check(one.held() && two.held(), "until all are free");
    }
    one.lock();
    two.lock();
    {
        sqlock::scoped_lock adopted(std::adopt_lock, one, two);
    }
    check(!one.held() && !two.held(), "it adopts what is locked");
    {
        sqlock::scoped_lock none;
        sqlock::scoped_lock single(one);
        check(one.held(), "one mutex, or none");
    }
}

static void test_refuses()
{
    const auto registry = open_registry(), other = open_registry();
    sqlock::mutex one(registry, "refused/1"), two(registry, "refused/2");
    sqlock::mutex foreign(other, "refused/3"), gone(registry, "refused/4");
    sqlock::mutex namesake(registry, "refused/1");
    auto moved = std::move(gone);
    const auto refused = [&](sqlock::mutex &a, sqlock::mutex &b) {
        return thrown([&] { sqlock::scoped_lock both(a, b); }) == SQLOCK_EINVAL;
    };
    const auto differs = [&](auto set) {
        sqlock::acquire_options how;
        set(how);
        sqlock::mutex differing(registry, "refused/5", how);
        return refused(one, differing);
    };

    check(refused(one, foreign) && refused(one, one) &&
              refused(one, namesake) && refused(one, gone),
          "what cannot be locked in one call is refused");
    check(differs([](auto &how) { how.ttl = 99s; }) &&
              differs([](auto &how) { how.max_hold = 99s; }) &&
              differs([](auto &how) { how.auto_renew = !how.auto_renew; }) &&
              differs([](auto &how) { how.fenced = !how.fenced; }) &&
              differs([](auto &how) { how.fail_fast = !how.fail_fast; }) &&
              differs([](auto &how) { how.mode = SQLOCK_SHARED; }),
          "as are mutexes whose options differ");
    sqlock::acquire_options few;
    few.mode = SQLOCK_SHARED;
    few.permits = 2;
    auto more = few, heavier = few;
    more.permits = 3;
    heavier.weight = 2;
    sqlock::mutex a(registry, "refused/6", few), b(registry, "refused/7", more),
        c(registry, "refused/8", heavier);
    check(refused(a, b) && refused(a, c), "also in permits, or their weight");
    check(one.try_lock() && two.try_lock(), "and nothing stays locked");
    one.unlock();
    two.unlock();
    const sqlock::scoped_lock both(one, two);
    check(thrown([&] { (void)registry.acquire(two.name(), patience); }) ==
              SQLOCK_EDEADLOCK,
          "a thread that waits for one of its own is told");
}

/* Two threads share two mutexes, given in either order. */
static void test_excludes()
{
    const auto registry = open_registry();
    sqlock::mutex one(registry, "both/1"), two(registry, "both/2");
    std::array<std::thread, 4> threads;
    std::atomic<int> inside{0}, overlaps{0}, errors{0};
    volatile int counted = 0;

    for (std::size_t i = 0; i < threads.size(); i++)
        threads[i] = std::thread([&, i] {
            for (int j = 0; j < 10; j++)
                try {
                    sqlock::scoped_lock both(i % 2 == 0 ? one : two,
                                             i % 2 == 0 ? two : one);
                    if (++inside != 1)
                        overlaps++;
                    counted = counted + 1;
                    std::this_thread::sleep_for(1ms);
                    --inside;
                } catch (const sqlock::error &why) {
                    std::printf("# %s\n", why.what());
                    errors++;
                }
        });
    for (auto &thread : threads)
        thread.join();
    check(counted == 40 && overlaps == 0 && errors == 0,
          "threads that share mutexes exclude each other by scoped_lock");
}

static void test_is_lost()
{
    const auto registry = open_registry(), other = open_registry();
    std::atomic<int> first{0}, second{0};
    sqlock::acquire_options how;

    how.on_lost = [&](int code) { first = code; };
    sqlock::mutex one(registry, "told/1", how);
    how.on_lost = [&](int code) { second = code; };
    sqlock::mutex two(registry, "told/2", how);
    {
        sqlock::scoped_lock both(one, two);
        end_lease(other, "told/2");
        check(comes_true([&] { return second != 0; }) && first == 0,
              "the mutex that is lost is told, and no other");
    }
    check(one.unlocked() == 0 && two.unlocked() == SQLOCK_ELOST,
          "and each unlocked() says how it ended");
}

/* One that ends in a callback is unlocked by another thread.  That thread is
 * held up until a loss was told, and the memory of the scoped_lock is used for
 * something else. */
static void test_ends_in_a_callback()
{
    using both_locks = sqlock::scoped_lock<sqlock::mutex, sqlock::mutex>;
    alignas(both_locks) unsigned char memory[sizeof(both_locks)];
    /* The other thread may close the registry last, which is an event. */
    static std::atomic<both_locks *> both{nullptr};
    std::atomic<bool> goes_on{false};
    std::atomic<int> told{0};
    auto with = options;
    sqlock::acquire_options how;

    with.event_level = SQLOCK_LEVEL_DEBUG;
    with.on_event = [&](const sqlock_event &) {
        auto *const ends = both.exchange(nullptr);

        if (ends == nullptr)
            return;
        sqlock::detail::cleaner::run([&] {
            while (!goes_on)
                std::this_thread::sleep_for(1ms);
        });
        std::destroy_at(ends);
        std::fill(std::begin(memory), std::end(memory), 0xff);
    };
    const auto registry = sqlock::registry::open(url, with);
    const auto other = open_registry();
    how.ttl = 15s; /* a loss is found in less; a busy machine stops for less */
    how.on_lost = [&](int code) { told = code; };
    sqlock::mutex one(registry, "ends/1", how), two(registry, "ends/2", how);

    both = new (memory) both_locks(one, two);
    registry.acquire("ends/3", patience).release(); /* which is an event */
    check(both == nullptr && two.held(), "a scoped_lock ends in a callback");
    end_lease(other, "ends/2");
    check(comes_true([&] { return told != 0; }) && told == SQLOCK_ELOST,
          "a loss is told until another thread has unlocked it");
    goes_on = true;
    check(is_free(other, "ends/1") && one.unlocked() == 0 &&
              comes_true([&] { return two.unlocked() == SQLOCK_ELOST; }),
          "which that does");
}

int main(int argc, char **argv)
{
    return run(argc, argv, "tests/conformance/cpp", [] {
        test_locks();
        test_refuses();
        test_excludes();
        test_is_lost();
        test_ends_in_a_callback();
    });
}
