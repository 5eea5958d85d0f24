/*
 * counted.c - from when leases count, and how long statements about them wait
 *
 * A driver around the real one pauses after a statement, as a slow network
 * does, notes its deadline, or leaves the rows of an answer out, as a server
 * without RETURNING does.
 */
#include "renewer.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "db/drivers.h"
#include "locks/registry.h"
#include "sqlock/many.h"
#include "support/tap.h"
#include "support/workers.h"

#define PREFIX "slow+"
#define PAUSE_MS (400 * SLOWNESS)

static const sqlock_driver *real;
static sqlock_driver slow;

/* The statement that is concerned, and what was seen of it. */
static struct {
    const char *text;
    bool hides_rows; /* report two affected rows instead */
    bool pauses;
    _Atomic int64_t began_ns; /* CLOCK_BOOTTIME before it was sent */
    /* longest time left until the deadline when two leases were sent */
    _Atomic int64_t left_ns;
} watched;

static int slow_check(const char *url, sqlock_error *err)
{
    return real->check_url(url + strlen(PREFIX), err);
}

static int slow_open(void *connection, const char *url,
                     const sqlock_connect *how, sqlock_error *err)
{
    return real->open(connection, url + strlen(PREFIX), how, err);
}

static void note_left(const sqlock_value *parameters, size_t count,
                      int64_t deadline_ns)
{
    const struct tap_event event = {.parameters = parameters, .count = count};
    unsigned leases = 0;

    if (census_array(&event, &leases) != NULL && leases == 2)
        atomic_store(&watched.left_ns, deadline_ns - sqlock_monotonic_ns());
}

static int slow_execute(void *connection, const sqlock_statement *statement,
                        const sqlock_value *parameters, size_t count,
                        int64_t deadline_ns, sqlock_result *result,
                        sqlock_error *err)
{
    bool is_watched = watched.text != NULL && statement->text == watched.text;
    int rc;

    if (is_watched) {
        note_left(parameters, count, deadline_ns);
        atomic_store(&watched.began_ns, lk_boottime_ns());
    }
    rc = real->execute(connection, statement, parameters, count, deadline_ns,
                       result, err);
    if (rc < 0 || !is_watched)
        return rc;
    if (watched.hides_rows) {
        sqlock_result_clear(result);
        result->affected = 2;
    }
    if (watched.pauses)
        (void)wait_until(false, PAUSE_MS);
    return rc;
}

/* Open a registry by that driver; registry_end() closes it. */
static sqlock_registry *open_slow(struct fixture *f, sqlock_options options)
{
    static char schemes[32];
    char url[1024];

    if (real == NULL) {
        assert_ok(lk_driver_find(&real, f->url, &f->err));
        (void)snprintf(schemes, sizeof schemes, PREFIX "%.*s",
                       (int)strcspn(f->url, ":"), f->url);
        slow = *real;
        slow.name = "slow";
        slow.schemes = schemes;
        slow.check_url = slow_check;
        slow.resolve_url = NULL;
        slow.open = slow_open;
        slow.execute = slow_execute;
        assert_true(lk_driver_add(&slow));
    }
    memset(&watched, 0, sizeof watched);
    (void)snprintf(url, sizeof url, PREFIX "%s", f->url);
    return fixture_registry_at(f, url, &options);
}

/* The rows are read after the claim, since its answer does not say what was
 * granted; the leases began before. */
static void test_many_leases_count_from_before_the_claim(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = fixture_options(f);
    sqlock_registry *registry;
    sqlock_lock *locks[2];

    options.margin_ms = 1;
    registry = open_slow(f, options);
    for (size_t i = 0; i < 2; i++)
        locks[i] = nth_lock(f, registry, i);
    watched.text = census_text(registry, SQLOCK_SQL_CLAIM_MANY);
    watched.hides_rows = true;
    watched.pauses = true;
    assert_ok(sqlock_acquire_many(locks, 2, 0, NULL, NULL, &f->err));
    assert_true(atomic_load(&watched.began_ns) != 0);
    for (size_t i = 0; i < 2; i++) {
        assert_true(lock_deadline(locks[i]) < atomic_load(&watched.began_ns) +
                                                  LONG_TTL_MS * LK_NS_PER_MS);
        assert_true(sqlock_token(locks[i]) > 0);
        lock_end(locks[i]);
    }
    registry_end(registry);
}

struct successor {
    sqlock_lock *lock;
    int64_t deadline_ns;
};

static int succeed(struct worker *worker)
{
    struct successor *self = worker->context;

    worker_expect(worker, 0,
                  lock_try(self->lock, PATIENCE_MS, 0, &worker->err));
    self->deadline_ns = lock_deadline(self->lock);
    worker_expect(worker, 0, sqlock_release(self->lock, &worker->err));
    return 0;
}

static void test_a_hand_off_counts_from_before_it_was_sent(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = fixture_options(f);
    sqlock_registry *registry;
    struct successor next;
    struct worker worker;
    sqlock_lock *lock;

    options.margin_ms = 1;
    registry = open_slow(f, options);
    lock = lock_obtain(registry, f->name);
    next.lock = lock_obtain(registry, f->name);
    watched.text = census_text(registry, SQLOCK_SQL_HAND_OFF);
    watched.pauses = true;
    lock_take(lock, 0);
    worker_start(&worker, succeed, &next);
    assert_becomes_true(worker_is_parked(&worker), PATIENCE_MS);
    lock_give(lock);
    worker_join(&worker);
    assert_true(atomic_load(&watched.began_ns) != 0);
    /* the deadline is set before the pause is over only if it counts from
     * before */
    assert_true(next.deadline_ns <
                atomic_load(&watched.began_ns) + LONG_TTL_MS * LK_NS_PER_MS);
    lock_drop(next.lock);
    lock_drop(lock);
    registry_end(registry);
}

/* A short and a long lease are renewed together: the statement may wait for its
 * answer only as long as the short one allows. */
static void
test_a_batch_waits_as_long_as_its_shortest_lease_allows(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = open_slow(f, renewer_options(f));
    sqlock_lock *locks[2];

    for (size_t i = 0; i < 2; i++)
        locks[i] = nth_lock(f, registry, i);
    watched.text = census_text(registry, SQLOCK_SQL_RENEW_MANY);
    take_renewed(locks[0], RENEWED_MS, NULL);
    take_renewed(locks[1], 100 * RENEWED_MS, NULL);
    assert_becomes_true(atomic_load(&watched.left_ns) != 0, PATIENCE_MS);
    assert_true(atomic_load(&watched.left_ns) <= RENEWED_MS * LK_NS_PER_MS / 4);
    lock_end(locks[0]);
    lock_end(locks[1]);
    registry_end(registry);
}

static const struct test tests[] = {
    TEST_ON(test_many_leases_count_from_before_the_claim, ON_ALL, IN_ALL),
    TEST_ON(test_a_hand_off_counts_from_before_it_was_sent, ON_ALL, IN_ALL),
    TEST(test_a_batch_waits_as_long_as_its_shortest_lease_allows),
};
const struct topic topic_counted = TOPIC(tests);
