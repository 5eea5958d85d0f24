/*
 * sqlock/options.hpp - options of registries and of acquisitions
 *
 * sqlock.hpp includes this header.
 */
#ifndef SQLOCK_OPTIONS_HPP
#define SQLOCK_OPTIONS_HPP

#include <functional>
#include <string>

#include <sqlock.h>
#include <sqlock/event.h>
#include <sqlock/result.hpp>

namespace sqlock
{

/* The owner of a held lock, unless registry_options say otherwise. */
inline constexpr sqlock_ownership default_ownership = SQLOCK_OWNED_BY_HANDLE;

/** As sqlock_options; zero and "" mean the default; a time below zero is
 *  1 ms, but a margin the default. */
struct registry_options {
    std::string region;
    std::string table_prefix;
    std::string holder_note;
    milliseconds ttl{0};
    milliseconds margin{0};
    milliseconds connect_timeout{0};
    milliseconds statement_timeout{0};
    milliseconds poll{0};
    milliseconds renew_period{0};
    milliseconds peer_ttl{0};
    unsigned pool_size = 0;
    sqlock_key_rule key_rule = SQLOCK_KEY_CURRENT;
    sqlock_waiting waiting = SQLOCK_WAITING_AUTO;
    bool detect_deadlocks = false;
    bool no_peers = false; // no Spring service shares the table
    sqlock_ownership ownership = default_ownership;
    /** called by any thread; the event's texts are valid during the call */
    std::function<void(const sqlock_event &)> on_event;
    sqlock_level event_level = SQLOCK_LEVEL_INFO;

    /** Whether no text has a NUL byte inside; options with one are refused, by
     *  SQLOCK_EINVAL. */
    bool valid() const noexcept
    {
        for (const std::string *text : {&region, &table_prefix, &holder_note})
            if (text->find('\0') != std::string::npos)
                return false;
        return true;
    }
    /** Return these options for C, except on_event, valid as long as this
     *  object: for functions of sqlock.h. */
    sqlock_options native() const
    {
        sqlock_options out = SQLOCK_OPTIONS_INIT;

        out.region = region.empty() ? nullptr : region.c_str();
        out.table_prefix =
            table_prefix.empty() ? nullptr : table_prefix.c_str();
        out.holder_note = holder_note.empty() ? nullptr : holder_note.c_str();
        out.ttl_ms = detail::to_option(ttl);
        /* One below zero is none: it would make the lease longer. */
        out.margin_ms = margin.count() < 0 ? 0 : detail::to_option(margin);
        out.connect_timeout_ms = detail::to_option(connect_timeout);
        out.statement_timeout_ms = detail::to_option(statement_timeout);
        out.poll_ms = detail::to_option(poll);
        out.renew_period_ms = detail::to_option(renew_period);
        out.peer_ttl_ms = detail::to_option(peer_ttl);
        out.pool_size = pool_size;
        out.key_rule = key_rule;
        out.waiting = waiting;
        out.detect_deadlocks = detect_deadlocks;
        out.no_peers = no_peers;
        out.ownership = ownership;
        out.event_level = event_level;
        return out;
    }
};

/** As sqlock_acquire_options, but with auto_renew by default. */
struct acquire_options {
    milliseconds ttl{0};
    milliseconds max_hold{0}; /* with auto_renew; 0: no limit;
                                 below 0: over at once */
    bool auto_renew = true;
    bool fenced = false;
    bool fail_fast = false;
    sqlock_mode mode = SQLOCK_EXCLUSIVE;
    unsigned permits = 0; /* of the lock, with SQLOCK_SHARED, if its row has no
                             number; 0: then there is no limit */
    unsigned weight = 0;  /* how many of them to take; 0: one */
    /* Called once, with SQLOCK_ELOST or SQLOCK_EEXPIRED, by a thread of the
     * library.  Not called any more once the lock is unlocked, or its owner has
     * ended. */
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
        out.mode = mode;
        out.permits = permits;
        out.weight = weight;
        return out;
    }
};

} /* namespace sqlock */

#endif /* SQLOCK_OPTIONS_HPP */
