/*
 * sqlock/async.hpp - acquiring and releasing without blocking, and waits that
 * end on request
 *
 *     auto coming = sqlock::acquire_async(registry, "invoices", 30s);
 *
 *     poll() on coming.fd(), or coming.wait_for(1s) ...
 *     auto lease = coming.get();
 *
 *     auto lease = sqlock::acquire(registry, "invoices", 30s, stop_token);
 *
 * async.h documents the functions of C that these call, and their codes.  A
 * request that is destroyed without get() is given up, and a lock that it got
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
#if defined(__has_include)
#if __cplusplus > 201703L && __has_include(<stop_token>)
#include <stop_token>
#endif
#endif

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <sqlock.hpp>
#include <sqlock/async.h>

namespace sqlock
{

namespace detail
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
    event(event &&other) noexcept : fd_(std::exchange(other.fd_, -1))
    {
    }
    event &operator=(event &&other) noexcept
    {
        std::swap(fd_, other.fd_);
        return *this;
    }
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

/** A request that is under way, or has ended. */
class request
{
  public:
    request(request &&other) noexcept
        : done_(std::move(other.done_)), cancel_(std::move(other.cancel_)),
          state_(std::move(other.state_)),
          request_(std::exchange(other.request_, nullptr))
    {
    }
    request &operator=(request &&other) noexcept
    {
        if (this != &other) {
            end();
            done_ = std::move(other.done_);
            cancel_ = std::move(other.cancel_);
            state_ = std::move(other.state_);
            request_ = std::exchange(other.request_, nullptr);
        }
        return *this;
    }
    ~request()
    {
        end();
    }

    /** Whether get() has not been called. */
    bool valid() const noexcept
    {
        return request_ != nullptr;
    }
    /** A descriptor that poll() finds readable once the request has ended, not
     *  to be read or closed; -1 after get(). */
    int fd() const noexcept
    {
        return valid() ? done_.fd() : -1;
    }
    bool ready() const noexcept
    {
        const sqlock_request_state state = sqlock_request_status(request_);

        return state != SQLOCK_REQUEST_FETCHING &&
               state != SQLOCK_REQUEST_RELEASING;
    }

    /* As those of std::future. */
    void wait() const noexcept
    {
        while (!ready())
            (void)done_.wait(-1);
    }
    template <class Rep, class Period>
    std::future_status wait_for(std::chrono::duration<Rep, Period> time) const
    {
        return wait_ms(to_ms(time));
    }
    template <class Clock, class Duration>
    std::future_status
    wait_until(std::chrono::time_point<Clock, Duration> until) const
    {
        return wait_ms(until_ms(until));
    }

    sqlock_request *native_handle() const noexcept
    {
        return request_;
    }

  protected:
    event done_;
    event cancel_;
    std::shared_ptr<lock_state> state_;
    sqlock_request *request_ = nullptr;

    request() = default;

    int finish(sqlock_error &why) noexcept
    {
        wait();
        return sqlock_request_finish(std::exchange(request_, nullptr), &why);
    }

  private:
    std::future_status wait_ms(std::int64_t limit) const noexcept
    {
        const auto begun = std::chrono::steady_clock::now();

        while (!ready()) {
            if (limit < 0) {
                (void)done_.wait(-1);
                continue;
            }
            const std::int64_t gone =
                std::chrono::duration_cast<milliseconds>(
                    std::chrono::steady_clock::now() - begun)
                    .count();
            if (gone >= limit)
                return std::future_status::timeout;
            (void)done_.wait(static_cast<int>(
                std::min<std::int64_t>(limit - gone, INT_MAX)));
        }
        return std::future_status::ready;
    }
    /* After this on_lost is not called any more, and a lock that was got is
     * released in the background.  The descriptors stay open until then. */
    void end() noexcept
    {
        struct left {
            event done, cancel;
            std::shared_ptr<lock_state> state;
            sqlock_request *request;

            ~left()
            {
                (void)sqlock_request_abandon(request, nullptr);
            }
        };
        if (request_ == nullptr)
            return;
        if (callbacks() == 0) {
            (void)sqlock_request_abandon(std::exchange(request_, nullptr),
                                         nullptr);
            state_.reset();
            return;
        }
        auto *const all = new (std::nothrow)
            left{std::move(done_), std::move(cancel_), std::move(state_),
                 std::exchange(request_, nullptr)};
        if (all != nullptr)
            cleaner::run([all] { delete all; });
    }
};

} /* namespace detail */

/** A lock that is being acquired.  Like a std::future<lease>. */
class [[nodiscard]] acquisition : public detail::request
{
  public:
    /** Wait for the end.  Where threads own locks, the calling thread owns the
     *  lease. */
    lease get()
    {
        return get(std::nothrow).value();
    }
    result<lease> get(const std::nothrow_t &)
    {
        sqlock_error why = {};

        if (!valid())
            return detail::empty();
        const int code = finish(why);
        const auto state = std::move(state_);
        if (code != 0)
            return detail::result_of(code, why).error();
        return detail::access::adopt(state);
    }

    /** End the wait: get() fails with SQLOCK_ECANCELED, unless the lock was
     *  granted before.  Any thread may call it beside get(). */
    void cancel() const noexcept
    {
        cancel_.set();
    }

    static result<acquisition> begin(const registry &of, std::string_view name,
                                     std::int64_t wait_ms,
                                     acquire_options options)
    {
        acquisition made;
        sqlock_error why = {};

        auto obtained = detail::lock_state::obtain(detail::access::share(of),
                                                   name, std::move(options));
        if (!obtained)
            return obtained.error();
        made.state_ = *std::move(obtained);
        if (made.done_.fd() < 0 || made.cancel_.fd() < 0)
            return detail::event::missing();
        sqlock_acquire_options how = made.state_->native();
        how.cancel_fd = made.cancel_.fd();
        const int code =
            sqlock_request_acquire(&made.request_, made.state_->lock(), wait_ms,
                                   &how, made.done_.fd(), &why);
        if (code != 0)
            return detail::result_of(code, why).error();
        return made;
    }

  private:
    acquisition() = default;
};

/** Begin to take the lock. */
template <class Rep, class Period>
result<acquisition> acquire_async(const std::nothrow_t &, const registry &of,
                                  std::string_view name,
                                  std::chrono::duration<Rep, Period> wait,
                                  acquire_options options = {})
{
    return acquisition::begin(of, name, detail::to_ms(wait),
                              std::move(options));
}
template <class Rep, class Period>
acquisition acquire_async(const registry &of, std::string_view name,
                          std::chrono::duration<Rep, Period> wait,
                          acquire_options options = {})
{
    return acquisition::begin(of, name, detail::to_ms(wait), std::move(options))
        .value();
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
        sqlock_error why = {};

        if (!valid())
            return detail::empty();
        const int code = finish(why);
        state_.reset();
        return detail::result_of(code, why);
    }

    static result<releasing> begin(lease &held)
    {
        releasing made;
        sqlock_error why = {};

        if (held.native_handle() == nullptr)
            return failure(SQLOCK_EOWNER);
        if (!detail::access::is_alone(held))
            return failure(SQLOCK_EINVAL, "the mutex is not the lease's own");
        if (made.done_.fd() < 0)
            return detail::event::missing();
        const int code = sqlock_request_release(
            &made.request_, held.native_handle(), made.done_.fd(), &why);
        if (code != 0)
            return detail::result_of(code, why).error();
        made.state_ = detail::access::disown(held);
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
    sqlock_error why = {};
    int fd = -1;

    if (held.native_handle() == nullptr)
        return failure(SQLOCK_EOWNER);
    const int code = sqlock_lost_fd(&fd, held.native_handle(), &why);
    if (code != 0)
        return detail::result_of(code, why).error();
    return fd;
}
inline int lost_fd(const lease &held)
{
    return lost_fd(std::nothrow, held).value();
}

#if defined(__cpp_lib_jthread)

/** Take the lock; a stop that is requested ends the wait with
 *  SQLOCK_ECANCELED. */
template <class Rep, class Period>
result<lease> acquire(const std::nothrow_t &, const registry &of,
                      std::string_view name,
                      std::chrono::duration<Rep, Period> wait,
                      const std::stop_token &stop, acquire_options options = {})
{
    const detail::event cancel;
    sqlock_error why = {};

    auto obtained = detail::lock_state::obtain(detail::access::share(of), name,
                                               std::move(options));
    if (!obtained)
        return obtained.error();
    if (cancel.fd() < 0)
        return detail::event::missing();
    sqlock_acquire_options how = (*obtained)->native();
    how.cancel_fd = cancel.fd();
    const std::stop_callback tell(stop, [&cancel] { cancel.set(); });
    const int code =
        sqlock_acquire((*obtained)->lock(), detail::to_ms(wait), &how, &why);
    if (code != 0)
        return detail::result_of(code, why).error();
    return detail::access::adopt(*std::move(obtained));
}
template <class Rep, class Period>
lease acquire(const registry &of, std::string_view name,
              std::chrono::duration<Rep, Period> wait,
              const std::stop_token &stop, acquire_options options = {})
{
    return acquire(std::nothrow, of, name, wait, stop, std::move(options))
        .value();
}

#endif

} /* namespace sqlock */

#endif /* SQLOCK_ASYNC_HPP */
