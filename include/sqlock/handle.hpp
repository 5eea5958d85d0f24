/*
 * sqlock/handle.hpp - what a mutex and its leases share
 *
 * sqlock.hpp includes this header.
 */
#ifndef SQLOCK_HANDLE_HPP
#define SQLOCK_HANDLE_HPP

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include <sqlock.h>
#include <sqlock/callback.hpp>
#include <sqlock/lease.h>
#include <sqlock/options.hpp>
#include <sqlock/result.hpp>
#include <sqlock/turn.hpp>
#include <sqlock/tx.h>

namespace sqlock::detail
{

/** State that a mutex and its leases share: a handle of the lock, and whose
 *  turn it is among the threads that use it.  The object stays at one address,
 *  since the library passes that to lost(). */
class lock_state
{
  public:
    using lost_function = std::function<void(int)>;

    static result<std::shared_ptr<lock_state>>
    obtain(std::shared_ptr<sqlock_registry> owner, std::string_view name,
           acquire_options options)
    {
        if (!owner)
            return empty();
        std::shared_ptr<lock_state> made(new lock_state(), ender());
        made->owner_ = std::move(owner);
        if (options.on_lost)
            made->on_lost_ =
                std::make_shared<lost_function>(std::move(options.on_lost));
        made->options_ = std::move(options);
        made->options_.on_lost = nullptr;
        const auto came =
            call(sqlock_obtain, &made->lock_, made->owner_.get(), c_text(name));
        if (!came)
            return came.error();
        return made;
    }
    lock_state(const lock_state &) = delete;
    lock_state &operator=(const lock_state &) = delete;

    sqlock_lock *lock() const noexcept
    {
        return lock_;
    }
    /* Without on_lost. */
    const acquire_options &options() const noexcept
    {
        return options_;
    }
    /* Called when the lease is lost; NULL: nothing is. */
    const std::shared_ptr<lost_function> &on_lost() const noexcept
    {
        return on_lost_;
    }
    int unlocked() const noexcept
    {
        return given_back_;
    }
    sqlock_acquire_options native() const
    {
        sqlock_acquire_options how = options_.native();

        if (on_lost_) {
            how.on_lost = lost;
            how.lost_context = const_cast<lock_state *>(this);
        }
        return how;
    }
    /* Called by the library when the lease is lost. */
    static void lost(void *context, sqlock_lock *, int code) noexcept
    {
        auto call = static_cast<const lock_state *>(context)->on_lost_;

        if (call)
            call_back(std::move(call), code);
    }

    /* Wait for the other threads that share the state, then take the lock. */
    result<void> take(std::int64_t wait_ms)
    {
        one_wait by(wait_ms);
        const all_waits::entry noted(waits_, by);

        return take(by, wait_ms);
    }
    /* Take the lock by a wait that others may cancel, too. */
    result<void> take(one_wait &by, std::int64_t wait_ms)
    {
        const auto begun = std::chrono::steady_clock::now();

        if (!by.is_possible())
            return event::missing();
        result<void> came = turns_.await(by, wait_ms);
        if (!came)
            return came;
        one_turn mine(turns_);
        sqlock_acquire_options how = native();
        how.cancel_fd = by.cancel_fd();
        how.actor = by.actor();
        came = call(sqlock_acquire, lock_, left_of(wait_ms, begun), &how);
        if (came)
            mine.keep();
        return came;
    }

    /* Give the lock back; with @p may_refuse a guard prevents that. */
    int give_back(bool may_refuse, sqlock_error *why) noexcept
    {
        const int code = may_refuse ? sqlock_release(lock_, why)
                                    : sqlock_abandon(lock_, why);
        if (may_refuse && (code == SQLOCK_EINUSE || code == SQLOCK_EFORK))
            return code;
        note_given_back(code);
        return code;
    }
    void note_given_back(int code) noexcept
    {
        given_back_ = code;
        pass_turn();
    }

    void cancel()
    {
        waits_.cancel();
        (void)sqlock_cancel(lock_, nullptr);
    }
    /* The waits that cancel() ends, and the turns of the threads: for taking
     * several locks. */
    all_waits &waits() noexcept
    {
        return waits_;
    }
    turns &turn() noexcept
    {
        return turns_;
    }
    void pass_turn() noexcept
    {
        turns_.pass();
    }
    /* Let another thread give it back. */
    void detach() noexcept
    {
        turns_.detach();
        sqlock_set_actor(lock_, 0);
    }
    static std::int64_t left_of(std::int64_t wait_ms,
                                std::chrono::steady_clock::time_point begun)
    {
        const auto gone = std::chrono::duration_cast<milliseconds>(
            std::chrono::steady_clock::now() - begun);

        if (wait_ms <= 0)
            return wait_ms;
        return gone.count() < wait_ms ? wait_ms - gone.count() : 0;
    }

  private:
    std::shared_ptr<sqlock_registry> owner_; /* open as long as we are */
    sqlock_lock *lock_ = nullptr;
    acquire_options options_;
    std::shared_ptr<lost_function> on_lost_;
    all_waits waits_;
    turns turns_;
    std::atomic<int> given_back_{0};

    lock_state() = default;
    ~lock_state() = default;

    /* Unlock and free it.  Where threads own locks, the lock may stay held: by
     * another thread, or by this one, which has acquired it elsewhere, too.
     * Then a state with on_lost is never freed, and closing the registry ends
     * the lease. */
    void end() noexcept
    {
        if (!turns_.try_take())
            (void)sqlock_abandon(lock_, nullptr);
        const bool stays = sqlock_hold_count(lock_) > 0;
        const bool is_dropped = sqlock_drop(lock_, nullptr) == 0;

        if (on_lost_ && (stays || !is_dropped))
            owner_.reset();
        else
            delete this;
    }
    struct ender {
        void operator()(lock_state *old) const noexcept
        {
            cleaner::run([old] { old->end(); });
        }
    };
};

} /* namespace sqlock::detail */

#endif /* SQLOCK_HANDLE_HPP */
