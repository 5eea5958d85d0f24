/*
 * sqlock.hpp - sqlock.h for C++17 and later, header only
 *
 *     auto registry = sqlock::registry::open("postgresql://...");
 *     sqlock::mutex invoices(registry, "invoices");
 *
 *     std::unique_lock held(invoices, 5s);         as with any timed mutex
 *     std::scoped_lock both(invoices, customers);  in any order
 *     auto lease = registry.acquire("invoices", 5s);
 *     lease.token(), lease.remaining(), lease.check() ...
 *
 * Errors    A function throws sqlock::error; called with std::nothrow first it
 *           gives a sqlock::result, which holds a value or a sqlock::failure,
 *           as std::expected does.  Under -fno-exceptions the functions that
 *           would throw end the program instead.  New codes may appear: treat
 *           unknown ones as "not held".
 * Owners    A mutex is one owner, whichever thread locks it.  Until it is
 *           unlocked, no other thread has the lock, and no other mutex of that
 *           name, in this process or another.  A mutex is not recursive.
 * Leases    A mutex is held until it is unlocked or its lease is over.  The
 *           lease is renewed in the background (acquire_options::auto_renew)
 *           but can be lost: ask held() or check() before each side effect, or
 *           set on_lost.  See sqlock.h for what is promised.
 * Time      Durations are of std::chrono and rounded up to milliseconds.
 * Lifetime  Everything here can be moved and not copied; what was moved from
 *           holds nothing, and its functions fail.  A mutex keeps its registry
 *           open.  A lease of registry::acquire() has a mutex of its own; a
 *           lease of mutex::acquire() must not outlive that mutex.
 * Texts     A std::string_view need not end with NUL; one with a NUL inside is
 *           refused with SQLOCK_EINVAL.
 * Topics    Each header in sqlock/ adds one: many.hpp, several locks at once;
 *           async.hpp, requests and std::stop_token; tx.hpp, transactions that
 *           a lease guards; stock.hpp; once.hpp; stats.hpp.
 * The rest  Administration has no C++ form: pass native_handle() to admin.h.
 */
#ifndef SQLOCK_HPP
#define SQLOCK_HPP

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <sqlock.h>
#include <sqlock/admin.h>
#include <sqlock/event.h>
#include <sqlock/lease.h>
#include <sqlock/result.hpp>

namespace sqlock
{

/* The owner of a held lock, unless registry_options say otherwise. */
inline constexpr sqlock_ownership default_ownership = SQLOCK_OWNED_BY_HANDLE;

namespace detail
{
struct access;
}

/* --------------------------------------------------------------- options -- */

/** As sqlock_options; zero and "" mean the default. */
struct registry_options {
    std::string region;
    std::string table_prefix;
    std::string holder_note;
    milliseconds ttl{0};
    milliseconds margin{0};
    milliseconds connect_timeout{0};
    milliseconds statement_timeout{0};
    milliseconds poll{0};
    unsigned pool_size = 0;
    sqlock_ownership ownership = default_ownership;
    /** called by any thread; the event's texts are valid during the call */
    std::function<void(const sqlock_event &)> on_event;
    sqlock_level event_level = SQLOCK_LEVEL_INFO;

    /** Return these options for C, except on_event, valid as long as this
     *  object: for functions of sqlock.h, and to add options that are not
     *  above. */
    sqlock_options native() const
    {
        sqlock_options out = SQLOCK_OPTIONS_INIT;

        out.region = region.empty() ? nullptr : region.c_str();
        out.table_prefix =
            table_prefix.empty() ? nullptr : table_prefix.c_str();
        out.holder_note = holder_note.empty() ? nullptr : holder_note.c_str();
        out.ttl_ms = detail::to_option(ttl);
        out.margin_ms = detail::to_option(margin);
        out.connect_timeout_ms = detail::to_option(connect_timeout);
        out.statement_timeout_ms = detail::to_option(statement_timeout);
        out.poll_ms = detail::to_option(poll);
        out.pool_size = pool_size;
        out.ownership = ownership;
        out.event_level = event_level;
        return out;
    }
};

/** As sqlock_acquire_options, but with auto_renew by default. */
struct acquire_options {
    milliseconds ttl{0};
    milliseconds max_hold{0}; /* with auto_renew; 0: no limit */
    bool auto_renew = true;
    bool fenced = false;
    bool fail_fast = false;
    /* Called once, with SQLOCK_ELOST or SQLOCK_EEXPIRED, by a thread of the
     * library: it should be short, must not throw, and must not lock, unlock or
     * renew. */
    std::function<void(int code)> on_lost;

    /** Return these options for C, except on_lost. */
    sqlock_acquire_options native() const
    {
        sqlock_acquire_options out = SQLOCK_ACQUIRE_INIT;

        out.ttl_ms = detail::to_option(ttl);
        out.max_hold_ms = detail::to_option(max_hold);
        out.auto_renew = auto_renew;
        out.fenced = fenced;
        out.fail_fast = fail_fast;
        return out;
    }
};

/* ----------------------------------------------------------------- mutex -- */

class lease;
class registry;

/** A lock by its name, for std::unique_lock, std::scoped_lock and the like. */
class mutex
{
  public:
    mutex(const registry &of, std::string_view name,
          acquire_options options = {});
    /** Unlocks the mutex if it is locked. */
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
        return try_lock_for(until - Clock::now());
    }
    /** Never throws, because destructors call it; unlocked() returns the
     *  result. */
    void unlock() noexcept
    {
        give_back();
    }

    /** Result of the last unlock(), as sqlock_release() returns it:
     *  SQLOCK_ELOST if another owner has had the lock, SQLOCK_EEXPIRED if the
     *  lease had run out, 0 if the lock was held until then. */
    int unlocked() const noexcept
    {
        return state_ ? state_->given_back.load() : 0;
    }

    /** Lock it, and have it unlocked by the lease's destructor. */
    template <class Rep, class Period>
    lease acquire(std::chrono::duration<Rep, Period> wait);
    template <class Rep, class Period>
    result<lease> acquire(const std::nothrow_t &,
                          std::chrono::duration<Rep, Period> wait);

    /** End all waits for this mutex; unless ownership is by handle, all waits
     *  for the lock in this registry. */
    void cancel()
    {
        if (!state_)
            return;
        {
            std::lock_guard<std::mutex> hold(state_->inner);
            state_->cancelled++;
        }
        state_->turn.notify_all();
        (void)sqlock_cancel(handle(), nullptr);
    }

    /** Start the lease anew, with @p ttl, or if that is 0 with its last TTL. */
    void renew(milliseconds ttl = milliseconds{0})
    {
        renew(std::nothrow, ttl).value();
    }
    result<void> renew(const std::nothrow_t &,
                       milliseconds ttl = milliseconds{0})
    {
        sqlock_error why = {};

        if (!state_)
            return detail::empty();
        int code = sqlock_renew(handle(), detail::to_option(ttl), &why);

        return detail::result_of(code, why);
    }

    /* Without I/O; see the functions of sqlock.h. */
    bool held() const
    {
        return state_ && sqlock_is_held(handle());
    }
    milliseconds remaining() const
    {
        return milliseconds{state_ ? sqlock_remaining_ms(handle()) : 0};
    }
    std::int64_t token() const
    {
        return state_ ? sqlock_token(handle()) : 0;
    }
    std::string client_id() const
    {
        char id[SQLOCK_KEY_SIZE] = "";

        if (state_)
            sqlock_client_id(handle(), id);
        return id;
    }
    std::string name() const
    {
        return state_ ? sqlock_name(handle()) : "";
    }
    std::string key() const
    {
        return state_ ? sqlock_key(handle()) : "";
    }

    sqlock_lock *native_handle() const
    {
        return handle();
    }

  private:
    friend class registry;
    friend struct detail::access;

    /* Stays at one address when the mutex is moved, since the library passes
     * that address to lost(). */
    struct state {
        std::shared_ptr<sqlock_registry> owner; /* open as long as we are */
        sqlock_lock *lock = nullptr;
        acquire_options options;
        std::mutex inner; /* guards taken and cancelled */
        std::condition_variable turn;
        bool taken = false;
        unsigned cancelled = 0;
        std::atomic<int> given_back{0};

        state() = default;
        state(const state &) = delete;
        state &operator=(const state &) = delete;
    };
    /* The lock may stay held: a transaction guards it, another thread owns it,
     * or its owner has acquired it elsewhere, too.  Then the state, which
     * on_lost uses, is never freed, and closing the registry ends the lease. */
    struct disposer {
        void operator()(state *old) const noexcept
        {
            if (old->taken)
                old->given_back = sqlock_release(old->lock, nullptr);
            const bool stays_held = old->given_back == SQLOCK_EINUSE ||
                                    sqlock_hold_count(old->lock) > 0;
            if (sqlock_drop(old->lock, nullptr) == SQLOCK_EINUSE || stays_held)
                old->owner.reset();
            else
                delete old;
        }
    };
    using holder = std::unique_ptr<state, disposer>;
    holder state_;

    explicit mutex(holder made) : state_(std::move(made))
    {
    }
    static result<mutex> obtain(const registry &of, std::string_view name,
                                acquire_options options);

    sqlock_lock *handle() const
    {
        return state_ ? state_->lock : nullptr;
    }

    static bool got(const result<void> &came)
    {
        if (came)
            return true;
        if (came.error().code != SQLOCK_EBUSY &&
            came.error().code != SQLOCK_ETIMEDOUT)
            detail::raise(came.error());
        return false;
    }

    static void lost(void *context, sqlock_lock *, int code)
    {
        static_cast<const state *>(context)->options.on_lost(code);
    }

    sqlock_acquire_options native() const
    {
        sqlock_acquire_options how = state_->options.native();

        if (state_->options.on_lost) {
            how.on_lost = lost;
            how.lost_context = state_.get();
        }
        return how;
    }

    /* Wait for the other threads that share this mutex, then take the lock. */
    result<void> take(std::int64_t wait_ms)
    {
        if (!state_)
            return detail::empty();
        const auto begun = std::chrono::steady_clock::now();
        result<void> came = await_turn(wait_ms);

        if (!came)
            return came;
        if (wait_ms > 0) {
            const std::int64_t gone =
                std::chrono::duration_cast<milliseconds>(
                    std::chrono::steady_clock::now() - begun)
                    .count();
            wait_ms = gone < wait_ms ? wait_ms - gone : 0;
        }
        came = claim(wait_ms);
        if (!came)
            pass_turn();
        return came;
    }

    result<void> claim(std::int64_t wait_ms)
    {
        const sqlock_acquire_options how = native();
        sqlock_error why = {};

        int code = sqlock_acquire(handle(), wait_ms, &how, &why);
        return detail::result_of(code, why);
    }

    result<void> await_turn(std::int64_t wait_ms)
    {
        std::unique_lock<std::mutex> hold(state_->inner);
        const unsigned before = state_->cancelled;
        const auto ours = [&] {
            return !state_->taken || state_->cancelled != before;
        };

        if (wait_ms < 0)
            state_->turn.wait(hold, ours);
        else if (!state_->turn.wait_for(hold, milliseconds(wait_ms), ours))
            return failure(wait_ms == 0 ? SQLOCK_EBUSY : SQLOCK_ETIMEDOUT);
        if (state_->taken)
            return failure(SQLOCK_ECANCELED);
        state_->taken = true;
        return {};
    }

    void pass_turn() noexcept
    {
        {
            std::lock_guard<std::mutex> hold(state_->inner);
            state_->taken = false;
        }
        state_->turn.notify_one();
    }

    friend class lease;
    int give_back(sqlock_error *why = nullptr) noexcept
    {
        if (!state_)
            return SQLOCK_EINVAL;
        const int code = sqlock_release(handle(), why);

        state_->given_back = code;
        pass_turn();
        return code;
    }
};

/* ----------------------------------------------------------------- lease -- */

/** A mutex that is locked, and unlocked with the end of this object. */
class [[nodiscard]] lease
{
  public:
    lease(lease &&other) noexcept
        : own_(std::move(other.own_)),
          mutex_(std::exchange(other.mutex_, nullptr))
    {
    }
    lease &operator=(lease &&other) noexcept
    {
        if (this != &other) {
            end();
            own_ = std::move(other.own_);
            mutex_ = std::exchange(other.mutex_, nullptr);
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
        return mutex_ != nullptr && mutex_->held();
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
        return mutex_ != nullptr ? mutex_->remaining() : milliseconds{0};
    }
    std::int64_t token() const
    {
        return mutex_ != nullptr ? mutex_->token() : 0;
    }

    void renew(milliseconds ttl = milliseconds{0})
    {
        renew(std::nothrow, ttl).value();
    }
    result<void> renew(const std::nothrow_t &,
                       milliseconds ttl = milliseconds{0})
    {
        if (mutex_ == nullptr)
            return failure(SQLOCK_EOWNER);
        return mutex_->renew(std::nothrow, ttl);
    }

    /** Unlock the mutex now.  SQLOCK_ELOST and SQLOCK_EEXPIRED say that the
     *  lease had ended before.  After SQLOCK_EINUSE a transaction guards the
     *  lock, which is held as before. */
    void release()
    {
        release(std::nothrow).value();
    }
    result<void> release(const std::nothrow_t &)
    {
        sqlock_error why = {};

        if (mutex_ == nullptr)
            return failure(SQLOCK_EOWNER);
        const int code = mutex_->give_back(&why);
        if (code != SQLOCK_EINUSE && code != SQLOCK_EFORK) {
            mutex_ = nullptr;
            own_.reset();
        }
        return detail::result_of(code, why);
    }

    /** The lock, for functions of sqlock.h; NULL once released. */
    sqlock_lock *native_handle() const
    {
        return mutex_ != nullptr ? mutex_->native_handle() : nullptr;
    }

  private:
    friend class mutex;
    friend class registry;
    friend struct detail::access;

    std::unique_ptr<mutex> own_; /* if the lease has made its mutex */
    mutex *mutex_;               /* NULL: released, or moved from */

    explicit lease(mutex *locked) : mutex_(locked)
    {
    }

    void end() noexcept
    {
        if (mutex_ != nullptr)
            mutex_->unlock();
        mutex_ = nullptr;
        own_.reset();
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
        const detail::c_text where(url);
        sqlock_options how = options.native();
        closer close;
        sqlock_registry *opened = nullptr;
        sqlock_error why = {};

        if (!where.valid())
            return detail::c_text::refused();
        if (options.on_event) {
            close.on_event = std::make_shared<event_function>(options.on_event);
            how.on_event = [](void *context, const sqlock_event *event) {
                (*static_cast<event_function *>(context))(*event);
            };
            how.event_context = close.on_event.get();
        }
        int code = sqlock_registry_open(&opened, where.get(), &how, &why);
        if (code != 0)
            return detail::result_of(code, why).error();
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
    template <class Rep, class Period>
    lease acquire(std::string_view name,
                  std::chrono::duration<Rep, Period> wait,
                  acquire_options options = {}) const
    {
        return acquire(std::nothrow, name, wait, std::move(options)).value();
    }
    template <class Rep, class Period>
    result<lease> acquire(const std::nothrow_t &, std::string_view name,
                          std::chrono::duration<Rep, Period> wait,
                          acquire_options options = {}) const
    {
        auto made = sqlock::mutex::obtain(*this, name, std::move(options));
        if (!made)
            return made.error();
        auto own = std::make_unique<sqlock::mutex>(*std::move(made));
        auto got = own->acquire(std::nothrow, wait);
        if (got)
            got->own_ = std::move(own);
        return got;
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

    sqlock_layout layout() const
    {
        return sqlock_registry_layout(handle_.get());
    }
    sqlock_registry *native_handle() const
    {
        return handle_.get();
    }

  private:
    friend class sqlock::mutex;
    friend struct detail::access;
    using event_function = std::function<void(const sqlock_event &)>;

    struct closer {
        std::shared_ptr<event_function>
            on_event; /* outlives the registry that calls it */

        void operator()(sqlock_registry *opened) const noexcept
        {
            (void)sqlock_registry_close(opened, nullptr);
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
    return detail::create_tables(
        url, options.native(), [](auto *where, auto *how, auto *why) {
            return sqlock_schema_create(where, how, SQLOCK_LAYOUT_SQLOCK, why);
        });
}
inline void create_schema(std::string_view url,
                          const registry_options &options = {})
{
    create_schema(std::nothrow, url, options).value();
}

/* -------------------------------------------- of mutex, out of its class -- */

inline result<mutex> mutex::obtain(const registry &of, std::string_view name,
                                   acquire_options options)
{
    const detail::c_text text(name);
    holder made(new state());
    sqlock_error why = {};

    if (!of.handle_)
        return detail::empty();
    if (!text.valid())
        return detail::c_text::refused();
    made->owner = of.handle_;
    made->options = std::move(options);
    int code = sqlock_obtain(&made->lock, of.handle_.get(), text.get(), &why);
    if (code != 0)
        return detail::result_of(code, why).error();
    return mutex(std::move(made));
}

inline mutex::mutex(const registry &of, std::string_view name,
                    acquire_options options)
    : mutex(obtain(of, name, std::move(options)).value())
{
}

template <class Rep, class Period>
result<lease> mutex::acquire(const std::nothrow_t &,
                             std::chrono::duration<Rep, Period> wait)
{
    result<void> came = take(detail::to_ms(wait));

    if (!came)
        return came.error();
    return lease(this);
}

template <class Rep, class Period>
lease mutex::acquire(std::chrono::duration<Rep, Period> wait)
{
    return acquire(std::nothrow, wait).value();
}

namespace detail
{

/** Access to private members, for the headers of topics. */
struct access {
    using state = mutex::state;

    static std::shared_ptr<sqlock_registry> share(const registry &from)
    {
        return from.handle_;
    }
    static result<mutex> obtain(const registry &from, std::string_view name,
                                acquire_options options)
    {
        return mutex::obtain(from, name, std::move(options));
    }
    static sqlock_acquire_options native(const mutex &one)
    {
        return one.native();
    }
    /* Make a lease of a mutex that was locked by its native handle. */
    static lease adopt(std::unique_ptr<mutex> locked)
    {
        locked->state_->taken = true;
        lease made(locked.get());
        made.own_ = std::move(locked);
        return made;
    }
    static bool has_own(const lease &held)
    {
        return held.own_ != nullptr;
    }
    static bool has_on_lost(const mutex &one)
    {
        return static_cast<bool>(one.state_->options.on_lost);
    }
    /* Take the mutex out of a lease whose release has begun. */
    static std::unique_ptr<mutex> disown(lease &held)
    {
        held.own_->state_->taken = false;
        held.mutex_ = nullptr;
        return std::move(held.own_);
    }
};

} /* namespace detail */

} /* namespace sqlock */

#endif /* SQLOCK_HPP */
