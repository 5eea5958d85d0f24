/*
 * sqlock/leader.h - election of a leader: a lock with a text
 *
 * The holder of an exclusive lease leads.  To campaign is sqlock_acquire() with
 * `auto_renew`, which waits until nobody else leads; the queue of those who
 * wait is that of the candidates.  To resign is sqlock_release().  A leader
 * that loses its lease is told before another can be elected: by `on_lost`,
 * sqlock_lost_fd() or sqlock_remaining_ms().  sqlock_show() of admin.h says who
 * leads: `holder`, `client_id`, `token`, since when, for how long yet, and
 * `text`.
 *
 * The leader may publish a text, such as its address; only the present leader
 * can.  It lasts as long as its lease, and goes with it: nobody sees the text
 * of an earlier leader.
 *
 * Those who observe a leader that has published a text are told when it
 * publishes, releases, hands over or downgrades the lock, and when its lease is
 * broken: by NOTIFY on PostgreSQL, and among the processes of one machine on
 * SQLite.  Meanwhile the row is read only when
 * the lease that was seen would be over, and every 28 s: nobody tells that a
 * leader has died, and what is told may be lost.  Otherwise the row is read
 * every `poll_ms`: while nobody leads, or a leader without a text; on MySQL and
 * MariaDB; on Spring's layouts; where the observer is behind a pooler; and with
 * waiting=poll, be that the leader's or the observer's.  A process with
 * waiting=poll that breaks the lease or releases it by its id tells nobody.  No
 * statement about a lock without a text is longer for it; the release of one
 * with a text sends one more, as does a break.
 *
 * A text needs the table of sqlock's layout.  A Spring service that has the
 * lock leads, too, without a text.  Nobody leads where several share the lock,
 * nor while the lease is one that sqlock_break() has ended.
 *
 * Calling sequence
 *     sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
 *     sqlock_info *seen = NULL;
 *
 *     options.auto_renew = true;
 *     rc = sqlock_acquire(lock, SQLOCK_FOREVER, &options, &err);
 *     if (rc == 0)
 *         rc = sqlock_publish(lock, "10.0.0.7:8080", &err);
 *     while (rc == 0) {
 *         rc = sqlock_observe(registry, "service", 5000, 0, &seen, &err);
 *         puts(seen != NULL && seen->text != NULL ? seen->text : "nobody");
 *     }
 *     sqlock_info_free(seen, 1);
 */
#ifndef SQLOCK_LEADER_H
#define SQLOCK_LEADER_H

#include "sqlock/admin.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The most bytes of a text. */
#define SQLOCK_LEADER_TEXT_MAX 1024

/**
 * Publish a text, in place of the one before; "" is one, too.  A statement that
 * arrives late, after an outcome that was not known, replaces no later text.
 * Another thread's release of the lock waits for this call.
 *
 * @param text UTF-8 of at most SQLOCK_LEADER_TEXT_MAX bytes
 * @return 0           published
 *         EOWNER      the caller does not hold the lock
 *         ELOST, EEXPIRED
 *                     the caller does not lead any more; what is published goes
 *                     with the lease
 *         EINVAL      the text, or the caller shares the lock
 *         EINUSE      an open transaction guards the lock
 *         EDATABASE   the database's encoding, which is not UTF-8, lacks a
 *                     character of the text (PostgreSQL)
 *         ENOTSUP     the table has one of Spring's layouts; or a downgrade got
 *                     no answer: renew when statement_timeout_ms is over
 *         EUNCERTAIN  the outcome is not known: call again, which does no harm
 */
SQLOCK_MUSTUSE int sqlock_publish(sqlock_lock *lock, const char *text,
                                  sqlock_error *err);

/**
 * Wait until another leads than the caller has seen, or nobody, or until the
 * leader has published another text.  The row is read at once, and then when
 * the caller is told, or every `poll_ms` (see above); the wait outlasts a
 * database that is away, as sqlock_acquire() does.  A leader that came and went
 * in between is not seen.
 *
 * @param wait_ms   as of sqlock_acquire(); 0: read the row once
 * @param cancel_fd as of sqlock_acquire_options; 0: none
 * @param[in,out] seen what the last call gave; NULL: nobody leads, or nothing
 *                     is known.  Changed on success only, and the row before is
 *                     freed; free the last one by sqlock_info_free()
 * @return 0           it has changed
 *         ETIMEDOUT   it has not
 *         ECANCELED   by `cancel_fd`
 *         any other   the row cannot be read, or wait_ms was over before it
 *                     could be
 */
SQLOCK_MUSTUSE int sqlock_observe(sqlock_registry *registry, const char *name,
                                  int64_t wait_ms, int cancel_fd,
                                  sqlock_info **seen, sqlock_error *err);

#ifdef __cplusplus
}
#endif

#endif
