/*
 * wait.c - decide how long `sqlock run` waits for a holder, or for a
 * database that is silent, slow or away
 *
 * A wait ends at its deadline, or with an error that somebody must repair; with
 * --fail-fast, with the first database error.  After a second, sqlock reports
 * once what it waits for; with --verbose at once, and every five seconds.
 */
#include "run.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "sqlock/async.h"
#include "sqlock/lease.h"

#define FIRST_WORD_NS (1000 * LK_NS_PER_MS)
#define NEXT_WORD_NS (5000 * LK_NS_PER_MS)

/* Pauses between attempts to reach the database. */
static const struct lk_retry_policy policy = {
    .first_us = 50000,
    .longest_us = 1000000,
    .classes = LK_RETRY_BUSY,
    .last = LK_RETRY_AT_DEADLINE,
};

/* Return the classes of errors that do not end a wait: a busy lock, and outages
 * that may end by themselves.  A read-only file stays read-only, but a
 * read-only server may be a standby that is about to be promoted. */
static unsigned classes_of(const run_options *options)
{
    unsigned classes = policy.classes;

    if (options->is_fail_fast)
        return classes;
    classes |= LK_RETRY_UNREACHABLE | LK_RETRY_UNCERTAIN | LK_RETRY_FULL |
               LK_RETRY_CONFLICT;
    if (strncmp(options->url, "sqlite:", strlen("sqlite:")) != 0)
        classes |= LK_RETRY_STANDBY;
    return classes;
}

void run_wait_begin(run_wait *wait, const run_options *options,
                    const atomic_int *interrupted, int stop_fd)
{
    int64_t now_ns = lk_boottime_ns();

    *wait = (run_wait){.options = options,
                       .interrupted = interrupted,
                       .stop_fd = stop_fd,
                       .start_ns = now_ns,
                       .word_ns = now_ns};
    lk_retry_begin(&wait->retry, &policy, LK_NEVER);
    wait->retry.policy.classes = classes_of(options);
    if (!cli_is_verbose())
        wait->word_ns += FIRST_WORD_NS;
}

/* Return the time that is left to wait; SQLOCK_FOREVER: without a limit. */
static int64_t left_ms(const run_wait *wait)
{
    int64_t wait_ms = wait->options->wait_ms;
    int64_t passed_ms = (lk_boottime_ns() - wait->start_ns) / LK_NS_PER_MS;

    if (wait_ms < 0)
        return SQLOCK_FOREVER;
    return passed_ms < wait_ms ? wait_ms - passed_ms : 0;
}

bool run_wait_is_over(const run_wait *wait)
{
    return left_ms(wait) == 0;
}

/* --------------------------------------------------------------- reports -- */

/* Report who has the lock.  Only the CLIENT_ID is known of a peer, which does
 * not use sqlock: the token in the row belongs to an earlier holder.  After
 * `sqlock break`, row->holder says who broke the lease. */
static void say_who(const char *prefix, const char *name,
                    const sqlock_info *row, const char *remaining)
{
    if (row->sharers > 0)
        run_note("%s\"%s\" is shared by %" PRId32 ", for longest by %s; the "
                 "last lease ends in %s unless it is renewed",
                 prefix, name, row->sharers, row->holder, remaining);
    else if (row->holder == NULL || strcmp(row->holder, "peer") == 0)
        run_note("%s\"%s\" is held by a peer (client id %s), whose lease ends "
                 "in %s unless it is renewed",
                 prefix, name, row->client_id, remaining);
    else if (cli_is_broken(row))
        run_note("%s\"%s\" was %s (token %" PRId64 "), and passes on after %s",
                 prefix, name, row->holder, row->token, remaining);
    else
        run_note("%s\"%s\" is held by %s (token %" PRId64 "), whose lease ends "
                 "in %s unless it is renewed",
                 prefix, name, row->holder, row->token, remaining);
}

/* Report why the wait goes on.  Only a record that is not there yet is waited
 * for, among all that is not found. */
static void say_error(const run_options *options, const sqlock_error *err)
{
    const char *limit = "";

    if (options->wait_ms < 0)
        limit = options->is_observer
                    ? " without a limit (see --wait)"
                    : " without a limit (see --wait and --fail-fast)";
    if (err->code == SQLOCK_ENOTFOUND)
        run_note("waiting until \"%s\" is recorded as done", options->name);
    else
        run_note("waiting%s: %s", limit, err->message);
}

/* Write what the report begins with: that sqlock waits, and at which place. */
static void write_prefix(char *prefix, size_t size, bool is_waiting,
                         const sqlock_info *row)
{
    if (!is_waiting)
        prefix[0] = '\0';
    else if (row != NULL && row->place > 0)
        (void)snprintf(prefix, size,
                       "waiting, at place %" PRId32 " of %" PRId32 ": ",
                       row->place, row->waiters);
    else
        (void)snprintf(prefix, size, "waiting: ");
}

/* Report who has the lock, or that the database does not answer, and with
 * is_waiting that sqlock waits.  Nothing depends on the report. */
static void say_holder(const run_options *options, sqlock_registry *registry,
                       bool is_waiting)
{
    char prefix[64];
    sqlock_info *row = NULL;
    sqlock_error err = {0};
    char remaining[CLI_NUMBER_SIZE];
    int rc;

    rc = sqlock_show(registry, options->name, &row, &err);
    write_prefix(prefix, sizeof prefix, is_waiting, rc == 0 ? row : NULL);
    if (rc == 0 && row->state == SQLOCK_HELD)
        say_who(prefix, options->name, row,
                cli_duration_text(remaining, row->remaining_ms));
    else if (rc < 0 && rc != SQLOCK_ENOTFOUND && is_waiting)
        say_error(options, &err);
    else if (rc < 0 && rc != SQLOCK_ENOTFOUND)
        run_note("%s", err.message);
    else if (is_waiting)
        run_note("%snobody holds \"%s\" at the moment", prefix, options->name);
    else
        run_note("%s\"%s\" is held by another owner", prefix, options->name);
    if (rc == 0)
        sqlock_info_free(row, 1);
}

/* Report what is waited for, if a report is due.  If there is no registry, a
 * busy lock is that of a SQLite file, which could not be opened, or a record is
 * awaited. */
static void say(run_wait *wait, sqlock_registry *registry,
                const sqlock_error *err)
{
    if (lk_boottime_ns() < wait->word_ns)
        return;
    wait->word_ns =
        cli_is_verbose() ? lk_boottime_ns() + NEXT_WORD_NS : INT64_MAX;
    if (err != NULL)
        say_error(wait->options, err);
    else
        say_holder(wait->options, registry, true);
}

/* -------------------------------------------------------------- patience -- */

/* No wait raises a limit of this process. */
static bool is_waited_for(const run_wait *wait, int rc, const sqlock_error *err)
{
    return lk_retry_admits(wait->retry.policy.classes, rc) &&
           !(rc < 0 && lk_error_is_limit(err));
}

bool run_wait_goes_on(run_wait *wait, int rc, const sqlock_error *err)
{
    int64_t left = left_ms(wait);

    if (!is_waited_for(wait, rc, err) || left == 0 ||
        (wait->interrupted != NULL && *wait->interrupted != 0))
        return false;
    say(wait, NULL, err);
    if (left > 0)
        wait->retry.deadline_ns = lk_after_ms(sqlock_monotonic_ns(), left);
    return lk_retry_goes_on(&wait->retry, rc);
}

/* Return the time until the next report, as poll() takes it. */
static int silent_ms(const run_wait *wait)
{
    int64_t left_ns = wait->word_ns - lk_boottime_ns();

    if (wait->word_ns == INT64_MAX)
        return -1;
    return left_ns > 0 ? (int)(left_ns / LK_NS_PER_MS) + 1 : 0;
}

int run_wait_tell(int rc, const sqlock_error *err)
{
    if (cli_status_of(rc) == CLI_BUSY)
        cli_error("%s", err->message);
    return rc;
}

int run_wait_open(run_wait *wait, const sqlock_options *how,
                  sqlock_registry **registry, sqlock_error *err)
{
    int rc;

    do {
        rc = sqlock_registry_open(registry, wait->options->url, how, err);
    } while (rc < 0 && run_wait_goes_on(wait, rc, err));
    /* Below a `sqlock run`, whose command waits for us: let whoever waits for
     * us wait for it, so that a deadlock between two of them is told. */
    if (rc == 0)
        (void)sqlock_act_for(*registry, getenv("SQLOCK_CLIENT_ID"), NULL);
    return run_wait_tell(rc, err);
}

/* Take the lock in one wait, which keeps its place among those who wait, and
 * report meanwhile. */
static int acquire(run_wait *wait, sqlock_registry *registry, sqlock_lock *lock,
                   int done_fd, sqlock_error *err)
{
    struct pollfd done = {.fd = done_fd, .events = POLLIN};
    sqlock_acquire_options how = SQLOCK_ACQUIRE_INIT;
    sqlock_request *request;
    eventfd_t ended;
    int rc;

    how.mode = wait->options->mode;
    how.permits = wait->options->permits;
    how.auto_renew = true;
    how.fail_fast = wait->options->is_fail_fast;
    how.cancel_fd = wait->stop_fd;
    rc = sqlock_request_acquire(&request, lock, left_ms(wait), &how, done_fd,
                                err);
    if (rc < 0)
        return rc;
    while (sqlock_request_status(request) == SQLOCK_REQUEST_FETCHING)
        if (poll(&done, 1, silent_ms(wait)) == 0)
            say(wait, registry, NULL);
    (void)eventfd_read(done_fd, &ended);
    return sqlock_request_finish(request, err);
}

/* Check that the lock has a number of permits where none is given: without one
 * any number would share it. */
static int find_slots(run_wait *wait, sqlock_registry *registry,
                      sqlock_error *err)
{
    const run_options *options = wait->options;
    sqlock_info *row = NULL;
    bool has_permits;
    int rc;

    if (!options->has_slots || options->permits > 0)
        return 0;
    do {
        rc = sqlock_show(registry, options->name, &row, err);
    } while (rc < 0 && run_wait_goes_on(wait, rc, err));
    has_permits = rc == 0 && row->permits > 0;
    sqlock_info_free(row, rc == 0);
    if (has_permits || (rc < 0 && rc != SQLOCK_ENOTFOUND))
        return rc;
    err->code = SQLOCK_ENOTFOUND;
    (void)snprintf(err->message, sizeof err->message,
                   "\"%s\" has no number of slots: give one, as --slots=3",
                   cli_shown(options->name));
    return SQLOCK_ENOTFOUND;
}

int run_wait_acquire(run_wait *wait, sqlock_registry *registry,
                     sqlock_lock **lock, int *lost_fd, sqlock_error *err)
{
    int done_fd = eventfd(0, EFD_CLOEXEC);
    int rc =
        done_fd >= 0 ? 0 : lk_error_limit(err, "cannot open an eventfd", errno);

    if (rc == 0)
        rc = sqlock_obtain(lock, registry, wait->options->name, err);
    if (rc == 0)
        rc = sqlock_lost_fd(lost_fd, *lock, err);
    if (rc == 0)
        rc = find_slots(wait, registry, err);
    if (rc < 0) {
        if (done_fd >= 0)
            (void)close(done_fd);
        return rc;
    }
    do {
        rc = acquire(wait, registry, *lock, done_fd, err);
    } while (is_waited_for(wait, rc, err) && !run_wait_is_over(wait));
    (void)close(done_fd);
    if (rc == SQLOCK_EBUSY || rc == SQLOCK_ETIMEDOUT)
        say_holder(wait->options, registry, false);
    else if (rc == SQLOCK_EDEADLOCK)
        cli_error("%s", err->message);
    return rc;
}

bool run_wait_watches(run_wait *wait, sqlock_registry *registry)
{
    int64_t left = left_ms(wait);

    if (left == 0) {
        say_holder(wait->options, registry, false);
        return false;
    }
    say(wait, registry, NULL);
    if (left > 0)
        wait->retry.deadline_ns = lk_after_ms(sqlock_monotonic_ns(), left);
    (void)lk_retry_goes_on(&wait->retry, SQLOCK_EBUSY);
    return true;
}

int run_wait_status(int rc, const sqlock_error *err)
{
    int status = cli_status_of(rc);

    if (rc < 0 && lk_error_is_limit(err))
        return CLI_SYSTEM;
    return status == CLI_NO ? CLI_USAGE : status;
}

int run_wait_describe(const run_wait *wait, sqlock_lock *lock, run_grant *grant,
                      sqlock_error *err)
{
    *grant = (run_grant){.token = sqlock_token(lock)};
    sqlock_client_id(lock, grant->client_id);
    sqlock_session_tag(lock, grant->tag);
    (void)snprintf(grant->key, sizeof grant->key, "%s", sqlock_key(lock));
    return sqlock_lease_id(grant->lease, lock, wait->options->registry.ttl_ms,
                           err);
}
