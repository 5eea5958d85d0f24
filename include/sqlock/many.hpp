/*
 * sqlock/many.hpp - several locks at once, all or none; many.h has the
 * functions of C and their codes
 *
 * One call takes up to SQLOCK_MANY_MAX different locks of one registry, in
 * any order.  std::scoped_lock takes mutexes, too, but one after another: while
 * one is held elsewhere it gives the others back, and begins anew.  Beside
 * rivals that was 32 to 90 times slower than sqlock::scoped_lock.
 */
#ifndef SQLOCK_MANY_HPP
#define SQLOCK_MANY_HPP

#include <algorithm>
#include <array>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <sqlock.hpp>
#include <sqlock/many.h>

namespace sqlock
{

/** Names of locks: a list, or any container of texts. */
class name_list
{
  public:
    name_list(std::initializer_list<std::string_view> names)
        : all_(names.begin(), names.end())
    {
    }
    template <class Names>
    name_list(const Names &names) : all_(std::begin(names), std::end(names))
    {
    }
    const std::vector<detail::c_text> &all() const noexcept
    {
        return all_;
    }

  private:
    std::vector<detail::c_text> all_;
};

/** Locks that are held together, and released by the destructor.  One thread at
 *  a time may use the object, which keeps its registry open. */
class [[nodiscard]] leases
{
  public:
    leases(leases &&) noexcept = default;
    leases &operator=(leases &&) noexcept = default;
    ~leases() = default;

    /** The number of locks, also of those whose lease is over; 0 after
     *  release(). */
    std::size_t size() const noexcept
    {
        return state_ ? state_->locks.size() : 0;
    }
    bool empty() const noexcept
    {
        return size() == 0;
    }
    std::string name(std::size_t i) const
    {
        return sqlock_name(at(i));
    }
    std::int64_t token(std::size_t i) const
    {
        return sqlock_token(at(i));
    }

    /** Whether all leases last still; no I/O.  False where there is none. */
    bool held() const
    {
        return !empty() && std::all_of(state_->locks.begin(),
                                       state_->locks.end(), sqlock_is_held);
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
    /** The time until the first of their deadlines; 0 where one is over. */
    milliseconds remaining() const
    {
        std::int64_t least = empty() ? 0 : INT64_MAX;

        for (std::size_t i = 0; i < size(); i++)
            least = std::min(least, sqlock_remaining_ms(at(i)));
        return milliseconds{least};
    }

    /** Start each lease anew with its own TTL.  If one fails, the others are
     *  renewed all the same, and the first failure is reported. */
    void renew()
    {
        renew(std::nothrow).value();
    }
    result<void> renew(const std::nothrow_t &)
    {
        if (empty())
            return failure(SQLOCK_EOWNER);
        return detail::call(sqlock_renew_many, state_->locks.data(), size(),
                            nullptr);
    }

    /** Release all locks.  SQLOCK_ELOST and SQLOCK_EEXPIRED say that a lease
     *  had ended before.  After SQLOCK_EINUSE the locks that a transaction
     *  guards are held as before. */
    void release()
    {
        release(std::nothrow).value();
    }
    result<void> release(const std::nothrow_t &)
    {
        if (empty())
            return failure(SQLOCK_EOWNER);
        const auto came = detail::call([&](auto *why) {
            return state_->give_back(sqlock_release_many, why);
        });
        state_->keep_those_in_use();
        if (state_->locks.empty())
            state_.reset();
        return came;
    }

    /** Lock @p i, from 0, for functions of sqlock.h; NULL where there is none.
     *  This object drops it. */
    sqlock_lock *native_handle(std::size_t i) const
    {
        return i < size() ? state_->locks[i] : nullptr;
    }

    static result<leases> take(const registry &of, const name_list &names,
                               std::int64_t wait_ms, acquire_options options,
                               int cancel_fd = 0)
    {
        holder made(new state());

        made->owner = detail::access::share(of);
        made->options = std::move(options);
        if (!made->owner)
            return detail::empty();
        for (const detail::c_text &name : names.all()) {
            made->locks.push_back(nullptr);
            const auto came = detail::call(sqlock_obtain, &made->locks.back(),
                                           made->owner.get(), name);
            if (!came)
                return came.error();
        }

        sqlock_acquire_options how = made->options.native();

        how.cancel_fd = cancel_fd;
        how.actor = detail::this_actor();
        made->results.resize(made->locks.size());
        if (made->options.on_lost) {
            made->on_lost = std::make_shared<std::function<void(int)>>(
                std::move(made->options.on_lost));
            made->options.on_lost = nullptr;
            how.on_lost = lost;
            how.lost_context = made.get();
        }
        const auto came =
            detail::call(sqlock_acquire_many, made->locks.data(),
                         made->locks.size(), wait_ms, &how, nullptr);
        if (!came)
            return came.error();
        made->is_held = true;
        return leases(std::move(made));
    }

  private:
    /* Stays at one address when the object is moved, since the library passes
     * that address to lost(). */
    struct state {
        std::shared_ptr<sqlock_registry> owner; /* keeps the registry open */
        std::vector<sqlock_lock *> locks;
        std::vector<int> results; /* of the last call on each lock */
        acquire_options options;
        std::shared_ptr<std::function<void(int)>> on_lost;
        bool is_held = false;
        bool may_be_lost = false; /* the library may still call on_lost */

        state() = default;
        state(const state &) = delete;
        state &operator=(const state &) = delete;

        /* Undo this object's acquire of each lock.  Where threads own locks, a
         * lock may stay held: by another thread, or by this one, which has
         * acquired it elsewhere, too. */
        int give_back(int (*function)(sqlock_lock *const *, std::size_t, int *,
                                      sqlock_error *),
                      sqlock_error *why) noexcept
        {
            /* A call that is refused as a whole does not write the results. */
            std::fill(results.begin(), results.end(), SQLOCK_EINUSE);
            const int code =
                function(locks.data(), locks.size(), results.data(), why);

            for (std::size_t i = 0; i < locks.size(); i++)
                if (on_lost && code != SQLOCK_EFORK &&
                    (results[i] == SQLOCK_EOWNER ||
                     sqlock_hold_count(locks[i]) > 0))
                    may_be_lost = true;
            return code;
        }
        /* Keep the locks that are held as before, and drop the others. */
        void keep_those_in_use() noexcept
        {
            std::size_t kept = 0;

            for (std::size_t i = 0; i < locks.size(); i++)
                if (results[i] == SQLOCK_EINUSE)
                    locks[kept++] = locks[i];
                else
                    (void)sqlock_drop(locks[i], nullptr);
            locks.resize(kept);
            results.resize(kept);
        }
    };
    /* If a lock stays held, the state, which on_lost uses, is never freed, and
     * closing the registry ends the lease. */
    struct disposer {
        void operator()(state *old) const noexcept
        {
            detail::cleaner::run([old] { dispose(old); });
        }
        static void dispose(state *old) noexcept
        {
            if (old->is_held)
                (void)old->give_back(sqlock_abandon_many, nullptr);
            for (sqlock_lock *lock : old->locks)
                (void)sqlock_drop(lock, nullptr);
            if (old->may_be_lost)
                old->owner.reset();
            else
                delete old;
        }
    };
    using holder = std::unique_ptr<state, disposer>;
    holder state_;

    explicit leases(holder held) : state_(std::move(held))
    {
    }
    static void lost(void *context, sqlock_lock *, int code) noexcept
    {
        auto call = static_cast<const state *>(context)->on_lost;

        detail::call_back(std::move(call), code);
    }

    sqlock_lock *at(std::size_t i) const
    {
        if (i >= size())
            detail::raise(failure(SQLOCK_EINVAL, "there is no such lease"));
        return state_->locks[i];
    }
};

/** Take all of these locks, or none; none is named twice. */
inline result<leases> acquire_many(const std::nothrow_t &, const registry &of,
                                   const name_list &names, wait_time wait,
                                   acquire_options options = {})
{
    return leases::take(of, names, wait.ms, std::move(options));
}
inline leases acquire_many(const registry &of, const name_list &names,
                           wait_time wait, acquire_options options = {})
{
    return leases::take(of, names, wait.ms, std::move(options)).value();
}

#if defined(__cpp_lib_jthread)

/** As above; a stop that is requested ends the wait with SQLOCK_ECANCELED. */
inline result<leases>
acquire_many(const std::nothrow_t &, const registry &of, const name_list &names,
             wait_time wait, const std::same_as<std::stop_token> auto &stop,
             acquire_options options = {})
{
    return detail::stoppable(stop, [&](int cancel_fd) {
        return leases::take(of, names, wait.ms, std::move(options), cancel_fd);
    });
}
inline leases acquire_many(const registry &of, const name_list &names,
                           wait_time wait,
                           const std::same_as<std::stop_token> auto &stop,
                           acquire_options options = {})
{
    return acquire_many(std::nothrow, of, names, wait, stop, std::move(options))
        .value();
}

#endif

/* ----------------------------------------------------------- scoped_lock -- */

/** Several mutexes locked together, as by std::scoped_lock, but by one call:
 *  all of them, in the time that sqlock_acquire_many() says.  They belong to
 *  one registry, have different names and, but for on_lost, the same options;
 *  otherwise the constructor throws SQLOCK_EINVAL. */
template <class... Mutexes> class scoped_lock
{
    static_assert((std::is_same_v<Mutexes, mutex> && ...),
                  "sqlock::scoped_lock locks objects of sqlock::mutex");

  public:
    explicit scoped_lock(Mutexes &...of) : scoped_lock(std::adopt_lock, of...)
    {
        is_locked_ = false;
        lock().value();
        is_locked_ = true;
    }
    /** Take over mutexes that are locked. */
    explicit scoped_lock(std::adopt_lock_t, Mutexes &...of)
        : states_{detail::access::state(of)...}
    {
    }
    scoped_lock(const scoped_lock &) = delete;
    scoped_lock &operator=(const scoped_lock &) = delete;
    /** Unlock the mutexes; unlocked() of each has the result. */
    ~scoped_lock()
    {
        if (is_locked_)
            detail::cleaner::run(
                [all = states_, told = told_.release()] { end(all, told); });
    }

  private:
    static constexpr std::size_t count = sizeof...(Mutexes);
    using state = std::shared_ptr<detail::lock_state>;
    using all_states = std::array<state, count>;

    /* A lock, and the function that is called when it is lost.  They stay at
     * one address until the locks are given back, perhaps after the end of this
     * object, since the library passes that address to lost(). */
    struct listener {
        sqlock_lock *lock = nullptr;
        std::shared_ptr<detail::lock_state::lost_function> on_lost;
    };
    using listeners = std::array<listener, count>;

    all_states states_;
    std::unique_ptr<listeners> told_; /* NULL: nobody listens */
    bool is_locked_ = true;

    /* Wait for the threads that share the mutexes, in one order everywhere,
     * then for the locks. */
    result<void> lock()
    {
        all_states sorted = states_;

        std::sort(sorted.begin(), sorted.end());
        for (std::size_t i = 0; i < count; i++)
            if (auto wrong = refused(sorted, i); !wrong)
                return wrong;

        listen();
        detail::one_wait by(SQLOCK_FOREVER);
        std::array<std::optional<detail::all_waits::entry>, count> noted;
        if (!by.is_possible())
            return detail::event::missing();
        for (std::size_t i = 0; i < count; i++)
            noted[i].emplace(sorted[i]->waits(), by);
        std::array<std::optional<detail::one_turn>, count> mine;
        for (std::size_t i = 0; i < count; i++) {
            if (auto came = sorted[i]->turn().await(by, SQLOCK_FOREVER); !came)
                return came;
            mine[i].emplace(sorted[i]->turn());
        }
        auto came = acquire(by.cancel_fd());
        if (came)
            for (auto &one : mine)
                one->keep();
        return came;
    }
    static result<void> refused(const all_states &sorted, std::size_t i)
    {
        if (!sorted[i])
            return detail::empty();
        if (i > 0 && sorted[i] == sorted[i - 1])
            return failure(SQLOCK_EINVAL, "a mutex is given twice");
        const acquire_options &one = sorted[0]->options();
        const acquire_options &other = sorted[i]->options();
        if (one.ttl != other.ttl || one.max_hold != other.max_hold ||
            one.auto_renew != other.auto_renew || one.fenced != other.fenced ||
            one.fail_fast != other.fail_fast || one.mode != other.mode ||
            one.permits != other.permits || one.weight != other.weight)
            return failure(SQLOCK_EINVAL,
                           "mutexes with different options: lock them one "
                           "after another");
        return {};
    }
    /* Note who is to be told, which needs memory, before there is a turn to be
     * passed on. */
    void listen()
    {
        for (std::size_t i = 0; i < count; i++)
            if (states_[i]->on_lost()) {
                if (!told_)
                    told_ = std::make_unique<listeners>();
                (*told_)[i] = {states_[i]->lock(), states_[i]->on_lost()};
            }
    }
    result<void> acquire(int cancel_fd)
    {
        if constexpr (count == 0) {
            return {};
        } else {
            const auto locks = handles(states_);
            sqlock_acquire_options how = states_[0]->options().native();

            how.cancel_fd = cancel_fd;
            how.actor = detail::this_actor();
            if (told_) {
                how.on_lost = lost;
                how.lost_context = told_.get();
            }
            return detail::call(sqlock_acquire_many, locks.data(), count,
                                SQLOCK_FOREVER, &how, nullptr);
        }
    }
    static void lost(void *context, sqlock_lock *lock, int code) noexcept
    {
        for (const listener &one : *static_cast<const listeners *>(context))
            if (one.lock == lock) {
                auto call = one.on_lost;

                detail::call_back(std::move(call), code);
                return;
            }
    }
    static std::array<sqlock_lock *, count> handles(const all_states &of)
    {
        std::array<sqlock_lock *, count> out{};

        for (std::size_t i = 0; i < count; i++)
            out[i] = of[i]->lock();
        return out;
    }
    /* Unlock them.  If a lock stays held, the listeners are never freed. */
    static void end(const all_states &all, listeners *told) noexcept
    {
        bool may_be_lost = false;

        if constexpr (count > 0) {
            const auto locks = handles(all);
            std::array<int, count> results;

            /* A call that is refused as a whole does not write the results. */
            results.fill(1);
            const int code = sqlock_abandon_many(locks.data(), count,
                                                 results.data(), nullptr);
            for (std::size_t i = 0; i < count; i++) {
                if (code != SQLOCK_EFORK && (results[i] == SQLOCK_EOWNER ||
                                             sqlock_hold_count(locks[i]) > 0))
                    may_be_lost = true;
                all[i]->note_given_back(results[i] == 1 ? code : results[i]);
            }
        }
        if (!may_be_lost)
            delete told;
    }
};
template <class... Mutexes>
scoped_lock(Mutexes &...) -> scoped_lock<Mutexes...>;
template <class... Mutexes>
scoped_lock(std::adopt_lock_t, Mutexes &...) -> scoped_lock<Mutexes...>;

} /* namespace sqlock */

#endif /* SQLOCK_MANY_HPP */
