/*
 * sqlock/turn.hpp - threads that wait for a mutex, and how that is cancelled
 *
 * A cancel() ends the waits that have begun, wherever they are: behind another
 * thread, in the library, or between these.  So a wait has a descriptor from
 * its beginning to its end.  sqlock.hpp includes this header.
 */
#ifndef SQLOCK_TURN_HPP
#define SQLOCK_TURN_HPP

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>
#if defined(__has_include)
#if __cplusplus > 201703L && __has_include(<stop_token>)
#include <concepts>
#include <stop_token>
#endif
#endif

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <sqlock.h>
#include <sqlock/result.hpp>

namespace sqlock::detail
{

/** A descriptor that poll() finds readable once it was set. */
class event
{
  public:
    event() noexcept : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))
    {
        if (fd_ != 0)
            return;
        /* As done_fd and cancel_fd, 0 stands for none. */
        fd_ = ::fcntl(0, F_DUPFD_CLOEXEC, 3);
        ::close(0);
    }
    event(const event &) = delete;
    event &operator=(const event &) = delete;
    ~event()
    {
        if (fd_ >= 0)
            ::close(fd_);
    }
    int fd() const noexcept
    {
        return fd_;
    }
    void set() const noexcept
    {
        const std::uint64_t one = 1;

        if (fd_ >= 0)
            (void)!::write(fd_, &one, sizeof one);
    }
    /* -1: without limit. */
    bool wait(int ms) const noexcept
    {
        pollfd on = {fd_, POLLIN, 0};

        return ::poll(&on, 1, ms) == 1;
    }
    static failure missing()
    {
        return {SQLOCK_ERESOURCE, "there is no descriptor left"};
    }

  private:
    int fd_;
};

/** The number of the calling thread, for the option `actor`: no other thread
 *  has it later, and no other language's caller.  It is visible, so that all
 *  shared objects of the process count in one row. */
[[gnu::visibility("default")]] inline std::uint64_t this_actor() noexcept
{
    static std::atomic<std::uint64_t> last{std::uint64_t{1} << 62};
    thread_local const std::uint64_t mine = ++last;

    return mine;
}

/** One wait of a thread: for its turn, then for the lock. */
class one_wait
{
  public:
    /* With 0 it is a try, which waits for nobody, and cannot be cancelled.  The
     * library looks at the descriptor later while a callback of its runs, so
     * whoever waits for a lock of his own names it, too. */
    explicit one_wait(std::int64_t wait_ms, sqlock_lock *lock = nullptr)
        : lock_(lock)
    {
        if (wait_ms != 0)
            event_.emplace();
    }
    one_wait(const one_wait &) = delete;
    one_wait &operator=(const one_wait &) = delete;

    bool is_possible() const noexcept
    {
        return !event_ || event_->fd() >= 0;
    }
    std::uint64_t actor() const noexcept
    {
        return actor_;
    }
    /* For the library. */
    int cancel_fd() const noexcept
    {
        return event_ ? event_->fd() : 0;
    }

    void cancel() noexcept
    {
        if (!event_)
            return;
        event_->set();
        tell(is_cancelled_);
        if (lock_ != nullptr)
            (void)sqlock_cancel(lock_, nullptr);
    }
    bool is_cancelled()
    {
        const std::lock_guard<std::mutex> hold(inner_);

        return is_cancelled_;
    }
    void grant() noexcept
    {
        tell(is_granted_);
    }
    /* Sleep until it is granted its turn, is cancelled, or the time is over. */
    void sleep(std::int64_t wait_ms)
    {
        std::unique_lock<std::mutex> hold(inner_);
        const auto ends = [&] { return is_granted_ || is_cancelled_; };

        if (wait_ms < 0)
            woken_.wait(hold, ends);
        else
            (void)woken_.wait_for(hold, std::chrono::milliseconds(wait_ms),
                                  ends);
        is_granted_ = false;
    }

  private:
    std::optional<event> event_;
    sqlock_lock *const lock_;
    const std::uint64_t actor_ = this_actor();
    std::mutex inner_; /* guards the following */
    std::condition_variable woken_;
    bool is_cancelled_ = false;
    bool is_granted_ = false;

    void tell(bool &what) noexcept
    {
        /* Under the mutex to the end: the wait may end with what it is told. */
        const std::lock_guard<std::mutex> hold(inner_);

        what = true;
        woken_.notify_one();
    }
};

/** The waits that one cancel() ends. */
class all_waits
{
  public:
    /* One of them, as long as this object lasts. */
    class entry
    {
      public:
        entry(all_waits &among, one_wait &one) : among_(among), one_(one)
        {
            const std::lock_guard<std::mutex> hold(among_.inner_);

            among_.all_.push_back(&one_);
        }
        entry(const entry &) = delete;
        entry &operator=(const entry &) = delete;
        ~entry()
        {
            const std::lock_guard<std::mutex> hold(among_.inner_);
            auto &all = among_.all_;

            all.erase(std::find(all.begin(), all.end(), &one_));
        }

      private:
        all_waits &among_;
        one_wait &one_;
    };

    void cancel()
    {
        const std::lock_guard<std::mutex> hold(inner_);

        for (one_wait *one : all_)
            one->cancel();
    }

  private:
    std::mutex inner_; /* guards the following */
    std::vector<one_wait *> all_;
};

/** Whose turn it is among the threads that use a mutex, in the order in which
 *  they came. */
class turns
{
  public:
    /* Whether it is the caller's now. */
    bool try_take() noexcept
    {
        const std::lock_guard<std::mutex> hold(inner_);

        return takes(this_actor());
    }
    /* Let another thread pass it on. */
    void detach() noexcept
    {
        const std::lock_guard<std::mutex> hold(inner_);

        actor_ = 0;
    }
    result<void> await(one_wait &by, std::int64_t wait_ms)
    {
        if (wait_ms == 0)
            return try_take() ? result<void>() : failure(SQLOCK_EBUSY);
        bool is_own = false;
        if (is_queued(by, is_own)) {
            by.sleep(wait_ms);
            if (leaves(by))
                return failure(by.is_cancelled() ? SQLOCK_ECANCELED
                                                 : SQLOCK_ETIMEDOUT);
        }
        if (is_own)
            return failure(SQLOCK_EDEADLOCK,
                           "this thread has locked the mutex");
        if (!by.is_cancelled())
            return {};
        pass();
        return failure(SQLOCK_ECANCELED);
    }
    void pass() noexcept
    {
        const std::lock_guard<std::mutex> hold(inner_);

        if (queue_.empty()) {
            is_taken_ = false;
            return;
        }
        actor_ = queue_.front()->actor();
        queue_.front()->grant();
        queue_.erase(queue_.begin());
    }

  private:
    std::mutex inner_; /* guards the following */
    bool is_taken_ = false;
    std::uint64_t actor_ = 0; /* who has it; 0: another than who took it */
    std::vector<one_wait *> queue_;

    bool takes(std::uint64_t actor) noexcept
    {
        if (std::exchange(is_taken_, true))
            return false;
        actor_ = actor;
        return true;
    }
    /* Take the turn, or else wait for it, unless it is the caller's own. */
    bool is_queued(one_wait &by, bool &is_own)
    {
        const std::lock_guard<std::mutex> hold(inner_);

        if (takes(by.actor()))
            return false;
        is_own = actor_ == by.actor();
        if (!is_own)
            queue_.push_back(&by);
        return !is_own;
    }
    /* Leave the queue; false: the turn was granted. */
    bool leaves(one_wait &by)
    {
        const std::lock_guard<std::mutex> hold(inner_);
        const auto at = std::find(queue_.begin(), queue_.end(), &by);

        if (at == queue_.end())
            return false;
        queue_.erase(at);
        return true;
    }
};

#if defined(__cpp_lib_jthread)
/** Make a call with a cancel_fd that becomes readable when the stop is
 *  requested. */
template <class Call>
auto stoppable(const std::stop_token &stop, Call call) -> decltype(call(0))
{
    const event cancel;

    if (cancel.fd() < 0)
        return event::missing();
    const std::stop_callback tell(stop, [&cancel] { cancel.set(); });
    return call(cancel.fd());
}
#endif

/** A turn that is passed on at the end of this object, unless it is kept: also
 *  where there is no memory for the failure that is to be told. */
class one_turn
{
  public:
    explicit one_turn(turns &of) noexcept : of_(&of)
    {
    }
    one_turn(const one_turn &) = delete;
    one_turn &operator=(const one_turn &) = delete;
    ~one_turn()
    {
        if (of_ != nullptr)
            of_->pass();
    }
    void keep() noexcept
    {
        of_ = nullptr;
    }

  private:
    turns *of_;
};

} /* namespace sqlock::detail */

#endif /* SQLOCK_TURN_HPP */
