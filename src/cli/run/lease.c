/*
 * lease.c - the lock of `sqlock run`: wait for it, look after it, release it
 *
 * Calls that may wait for the database are made before the command runs, and
 * after it has ended.  The library's renewer renews the lease meanwhile.  No
 * transaction is open while the command runs.
 */
#include "run.h"
#include "sqlock/async.h"
#include "sqlock/event.h"
#include "sqlock/leader.h"
#include "sqlock/once.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Pause between two counts of the stale sessions of earlier holders. */
#define STALE_SESSIONS_NS (200 * LK_NS_PER_MS)

static int64_t ttl_ns(const run_lease *lease)
{
    return (int64_t)lease->wait.options->registry.ttl_ms * LK_NS_PER_MS;
}

static int64_t deadline_of(sqlock_lock *lock)
{
    int64_t now_ns = lk_boottime_ns();

    return now_ns + sqlock_remaining_ms(lock) * LK_NS_PER_MS;
}

/* ---------------------------------------------------------------- taking -- */

/* Count the stale sessions: none if the database cannot list them, or hides
 * them from this login.  Return 0, or the code of another error. */
static int count_stale_sessions(sqlock_lock *lock, int64_t *count,
                                sqlock_error *err)
{
    int rc = sqlock_stale_sessions(lock, count, err);

    switch (rc) {
    case SQLOCK_EACCESS:
    case SQLOCK_ESCHEMA:
    case SQLOCK_EDATABASE:
        run_info("cannot look for sessions of an earlier holder: %s",
                 err->message);
        return 0;
    case SQLOCK_ENOTSUP:
    case SQLOCK_EEXPIRED: /* detected by the caller */
        return 0;
    default:
        return rc;
    }
}

/* Note that an error is said once the lock is given back: nobody may read it,
 * and others wait for the lock.  Return rc. */
static int put_off(run_lease *lease, int rc)
{
    lease->is_unsaid = rc < 0;
    return rc;
}

/* Wait, with the lock held, until the server has ended the statements that an
 * earlier holder has left running: the command must not begin beside them.
 * Return 0 also if a signal ends the wait; SQLOCK_ETIMEDOUT when it is over. */
static int await_stale_sessions(run_lease *lease)
{
    const run_options *options = lease->wait.options;
    bool is_told = false;
    int64_t count;
    int rc;

    for (;;) {
        do {
            rc = count_stale_sessions(lease->lock, &count, &lease->error);
        } while (rc < 0 && run_wait_goes_on(&lease->wait, rc, &lease->error));
        if (rc < 0 || count == 0 || *lease->wait.interrupted != 0)
            return put_off(lease, rc);
        if (!is_told)
            run_note("\"%s\" is ours, but %" PRId64 " of the sessions of an "
                     "earlier holder are still at work in the database%s",
                     options->name, count,
                     options->wait_ms == 0 ? "" : ": waiting for their end");
        is_told = true;
        if (run_wait_is_over(&lease->wait))
            return SQLOCK_ETIMEDOUT;
        lk_sleep_until(sqlock_monotonic_ns() + STALE_SESSIONS_NS);
    }
}

/* Look up when the work was done.  Only a message depends on it. */
static int64_t when_done(sqlock_registry *registry, const char *name)
{
    sqlock_once_info *rows = NULL;
    size_t count = 0;
    int64_t at_us = 0;

    if (sqlock_once_list(registry, name, &rows, &count, NULL) == 0 && count > 0)
        at_us = rows[0].done_at_us;
    sqlock_once_free(rows, count);
    return at_us;
}

/* With --once, look for a record of the work, and set lease->is_done if there
 * is one: then nothing is left to do. */
static int check_done(run_lease *lease)
{
    const run_options *options = lease->wait.options;
    int rc;

    if (!options->is_once)
        return 0;
    do {
        rc = sqlock_once_check(lease->registry, options->name, &lease->error);
    } while (rc < 0 && run_wait_goes_on(&lease->wait, rc, &lease->error));
    lease->is_done = rc == 0;
    if (lease->is_done)
        lease->done_at_us = when_done(lease->registry, options->name);
    return rc == SQLOCK_ENOTFOUND ? 0 : put_off(lease, rc);
}

/* Publish the text of `lead`, if there is one. */
static int publish(run_lease *lease)
{
    const run_options *options = lease->wait.options;
    int rc;

    if (options->text == NULL)
        return 0;
    do {
        rc = sqlock_publish(lease->lock, options->text, &lease->error);
    } while (rc < 0 && run_wait_goes_on(&lease->wait, rc, &lease->error));
    return put_off(lease, rc);
}

/* Keep the reason for which leases are not renewed.  Called in a thread of the
 * registry. */
static void note_obstacle(void *context, const sqlock_event *event)
{
    run_lease *lease = context;

    if (event->kind != SQLOCK_EVENT_NOT_RENEWED)
        return;
    (void)pthread_mutex_lock(&lease->mutex);
    (void)snprintf(lease->obstacle, sizeof lease->obstacle, "%s", event->text);
    (void)pthread_mutex_unlock(&lease->mutex);
}

int run_lease_take(run_lease *lease, const run_options *options,
                   const atomic_int *interrupted, int stop_fd)
{
    sqlock_options how = options->registry;
    int rc;

    run_wait_begin(&lease->wait, options, interrupted, stop_fd);
    how.on_event = note_obstacle;
    how.event_context = lease;
    how.event_level = SQLOCK_LEVEL_WARNING;
    rc = run_wait_open(&lease->wait, &how, &lease->registry, &lease->error);
    if (rc == 0)
        rc = check_done(lease);
    if (rc < 0 || lease->is_done)
        return rc;
    rc = run_wait_acquire(&lease->wait, lease->registry, &lease->lock,
                          &lease->lost_fd, &lease->error);
    if (rc < 0)
        return rc;
    lease->is_held = true;
    rc = await_stale_sessions(lease);
    /* A process that had the lock in the meantime may have done the work. */
    if (rc == 0)
        rc = check_done(lease);
    if (rc == 0)
        rc = publish(lease);
    if (rc < 0)
        return rc;
    (void)!run_wait_describe(&lease->wait, lease->lock, &lease->grant, NULL);
    lease->deadline_ns = deadline_of(lease->lock);
    lease->renewed_ns = lk_boottime_ns();
    return 0;
}

/* ------------------------------------------------------------------ held -- */

/* Report, each once, that the lease is no longer renewed, and that it is
 * renewed again.  The renewer goes on trying meanwhile. */
static void say_renewals(run_lease *lease)
{
    int64_t stale_ns = lk_boottime_ns() - lease->renewed_ns;
    bool is_stale = stale_ns > ttl_ns(lease) / 2;
    char obstacle[sizeof lease->obstacle];

    if (is_stale == lease->is_stale)
        return;
    (void)pthread_mutex_lock(&lease->mutex);
    memcpy(obstacle, lease->obstacle, sizeof obstacle);
    lease->obstacle[0] = '\0';
    (void)pthread_mutex_unlock(&lease->mutex);
    if (is_stale
            ? run_note_at_once("the lease could not be renewed for %.1f s, "
                               "trying again%s%s",
                               (double)stale_ns / 1e9,
                               obstacle[0] != '\0' ? ": " : "", obstacle)
            : run_note_at_once("the lease is renewed again"))
        lease->is_stale = is_stale;
}

bool run_lease_look(run_lease *lease)
{
    int64_t deadline_ns = deadline_of(lease->lock);
    bool is_renewed;

    if (lease->is_lost)
        return false;
    if (sqlock_remaining_ms(lease->lock) <= 0) {
        lease->is_lost = true;
        lease->lost_fd = -1; /* it stays readable */
        (void)!sqlock_renew(lease->lock, 0, &lease->error); /* says why */
        return false;
    }
    is_renewed = deadline_ns > lease->deadline_ns + ttl_ns(lease) / 100;
    if (is_renewed) {
        lease->deadline_ns = deadline_ns;
        lease->renewed_ns = lk_boottime_ns();
    }
    say_renewals(lease);
    return is_renewed;
}

int run_lease_record(run_lease *lease)
{
    int rc = sqlock_once_record(lease->lock, &lease->error);

    lease->is_done = rc == 0;
    return rc;
}

int run_lease_release(run_lease *lease, sqlock_error *err)
{
    int rc = lease->is_held ? sqlock_release(lease->lock, err) : 0;

    (void)sqlock_drop(lease->lock, NULL);
    (void)sqlock_registry_close(lease->registry, NULL);
    return rc;
}
