/*
 * sqlock/many.hpp - several locks at once, all or none
 *
 *     auto leases = sqlock::acquire_many(registry, {"account/1", "account/2"},
 *                                        5s);
 *     leases.check();
 *
 * One statement takes up to SQLOCK_MANY_MAX different locks of one registry.
 * The names may come in any order: two callers never wait for each other
 * crosswise.  many.h documents the functions of C that these call, and their
 * codes.
 */
#ifndef SQLOCK_MANY_HPP
#define SQLOCK_MANY_HPP

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <sqlock.hpp>
#include <sqlock/many.h>

namespace sqlock
{

/** Locks that are held together, and released by the destructor.  One thread at
 *  a time may use the object, which keeps its registry open. */
class [[nodiscard]] leases
{
  public:
    leases(leases &&) noexcept = default;
    leases &operator=(leases &&other) noexcept
    {
        if (this != &other) {
            end();
            state_ = std::move(other.state_);
        }
        return *this;
    }
    ~leases()
    {
        end();
    }

    /** The number of locks, also of those whose lease is over; 0 after
     *  release().  acquire_free() may get fewer than were asked for. */
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
        sqlock_error why = {};

        if (empty())
            return failure(SQLOCK_EOWNER);
        const int code =
            sqlock_renew_many(state_->locks.data(), size(), nullptr, &why);
        return detail::result_of(code, why);
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
        sqlock_error why = {};

        if (empty())
            return failure(SQLOCK_EOWNER);
        const int code = state_->give_back(why);
        state_->keep_if(SQLOCK_EINUSE);
        if (state_->locks.empty())
            state_.reset();
        return detail::result_of(code, why);
    }

    /** Lock @p i, from 0, for functions of sqlock.h; NULL where there is none.
     *  This object drops it. */
    sqlock_lock *native_handle(std::size_t i) const
    {
        return i < size() ? state_->locks[i] : nullptr;
    }

  private:
    friend struct many_access;

    /* Stays at one address when the object is moved, since the library passes
     * that address to lost(). */
    struct state {
        std::shared_ptr<sqlock_registry> owner; /* keeps the registry open */
        std::vector<sqlock_lock *> locks;
        std::vector<int> results; /* of the last call on each lock */
        acquire_options options;
        bool may_be_lost = false; /* the library may still call on_lost */

        state() = default;
        state(const state &) = delete;
        state &operator=(const state &) = delete;

        /* Undo this object's acquire of each lock.  A lock may stay held: a
         * transaction guards it, another thread owns it, or its owner has
         * acquired it elsewhere, too. */
        int give_back(sqlock_error &why) noexcept
        {
            /* A call that is refused as a whole does not write the results. */
            std::fill(results.begin(), results.end(), SQLOCK_EINUSE);
            const int code = sqlock_release_many(locks.data(), locks.size(),
                                                 results.data(), &why);

            for (std::size_t i = 0; i < locks.size(); i++)
                if (options.on_lost && code != SQLOCK_EFORK &&
                    (results[i] == SQLOCK_EINUSE ||
                     results[i] == SQLOCK_EOWNER ||
                     sqlock_hold_count(locks[i]) > 0))
                    may_be_lost = true;
            return code;
        }
        /* Keep the locks with that result, and drop the others. */
        void keep_if(int result) noexcept
        {
            std::size_t kept = 0;

            for (std::size_t i = 0; i < locks.size(); i++)
                if (results[i] == result)
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

    sqlock_lock *at(std::size_t i) const
    {
        if (i >= size())
            detail::raise(failure(SQLOCK_EINVAL, "there is no such lease"));
        return state_->locks[i];
    }
    void end() noexcept
    {
        sqlock_error why = {};

        if (!empty())
            (void)state_->give_back(why);
        state_.reset();
    }
};

/** Access to private members of leases, for the functions below. */
struct many_access {
    template <class Names>
    static result<leases> take(const registry &of, const Names &names,
                               std::int64_t wait_ms, acquire_options options,
                               bool partial)
    {
        leases::holder made(new leases::state());
        sqlock_error why = {};

        made->owner = detail::access::share(of);
        made->options = std::move(options);
        if (!made->owner)
            return detail::empty();
        for (const std::string_view name : names) {
            const detail::c_text text(name);

            if (!text.valid())
                return detail::c_text::refused();
            made->locks.push_back(nullptr);
            const int code = sqlock_obtain(&made->locks.back(),
                                           made->owner.get(), text.get(), &why);
            if (code != 0)
                return detail::result_of(code, why).error();
        }

        sqlock_acquire_options how = made->options.native();

        made->results.resize(made->locks.size());
        how.partial = partial;
        if (made->options.on_lost) {
            how.on_lost = lost;
            how.lost_context = made.get();
        }
        const int code =
            sqlock_acquire_many(made->locks.data(), made->locks.size(), wait_ms,
                                &how, made->results.data(), &why);
        if (code != 0 && !(partial && code == SQLOCK_EBUSY))
            return detail::result_of(code, why).error();
        if (code != 0)
            made->keep_if(0);
        return leases(std::move(made));
    }

  private:
    static void lost(void *context, sqlock_lock *, int code)
    {
        static_cast<const leases::state *>(context)->options.on_lost(code);
    }
};

/** Take all of these locks, or none.
 *
 *  @param names a container of texts, each of which converts to a
 *               std::string_view; none twice, at least one */
template <class Names, class Rep, class Period>
result<leases> acquire_many(const std::nothrow_t &, const registry &of,
                            const Names &names,
                            std::chrono::duration<Rep, Period> wait,
                            acquire_options options = {})
{
    return many_access::take(of, names, detail::to_ms(wait), std::move(options),
                             false);
}
template <class Rep, class Period>
result<leases> acquire_many(const std::nothrow_t &, const registry &of,
                            std::initializer_list<std::string_view> names,
                            std::chrono::duration<Rep, Period> wait,
                            acquire_options options = {})
{
    return many_access::take(of, names, detail::to_ms(wait), std::move(options),
                             false);
}
template <class Names, class Rep, class Period>
leases acquire_many(const registry &of, const Names &names,
                    std::chrono::duration<Rep, Period> wait,
                    acquire_options options = {})
{
    return acquire_many(std::nothrow, of, names, wait, std::move(options))
        .value();
}
template <class Rep, class Period>
leases acquire_many(const registry &of,
                    std::initializer_list<std::string_view> names,
                    std::chrono::duration<Rep, Period> wait,
                    acquire_options options = {})
{
    return acquire_many(std::nothrow, of, names, wait, std::move(options))
        .value();
}

/** Take those of these locks that are free, perhaps none, in the order of
 *  @p names. */
template <class Names>
result<leases> acquire_free(const std::nothrow_t &, const registry &of,
                            const Names &names, acquire_options options = {})
{
    return many_access::take(of, names, 0, std::move(options), true);
}
template <class Names>
leases acquire_free(const registry &of, const Names &names,
                    acquire_options options = {})
{
    return acquire_free(std::nothrow, of, names, std::move(options)).value();
}
inline leases acquire_free(const registry &of,
                           std::initializer_list<std::string_view> names,
                           acquire_options options = {})
{
    return many_access::take(of, names, 0, std::move(options), true).value();
}

} /* namespace sqlock */

#endif /* SQLOCK_MANY_HPP */
