/*
 * test_standstill.c - requests while threads of the executor are held up in
 * statements
 */
#include "suite.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "locks/registry.h"
#include "support/tap.h"

struct barrier {
    const char *text; /* statement to hold up; NULL: any */
    atomic_uint count;
    atomic_bool is_open;
};

static int hold_up(void *context, const struct tap_event *event)
{
    struct barrier *barrier = context;
    int64_t until = check_deadline_ns(PATIENCE_MS);

    if (event->call != TAP_EXECUTE ||
        (barrier->text != NULL && event->text != barrier->text))
        return 0;
    (void)atomic_fetch_add(&barrier->count, 1);
    while (!atomic_load(&barrier->is_open) && check_pause(until))
        ;
    return 0;
}

/* Return whether all threads of the executor are busy, so that none can run
 * another task. */
static bool are_all_busy(sqlock_registry *registry)
{
    struct lk_executor *runner = &registry->executor;
    bool busy;

    pthread_mutex_lock(&runner->mutex);
    busy = runner->running == runner->threads_max && runner->idle == 0;
    pthread_mutex_unlock(&runner->mutex);
    return busy;
}

#define BLOCKERS 12

/* A thread holds the lock, and a request for it is abandoned in the FIFO while
 * no thread of the executor is free to end the request.  The lock cannot be
 * dropped: the abandoned request does not count as a user of it, but the holder
 * does. */
static void test_a_held_lock_is_not_dropped_for_an_abandoned_one(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = fixture_options(f);
    struct barrier barrier = {0};
    sqlock_request *blockers[BLOCKERS];
    sqlock_lock *locks[BLOCKERS];
    sqlock_registry *tapped;
    sqlock_request *queued;
    sqlock_lock *lock;

    options.pool_size = 4;
    options.statement_timeout_ms = PATIENCE_MS;
    tapped = fixture_tapped(f, &options);
    lock = lock_obtain(tapped, f->name);
    lock_take(lock, 0);
    queued = request_ask(f, lock, SQLOCK_FOREVER, NULL, 0);
    tap_hooks(hold_up, NULL, &barrier);
    for (size_t i = 0; i < BLOCKERS; i++) {
        char name[96];

        (void)snprintf(name, sizeof name, "%s blocker %zu", f->name, i);
        locks[i] = lock_obtain(tapped, name);
        blockers[i] = request_ask(f, locks[i], SQLOCK_FOREVER, NULL, 0);
    }
    assert_becomes_true(are_all_busy(tapped), PATIENCE_MS);
    request_give_up(f, queued);
    assert_fails(SQLOCK_EINUSE, sqlock_drop(lock, &f->err));
    atomic_store(&barrier.is_open, true);
    lock_end(lock);
    for (size_t i = 0; i < BLOCKERS; i++) {
        request_expect(f, blockers[i], SQLOCK_REQUEST_HELD, 0);
        lock_end(locks[i]);
    }
    registry_end(tapped);
}

static int64_t cpu_ns(sqlock_registry *registry)
{
    struct lk_executor *runner = &registry->executor;
    int64_t sum = 0;

    pthread_mutex_lock(&runner->mutex);
    for (size_t i = 0; i < runner->running; i++) {
        struct timespec at = {0};
        clockid_t clock;

        assert_int_equal(pthread_getcpuclockid(runner->threads[i], &clock), 0);
        assert_int_equal(clock_gettime(clock, &at), 0);
        sum += at.tv_sec * INT64_C(1000000000) + at.tv_nsec;
    }
    pthread_mutex_unlock(&runner->mutex);
    return sum;
}

#define LATE_MS 300

/* Ask for the lock by the request *next, and release it by the request
 * *release, whose hand-off is held up.  Return how long *next waits, in ms.  If
 * *next times out before the hand-off has begun, begin again with a longer
 * wait. */
static int64_t begin_to_serve(struct fixture *f, sqlock_lock *lock,
                              const struct barrier *barrier,
                              sqlock_request **next, sqlock_request **release)
{
    for (int64_t wait_ms = 250;; wait_ms *= 4) {

        lock_take(lock, 0);
        *next = request_ask(f, lock, wait_ms, NULL, 0);
        assert_ok(sqlock_request_release(release, lock, 0, &f->err));
        assert_becomes_true(atomic_load(&barrier->count) > 0 ||
                                request_is_over(*next),
                            PATIENCE_MS);
        if (atomic_load(&barrier->count) > 0)
            return wait_ms;
        request_expect(f, *next, SQLOCK_REQUEST_FREE, SQLOCK_ETIMEDOUT);
        request_expect(f, *release, SQLOCK_REQUEST_FREE, 0);
    }
}

/* The deadline of a request passes while the lock is being handed off to it:
 * the request gets the lock all the same, and until then no thread of the
 * executor runs in a loop. */
static void test_a_request_that_is_served_late_costs_nothing(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *tapped = fixture_tapped(f, NULL);
    sqlock_lock *lock = lock_obtain(tapped, f->name);
    struct barrier barrier = {0};
    sqlock_request *release;
    sqlock_request *next;
    int64_t spent_ns;

    barrier.text = tapped->store.statements[SQLOCK_SQL_HAND_OFF].sent.text;
    tap_hooks(hold_up, NULL, &barrier);
    (void)wait_until(false, begin_to_serve(f, lock, &barrier, &next, &release));
    spent_ns = cpu_ns(tapped);
    (void)wait_until(false, LATE_MS);
    spent_ns = cpu_ns(tapped) - spent_ns;
    assert_less(spent_ns, LATE_MS * INT64_C(1000000) / 5);
    atomic_store(&barrier.is_open, true);
    request_expect(f, release, SQLOCK_REQUEST_FREE, 0);
    request_expect(f, next, SQLOCK_REQUEST_HELD, 0);
    lock_end(lock);
    registry_end(tapped);
}

static const struct test tests[] = {
    TEST_ON(test_a_held_lock_is_not_dropped_for_an_abandoned_one, ON_POSTGRES,
            IN_SQLOCK),
    TEST_ON(test_a_request_that_is_served_late_costs_nothing, ON_POSTGRES,
            IN_SQLOCK),
};

const struct topic topic_standstill = TOPIC(tests);
