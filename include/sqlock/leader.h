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
 * Publish a text, in place of the one before; "" is one, too.
 *
 * @param text UTF-8 of at most SQLOCK_LEADER_TEXT_MAX bytes
 * @return 0           published
 *         EOWNER      the caller does not hold the lock
 *         ELOST, EEXPIRED
 *                     the caller does not lead any more; nothing is published
 *         EINVAL      the text, or the caller shares the lock
 *         EINUSE      an open transaction guards the lock
 *         ECONFLICT   the lock has permits (sqlock/shared.h)
 *         ENOTSUP     the table has one of Spring's layouts
 *         EUNCERTAIN  the outcome is not known: call again, which does no harm
 */
SQLOCK_MUSTUSE int sqlock_publish(sqlock_lock *lock, const char *text,
                                  sqlock_error *err);

/**
 * Wait until another leads than the caller has seen, or nobody, or until the
 * leader has published another text.  The row is read at once, and then every
 * `poll_ms`, by one statement; the wait outlasts a database that is away, as
 * sqlock_acquire() does.  A leader that came and went in between is not seen.
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
