/*
 * run_lease.c - the lock of `sqlock run`, in a thread of its own: every call
 * that may wait for the database is made here, so that the main thread keeps
 * the deadline whatever the database does.  It decides nothing about the
 * command; it tells what is held until when.
 */
#include "run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

/* With --verbose, how often to say for whom we wait. */
#define PROGRESS_MS ((int64_t)5000)

int64_t run_now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void publish(run_lease *lease, const run_lease_news *news)
{
    uint64_t one = 1;
    ssize_t written;

    (void)pthread_mutex_lock(&lease->mutex);
    lease->news = *news;
    (void)pthread_mutex_unlock(&lease->mutex);
    written = write(lease->event_fd, &one, sizeof one);
    (void)written; /* full means readable, too */
}

/* Wait until then, or until asked to stop.  Returns whether to stop. */
static bool wait_until(run_lease *lease, int64_t until_ns)
{
    struct timespec until;
    int64_t pause_ns = until_ns - run_now_ns();
    int64_t at_ns;
    bool is_stopping;
    int rc = 0;

    /* Condition variables do not know CLOCK_BOOTTIME. */
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    if (pause_ns < 0)
        pause_ns = 0;
    at_ns = until.tv_nsec + pause_ns;
    until.tv_sec += (time_t)(at_ns / 1000000000);
    until.tv_nsec = (long)(at_ns % 1000000000);

    (void)pthread_mutex_lock(&lease->mutex);
    while (!lease->is_stopping && rc == 0)
        rc = pthread_cond_timedwait(&lease->wake, &lease->mutex, &until);
    is_stopping = lease->is_stopping;
    (void)pthread_mutex_unlock(&lease->mutex);
    return is_stopping;
}

/* Say who has the lock.  Nothing depends on it: errors are passed over. */
static void say_holder(sqlock_registry *registry, const char *name,
                       bool is_waiting)
{
    sqlock_info *row = NULL;
    char *remaining = NULL;
    int rc;

    rc = sqlock_show(registry, name, &row, NULL);
    if (rc == 0 && row->state == SQLOCK_HELD) {
        remaining = cli_duration_text(row->remaining_ms);
        (is_waiting ? cli_info : cli_note)(
            "%s\"%s\" is held by %s (token %" PRId64 "), for another %s",
            is_waiting ? "waiting: " : "", name,
            row->holder != NULL ? row->holder : row->client_id, row->token,
            remaining != NULL ? remaining : "while");
        free(remaining);
    } else {
        (is_waiting ? cli_info : cli_note)("%s\"%s\" is held by another owner",
                                           is_waiting ? "waiting: " : "", name);
    }
    if (rc == 0)
        sqlock_info_free(row, 1);
}

static int acquire(const run_options *options, sqlock_registry *registry,
                   sqlock_lock *lock, int64_t start_ns, sqlock_error *err)
{
    int64_t wait_ms = options->wait_ms;
    bool is_forever = wait_ms < 0;
    int64_t slice_ms;
    int rc;

    if (wait_ms > 0) {
        wait_ms -= (run_now_ns() - start_ns) / RUN_NS_PER_MS;
        wait_ms = wait_ms > 0 ? wait_ms : 0;
    }
    if (!cli_is_verbose())
        return sqlock_acquire(lock, wait_ms, NULL, err);

    rc = sqlock_acquire(lock, 0, NULL, err);
    while (rc == SQLOCK_EBUSY || rc == SQLOCK_ETIMEDOUT) {
        if (!is_forever) {
            wait_ms =
                options->wait_ms - (run_now_ns() - start_ns) / RUN_NS_PER_MS;
            if (wait_ms <= 0)
                return rc;
        }
        say_holder(registry, options->name, true);
        slice_ms = is_forever || wait_ms > PROGRESS_MS ? PROGRESS_MS : wait_ms;
        rc = sqlock_acquire(lock, slice_ms, NULL, err);
    }
    return rc;
}

static int64_t deadline_of(sqlock_lock *lock)
{
    int64_t now_ns = run_now_ns();

    return now_ns + sqlock_remaining_ms(lock) * RUN_NS_PER_MS;
}

static void hold(run_lease *lease, sqlock_lock *lock, run_lease_news *news)
{
    int64_t ttl_ns = (int64_t)lease->options->registry.ttl_ms * RUN_NS_PER_MS;
    int64_t begin_ns = run_now_ns();
    int64_t next_ns = begin_ns + ttl_ns / 4;
    bool has_failed = false;
    int rc;

    while (!wait_until(lease, next_ns)) {
        begin_ns = run_now_ns();
        rc = sqlock_renew(lock, 0, &news->error);
        if (rc == 0) {
            news->deadline_ns = deadline_of(lock);
            publish(lease, news);
            next_ns = begin_ns + ttl_ns / 4;
            if (has_failed)
                cli_note("the lease is renewed again");
            has_failed = false;
            continue;
        }
        if (rc == SQLOCK_ELOST || rc == SQLOCK_EEXPIRED ||
            sqlock_remaining_ms(lock) <= 0) {
            news->state = RUN_LEASE_LOST;
            publish(lease, news);
            (void)wait_until(lease, INT64_MAX / 2);
            return;
        }
        /* The old deadline stands; the next look is soon, but not at once. */
        if (!has_failed)
            cli_note("cannot renew the lease, trying again: %s",
                     news->error.message);
        has_failed = true;
        next_ns = run_now_ns() + ttl_ns / 20;
    }
}

/* From nothing to a held lock.  What it gives is released by the caller. */
static int take(run_lease *lease, sqlock_registry **registry,
                sqlock_lock **lock, run_lease_news *news)
{
    const run_options *options = lease->options;
    int64_t start_ns = run_now_ns();
    int rc;

    rc = sqlock_registry_open(registry, options->url, &options->registry,
                              &news->error);
    if (rc < 0)
        return rc;
    rc = sqlock_obtain(lock, *registry, options->name, &news->error);
    if (rc < 0)
        return rc;
    rc = acquire(options, *registry, *lock, start_ns, &news->error);
    if (rc == SQLOCK_EBUSY || rc == SQLOCK_ETIMEDOUT)
        say_holder(*registry, options->name, false);
    return rc;
}

static void *lease_main(void *argument)
{
    run_lease *lease = argument;
    sqlock_registry *registry = NULL;
    sqlock_lock *lock = NULL;
    run_lease_news news = {.state = RUN_LEASE_WAITING};
    int rc;

    rc = take(lease, &registry, &lock, &news);
    if (rc == 0) {
        news.state = RUN_LEASE_HELD;
        news.was_held = true;
        news.deadline_ns = deadline_of(lock);
        news.token = sqlock_token(lock);
        (void)strncpy(news.key, sqlock_key(lock), sizeof news.key - 1);
        publish(lease, &news);
        hold(lease, lock, &news);
        rc = sqlock_release(lock, &news.error);
    }
    (void)sqlock_drop(lock, NULL);
    (void)sqlock_registry_close(registry, NULL);
    news.state = RUN_LEASE_OVER;
    news.result = rc;
    publish(lease, &news);
    return NULL;
}

bool run_lease_start(run_lease *lease, const run_options *options)
{
    pthread_condattr_t attributes;
    int rc;

    *lease = (run_lease){.options = options, .event_fd = -1};
    lease->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (lease->event_fd < 0) {
        cli_error("eventfd: %s", strerror(errno));
        return false;
    }
    (void)pthread_mutex_init(&lease->mutex, NULL);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&lease->wake, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    rc = pthread_create(&lease->thread, NULL, lease_main, lease);
    if (rc != 0) {
        cli_error("cannot start a thread: %s", strerror(rc));
        (void)close(lease->event_fd);
        return false;
    }
    return true;
}

void run_lease_read(run_lease *lease, run_lease_news *news)
{
    uint64_t count;
    ssize_t got;

    got = read(lease->event_fd, &count, sizeof count);
    (void)got; /* nothing new is no error */
    (void)pthread_mutex_lock(&lease->mutex);
    *news = lease->news;
    (void)pthread_mutex_unlock(&lease->mutex);
}

void run_lease_stop(run_lease *lease)
{
    (void)pthread_mutex_lock(&lease->mutex);
    lease->is_stopping = true;
    (void)pthread_cond_signal(&lease->wake);
    (void)pthread_mutex_unlock(&lease->mutex);
}

void run_lease_clear(run_lease *lease)
{
    (void)pthread_join(lease->thread, NULL);
    (void)pthread_cond_destroy(&lease->wake);
    (void)pthread_mutex_destroy(&lease->mutex);
    (void)close(lease->event_fd);
}
