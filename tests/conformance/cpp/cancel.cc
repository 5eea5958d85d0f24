/*
 * cancel.cc - one cancel() ends all waits for a mutex or semaphore, wherever
 * they are at that moment
 *
 *     cancel URL REGION
 *
 * Prints "ok - what" or "not ok - what" of each test.
 */
#include "check.hpp"

#include <sqlock/async.hpp>
#include <sqlock/many.hpp>
#include <sqlock/shared.hpp>

#include <atomic>
#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <functional>
#include <mutex>
#include <new>
#include <string>
#include <sys/types.h>
#include <unistd.h>
#include <vector>

/* --- between the headers and the library --- */

/* Called by the thread before the library knows of its wait. */
static thread_local std::function<void()> before_waiting;

template <class Function> static Function library(const char *name, Function)
{
    if (before_waiting)
        std::exchange(before_waiting, nullptr)();
    return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}
extern "C" int sqlock_acquire(sqlock_lock *lock, int64_t wait_ms,
                              const sqlock_acquire_options *how,
                              sqlock_error *why)
{
    return library("sqlock_acquire", sqlock_acquire)(lock, wait_ms, how, why);
}
extern "C" int sqlock_acquire_many(sqlock_lock *const *locks, size_t count,
                                   int64_t wait_ms,
                                   const sqlock_acquire_options *how,
                                   int *results, sqlock_error *why)
{
    return library("sqlock_acquire_many", sqlock_acquire_many)(
        locks, count, wait_ms, how, results, why);
}

/* --- memory that is not there --- */

static thread_local bool has_no_memory;

void *operator new(std::size_t size)
{
    if (!has_no_memory)
        if (void *got = std::malloc(size))
            return got;
    throw std::bad_alloc();
}
void operator delete(void *old) noexcept
{
    std::free(old);
}
void operator delete(void *old, std::size_t) noexcept
{
    std::free(old);
}

/* Whether the call, which fails, finds no memory to tell of that. */
template <class Call> static bool cannot_tell(Call call)
{
    bool is_thrown = false;

    before_waiting = [] { has_no_memory = true; };
    try {
        call();
    } catch (const std::bad_alloc &) {
        is_thrown = true;
    }
    has_no_memory = false;
    return is_thrown;
}

/* --- threads that wait --- */

/* Whether the thread sleeps, as /proc tells. */
static bool is_asleep(pid_t thread)
{
    std::ifstream in("/proc/self/task/" + std::to_string(thread) + "/stat");
    std::string all;

    std::getline(in, all);
    const auto name_ends = all.rfind(')');
    return name_ends != std::string::npos && all.substr(name_ends, 3) == ") S";
}

/** Threads that wait for a lock, each by a function that is done with the lock
 *  if it got it. */
class waiters
{
  public:
    template <class Wait> void add(Wait wait)
    {
        threads_.emplace_back([this, wait] {
            ids_[next_++] = ::gettid();
            if (thrown(wait) == SQLOCK_ECANCELED)
                cancelled_++;
            over_++;
        });
    }
    /* All sleep, and go on sleeping: they wait. */
    bool wait()
    {
        int looks = 0;

        return comes_true([&] {
            looks = all_asleep() ? looks + 1 : 0;
            return looks == 10;
        });
    }
    bool are_cancelled()
    {
        return comes_true([&] { return over_ == count(); }) &&
               cancelled_ == count();
    }
    void join()
    {
        for (auto &thread : threads_)
            thread.join();
    }

  private:
    std::vector<std::thread> threads_;
    std::atomic<pid_t> ids_[16] = {};
    std::atomic<int> next_{0}, over_{0}, cancelled_{0};

    int count() const
    {
        return static_cast<int>(threads_.size());
    }
    bool all_asleep() const
    {
        if (next_ != count())
            return false;
        for (int i = 0; i < next_; i++)
            if (ids_[i] == 0 || !is_asleep(ids_[i]))
                return false;
        return true;
    }
};

/* Check that one cancel() ends the waits of 8 threads for what the holder has,
 * each time. */
template <class Wait, class Cancel>
static void check_cancelled(const char *what, sqlock::mutex &holder, Wait wait,
                            Cancel cancel)
{
    bool all = true;

    for (int round = 0; all && round < 10; round++) {
        waiters some;

        holder.lock();
        for (int i = 0; i < 8; i++)
            some.add(wait);
        all = some.wait();
        cancel();
        all = some.are_cancelled() && all;
        holder.unlock();
        some.join();
    }
    check(all, what);
}

static void test_one_cancel()
{
    const auto registry = open_registry();
    const auto other = open_registry();
    sqlock::mutex holder(other, "cancel");
    sqlock::shared_mutex mutex(registry, "cancel");
    sqlock::mutex second(registry, "cancel too");
    sqlock::semaphore permits(registry, "cancel", 1);
    auto &alone = static_cast<sqlock::mutex &>(mutex);

    check_cancelled(
        "one cancel() ends the waits of all threads", holder,
        [&] { std::lock_guard<sqlock::mutex> hold(alone); },
        [&] { alone.cancel(); });
    check_cancelled(
        "those with a limit, too", holder,
        [&] { std::unique_lock<sqlock::mutex> hold(alone, 1h); },
        [&] { alone.cancel(); });
    check_cancelled(
        "and those of readers", holder,
        [&] {
            mutex.lock_shared();
            mutex.unlock_shared();
        },
        [&] { mutex.cancel(); });
    check_cancelled(
        "and for permits", holder, [&] { (void)permits.acquire(); },
        [&] { permits.cancel(); });
    check_cancelled(
        "and of scoped_lock", holder,
        [&] { sqlock::scoped_lock both(second, alone); },
        [&] { alone.cancel(); });
    check(mutex.try_lock() && second.try_lock(),
          "then it can be locked as before");
    mutex.unlock();
    second.unlock();
}

/* Check that a cancel() before the library knows of the wait ends it. */
template <class Wait, class Cancel>
static void check_early(const char *what, sqlock::mutex &holder, Wait wait,
                        Cancel cancel)
{
    waiters one;

    holder.lock();
    one.add([&] {
        before_waiting = cancel;
        wait();
    });
    check(one.are_cancelled(), what);
    holder.unlock();
    one.join();
}

static void test_before_the_wait()
{
    const auto registry = open_registry();
    const auto other = open_registry();
    sqlock::mutex holder(other, "early");
    sqlock::shared_mutex mutex(registry, "early");
    sqlock::mutex second(registry, "early too");
    sqlock::semaphore permits(registry, "early", 1);
    auto &alone = static_cast<sqlock::mutex &>(mutex);

    check_early(
        "a cancel() just before the wait ends it", holder,
        [&] { std::lock_guard<sqlock::mutex> hold(alone); },
        [&] { alone.cancel(); });
    check_early(
        "that of a reader", holder, [&] { (void)mutex.acquire_shared(1h); },
        [&] { mutex.cancel(); });
    check_early(
        "and for permits", holder, [&] { (void)permits.acquire(); },
        [&] { permits.cancel(); });
    check_early(
        "and of scoped_lock", holder,
        [&] { sqlock::scoped_lock both(second, alone); },
        [&] { second.cancel(); });
}

/* What is cancelled first is not granted, even if it is free before the waiting
 * threads find out.  The lock is released by its handle, so that unlock() has
 * nothing to wait for. */
static void test_before_an_unlock()
{
    const auto registry = open_registry();
    sqlock::mutex mutex(registry, "unlocked");
    bool all = true;

    for (int round = 0; all && round < 10; round++) {
        waiters some;

        mutex.lock();
        all = sqlock_release(mutex.native_handle(), nullptr) == 0;
        for (int i = 0; i < 8; i++)
            some.add([&] { std::lock_guard<sqlock::mutex> hold(mutex); });
        all = some.wait() && all;
        mutex.cancel();
        mutex.unlock();
        all = some.are_cancelled() && all;
        some.join();
    }
    check(all, "a cancel() that comes before an unlock() ends all waits");
}

/* While scoped_lock waits for a thread that has one of its mutexes, it waits
 * for the other one, too. */
static void test_each_of_several()
{
    const auto registry = open_registry();
    sqlock::mutex one(registry, "each/1"), two(registry, "each/2");
    const auto both_are_cancelled = [&](sqlock::mutex &by) {
        waiters some;

        two.lock();
        some.add([&] { sqlock::scoped_lock both(one, two); });
        const bool waited = some.wait();
        by.cancel();
        const bool ended = some.are_cancelled();
        two.unlock();
        some.join();
        return waited && ended;
    };

    check(both_are_cancelled(two) && both_are_cancelled(one),
          "scoped_lock is cancelled by each of its mutexes");
    {
        sqlock::scoped_lock both(one, two);
        check(one.held() && two.held(), "and takes them the next time");
    }
}

/* A callback runs in the thread that looks at the descriptors of waits: so one
 * that cancels, and waits for the end, needs more than a descriptor. */
static void test_in_a_callback()
{
    const auto registry = open_registry(), other = open_registry();
    sqlock::mutex holder(other, "called back");
    sqlock::shared_mutex mutex(registry, "called back");
    std::atomic<bool> is_over{false}, were_cancelled{false};
    waiters readers;
    sqlock::acquire_options how;

    how.ttl = 15s;
    how.on_lost = [&](int) {
        mutex.cancel();
        were_cancelled = readers.are_cancelled();
        is_over = true;
    };
    sqlock::mutex lost(registry, "called back, lost", how);

    lost.lock();
    holder.lock();
    for (int i = 0; i < 4; i++)
        readers.add([&] {
            mutex.lock_shared();
            mutex.unlock_shared();
        });
    const bool waited = readers.wait();
    end_lease(other, "called back, lost");
    check(waited && comes_true([&] { return is_over.load(); }) &&
              were_cancelled,
          "a callback may cancel the waits of readers, and wait for their end");
    lost.unlock();
    holder.unlock();
    readers.join();
}

static void test_order()
{
    const auto registry = open_registry();
    auto mutex = registry.mutex("in order");
    std::vector<int> came; /* the mutex guards it */
    waiters threads;
    bool waited = true;

    mutex.lock();
    for (int i = 0; i < 3; i++) {
        threads.add([&, i] {
            mutex.lock();
            came.push_back(i);
            mutex.unlock();
        });
        waited = threads.wait() && waited;
    }
    mutex.unlock();
    threads.join();
    check(waited && came == std::vector<int>{0, 1, 2},
          "threads get a mutex in the order in which they came");
}

static void test_without_memory()
{
    const auto registry = open_registry(), other = open_registry();
    auto holder = other.acquire("no memory", patience);
    sqlock::mutex mutex(registry, "no memory");
    sqlock::mutex second(registry, "no memory too");
    const auto is_free = [&] {
        return in_thread([&] {
            const std::unique_lock<sqlock::mutex> one(mutex, patience);
            const std::unique_lock<sqlock::mutex> two(second, patience);

            return one.owns_lock() && two.owns_lock();
        });
    };

    check(cannot_tell([&] { (void)mutex.try_lock_for(1ms); }),
          "a lock fails, and there is no memory to tell why");
    std::thread canceller([&] {
        (void)is_waited_for(other, "no memory");
        mutex.cancel();
    });
    check(cannot_tell([&] { sqlock::scoped_lock both(mutex, second); }),
          "so it is with several");
    canceller.join();
    holder.release();
    check(is_free(), "and the threads of the mutexes lock them afterwards");
}

#if defined(__cpp_lib_jthread)
/* The next descriptor is 0, which stands for none as cancel_fd. */
static void test_without_stdin()
{
    const auto registry = open_registry();
    const auto other = open_registry();
    const auto holder = other.acquire("no stdin", patience);
    std::stop_source source;

    (void)!registry.try_acquire("no stdin"); /* has its session */
    (void)::close(0);
    source.request_stop();
    check(thrown([&] {
              (void)sqlock::acquire(registry, "no stdin", 2s,
                                    source.get_token());
          }) == SQLOCK_ECANCELED,
          "a stop ends a wait in a process without a standard input");
}
#endif

int main(int argc, char **argv)
{
    return run(argc, argv, "tests/conformance/cpp", [] {
        test_one_cancel();
        test_before_an_unlock();
        test_before_the_wait();
        test_each_of_several();
        test_in_a_callback();
        test_order();
        test_without_memory();
#if defined(__cpp_lib_jthread)
        test_without_stdin();
#endif
    });
}
