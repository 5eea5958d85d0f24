/*
 * call.c - the limits of one call: its deadline, its longest wait for the
 * file's lock, and abort() from another thread
 *
 * A file has one writer at a time, which usually needs some 50 us.  So the busy
 * handler sleeps briefly: with SQLite's own, whose pauses grow to 100 ms, two
 * contenders can starve each other for a second.  Each attempt costs some 10 us
 * of a processor, and those of hundreds of processes would leave none for the
 * writer: so a nap is twice as long after each eight refusals, up to 6 ms.  Of
 * 8 and 32 processes that wrote all the time for 30 s, on two cores with a load
 * of 15, none waited for more than 0.32 and 0.56 s.
 */
#include <sys/resource.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "drivers/sqlite/connection.h"

#define NAP_MIN_NS (50 * LK_NS_PER_US)
#define NAP_MAX_NS (200 * LK_NS_PER_US)
#define REFUSALS 8 /* after so many a nap is twice as long, so many times: */
#define DOUBLED_MAX 5
#define OPS_BETWEEN_LOOKS 1000 /* of SQLite's virtual machine, some 50 us */

bool lk_sqlite_call_nap(struct lk_sqlite *c, int refusals)
{
    int doubled =
        refusals / REFUSALS < DOUBLED_MAX ? refusals / REFUSALS : DOUBLED_MAX;
    int64_t nap_ns = lk_random_between(NAP_MIN_NS, NAP_MAX_NS) << doubled;
    int64_t now_ns = sqlock_monotonic_ns();

    if (now_ns >= c->give_up_ns || atomic_load(&c->is_aborted))
        return false;
    lk_sleep_until(lk_sooner(now_ns + nap_ns, c->give_up_ns));
    return true;
}

/* Wait, as the busy handler, for a lock that another connection has.  Return 1
 * to try again, or 0 to give up with SQLITE_BUSY. */
static int on_busy(void *context, int count)
{
    return lk_sqlite_call_nap(context, count);
}

/* Decide, as the progress handler, whether to end the running statement with
 * SQLITE_INTERRUPT: return 0 if not.  SQLite calls the handler once more when
 * the statement has ended; another value than 0 would then make a COMMIT or
 * BEGIN that has succeeded look like a failure. */
static int on_progress(void *context)
{
    struct lk_sqlite *c = context;

    if (c->running != NULL && !sqlite3_stmt_busy(c->running))
        return 0;
    return atomic_load(&c->is_aborted) ||
           sqlock_monotonic_ns() >= c->deadline_ns;
}

void lk_sqlite_call_install(struct lk_sqlite *c)
{
    (void)sqlite3_busy_handler(c->db, on_busy, c);
    sqlite3_progress_handler(c->db, OPS_BETWEEN_LOOKS, on_progress, c);
}

int lk_sqlite_call_begin(struct lk_sqlite *c, int64_t deadline_ns,
                         sqlock_error *err)
{
    int64_t now_ns = sqlock_monotonic_ns();

    if (c->db == NULL || c->is_broken)
        return lk_error(err, SQLOCK_EUNREACHABLE,
                        "the connection to the SQLite file is closed");
    if (now_ns >= deadline_ns)
        return lk_error(err, SQLOCK_ECANCELED,
                        "the statement timed out before it began");
    c->deadline_ns = deadline_ns;
    c->give_up_ns = deadline_ns;
    if (c->lock_timeout_ms > 0)
        c->give_up_ns =
            lk_sooner(deadline_ns, lk_after_ms(now_ns, c->lock_timeout_ms));
    if (c->is_adopted)
        c->give_up_ns = 0;
    c->now_us = 0;
    (void)pthread_mutex_lock(&c->guard);
    c->is_in_call = !atomic_load(&c->is_aborted);
    (void)pthread_mutex_unlock(&c->guard);
    if (!c->is_in_call)
        return lk_error(err, SQLOCK_ECANCELED,
                        "the statement timed out before it began");
    lk_sqlite_size_hold(c);
    return 0;
}

/* Past a limit of the size of files (ulimit -f) a write ends the process by
 * SIGXFSZ, unless that is held: then it fails. */
void lk_sqlite_size_hold(struct lk_sqlite *c)
{
    struct rlimit limit;

    c->has_size_limit =
        getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    if (c->has_size_limit)
        lk_signal_hold(&c->too_large, SIGXFSZ);
}

void lk_sqlite_size_release(struct lk_sqlite *c)
{
    if (c->has_size_limit)
        lk_signal_release(&c->too_large);
    c->has_size_limit = false;
}

void lk_sqlite_call_end(struct lk_sqlite *c)
{
    lk_sqlite_size_release(c);
    (void)pthread_mutex_lock(&c->guard);
    c->is_in_call = false;
    atomic_store(&c->is_aborted, false);
    (void)pthread_mutex_unlock(&c->guard);
    /* The handlers stay installed.  If the application uses the native handle
     * between calls, its statements have no deadline and wait for no lock. */
    c->deadline_ns = LK_NEVER;
    c->give_up_ns = 0;
}
