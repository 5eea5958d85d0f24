/*
 * mutex.cc - sqlock.hpp on a database: mutexes under the standard library's
 * locks, leases, losses and errors
 *
 *     mutex URL REGION
 *
 * Prints "ok - what" or "not ok - what" of each test.
 */
#include "check.hpp"

#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

static_assert(!std::is_copy_constructible_v<sqlock::mutex>);
static_assert(!std::is_copy_constructible_v<sqlock::lease>);
static_assert(!std::is_copy_constructible_v<sqlock::registry>);
static_assert(std::is_nothrow_move_constructible_v<sqlock::mutex>);
static_assert(std::is_nothrow_move_assignable_v<sqlock::mutex>);
static_assert(std::is_nothrow_move_constructible_v<sqlock::lease>);
static_assert(std::is_nothrow_move_assignable_v<sqlock::lease>);
static_assert(std::is_nothrow_move_constructible_v<sqlock::registry>);

static void test_durations()
{
    using sqlock::detail::to_ms;

    check(to_ms(1us) == 1 && to_ms(1500us) == 2 && to_ms(3s) == 3000 &&
              to_ms(0s) == 0 && to_ms(-1ms) == 0 && to_ms(-2h) == 0 &&
              to_ms(std::chrono::duration<double>(0.25)) == 250,
          "durations are rounded up, and none is negative");
    check(to_ms(sqlock::forever) == SQLOCK_FOREVER &&
              to_ms(std::chrono::hours::max()) == SQLOCK_FOREVER &&
              to_ms(std::chrono::nanoseconds::min()) == 0,
          "the longest and the shortest durations do not overflow");
    using far =
        std::chrono::time_point<std::chrono::system_clock, std::chrono::hours>;
    check(sqlock::detail::until_ms(far::max()) == SQLOCK_FOREVER &&
              sqlock::detail::until_ms(far::min()) == 0,
          "nor do times that are so far away");
}

/* What the turn of the thread has taken is no more there for the lock. */
static void test_total_wait()
{
    const auto left = sqlock::detail::lock_state::left_of;
    const auto begun = std::chrono::steady_clock::now() - 400ms;

    check(left(100000, begun) <= 99600 && left(100000, begun) > 0,
          "a wait is shorter by the wait for the turn");
    check(left(400, begun) == 0, "and over with it");
    check(left(0, begun) == 0 && left(SQLOCK_FOREVER, begun) == SQLOCK_FOREVER,
          "but for a try, and one without limit");
}

static void test_excludes()
{
    const auto one = open_registry();
    const auto other = open_registry();
    sqlock::mutex ours(one, "excludes");
    auto theirs = other.mutex("excludes");

    {
        std::lock_guard<sqlock::mutex> hold(ours);
        check(ours.held() && ours.token() > 0 && ours.remaining() > 0ms &&
                  !theirs.try_lock() && !theirs.try_lock_for(30ms) &&
                  !theirs.try_lock_until(std::chrono::system_clock::now() - 1h),
              "a mutex that is held elsewhere is not to be had");
    }
    check(!ours.held() && ours.unlocked() == 0 && theirs.try_lock(),
          "lock_guard has unlocked it");
    theirs.unlock();

    std::unique_lock<sqlock::mutex> deferred(ours, std::defer_lock);
    std::unique_lock<sqlock::mutex> timed(theirs, patience);
    check(timed.owns_lock() && !deferred.try_lock() &&
              !deferred.try_lock_for(20ms),
          "unique_lock waits for a time");
    timed.unlock();
    check(deferred.try_lock_for(patience) && ours.held(),
          "and tries again later");
    auto moved = std::move(deferred);
    check(moved.owns_lock() && !deferred.owns_lock(), "unique_lock moves");
}

/* Check that threads exclude each other while they count without atomics: with
 * one mutex for all (`shared`), or each with a mutex of its own. */
static void count(bool shared)
{
    constexpr int threads = 8, rounds = 15;
    const auto registry = open_registry();
    sqlock::mutex common(registry, "count");
    std::vector<std::thread> all;
    volatile int counted = 0;
    std::atomic<int> inside{0}, overlaps{0}, errors{0};

    for (int i = 0; i < threads; i++)
        all.emplace_back([&] {
            try {
                sqlock::mutex own(registry, "count");
                sqlock::mutex &used = shared ? common : own;

                for (int j = 0; j < rounds; j++) {
                    std::scoped_lock hold(used);
                    if (++inside != 1)
                        overlaps++;
                    counted = counted + 1;
                    std::this_thread::sleep_for(1ms);
                    --inside;
                }
            } catch (const sqlock::error &why) {
                std::printf("# %s\n", why.what());
                errors++;
            }
        });
    for (auto &thread : all)
        thread.join();
    check(counted == threads * rounds && overlaps == 0 && errors == 0,
          shared ? "threads exclude each other by one mutex"
                 : "threads exclude each other by a mutex each");
}

static void test_two_at_a_time()
{
    const auto registry = open_registry();
    std::atomic<int> done{0};
    std::array<std::thread, 2> both;

    for (int i = 0; i < 2; i++)
        both[static_cast<size_t>(i)] = std::thread([&, i] {
            sqlock::mutex first(registry, i == 0 ? "left" : "right");
            sqlock::mutex second(registry, i == 0 ? "right" : "left");

            for (int j = 0; j < 10; j++) {
                std::scoped_lock hold(first, second); /* slow, but allowed */
                if (first.held() && second.held())
                    done++;
            }
        });
    for (auto &thread : both)
        thread.join();
    check(done == 20, "scoped_lock takes two in any order");
}

static void test_lease()
{
    const auto registry = open_registry();
    auto other = registry.mutex("lease");
    std::int64_t before;

    {
        auto lease = registry.acquire("lease", 0s);
        before = lease.token();
        lease.check();
        auto busy = registry.acquire(std::nothrow, "lease", 0s);
        check(lease && lease.remaining() > 0ms && !busy &&
                  busy.error().code == SQLOCK_EBUSY &&
                  !busy.error().message.empty(),
              "a lease holds, and who is refused is told in a result");
        check(thrown([&] { (void)open_registry().acquire("lease", 20ms); }) ==
                  SQLOCK_ETIMEDOUT,
              "or by an exception");
        auto moved = std::move(lease);
        check(moved.held() && !lease.held() && moved.token() == before,
              "a lease moves");
        check(lease.release(std::nothrow).error().code == SQLOCK_EOWNER,
              "and is not where it was");
        moved = registry.acquire("another", 0s);
        check(other.try_lock(), "assigned to, it gives back what it had");
        other.unlock();
    }
    auto again = other.acquire(patience);
    check(again.token() > before, "a token is greater than those before");
    again.renew(20s);
    check(again.remaining() > 10s, "a lease is renewed on request");
    again.release();
    check(!again && !other.held() &&
              thrown([&] { again.check(); }) == SQLOCK_EEXPIRED &&
              thrown([&] { again.release(); }) == SQLOCK_EOWNER,
          "released it is over");
}

static void test_renewed()
{
    const auto registry = open_registry();
    sqlock::acquire_options how;

    how.ttl = 2s;
    auto lease = registry.acquire("renewed", patience, how);
    auto before = lease.remaining();
    check(comes_true([&] {
              const auto now = lease.remaining();
              return now > std::exchange(before, now);
          }),
          "what is locked is renewed");
}

static void test_loss()
{
    const auto registry = open_registry();
    std::atomic<int> told{0};
    sqlock::acquire_options how;

    how.ttl = 2s;
    how.on_lost = [&](int code) { told = code; };
    sqlock::mutex mutex(registry, "loss", how);
    auto lease = mutex.acquire(patience);
    end_lease(registry, "loss");
    check(comes_true([&] { return told != 0; }) && told == SQLOCK_ELOST,
          "a loss is told to on_lost");
    check(!lease.held() && thrown([&] { lease.check(); }) == SQLOCK_EEXPIRED,
          "and by check()");
    check(thrown([&] { lease.release(); }) == SQLOCK_ELOST, "and by release()");

    {
        std::unique_lock<sqlock::mutex> hold(mutex);
        end_lease(registry, "loss");
        check(comes_true([&] { return !mutex.held(); }),
              "a mutex is not held any more");
    }
    check(mutex.unlocked() == SQLOCK_ELOST,
          "what a destructor was told is told by unlocked()");
    check(mutex.try_lock(), "and it can be locked again");
    mutex.unlock();
}

static void test_errors()
{
    auto none = sqlock::registry::open(std::nothrow, "nosuch:database");
    check(!none && none.error().code == SQLOCK_ENOTSUP,
          "a registry that cannot be opened is told in a result");
    check(thrown([&] { std::move(none).value(); }) == SQLOCK_ENOTSUP &&
              thrown([] { (void)sqlock::registry::open("nosuch:database"); }) ==
                  SQLOCK_ENOTSUP,
          "or by an exception");
    const auto registry = open_registry();
    check(thrown([&] { sqlock::mutex mutex(registry, "\xff"); }) ==
                  SQLOCK_EINVAL &&
              registry.acquire(std::nothrow, "\xff", 0s).error().code ==
                  SQLOCK_EINVAL,
          "a name that is no UTF-8 is refused");
    check(thrown([&] { sqlock::mutex mutex(registry, nul_inside); }) ==
                  SQLOCK_EINVAL &&
              registry.acquire(std::nothrow, nul_inside, 0s).error().code ==
                  SQLOCK_EINVAL &&
              sqlock::registry::open(std::nothrow, nul_inside).error().code ==
                  SQLOCK_EINVAL,
          "and so is one with a NUL byte inside");
    for (std::string sqlock::registry_options::*text :
         {&sqlock::registry_options::region,
          &sqlock::registry_options::table_prefix,
          &sqlock::registry_options::holder_note}) {
        auto cut = options;
        cut.*text += std::string("\0x", 2);
        check(thrown([&] { (void)sqlock::registry::open(url, cut); }) ==
                      SQLOCK_EINVAL &&
                  thrown([&] { sqlock::create_schema(url, cut); }) ==
                      SQLOCK_EINVAL,
              "and so is a text of the options");
    }
    const std::string longer = "viewed and more";
    auto viewed = registry.mutex(std::string_view(longer).substr(0, 6));
    check(viewed.name() == "viewed", "a view ends where it ends");
    auto raw = options;
    raw.key_rule = SQLOCK_KEY_RAW;
    check(sqlock::registry::open(url, raw).mutex("raw").key() == "raw" &&
              viewed.key() != "viewed",
          "the options choose how names become keys");
    raw.detect_deadlocks = true;
    check(raw.native().detect_deadlocks && !options.native().detect_deadlocks,
          "the options choose whether circles are looked for");
    auto held = registry.try_acquire("tried");
    check(held && held->held() && !registry.try_acquire("tried"),
          "what is not free is no optional");
    check(thrown([&] { (void)registry.try_acquire("\xff"); }) == SQLOCK_EINVAL,
          "and what is wrong is an exception");
}

static void test_moved_from()
{
    auto registry = open_registry();
    sqlock::mutex mutex(registry, "moved from");
    auto taken = std::move(mutex);

    mutex.cancel();
    mutex.unlock();
    check(!mutex.held() && mutex.token() == 0 && mutex.remaining() == 0ms &&
              mutex.name().empty() && mutex.key().empty() &&
              mutex.client_id().empty() && mutex.unlocked() == 0 &&
              mutex.native_handle() == nullptr,
          "a mutex that was moved from is not held");
    check(thrown([&] { mutex.lock(); }) == SQLOCK_EINVAL &&
              thrown([&] { (void)mutex.try_lock(); }) == SQLOCK_EINVAL &&
              thrown([&] { mutex.renew(); }) == SQLOCK_EINVAL &&
              mutex.acquire(std::nothrow, 0s).error().code == SQLOCK_EINVAL,
          "and cannot be locked");
    mutex = registry.mutex("moved from");
    check(mutex.try_lock() && !taken.try_lock(), "until it is assigned to");
    mutex.unlock();
    auto other = std::move(registry);
    check(thrown([&] { (void)registry.mutex("x"); }) == SQLOCK_EINVAL &&
              registry.acquire(std::nothrow, "x", 0s).error().code ==
                  SQLOCK_EINVAL &&
              registry.native_handle() == nullptr && other.try_acquire("x"),
          "nor can a registry that was moved from be used");
}

static void test_events()
{
    std::mutex change;
    std::vector<std::string> told;
    auto with = options;

    with.event_level = SQLOCK_LEVEL_DEBUG;
    with.on_event = [&](const sqlock_event &event) {
        const std::lock_guard<std::mutex> hold(change);
        if (event.lock != nullptr)
            told.push_back(std::string(event.name) + " " + event.lock);
    };
    {
        const auto registry = sqlock::registry::open(url, with);
        registry.acquire("events", patience).release();
    }
    check(told ==
              std::vector<std::string>{"acquired events", "released events"},
          "events are told to a lambda");
}

static void test_lifetime()
{
    auto registry = std::make_unique<sqlock::registry>(open_registry());
    auto mutex = registry->mutex("lifetime");
    auto lease = registry->acquire("lifetime's lease", 0s);

    registry.reset();
    std::lock_guard<sqlock::mutex> hold(mutex);
    check(mutex.held() && lease.held(), "mutexes keep their registry open");

    auto watcher = open_registry();
    auto seen = watcher.mutex("assigned");
    {
        auto assigned = watcher.mutex("assigned");
        assigned.lock();
        assigned = watcher.mutex("something else");
        check(seen.try_lock(), "a mutex that is assigned to is unlocked");
        seen.unlock();
        assigned.lock();
    }
    seen = watcher.mutex("something else");
    check(seen.try_lock(), "and so is one that ends");
    seen.unlock();
}

static void test_handle()
{
    const auto registry = open_registry();
    sqlock::mutex one(registry, "handle"), other(registry, "handle");

    one.lock();
    check(!other.try_lock(), "mutexes of one thread exclude each other");
    int code = 1;
    std::thread([&] {
        one.unlock();
        code = one.unlocked();
    }).join();
    check(code == 0 && other.try_lock(), "another thread may unlock");
    other.unlock();
    auto lease = one.acquire(0s);
    std::thread([moved = std::move(lease), &code]() mutable {
        code = moved.release(std::nothrow) ? 0 : 1;
    }).join();
    check(code == 0, "and a lease may move there");
}

static void test_itself()
{
    const auto registry = open_registry();
    sqlock::mutex one(registry, "itself"), other(registry, "itself");

    one.lock();
    check(thrown([&] { one.lock(); }) == SQLOCK_EDEADLOCK &&
              thrown([&] { (void)one.try_lock_for(patience); }) ==
                  SQLOCK_EDEADLOCK &&
              !one.try_lock(),
          "a thread that locks a mutex twice is told");
    check(thrown([&] { other.lock(); }) == SQLOCK_EDEADLOCK &&
              thrown([&] { (void)registry.acquire("itself", patience); }) ==
                  SQLOCK_EDEADLOCK &&
              !other.try_lock(),
          "and one that locks another mutex of that name");
    bool is_taken = false;
    std::thread waits([&] {
        is_taken = one.try_lock_for(patience);
        one.unlock();
    });
    std::this_thread::sleep_for(20ms);
    one.unlock();
    waits.join();
    check(is_taken, "another thread waits");
    one.lock();
    one.unlock();

    auto given = one.acquire(patience);
    given.detach();
    check(!one.try_lock_for(20ms) && !other.try_lock_for(20ms),
          "a thread that gives its lease away waits");
    std::thread([moved = std::move(given)] {}).join();
    check(other.try_lock_for(patience), "and gets the lock");
    other.unlock();
}

static void test_hosts()
{
    const auto at = url.find('@');

    if (at == std::string::npos)
        return; /* a file */
    const auto registry =
        sqlock::registry::open(std::string(url).insert(at + 1, "127.0.0.1:1,"));
    sqlock::mutex one(registry, "hosts");
    check(one.try_lock(), "a URL may name several hosts");
    one.unlock();
}

int main(int argc, char **argv)
{
    return run(argc, argv, "tests/conformance/cpp", [] {
        test_durations();
        test_total_wait();
        test_excludes();
        count(true);
        count(false);
        test_two_at_a_time();
        test_lease();
        test_renewed();
        test_loss();
        test_errors();
        test_moved_from();
        test_events();
        test_lifetime();
        test_handle();
        test_itself();
        test_hosts();
    });
}
