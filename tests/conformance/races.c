/*
 * races.c - many claims at once: exactly one is granted (F20, F24); and many
 * releases at once
 */
#include "conformance.h"

#include <stdio.h>
#include <string.h>

#include "support/tap.h"
#include "support/workers.h"

#define REGISTRIES 4
#define RELEASES 12
#define STATEMENT_TIMEOUT_MS (800 * SLOWNESS)

struct contest {
    sqlock_lock *locks[REGISTRIES];
    atomic_uint granted;
};

static int claim_once(struct worker *worker)
{
    struct contest *contest = worker->context;
    sqlock_lock *lock = contest->locks[worker->index];
    int rc = lock_try(lock, 0, 0, &worker->err);

    if (rc == 0) {
        (void)atomic_fetch_add(&contest->granted, 1);
        return 0;
    }
    if (rc != SQLOCK_EBUSY)
        return worker_fail(worker, "acquire gave %d: %s", rc,
                           worker->err.message);
    return 0;
}

/* Let all registries claim the lock at once, and assert that one is granted
 * it. */
static void contend(struct fixture *f, sqlock_registry *const *registries)
{
    struct contest contest = {.granted = 0};
    struct workers workers;
    int i;

    for (i = 0; i < REGISTRIES; i++)
        contest.locks[i] = lock_obtain(registries[i], f->name);
    workers_start(&workers, REGISTRIES, claim_once, &contest);
    workers_join(&workers);
    assert_int_equal(atomic_load(&contest.granted), 1);
}

/* Open the registries.  A lock whose thread has ended stays held until its
 * registry is closed. */
static void open_all(struct fixture *f, sqlock_registry **registries)
{
    sqlock_options options = fixture_options(f);
    int i;

    options.pool_size = 1;
    for (i = 0; i < REGISTRIES; i++)
        registries[i] = fixture_registry(f, &options);
}

static void close_all(sqlock_registry **registries)
{
    int i;

    for (i = 0; i < REGISTRIES; i++)
        registry_end(registries[i]);
}

/* The row does not exist yet, and all claim it at once.  The count of affected
 * rows must not make two of them believe that they have inserted it. */
static void test_F20_of_many_first_claims_one_is_granted(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registries[REGISTRIES];
    unsigned round;

    open_all(f, registries);
    for (round = 0; round < check_scale(25, 2000); round++) {
        fixture_next(f);
        contend(f, registries);
    }
    close_all(registries);
}

/* The holder's row is deleted, and all claim the lock at once.  A row that does
 * not exist cannot be locked to keep others out, so the claiming statement
 * itself must let only one in. */
static void test_F24_a_row_that_is_not_there_lets_only_one_in(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registries[REGISTRIES];
    sqlock_lock *old = lock_obtain(f->a, f->name);
    unsigned round;

    open_all(f, registries);
    for (round = 0; round < check_scale(10, 500); round++) {
        lock_take(old, 0);
        fixture_delete(f, f->name);
        contend(f, registries);
        assert_fails(SQLOCK_ELOST, sqlock_release(old, &f->err));
        close_all(registries);
        open_all(f, registries);
    }
    close_all(registries);
    lock_drop(old);
}

/* One claim takes over an expired lease; the others find the lock busy. */
static void test_of_many_takeovers_one_is_granted(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registries[REGISTRIES];
    sqlock_lock *old = lock_obtain(f->a, f->name);

    open_all(f, registries);
    lock_take(old, 100);
    fixture_await_expiry(f, f->name);
    contend(f, registries);
    assert_fails(SQLOCK_ELOST, sqlock_release(old, &f->err));
    close_all(registries);
    lock_drop(old);
}

/* Locks of one registry with a pool of one connection, whose statements are
 * slow. */
struct slow {
    sqlock_lock *locks[RELEASES];
};

static int be_slow(void *context, const struct tap_event *event)
{
    (void)context;
    if (event->call == TAP_EXECUTE)
        check_sleep(STATEMENT_TIMEOUT_MS / 4);
    return 0;
}

static int release_one(struct worker *worker)
{
    struct slow *slow = worker->context;

    worker_expect(worker, 0,
                  sqlock_release(slow->locks[worker->index], &worker->err));
    return 0;
}

/* Each waits for the connection until those before it have been sent, also
 * longer than a statement may take: the lease lasts. */
static void test_many_releases_wait_for_one_connection(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = fixture_options(f);
    struct workers workers;
    sqlock_registry *registry;
    struct slow slow;

    options.pool_size = 1;
    options.ttl_ms = 120000;
    options.statement_timeout_ms = STATEMENT_TIMEOUT_MS;
    options.ownership = SQLOCK_OWNED_BY_HANDLE;
    registry = fixture_tapped(f, &options);
    for (int i = 0; i < RELEASES; i++) {
        fixture_next(f);
        slow.locks[i] = lock_obtain(registry, f->name);
        lock_take(slow.locks[i], 0);
    }
    tap_hooks(be_slow, NULL, NULL);
    workers_start(&workers, RELEASES, release_one, &slow);
    workers_join(&workers);
    tap_reset();
    for (int i = 0; i < RELEASES; i++)
        lock_drop(slow.locks[i]);
    registry_end(registry);
}

static int be_slow_once(void *context, const struct tap_event *event)
{
    atomic_bool *is_slow = context;

    if (event->call == TAP_EXECUTE && atomic_exchange(is_slow, false))
        check_sleep(STATEMENT_TIMEOUT_MS * 3 / 2);
    return 0;
}

static int release_other(struct worker *worker)
{
    (void)!sqlock_release(worker->context, NULL); /* too late, perhaps */
    return 0;
}

static int wait_for_it(struct worker *worker)
{
    worker_expect(
        worker, 0,
        sqlock_acquire(worker->context, PATIENCE_MS, NULL, &worker->err));
    worker_expect(worker, 0, sqlock_release(worker->context, &worker->err));
    return 0;
}

static bool is_waited_for(struct fixture *f)
{
    sqlock_info *info = NULL;
    bool is_it;

    assert_ok(sqlock_show(f->a, f->name, &info, &f->err));
    is_it = info->waiters == 1;
    sqlock_info_free(info, 1);
    return is_it;
}

/* A release waits for a connection for longer than a statement may take, and
 * does not know that somebody waits: its second statement has time, too. */
static void test_a_release_that_waited_finds_a_ticket(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = fixture_options(f);
    struct worker slow, waiting;
    atomic_bool is_slow = true;
    sqlock_registry *registry;
    sqlock_lock *lock, *other;

    options.pool_size = 1;
    options.ttl_ms = 120000;
    options.statement_timeout_ms = STATEMENT_TIMEOUT_MS;
    options.ownership = SQLOCK_OWNED_BY_HANDLE;
    registry = fixture_tapped(f, &options);
    lock = lock_obtain(registry, f->name);
    lock_take(lock, 0);
    worker_start(&waiting, wait_for_it, lock_obtain(f->b, f->name));
    assert_becomes_true(is_waited_for(f), PATIENCE_MS);
    fixture_next(f);
    other = lock_obtain(registry, f->name);
    lock_take(other, 0);
    tap_hooks(be_slow_once, NULL, &is_slow);
    worker_start(&slow, release_other, other);
    assert_becomes_true(!atomic_load(&is_slow), PATIENCE_MS);
    assert_ok(sqlock_release(lock, &f->err));
    tap_reset();
    worker_join(&slow);
    worker_join(&waiting);
    registry_end(registry);
}

static const struct test tests[] = {
    TEST(test_F20_of_many_first_claims_one_is_granted),
    TEST(test_F24_a_row_that_is_not_there_lets_only_one_in),
    TEST(test_of_many_takeovers_one_is_granted),
    TEST_ON(test_a_release_that_waited_finds_a_ticket, ON_SERVERS, IN_SQLOCK),
    TEST_ON(test_many_releases_wait_for_one_connection, ON_SERVERS, IN_SQLOCK),
};
const struct topic topic_races = TOPIC(tests);
