/*
 * sqlock/quorum.hpp - one lock in several registries, held while most hold it;
 * quorum.h says what it promises and what not, and has the functions of C and
 * their codes
 */
#ifndef SQLOCK_QUORUM_HPP
#define SQLOCK_QUORUM_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include <sqlock.hpp>
#include <sqlock/lease.h>
#include <sqlock/quorum.h>

namespace sqlock
{

/** The registries of a quorum: {one, two, three}. */
using registry_list = std::vector<std::reference_wrapper<const registry>>;

/** How many of the registries have to hold the lock. */
enum class quorum_of { most, all };

/** A lock that is held in enough registries, and released with the end of this
 *  object.  It keeps the registries open. */
class [[nodiscard]] quorum
{
  public:
    quorum(quorum &&) noexcept = default;
    quorum &operator=(quorum &&) noexcept = default;
    quorum(const quorum &) = delete;
    quorum &operator=(const quorum &) = delete;
    ~quorum() = default;

    /* Without I/O; see sqlock_quorum_remaining_ms(). */
    milliseconds remaining() const
    {
        return milliseconds{sqlock_quorum_remaining_ms(native_handle())};
    }
    bool held() const
    {
        return remaining() > milliseconds{0};
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

    /** Whether the registry of that place holds the lock, and its token there,
     *  which says nothing to another registry. */
    bool held(std::size_t place) const
    {
        return sqlock_is_held(sqlock_quorum_lock(native_handle(), place));
    }
    std::int64_t token(std::size_t place) const
    {
        return sqlock_token(sqlock_quorum_lock(native_handle(), place));
    }

    /** Results of the last acquire or release, of each registry. */
    const std::vector<int> &results() const noexcept
    {
        static const std::vector<int> none;

        return state_ ? state_->results : none;
    }

    /** Release it now.  SQLOCK_ELOST and SQLOCK_EEXPIRED say that too few
     *  registries held it until here.  After SQLOCK_EINUSE a transaction guards
     *  a lock of it: call again when that has ended. */
    void release()
    {
        release(std::nothrow).value();
    }
    result<void> release(const std::nothrow_t &)
    {
        if (!state_)
            return failure(SQLOCK_EOWNER);
        return detail::call(sqlock_quorum_release, state_->native,
                            state_->results.data());
    }

    /** The quorum, for functions of quorum.h; NULL once moved from. */
    sqlock_quorum *native_handle() const
    {
        return state_ ? state_->native : nullptr;
    }

    /* For acquire_quorum(). */
    static result<quorum> take(const registry_list &of, std::string_view name,
                               std::int64_t wait_ms, acquire_options options,
                               quorum_of need, std::vector<int> *results,
                               int cancel_fd = 0)
    {
        holder made(new state());
        const auto came =
            made->take(of, name, wait_ms, std::move(options), need, cancel_fd);

        if (results != nullptr)
            *results = made->results;
        if (!came)
            return came.error();
        return quorum(std::move(made));
    }

  private:
    /* Stays at one address, which the library passes to lost(). */
    struct state {
        std::vector<std::shared_ptr<sqlock_registry>> owners;
        sqlock_quorum *native = nullptr;
        std::vector<int> results;
        std::shared_ptr<std::function<void(int)>> on_lost;

        result<void> take(const registry_list &of, std::string_view name,
                          std::int64_t wait_ms, acquire_options options,
                          quorum_of need, int cancel_fd)
        {
            sqlock_quorum_options which = SQLOCK_QUORUM_INIT;
            std::vector<sqlock_registry *> all;

            which.all = need == quorum_of::all;
            for (const registry &one : of) {
                owners.push_back(detail::access::share(one));
                all.push_back(owners.back().get());
            }
            results.assign(all.size(), SQLOCK_ECANCELED);
            auto came = detail::call(sqlock_quorum_obtain, &native, all.data(),
                                     all.size(), detail::c_text(name), &which);
            if (!came)
                return came;

            sqlock_acquire_options how = options.native();

            how.cancel_fd = cancel_fd;
            how.actor = detail::this_actor();
            if (options.on_lost) {
                on_lost = std::make_shared<std::function<void(int)>>(
                    std::move(options.on_lost));
                how.on_lost = lost;
                how.lost_context = this;
            }
            return detail::call(sqlock_quorum_acquire, native, wait_ms, &how,
                                results.data());
        }
    };
    static void lost(void *context, sqlock_lock *, int code) noexcept
    {
        auto call = static_cast<const state *>(context)->on_lost;

        detail::call_back(std::move(call), code);
    }
    /* A lock that a transaction guards is released with that.  A state that a
     * callback of its own ends is never freed, and closing its registry ends
     * the lease. */
    struct disposer {
        void operator()(state *old) const noexcept
        {
            detail::cleaner::run([old] { dispose(old); });
        }
        static void dispose(state *old) noexcept
        {
            if (sqlock_quorum_release(old->native, nullptr, nullptr) ==
                SQLOCK_EINUSE) {
                for (std::size_t i = 0; i < old->owners.size(); i++)
                    (void)sqlock_abandon(sqlock_quorum_lock(old->native, i),
                                         nullptr);
                [[maybe_unused]] const int code =
                    sqlock_quorum_release(old->native, nullptr, nullptr);
            }
            if (sqlock_quorum_drop(old->native, nullptr) == 0)
                delete old;
            else
                old->owners.clear();
        }
    };
    using holder = std::unique_ptr<state, disposer>;
    holder state_;

    explicit quorum(holder held) : state_(std::move(held))
    {
    }
};

/** Take the lock of that name in enough of these registries, all asked at the
 *  same time; see sqlock_quorum_acquire().
 *
 *  @param[out] results of each registry, also on failure; NULL: not wanted */
inline result<quorum> acquire_quorum(const std::nothrow_t &,
                                     const registry_list &of,
                                     std::string_view name, wait_time wait,
                                     acquire_options options = {},
                                     quorum_of need = quorum_of::most,
                                     std::vector<int> *results = nullptr)
{
    return quorum::take(of, name, wait.ms, std::move(options), need, results);
}
inline quorum acquire_quorum(const registry_list &of, std::string_view name,
                             wait_time wait, acquire_options options = {},
                             quorum_of need = quorum_of::most)
{
    return quorum::take(of, name, wait.ms, std::move(options), need, nullptr)
        .value();
}

#if defined(__cpp_lib_jthread)

/** As above; a stop that is requested ends the wait with SQLOCK_ECANCELED. */
inline result<quorum>
acquire_quorum(const std::nothrow_t &, const registry_list &of,
               std::string_view name, wait_time wait,
               const std::same_as<std::stop_token> auto &stop,
               acquire_options options = {}, quorum_of need = quorum_of::most,
               std::vector<int> *results = nullptr)
{
    return detail::stoppable(stop, [&](int cancel_fd) {
        return quorum::take(of, name, wait.ms, std::move(options), need,
                            results, cancel_fd);
    });
}
inline quorum acquire_quorum(const registry_list &of, std::string_view name,
                             wait_time wait,
                             const std::same_as<std::stop_token> auto &stop,
                             acquire_options options = {},
                             quorum_of need = quorum_of::most)
{
    return acquire_quorum(std::nothrow, of, name, wait, stop,
                          std::move(options), need)
        .value();
}

#endif

} /* namespace sqlock */

#endif /* SQLOCK_QUORUM_HPP */
