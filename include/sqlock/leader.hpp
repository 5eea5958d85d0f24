/*
 * sqlock/leader.hpp - election of a leader: a lock with a text; leader.h has
 * the rules, and the functions of C and their codes
 *
 * To campaign gives a lease; to resign is to release it.  A leader whose lease
 * is lost is told before another can be elected: by held() and `on_lost`.
 */
#ifndef SQLOCK_LEADER_HPP
#define SQLOCK_LEADER_HPP

#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <sqlock.hpp>
#include <sqlock/leader.h>

namespace sqlock
{

/** Publish the text of a leader, by its lease, in place of the one before. */
inline result<void> publish(const std::nothrow_t &, const lease &held,
                            std::string_view text)
{
    if (held.native_handle() == nullptr)
        return failure(SQLOCK_EOWNER);
    return detail::call(sqlock_publish, held.native_handle(),
                        detail::c_text(text));
}
inline void publish(const lease &held, std::string_view text)
{
    publish(std::nothrow, held, text).value();
}

/** One who leads, as the row was when it was read. */
struct leader {
    std::string client_id;
    std::int64_t token;
    std::optional<std::string> holder; /* user, host, process; where known */
    std::optional<std::string> text;   /* nullopt: nothing is published */
    std::optional<milliseconds> held;  /* since when; where known */
    milliseconds remaining;
};

/** An election, for one who campaigns in it and for one who observes it.  Any
 *  thread may campaign; one at a time observes. */
class election
{
  public:
    election(const registry &of, std::string_view name,
             acquire_options how = {})
        : owner_(detail::access::share(of)), name_(name),
          seat_(of, name, std::move(how))
    {
    }

    /** Lead as soon as nobody else does, until the lease ends; as
     *  mutex::acquire(). */
    lease campaign(wait_time wait)
    {
        return seat_.acquire(wait);
    }
    result<lease> campaign(const std::nothrow_t &, wait_time wait)
    {
        return seat_.acquire(std::nothrow, wait);
    }
    /** End all campaigns of this object, as mutex::cancel(). */
    void cancel()
    {
        seat_.cancel();
    }

    /** Read who leads now; nullopt: nobody does. */
    std::optional<leader> current() const
    {
        return current(std::nothrow).value();
    }
    result<std::optional<leader>> current(const std::nothrow_t &) const
    {
        row nobody;
        auto came = read(nobody, 0, 0);

        if (!came && came.error().code == SQLOCK_ETIMEDOUT)
            return std::optional<leader>(); /* no change: nobody leads */
        return came;
    }

    /** Wait until another leads than this object has told last, or nobody, or
     *  until the leader has published another text; at first, until somebody
     *  leads.  SQLOCK_ETIMEDOUT: nothing has changed.  A leader that came and
     *  went in between is not seen.
     *
     *  @param cancel_fd as of sqlock_acquire_options; 0: none */
    std::optional<leader> observe(wait_time wait, int cancel_fd = 0)
    {
        return observe(std::nothrow, wait, cancel_fd).value();
    }
    result<std::optional<leader>> observe(const std::nothrow_t &,
                                          wait_time wait, int cancel_fd = 0)
    {
        return read(seen_, wait.ms, cancel_fd);
    }

  private:
    struct freer {
        void operator()(sqlock_info *old) const noexcept
        {
            sqlock_info_free(old, 1);
        }
    };
    using row = std::unique_ptr<sqlock_info, freer>;

    std::shared_ptr<sqlock_registry> owner_;
    std::string name_;
    sqlock::mutex seat_;
    row seen_; /* whom observe() has told last; empty: nobody */

    static std::optional<std::string> text_of(const char *from)
    {
        return from != nullptr ? std::optional<std::string>(from)
                               : std::nullopt;
    }
    static std::optional<leader> told(const row &of)
    {
        if (!of)
            return std::nullopt;
        return leader{of->client_id,
                      of->token,
                      text_of(of->holder),
                      text_of(of->text),
                      of->held_ms >= 0
                          ? std::optional(milliseconds(of->held_ms))
                          : std::nullopt,
                      milliseconds(of->remaining_ms)};
    }

    result<std::optional<leader>> read(row &seen, std::int64_t wait_ms,
                                       int cancel_fd) const
    {
        sqlock_info *now = seen.release();
        const auto came = detail::call([&](sqlock_error *why) {
            return sqlock_observe(owner_.get(), name_.c_str(), wait_ms,
                                  cancel_fd, &now, why);
        });

        seen.reset(now);
        if (!came)
            return came.error();
        return told(seen);
    }
};

} /* namespace sqlock */

#endif /* SQLOCK_LEADER_HPP */
