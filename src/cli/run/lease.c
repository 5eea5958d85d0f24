/*
 * lease.c - the lock of `sqlock run`, in a thread of its own
 *
 * Every call that may wait for the database is made here, so that the main
 * thread receives signals whatever the database does.  The library's renewer
 * renews the lease; this thread publishes until when the lease is held, and
 * decides nothing about the command.  No transaction is open while the command
 * runs.
 */
#include "run.h"
#include "sqlock/async.h"
#include "sqlock/once.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include <sqlock/event.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Pause between two counts of the stale sessions of earlier holders. */
#define STALE_SESSIONS_MS ((int64_t)200)

/* Check this often per TTL whether the lease was renewed. */
#define LOOK_PART 16

static void notify(int fd)
{
    uint64_t one = 1;
    ssize_t written = write(fd, &one, sizeof one);

    (void)written; /* fails if the counter is full; then fd is readable */
}

static void publish(run_lease *lease, const run_lease_news *news)
{
    (void)pthread_mutex_lock(&lease->mutex);
    lease->news = *news;
    (void)pthread_mutex_unlock(&lease->mutex);
    notify(lease->event_fd);
}

static int64_t deadline_of(sqlock_lock *lock)
{
    int64_t now_ns = run_now_ns();

    return now_ns + sqlock_remaining_ms(lock) * RUN_NS_PER_MS;
}

/* ---------------------------------------------------------------- orders -- */

typedef struct orders {
    bool is_recording;
    bool is_stopping;
} orders;

/* Take what the main thread has ordered: recording once, stopping for good. */
static orders take_orders(run_lease *lease)
{
    orders given;

    (void)pthread_mutex_lock(&lease->mutex);
    given = (orders){.is_recording = lease->is_recording,
                     .is_stopping = lease->is_stopping};
    lease->is_recording = false;
    (void)pthread_mutex_unlock(&lease->mutex);
    return given;
}

/* Sleep until there is an order, until @p lost_fd, if not negative, shows that
 * the lease is lost, or for pause_ms.  Return the orders. */
static orders rest(run_lease *lease, int lost_fd, int64_t pause_ms)
{
    struct pollfd files[] = {{.fd = lease->order_fd, .events = POLLIN},
                             {.fd = lost_fd, .events = POLLIN}};
    uint64_t count;
    ssize_t got;

    (void)poll(files, sizeof files / sizeof files[0],
               pause_ms > INT32_MAX ? INT32_MAX : (int)pause_ms);
    got = read(lease->order_fd, &count, sizeof count);
    (void)got; /* no order is no error */
    return take_orders(lease);
}

/* -------------------------------------------------------- stale sessions -- */

/* Decide as run_wait_goes_on() whether to try again after an error, with the
 * lock or without it.  Return false if the thread is to stop. */
static bool tries_again(run_lease *lease, run_wait *wait, int rc,
                        const sqlock_error *err)
{
    return !take_orders(lease).is_stopping && run_wait_goes_on(wait, rc, err);
}

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

/* Wait, with the lock held, until the server has ended the statements that an
 * earlier holder has left running: the command must not begin beside them.
 * Return 0 also if the thread is to stop; SQLOCK_ETIMEDOUT when the wait is
 * over. */
static int await_stale_sessions(run_lease *lease, sqlock_lock *lock,
                                run_wait *wait, sqlock_error *err)
{
    const run_options *options = lease->options;
    orders given = {0};
    bool is_told = false;
    int64_t count;
    int rc;

    for (;;) {
        do {
            rc = count_stale_sessions(lock, &count, err);
        } while (rc < 0 && tries_again(lease, wait, rc, err));
        if (rc < 0 || count == 0 || given.is_stopping)
            return rc;
        if (!is_told)
            run_note("\"%s\" is ours, but %" PRId64 " of the sessions of an "
                     "earlier holder are still at work in the database%s",
                     options->name, count,
                     options->wait_ms == 0 ? "" : ": waiting for their end");
        is_told = true;
        if (run_wait_is_over(wait))
            return SQLOCK_ETIMEDOUT;
        given = rest(lease, -1, STALE_SESSIONS_MS);
    }
}

/* ------------------------------------------------------------------ held -- */

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

/* Report, each once, that the lease is no longer renewed, and that it is
 * renewed again.  The renewer goes on trying meanwhile. */
static void say_renewals(run_lease *lease, int64_t stale_ns, int64_t ttl_ns,
                         bool *is_told)
{
    bool is_stale = stale_ns > ttl_ns / 2;
    char obstacle[sizeof lease->obstacle];

    if (is_stale == *is_told)
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
        *is_told = is_stale;
}

static void record(run_lease *lease, sqlock_lock *lock, run_lease_news *news)
{
    news->is_done = sqlock_once_record(lock, &news->error) == 0;
    news->is_recorded = true;
    publish(lease, news);
}

/* Check whether the lease is still ours and until when, and publish a change.
 * Return whether the lease was renewed. */
static bool look(run_lease *lease, sqlock_lock *lock, run_lease_news *news)
{
    int64_t ttl_ns = (int64_t)lease->options->registry.ttl_ms * RUN_NS_PER_MS;
    int64_t deadline_ns = deadline_of(lock);

    if (sqlock_remaining_ms(lock) <= 0) {
        news->state = RUN_LEASE_LOST;
        (void)!sqlock_renew(lock, 0, &news->error); /* sets the error */
        publish(lease, news);
        return false;
    }
    if (deadline_ns <= news->deadline_ns + ttl_ns / 100)
        return false;
    news->deadline_ns = deadline_ns;
    publish(lease, news);
    return true;
}

/* Hold the lease until the main thread orders its release.  Orders may have
 * come before this function begins: a command can end as soon as the lease was
 * published. */
static void hold(run_lease *lease, sqlock_lock *lock, int lost_fd,
                 run_lease_news *news)
{
    int64_t ttl_ms = (int64_t)lease->options->registry.ttl_ms;
    int64_t renewed_ns = run_now_ns();
    bool is_told = false;
    orders given = take_orders(lease);

    while (!given.is_stopping) {
        if (given.is_recording)
            record(lease, lock, news);
        if (news->state == RUN_LEASE_HELD) {
            if (look(lease, lock, news))
                renewed_ns = run_now_ns();
            say_renewals(lease, run_now_ns() - renewed_ns,
                         ttl_ms * RUN_NS_PER_MS, &is_told);
        }
        if (news->state != RUN_LEASE_HELD)
            lost_fd = -1; /* stays readable: poll() would not sleep */
        given = rest(lease, lost_fd, ttl_ms / LOOK_PART);
    }
}

/* ---------------------------------------------------------------- thread -- */

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

/* With --once, look for a record of the work, and set news->is_done if there is
 * one: then nothing is left to do. */
static int check_done(run_lease *lease, sqlock_registry *registry,
                      run_wait *wait, run_lease_news *news)
{
    int rc;

    if (!lease->options->is_once)
        return 0;
    do {
        rc = sqlock_once_check(registry, lease->options->name, &news->error);
    } while (rc < 0 && tries_again(lease, wait, rc, &news->error));
    news->is_done = rc == 0;
    if (news->is_done)
        news->done_at_us = when_done(registry, lease->options->name);
    return rc == SQLOCK_ENOTFOUND ? 0 : rc;
}

/* Open the registry and acquire the lock.  Return 0 also if news->is_done is
 * set, with the lock or without it.  Also after a failure, the caller releases
 * the lock if news->was_held is set, drops the handle and closes the
 * registry. */
static int take(run_lease *lease, sqlock_registry **registry,
                sqlock_lock **lock, int *lost_fd, run_lease_news *news)
{
    const run_options *options = lease->options;
    sqlock_options how = options->registry;
    run_wait wait;
    int rc;

    how.on_event = note_obstacle;
    how.event_context = lease;
    how.event_level = SQLOCK_LEVEL_WARNING;
    run_wait_begin(&wait, options);
    do {
        rc = sqlock_registry_open(registry, options->url, &how, &news->error);
    } while (rc < 0 && tries_again(lease, &wait, rc, &news->error));
    if (rc == 0)
        rc = check_done(lease, *registry, &wait, news);
    if (rc < 0 || news->is_done)
        return rc;
    rc = sqlock_obtain(lock, *registry, options->name, &news->error);
    if (rc == 0)
        rc = sqlock_lost_fd(lost_fd, *lock, &news->error);
    if (rc < 0)
        return rc;
    rc = run_wait_acquire(&wait, *registry, *lock, &news->error);
    if (rc == SQLOCK_EBUSY || rc == SQLOCK_ETIMEDOUT)
        run_wait_say_holder(options, *registry, false);
    if (rc < 0)
        return rc;
    news->was_held = true;
    publish(lease, news); /* from here on the lock must be released */
    rc = await_stale_sessions(lease, *lock, &wait, &news->error);
    if (rc < 0)
        return rc;
    /* A process that had the lock in the meantime may have done the work. */
    return check_done(lease, *registry, &wait, news);
}

static void *lease_main(void *argument)
{
    run_lease *lease = argument;
    sqlock_registry *registry = NULL;
    sqlock_lock *lock = NULL;
    run_lease_news news = {.state = RUN_LEASE_WAITING};
    int lost_fd = -1;
    int rc;

    rc = take(lease, &registry, &lock, &lost_fd, &news);
    if (rc == 0 && !news.is_done) {
        news.state = RUN_LEASE_HELD;
        news.deadline_ns = deadline_of(lock);
        news.token = sqlock_token(lock);
        sqlock_client_id(lock, news.client_id);
        (void)!sqlock_lease_id(news.lease, lock,
                               lease->options->registry.ttl_ms, NULL);
        sqlock_session_tag(lock, news.tag);
        (void)strncpy(news.key, sqlock_key(lock), sizeof news.key - 1);
        publish(lease, &news);
        hold(lease, lock, lost_fd, &news);
    }
    if (news.was_held) {
        int released = sqlock_release(lock, rc == 0 ? &news.error : NULL);

        rc = rc == 0 ? released : rc;
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
    int rc;

    *lease = (run_lease){.options = options};
    lease->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    lease->order_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (lease->event_fd < 0 || lease->order_fd < 0) {
        cli_error("eventfd: %s", strerror(errno));
        goto failed;
    }
    (void)pthread_mutex_init(&lease->mutex, NULL);
    rc = pthread_create(&lease->thread, NULL, lease_main, lease);
    if (rc == 0)
        return true;
    cli_error("cannot start a thread: %s", strerror(rc));
failed:
    if (lease->event_fd >= 0)
        (void)close(lease->event_fd);
    if (lease->order_fd >= 0)
        (void)close(lease->order_fd);
    return false;
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

void run_lease_record(run_lease *lease)
{
    (void)pthread_mutex_lock(&lease->mutex);
    lease->is_recording = true;
    (void)pthread_mutex_unlock(&lease->mutex);
    notify(lease->order_fd);
}

void run_lease_stop(run_lease *lease)
{
    (void)pthread_mutex_lock(&lease->mutex);
    lease->is_stopping = true;
    (void)pthread_mutex_unlock(&lease->mutex);
    notify(lease->order_fd);
}

void run_lease_clear(run_lease *lease)
{
    (void)pthread_join(lease->thread, NULL);
    (void)pthread_mutex_destroy(&lease->mutex);
    (void)close(lease->event_fd);
    (void)close(lease->order_fd);
}
