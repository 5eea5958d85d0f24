/*
 * sqlock/shared.hpp - locks that several owners have at a time: a mutex for
 * std::shared_lock, and a semaphore; shared.h has the rules, and the functions
 * of C and their codes
 *
 * Readers and writers, in this process and in others, wait in one queue.  A
 * permit of a semaphore is a lease: only the lease gives it back, where
 * std::counting_semaphore lets anybody release, and a holder that dies keeps it
 * no longer than its TTL.
 */
#ifndef SQLOCK_SHARED_HPP
#define SQLOCK_SHARED_HPP

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <sqlock.hpp>

namespace sqlock
{

namespace detail
{

/** Makes shares of one lock, each an owner of its own, and ends their waits. */
class sharing
{
  public:
    using state = std::shared_ptr<lock_state>;

    /* Obtain the lock, so that a wrong name is refused now. */
    sharing(const registry &of, std::string_view name, acquire_options how)
        : owner_(access::share(of)), name_(name), options_(std::move(how))
    {
        options_.mode = SQLOCK_SHARED;
        (void)lock_state::obtain(owner_, name_, options_).value();
    }
    sharing(const sharing &) = delete;
    sharing &operator=(const sharing &) = delete;

    result<state> take(std::int64_t wait_ms, unsigned weight = 0)
    {
        acquire_options how = options_;

        how.weight = weight;
        auto made = lock_state::obtain(owner_, name_, std::move(how));
        if (!made)
            return made;
        one_wait by(wait_ms, (*made)->lock());
        const all_waits::entry noted(waits_, by);
        const auto came = (*made)->take(by, wait_ms);
        if (!came)
            return came.error();
        return made;
    }
    result<lease> acquire(std::int64_t wait_ms, unsigned weight = 0)
    {
        auto taken = take(wait_ms, weight);

        if (!taken)
            return taken.error();
        return access::adopt(*std::move(taken));
    }
    void cancel()
    {
        waits_.cancel();
    }

  private:
    std::shared_ptr<sqlock_registry> owner_;
    std::string name_;
    acquire_options options_;
    all_waits waits_;
};

/** Shares of one lock that threads have, one each. */
class readers
{
  public:
    using state = sharing::state;

    readers(const registry &of, std::string_view name, acquire_options how)
        : shares_(of, name, std::move(how))
    {
    }

    sharing &shares() noexcept
    {
        return shares_;
    }
    result<void> take(std::int64_t wait_ms)
    {
        if (std::lock_guard<std::mutex> hold(inner_); held() != all_.end())
            return failure(SQLOCK_EINUSE, "this thread has a share already");
        auto taken = shares_.take(wait_ms);
        if (!taken)
            return taken.error();
        const std::lock_guard<std::mutex> hold(inner_);
        all_[std::this_thread::get_id()] = {*std::move(taken), true};
        return {};
    }
    void give_back() noexcept
    {
        state mine;

        if (std::lock_guard<std::mutex> hold(inner_); held() != all_.end()) {
            auto &own = held()->second;
            own.is_held = false;
            mine = own.last;
        }
        if (!mine)
            return;
        cleaner::run([mine] { (void)mine->give_back(false, nullptr); });
        if (callbacks() == 0 && mine->unlocked() == 0)
            forget();
    }
    /* State of the calling thread's last share, which is held, or was not given
     * back as it should; NULL: there is none. */
    state last()
    {
        const std::lock_guard<std::mutex> hold(inner_);
        const auto own = all_.find(std::this_thread::get_id());

        return own != all_.end() ? own->second.last : nullptr;
    }

  private:
    struct share {
        state last;
        bool is_held = false;
    };
    using shares_by_thread = std::map<std::thread::id, share>;
    sharing shares_;
    std::mutex inner_; /* guards the following */
    shares_by_thread all_;

    /* The share that the calling thread holds; all_.end(): it has none. */
    shares_by_thread::iterator held()
    {
        const auto own = all_.find(std::this_thread::get_id());

        return own != all_.end() && own->second.is_held ? own : all_.end();
    }
    void forget() noexcept
    {
        const std::lock_guard<std::mutex> hold(inner_);

        all_.erase(std::this_thread::get_id());
    }
};

} /* namespace detail */

/* ---------------------------------------------------------- shared_mutex -- */

/** A mutex that readers share, with the functions of std::shared_timed_mutex:
 *  for std::shared_lock, and for all that takes a mutex.
 *
 *  A thread that shares it has a lease of its own, once, and gives it back
 *  itself: as with std's, a std::shared_lock that owns it stays in its thread,
 *  and the thread does not lock the mutex alone meanwhile.  A lease of
 *  acquire_shared() may go to another thread. */
class shared_mutex : public mutex
{
  public:
    /** Make one with options for both modes, without permits. */
    shared_mutex(const registry &of, std::string_view name,
                 acquire_options how = {})
        : mutex(of, name, exclusive(how)),
          readers_(std::make_unique<detail::readers>(of, name, std::move(how)))
    {
    }

    /* As the functions of mutex. */
    void lock_shared()
    {
        take_shared(SQLOCK_FOREVER).value();
    }
    bool try_lock_shared()
    {
        return got(take_shared(0));
    }
    template <class Rep, class Period>
    bool try_lock_shared_for(std::chrono::duration<Rep, Period> wait)
    {
        return got(take_shared(detail::to_ms(wait)));
    }
    template <class Clock, class Duration>
    bool try_lock_shared_until(std::chrono::time_point<Clock, Duration> until)
    {
        return got(take_shared(detail::until_ms(until)));
    }
    /** Give the calling thread's share back. */
    void unlock_shared() noexcept
    {
        if (readers_)
            readers_->give_back();
    }
    /** Result of the calling thread's last unlock_shared(), as unlocked(). */
    int unlocked_shared() const
    {
        const auto mine = share();

        return mine ? mine->unlocked() : 0;
    }

    /** Share it, and have that ended by the lease's destructor.  A thread may
     *  have several such leases. */
    lease acquire_shared(wait_time wait)
    {
        return acquire_shared(std::nothrow, wait).value();
    }
    result<lease> acquire_shared(const std::nothrow_t &, wait_time wait)
    {
        if (!readers_)
            return detail::empty();
        return readers_->shares().acquire(wait.ms);
    }

    /** End all waits for this mutex, in both modes, as mutex::cancel(). */
    void cancel()
    {
        mutex::cancel();
        if (readers_)
            readers_->shares().cancel();
    }

    /* Of the calling thread's share, without I/O. */
    bool held_shared() const
    {
        const auto mine = share();

        return mine && sqlock_is_held(mine->lock());
    }
    milliseconds remaining_shared() const
    {
        const auto mine = share();

        return milliseconds{mine ? sqlock_remaining_ms(mine->lock()) : 0};
    }

  private:
    std::unique_ptr<detail::readers> readers_;

    static acquire_options exclusive(acquire_options options)
    {
        options.mode = SQLOCK_EXCLUSIVE;
        return options;
    }
    detail::sharing::state share() const
    {
        return readers_ ? readers_->last() : nullptr;
    }
    result<void> take_shared(std::int64_t wait_ms)
    {
        if (!readers_)
            return detail::empty();
        return readers_->take(wait_ms);
    }
};

/* ------------------------------------------------------------- semaphore -- */

/** So many permits of a lock, in the shape of std::counting_semaphore, but for
 *  release(): a lease has the permits, and gives them back.  Several threads
 *  may use the object at a time, and each call makes an owner of its own.
 *
 *  The lock's row has the number of permits, which registry::set_permits()
 *  changes.  @p permits is for a row that has none; with 0 such a lock has no
 *  limit. */
class semaphore
{
  public:
    semaphore(const registry &of, std::string_view name, unsigned permits = 0,
              acquire_options how = {})
        : shares_(std::make_unique<detail::sharing>(
              of, name, with(std::move(how), permits)))
    {
    }

    /* Take @p weight permits, 1 or more, all or none.  They give nullopt if
     * others have too many for as long, and throw if that cannot be found
     * out. */
    lease acquire(unsigned weight = 1)
    {
        return acquire(forever, weight);
    }
    std::optional<lease> try_acquire(unsigned weight = 1)
    {
        return got(take(0, weight));
    }
    template <class Rep, class Period>
    std::optional<lease>
    try_acquire_for(std::chrono::duration<Rep, Period> wait,
                    unsigned weight = 1)
    {
        return got(take(detail::to_ms(wait), weight));
    }
    template <class Clock, class Duration>
    std::optional<lease>
    try_acquire_until(std::chrono::time_point<Clock, Duration> until,
                      unsigned weight = 1)
    {
        return got(take(detail::until_ms(until), weight));
    }

    /** As registry::acquire(). */
    lease acquire(wait_time wait, unsigned weight = 1)
    {
        return acquire(std::nothrow, wait, weight).value();
    }
    result<lease> acquire(const std::nothrow_t &, wait_time wait,
                          unsigned weight = 1)
    {
        return take(wait.ms, weight);
    }

    /** End all waits for this semaphore. */
    void cancel()
    {
        if (shares_)
            shares_->cancel();
    }

  private:
    std::unique_ptr<detail::sharing> shares_;

    static acquire_options with(acquire_options options, unsigned permits)
    {
        options.permits = permits;
        return options;
    }
    static std::optional<lease> got(result<lease> came)
    {
        if (!came && (came.error().code == SQLOCK_EBUSY ||
                      came.error().code == SQLOCK_ETIMEDOUT))
            return std::nullopt;
        return std::move(came).value();
    }
    result<lease> take(std::int64_t wait_ms, unsigned weight)
    {
        if (!shares_)
            return detail::empty();
        if (weight == 0) /* to C, one */
            return failure(SQLOCK_EINVAL, "0 permits to take");
        return shares_->acquire(wait_ms, weight);
    }
};

} /* namespace sqlock */

#endif /* SQLOCK_SHARED_HPP */
