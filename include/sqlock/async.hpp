/*
 * sqlock/async.hpp - acquiring and releasing without blocking, and waits that
 * end by a std::stop_token; async.h has the functions of C and their codes
 *
 * A request that is destroyed without get() is given up, and a lock that it got
 * is released.
 */
#ifndef SQLOCK_ASYNC_HPP
#define SQLOCK_ASYNC_HPP

#include <algorithm>
#include <climits>
#include <future>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

#include <sqlock.hpp>
#include <sqlock/async.h>

namespace sqlock
{

namespace detail
{

/** A request that is under way, or has ended. */
class request
{
  public:
    /** Whether get() has not been called. */
    bool valid() const noexcept
    {
        return native_handle() != nullptr;
    }
    /** A descriptor that poll() finds readable once the request has ended, not
     *  to be read or closed; -1 after get(). */
    int fd() const noexcept
    {
        return valid() ? state_->done.fd() : -1;
    }
    bool ready() const noexcept
    {
        const auto now = sqlock_request_status(native_handle());

        return now != SQLOCK_REQUEST_FETCHING &&
               now != SQLOCK_REQUEST_RELEASING;
    }

    /* As those of std::future. */
    void wait() const noexcept
    {
        (void)wait_ms(-1);
    }
    std::future_status wait_for(wait_time time) const
    {
        return wait_ms(time.ms);
    }
    template <class Clock, class Duration>
    std::future_status
    wait_until(std::chrono::time_point<Clock, Duration> until) const
    {
        return wait_ms(until_ms(until));
    }

    sqlock_request *native_handle() const noexcept
    {
        return state_ ? state_->request : nullptr;
    }

  protected:
    /* Ends the request: after this on_lost is not called any more, and a lock
     * that was got is released in the background.  The descriptors stay open
     * until then. */
    struct state {
        event done, cancel;
        std::shared_ptr<lock_state> lock;
        sqlock_request *request = nullptr;

        state() = default;
        state(const state &) = delete;
        state &operator=(const state &) = delete;
        ~state()
        {
            (void)sqlock_request_abandon(request, nullptr);
        }
    };
    struct ender {
        void operator()(state *old) const noexcept
        {
            cleaner::run([old] { delete old; });
        }
    };
    /* Stays after get(), which cancel() may be called beside. */
    std::unique_ptr<state, ender> state_;

    request() : state_(new state)
    {
    }
    /** Wait for the end, and give the lock to @p out. */
    result<void> finish(std::shared_ptr<lock_state> &out)
    {
        if (!valid())
            return empty();
        wait();
        out = std::move(state_->lock);
        return call(sqlock_request_finish,
                    std::exchange(state_->request, nullptr));
    }

  private:
    std::future_status wait_ms(std::int64_t limit) const noexcept
    {
        const auto begun = std::chrono::steady_clock::now();

        while (!ready()) {
            if (limit < 0) {
                (void)state_->done.wait(-1);
                continue;
            }
            const std::int64_t gone =
                std::chrono::duration_cast<milliseconds>(
                    std::chrono::steady_clock::now() - begun)
                    .count();
            if (gone >= limit)
                return std::future_status::timeout;
            (void)state_->done.wait(static_cast<int>(
                std::min<std::int64_t>(limit - gone, INT_MAX)));
        }
        return std::future_status::ready;
    }
};

} /* namespace detail */

/** A lock that is being acquired.  Like a std::future<lease>. */
class [[nodiscard]] acquisition : public detail::request
{
  public:
    /** Wait for the end.  The calling thread has the lease then, as by
     *  registry::acquire().  One that waits here for a lock which it has itself
     *  is not told: before, it could do other things. */
    lease get()
    {
        return get(std::nothrow).value();
    }
    result<lease> get(const std::nothrow_t &)
    {
        std::shared_ptr<detail::lock_state> lock;
        const auto came = finish(lock);

        if (!came)
            return came.error();
        sqlock_set_actor(lock->lock(), detail::this_actor());
        return detail::access::adopt(std::move(lock));
    }

    /** End the wait: get() fails with SQLOCK_ECANCELED, unless the lock was
     *  granted before.  Any thread may call it beside get(). */
    void cancel() const noexcept
    {
        if (state_)
            state_->cancel.set();
    }

    static result<acquisition> begin(const registry &of, std::string_view name,
                                     std::int64_t wait_ms,
                                     acquire_options options)
    {
        acquisition made;
        auto &in = *made.state_;
        auto obtained = detail::lock_state::obtain(detail::access::share(of),
                                                   name, std::move(options));

        if (!obtained)
            return obtained.error();
        in.lock = *std::move(obtained);
        if (in.done.fd() < 0 || in.cancel.fd() < 0)
            return detail::event::missing();
        sqlock_acquire_options how = in.lock->native();
        how.cancel_fd = in.cancel.fd();
        return detail::made(detail::call(sqlock_request_acquire, &in.request,
                                         in.lock->lock(), wait_ms, &how,
                                         in.done.fd()),
                            made);
    }

  private:
    acquisition() = default;
};

/** Begin to take the lock. */
inline result<acquisition> acquire_async(const std::nothrow_t &,
                                         const registry &of,
                                         std::string_view name, wait_time wait,
                                         acquire_options options = {})
{
    return acquisition::begin(of, name, wait.ms, std::move(options));
}
inline acquisition acquire_async(const registry &of, std::string_view name,
                                 wait_time wait, acquire_options options = {})
{
    return acquisition::begin(of, name, wait.ms, std::move(options)).value();
}

/** A lock that is being released.  Like a std::future<void>. */
class [[nodiscard]] releasing : public detail::request
{
  public:
    /** Wait for the end.  SQLOCK_ELOST and SQLOCK_EEXPIRED say that the lease
     *  had ended before the release began. */
    void get()
    {
        get(std::nothrow).value();
    }
    result<void> get(const std::nothrow_t &)
    {
        std::shared_ptr<detail::lock_state> lock;

        return finish(lock);
    }

    static result<releasing> begin(lease &held)
    {
        releasing made;
        auto &in = *made.state_;

        if (held.native_handle() == nullptr)
            return failure(SQLOCK_EOWNER);
        if (!detail::access::is_alone(held))
            return failure(SQLOCK_EINVAL, "the mutex is not the lease's own");
        if (in.done.fd() < 0)
            return detail::event::missing();
        const auto came = detail::call(sqlock_request_release, &in.request,
                                       held.native_handle(), in.done.fd());
        if (!came)
            return came.error();
        in.lock = detail::access::disown(held);
        return made;
    }

  private:
    releasing() = default;
};

/** Begin to release a lease that has its own mutex, as one of
 *  registry::acquire() or acquire_async().  The release is carried out even if
 *  the result is discarded.  After a failure the lease is as before. */
inline result<releasing> release_async(const std::nothrow_t &, lease &&held)
{
    return releasing::begin(held);
}
inline releasing release_async(lease &&held)
{
    return releasing::begin(held).value();
}

/** Get a descriptor that poll() finds readable if the lease ends before it is
 *  released: not to be read or closed, and valid as long as the lease
 *  object. */
inline result<int> lost_fd(const std::nothrow_t &, const lease &held)
{
    int fd = -1;

    if (held.native_handle() == nullptr)
        return failure(SQLOCK_EOWNER);
    return detail::made(detail::call(sqlock_lost_fd, &fd, held.native_handle()),
                        fd);
}
inline int lost_fd(const lease &held)
{
    return lost_fd(std::nothrow, held).value();
}

#if defined(__cpp_lib_jthread)

/** Take the lock; a stop that is requested ends the wait with
 *  SQLOCK_ECANCELED. */
inline result<lease> acquire(const std::nothrow_t &, const registry &of,
                             std::string_view name, wait_time wait,
                             const std::stop_token &stop,
                             acquire_options options = {})
{
    auto obtained = detail::lock_state::obtain(detail::access::share(of), name,
                                               std::move(options));

    if (!obtained)
        return obtained.error();
    sqlock_acquire_options how = (*obtained)->native();
    how.actor = detail::this_actor();
    const auto came = detail::stoppable(stop, [&](int cancel_fd) {
        how.cancel_fd = cancel_fd;
        return detail::call(sqlock_acquire, (*obtained)->lock(), wait.ms, &how);
    });
    if (!came)
        return came.error();
    return detail::access::adopt(*std::move(obtained));
}
inline lease acquire(const registry &of, std::string_view name, wait_time wait,
                     const std::stop_token &stop, acquire_options options = {})
{
    return acquire(std::nothrow, of, name, wait, stop, std::move(options))
        .value();
}

#endif

} /* namespace sqlock */

#endif /* SQLOCK_ASYNC_HPP */
