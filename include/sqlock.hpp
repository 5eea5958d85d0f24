/*
 * sqlock.hpp - sqlock.h for C++17 and later, header only; sqlock-cpp(7) has
 * examples
 *
 * Errors    A function throws sqlock::error; called with std::nothrow first it
 *           gives a sqlock::result, which holds a value or a sqlock::failure.
 *           Under -fno-exceptions what would throw ends the program.
 * Owners    A mutex is one owner, whichever thread locks it.  Until it is
 *           unlocked, no other thread has the lock, and no other mutex of that
 *           name, in this process or another.  A mutex is not recursive: a
 *           thread that waits for what it has locked itself gets
 *           SQLOCK_EDEADLOCK, and so do threads that wait crosswise in the
 *           library, unless it has detached a lease that others will end.
 * Leases    A mutex is held until it is unlocked or its lease is over.  The
 *           lease is renewed in the background but can be lost: ask held() or
 *           check() before each side effect, or set on_lost.
 * Lifetime  Everything here can be moved and not copied; what was moved from
 *           holds nothing, and its functions fail.  Objects may end in any
 *           order: a mutex keeps its registry open, and a lease its mutex.  A
 *           lock that a transaction guards is released when that ends.
 * Callbacks A callback should be short, and must not lock, unlock or renew; an
 *           exception that it throws ends there.  It may own the last reference
 *           to a lease, mutex or registry: another thread ends that.
 * Texts     A std::string_view need not end with NUL; a text with a NUL inside,
 *           also of options, is refused with SQLOCK_EINVAL.
 * The rest  Administration has no C++ form: pass native_handle() to admin.h and
 *           operator.h.
 */
#ifndef SQLOCK_HPP
#define SQLOCK_HPP

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <sqlock.h>
#include <sqlock/admin.h>
#include <sqlock/callback.hpp>
#include <sqlock/event.h>
#include <sqlock/handle.hpp>
#include <sqlock/lease.h>
#include <sqlock/options.hpp>
#include <sqlock/result.hpp>
#include <sqlock/shared.h>

namespace sqlock
{

namespace detail
{
struct access;
}

/* ----------------------------------------------------------------- mutex -- */

class lease;
class registry;

/** A lock by its name, for std::unique_lock, std::lock_guard and the like. */
class mutex
{
  public:
    mutex(const registry &of, std::string_view name,
          acquire_options options = {});
    /** Unlocks the mutex if it is locked, unless a lease is left to do that. */
    ~mutex() = default;
    /** A mutex that was moved from is not held, and cannot be locked. */
    mutex(mutex &&) noexcept = default;
    mutex &operator=(mutex &&) noexcept = default;

    /* The functions of TimedLockable.  They return false if others have the
     * lock for as long, and throw if that cannot be found out. */
    void lock()
    {
        take(SQLOCK_FOREVER).value();
    }
    bool try_lock()
    {
        return got(take(0));
    }
    template <class Rep, class Period>
    bool try_lock_for(std::chrono::duration<Rep, Period> wait)
    {
        return got(take(detail::to_ms(wait)));
    }
    template <class Clock, class Duration>
    bool try_lock_until(std::chrono::time_point<Clock, Duration> until)
    {
        return got(take(detail::until_ms(until)));
    }
    /** Never throws, because destructors call it; unlocked() returns the
     *  result. */
    void unlock() noexcept
    {
        if (state_)
            detail::cleaner::run(
                [of = state_] { (void)of->give_back(false, nullptr); });
    }

    /** Result of the last unlock(), as sqlock_abandon() returns it:
     *  SQLOCK_ELOST if another owner has had the lock, SQLOCK_EEXPIRED if the
     *  lease had run out, 0 if the lock was held until then, or is until a
     *  transaction ends that guards it. */
    int unlocked() const noexcept
    {
        return state_ ? state_->unlocked() : 0;
    }

    /** Lock it, and have it unlocked by the lease's destructor. */
    lease acquire(wait_time wait);
    result<lease> acquire(const std::nothrow_t &, wait_time wait);

    /** End all waits for this mutex that have begun; unless ownership is by
     *  handle, all waits for the lock in this registry.  For this each wait has
     *  a descriptor, without which it fails with SQLOCK_ERESOURCE. */
    void cancel()
    {
        if (state_)
            state_->cancel();
    }

    /** Start the lease anew, with @p ttl, or if that is 0 with its last TTL;
     *  one below 0 is 1 ms. */
    void renew(milliseconds ttl = milliseconds{0})
    {
        renew(std::nothrow, ttl).value();
    }
    result<void> renew(const std::nothrow_t &,
                       milliseconds ttl = milliseconds{0})
    {
        return detail::call(sqlock_renew, native_handle(),
                            detail::to_option(ttl));
    }

    /* Without I/O; see the functions of sqlock.h. */
    bool held() const
    {
        return sqlock_is_held(native_handle());
    }
    milliseconds remaining() const
    {
        return milliseconds{sqlock_remaining_ms(native_handle())};
    }
    std::int64_t token() const
    {
        return sqlock_token(native_handle());
    }
    std::string client_id() const
    {
        char id[SQLOCK_KEY_SIZE] = "";

        sqlock_client_id(native_handle(), id);
        return id;
    }
    std::string name() const
    {
        return state_ ? sqlock_name(native_handle()) : "";
    }
    std::string key() const
    {
        return state_ ? sqlock_key(native_handle()) : "";
    }

    sqlock_lock *native_handle() const
    {
        return state_ ? state_->lock() : nullptr;
    }

  protected:
    static bool got(const result<void> &came)
    {
        if (came)
            return true;
        if (came.error().code != SQLOCK_EBUSY &&
            came.error().code != SQLOCK_ETIMEDOUT)
            detail::raise(came.error());
        return false;
    }

  private:
    friend struct detail::access;

    std::shared_ptr<detail::lock_state> state_;

    result<void> take(std::int64_t wait_ms)
    {
        if (!state_)
            return detail::empty();
        return state_->take(wait_ms);
    }
};

/* ----------------------------------------------------------------- lease -- */

/** A lock that is held, and released with the end of this object. */
class [[nodiscard]] lease
{
  public:
    lease(lease &&other) noexcept = default;
    lease &operator=(lease &&other) noexcept
    {
        if (this != &other) {
            end();
            state_ = std::move(other.state_);
            is_alone_ = other.is_alone_;
        }
        return *this;
    }
    ~lease()
    {
        end();
    }

    /** Whether the lease still lasts; no I/O. */
    bool held() const
    {
        return sqlock_is_held(native_handle());
    }
    explicit operator bool() const
    {
        return held();
    }

    /** Throw SQLOCK_EEXPIRED unless held(): call it before each side effect. */
    void check() const
    {
        if (!held())
            detail::raise(failure(SQLOCK_EEXPIRED));
    }

    milliseconds remaining() const
    {
        return milliseconds{sqlock_remaining_ms(native_handle())};
    }
    std::int64_t token() const
    {
        return sqlock_token(native_handle());
    }

    void renew(milliseconds ttl = milliseconds{0})
    {
        renew(std::nothrow, ttl).value();
    }
    result<void> renew(const std::nothrow_t &,
                       milliseconds ttl = milliseconds{0})
    {
        if (!state_)
            return failure(SQLOCK_EOWNER);
        return detail::call(sqlock_renew, native_handle(),
                            detail::to_option(ttl));
    }

    /** Let readers in: turn the lease into a shared one, with its token, as
     *  sqlock_downgrade() of shared.h does. */
    void downgrade()
    {
        downgrade(std::nothrow).value();
    }
    result<void> downgrade(const std::nothrow_t &)
    {
        if (!state_)
            return failure(SQLOCK_EOWNER);
        return detail::call(sqlock_downgrade, native_handle());
    }

    /** Say that another thread will end it, to which it is moved: this one may
     *  then wait for the lock again, as one that gives out the permits of a
     *  semaphore does. */
    void detach() noexcept
    {
        if (state_)
            state_->detach();
    }

    /** Release it now.  SQLOCK_ELOST and SQLOCK_EEXPIRED say that the lease had
     *  ended before.  After SQLOCK_EINUSE a transaction guards the lock, which
     *  is held as before. */
    void release()
    {
        release(std::nothrow).value();
    }
    result<void> release(const std::nothrow_t &)
    {
        if (!state_)
            return failure(SQLOCK_EOWNER);
        const auto came = detail::call(
            [&](auto *why) { return state_->give_back(true, why); });
        if (came || (came.error().code != SQLOCK_EINUSE &&
                     came.error().code != SQLOCK_EFORK))
            state_.reset();
        return came;
    }

    /** The lock, for functions of sqlock.h; NULL once released. */
    sqlock_lock *native_handle() const
    {
        return state_ ? state_->lock() : nullptr;
    }

  private:
    friend class mutex;
    friend class registry;
    friend struct detail::access;

    std::shared_ptr<detail::lock_state> state_; /* empty: released, or moved */
    bool is_alone_; /* no mutex of the application shares the state */

    lease(std::shared_ptr<detail::lock_state> locked, bool is_alone)
        : state_(std::move(locked)), is_alone_(is_alone)
    {
    }

    void end() noexcept
    {
        if (state_)
            detail::cleaner::run([of = std::move(state_)]() mutable {
                (void)of->give_back(false, nullptr);
                of.reset();
            });
        state_.reset();
    }
};

/* -------------------------------------------------------------- registry -- */

/** A table of locks, opened. */
class registry
{
  public:
    static registry open(std::string_view url,
                         const registry_options &options = {})
    {
        return open(std::nothrow, url, options).value();
    }
    static result<registry> open(const std::nothrow_t &, std::string_view url,
                                 const registry_options &options = {})
    {
        sqlock_options how = options.native();
        closer close;
        sqlock_registry *opened = nullptr;

        if (!options.valid())
            return detail::refused();
        if (options.on_event) {
            close.on_event = std::make_shared<events>();
            close.on_event->call =
                std::make_shared<event_function>(options.on_event);
            how.on_event = told;
            how.event_context = close.on_event.get();
        }
        const auto came = detail::call(sqlock_registry_open, &opened,
                                       detail::c_text(url), &how);
        if (!came)
            return came.error();
        return registry(
            std::shared_ptr<sqlock_registry>(opened, std::move(close)));
    }

    registry(registry &&) noexcept = default;
    registry &operator=(registry &&) noexcept = default;
    registry(const registry &) = delete;
    registry &operator=(const registry &) = delete;

    /** Make a mutex of that name, which is not locked. */
    sqlock::mutex mutex(std::string_view name,
                        acquire_options options = {}) const
    {
        return sqlock::mutex(*this, name, std::move(options));
    }

    /** Lock that name, and have it unlocked by the lease's destructor. */
    lease acquire(std::string_view name, wait_time wait,
                  acquire_options options = {}) const
    {
        return acquire(std::nothrow, name, wait, std::move(options)).value();
    }
    result<lease> acquire(const std::nothrow_t &, std::string_view name,
                          wait_time wait, acquire_options options = {}) const
    {
        auto made =
            detail::lock_state::obtain(handle_, name, std::move(options));
        if (!made)
            return made.error();
        const auto came = (*made)->take(wait.ms);
        if (!came)
            return came.error();
        return lease(*std::move(made), true);
    }

    /** Lock that name if it is free; nullopt if another owner has it. */
    std::optional<lease> try_acquire(std::string_view name,
                                     acquire_options options = {}) const
    {
        auto got =
            acquire(std::nothrow, name, milliseconds{0}, std::move(options));

        if (!got && got.error().code == SQLOCK_EBUSY)
            return std::nullopt;
        return std::move(got).value();
    }

    /** Change the number of a lock's permits, as sqlock_set_permits() of
     *  shared.h does. */
    void set_permits(std::string_view name, unsigned permits) const
    {
        set_permits(std::nothrow, name, permits).value();
    }
    result<void> set_permits(const std::nothrow_t &, std::string_view name,
                             unsigned permits) const
    {
        return detail::call(sqlock_set_permits, native_handle(),
                            detail::c_text(name), permits);
    }

    sqlock_layout layout() const
    {
        return sqlock_registry_layout(handle_.get());
    }
    sqlock_registry *native_handle() const
    {
        return handle_.get();
    }

  private:
    friend struct detail::access;
    using event_function = std::function<void(const sqlock_event &)>;

    struct events {
        std::shared_ptr<event_function> call;
    };
    static void told(void *context, const sqlock_event *event) noexcept
    {
        detail::call_back(static_cast<const events *>(context)->call, *event);
    }

    struct closer {
        std::shared_ptr<events>
            on_event; /* outlives the registry that calls it */

        void operator()(sqlock_registry *opened) const noexcept
        {
            detail::cleaner::run([opened, kept = on_event] {
                (void)sqlock_registry_close(opened, nullptr);
            });
        }
    };
    std::shared_ptr<sqlock_registry> handle_; /* shared with all mutexes */

    explicit registry(std::shared_ptr<sqlock_registry> opened)
        : handle_(std::move(opened))
    {
    }
};

/** Create the lock table where it does not exist yet. */
inline result<void> create_schema(const std::nothrow_t &, std::string_view url,
                                  const registry_options &options = {})
{
    const sqlock_options how = options.native();

    if (!options.valid())
        return detail::refused();
    return detail::call(sqlock_schema_create, detail::c_text(url), &how,
                        SQLOCK_LAYOUT_SQLOCK);
}
inline void create_schema(std::string_view url,
                          const registry_options &options = {})
{
    create_schema(std::nothrow, url, options).value();
}

/* -------------------------------------------- of mutex, out of its class -- */

inline result<lease> mutex::acquire(const std::nothrow_t &, wait_time wait)
{
    const result<void> came = take(wait.ms);

    if (!came)
        return came.error();
    return lease(state_, false);
}

inline lease mutex::acquire(wait_time wait)
{
    return acquire(std::nothrow, wait).value();
}

namespace detail
{

/** Access to private members, for the headers of topics. */
struct access {
    static std::shared_ptr<sqlock_registry> share(const registry &from)
    {
        return from.handle_;
    }
    static const std::shared_ptr<lock_state> &state(const mutex &of)
    {
        return of.state_;
    }
    /* Make a lease of a lock that is held, perhaps by its native handle. */
    static lease adopt(std::shared_ptr<lock_state> locked)
    {
        (void)locked->turn().try_take();
        return lease(std::move(locked), true);
    }
    static bool is_alone(const lease &held)
    {
        return held.is_alone_;
    }
    /* Take the state out of a lease whose release has begun. */
    static std::shared_ptr<lock_state> disown(lease &held)
    {
        held.state_->pass_turn();
        return std::move(held.state_);
    }
};

} /* namespace detail */

inline mutex::mutex(const registry &of, std::string_view name,
                    acquire_options options)
    : state_(detail::lock_state::obtain(detail::access::share(of), name,
                                        std::move(options))
                 .value())
{
}

} /* namespace sqlock */

#endif /* SQLOCK_HPP */
