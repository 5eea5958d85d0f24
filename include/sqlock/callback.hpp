/*
 * sqlock/callback.hpp - calls of the application by the library, and objects
 * that end in them
 *
 * A callback may own the last reference to a lease, mutex, transaction or
 * registry.  In the library's thread, which runs the callback, nothing may be
 * released or closed: it would wait for itself.  Another thread does that, as
 * soon as it can.  sqlock.hpp includes this header.
 */
#ifndef SQLOCK_CALLBACK_HPP
#define SQLOCK_CALLBACK_HPP

#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace sqlock::detail
{

/** Count the callbacks that the calling thread is in. */
inline int &callbacks() noexcept
{
    static thread_local int running = 0;

    return running;
}

/** Run it; an exception ends here. */
template <class Work> void quietly(Work work) noexcept
{
#if defined(__cpp_exceptions)
    try {
        work();
    } catch (...) {
    }
#else
    work();
#endif
}

/** Call a function of the application, for C, which cannot pass on an
 *  exception.  The function stays until it has returned, even if its owner
 *  ends. */
template <class Function, class Argument>
void call_back(std::shared_ptr<Function> function, Argument &&with) noexcept
{
    callbacks()++;
    quietly([&] { (*function)(std::forward<Argument>(with)); });
    function.reset(); /* what it owns may end now */
    callbacks()--;
}

/** A thread that runs what a callback must not do; it ends when there is
 *  nothing left. */
class cleaner
{
  public:
    /** Run it here, or if this is a callback in the other thread. */
    template <class Work> static void run(Work work) noexcept
    {
        if (callbacks() == 0)
            work();
        else
            one().post(work);
    }

  private:
    std::mutex mutex_;
    std::vector<std::function<void()>> waiting_;
    bool is_running_ = false;

    /* Never destroyed: it may be used while the process ends. */
    static cleaner &one() noexcept
    {
        static auto *const made = new cleaner;

        return *made;
    }
    /* Without memory the work is not done; without a thread, with the next. */
    template <class Work> void post(Work &work) noexcept
    {
        quietly([&] { start(std::move(work)); });
    }
    void start(std::function<void()> work)
    {
        const std::lock_guard<std::mutex> hold(mutex_);

        waiting_.push_back(std::move(work));
        if (is_running_)
            return;
        std::thread([this] { drain(); }).detach();
        is_running_ = true;
    }
    void drain()
    {
        std::unique_lock<std::mutex> hold(mutex_);

        while (!waiting_.empty()) {
            auto all = std::exchange(waiting_, {});

            hold.unlock();
            for (auto &work : all) {
                work();
                work = nullptr;
            }
            hold.lock();
        }
        is_running_ = false;
    }
};

} /* namespace sqlock::detail */

#endif /* SQLOCK_CALLBACK_HPP */
