/*
 * test_queue.c - the database's wait queue as it is today: who holds its locks,
 * who listens, and when a process leaves others a pause (tests/scenes has what
 * waiters may expect of it)
 */
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "locks/registry.h"
#include "sqlock/many.h"
#include "wait/peers.h"

#define LONG_MS 3600000

/* Acquire the lock in the fixture's first registry; another registry is to wait
 * for it. */
static void open_stage(struct relay *stage, struct fixture *f, uint32_t ttl_ms)
{
    relay_open(stage, f, LONG_MS);
    lock_take(stage->held, ttl_ms);
}

/* Start the contender, and let it wait for so many ms. */
static void start_next(struct relay *stage, unsigned ms)
{
    contender_queue(&stage->next, stage->next.lock, SQLOCK_FOREVER);
    check_sleep(ms);
}

/* --- false and missing notifications --- */

static void notify(struct fixture *f, int64_t queue)
{
    sql_run(&f->sql, "SELECT pg_notify('sqlock_%llx', '')",
            (unsigned long long)queue);
}

/* Return the number of the queue lock to which a waiter listens; only one
 * does. */
static int64_t queue_of_listener(struct fixture *f)
{
    return sql_integer(&f->sql,
                       "SELECT (classid::bigint << 32 | objid::bigint) - 1 "
                       "FROM pg_locks WHERE locktype = 'advisory' "
                       "AND mode = 'ShareLock' AND granted LIMIT 1");
}

static bool somebody_listens(struct fixture *f)
{
    return sql_integer(&f->sql, "SELECT count(*) FROM pg_locks "
                                "WHERE locktype = 'advisory' "
                                "AND mode = 'ShareLock' AND granted") > 0;
}

static void test_F81_false_notifications_give_nobody_the_lock(void **state)
{
    struct fixture *f = *state;
    struct relay stage;

    open_stage(&stage, f, 0);
    start_next(&stage, 0);
    assert_becomes_true(somebody_listens(f), PATIENCE_MS);
    for (unsigned i = 0; i < 3; i++) {
        notify(f, queue_of_listener(f));
        check_sleep(50);
        assert_int_equal(atomic_load(&stage.next.rc), 1);
        assert_becomes_true(somebody_listens(f), PATIENCE_MS);
    }
    lock_give(stage.held);
    relay_close(&stage);
}

/* A session of another program (a stranger) has the queue lock: the waiter gets
 * the lock all the same, a second later. */
static void
test_F81_a_stranger_with_the_queue_lock_delays_nobody_for_ever(void **state)
{
    struct fixture *f = *state;
    struct relay stage;
    int64_t queue;

    open_stage(&stage, f, 0);
    start_next(&stage, 0);
    assert_becomes_true(somebody_listens(f), PATIENCE_MS);
    queue = queue_of_listener(f);
    sql_run(&f->sql, "SELECT pg_advisory_lock(%lld)", (long long)queue);
    lock_give(stage.held);
    contender_await(&stage.next);
    sql_run(&f->sql, "SELECT pg_advisory_unlock_all()");
    relay_close(&stage);
}

/* With waiting=poll, other processes poll as well and are notified of nothing:
 * this process leaves the lock free for a pause when its share of time is used
 * up. */
static void test_who_polls_by_option_leaves_others_a_pause(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = fixture_options(f);
    sqlock_registry *registry;
    sqlock_lock *lock;

    options.waiting = SQLOCK_WAITING_POLL;
    registry = fixture_registry(f, &options);
    lock = lock_obtain(registry, f->name);
    assert_false(lk_peers_are_due(lock->entry));
    lock_take(lock, 0);
    check_sleep(320); /* longer than the share, 300 ms */
    lock_give(lock);
    assert_true(lk_peers_are_due(lock->entry));
    lock_drop(lock);
    registry_end(registry);
}

/* --- a lease that is set aside --- */

/* TTL of leases that are to run out. */
#define TTL_MS (600 * SLOWNESS)

/* Obtain a lock whose key is greater than that of `before`, because locks are
 * entered in the order of their keys.  `name` gets its name. */
static sqlock_lock *obtain_after(sqlock_registry *registry,
                                 const sqlock_lock *before, char name[96])
{
    for (int i = 0;; i++) {
        sqlock_lock *lock;

        (void)snprintf(name, 96, "%s, %d", sqlock_name(before), i);
        lock = lock_obtain(registry, name);
        if (strcmp(sqlock_key(lock), sqlock_key(before)) > 0)
            return lock;
        lock_drop(lock);
    }
}

/* Return the number of sessions at the server. */
static int64_t count_sessions(struct fixture *f)
{
    return sql_integer(&f->sql, f->database->bit == ON_POSTGRES
                                    ? "SELECT count(*) FROM pg_stat_activity "
                                      "WHERE backend_type = 'client backend'"
                                    : "SELECT count(*) FROM "
                                      "information_schema.PROCESSLIST");
}

/* A lease that was waited for keeps the queue lock.  When the lease is over, an
 * acquire of two locks sets it aside, but has to wait for the second lock, and
 * claims neither: the queue lock is given up all the same. */
static void test_a_lease_set_aside_in_vain_gives_up_its_place(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = fixture_options(f);
    sqlock_acquire_options brief = SQLOCK_ACQUIRE_INIT;
    sqlock_lock *holder = lock_obtain(f->b, f->name);
    sqlock_request *request = NULL;
    sqlock_registry *registry;
    sqlock_lock *late;
    sqlock_lock *taken;
    sqlock_lock *both[2];
    int64_t before;
    char name[96];

    lock_take_and_give(holder); /* MySQL: an insert takes no queue lock */
    lock_take(holder, 0);
    before = count_sessions(f);
    options.ownership = SQLOCK_OWNED_BY_HANDLE;
    registry = fixture_registry(f, &options);
    late = lock_obtain(registry, f->name);
    taken = obtain_after(registry, late, name);
    both[0] = lock_obtain(registry, f->name);
    both[1] = lock_obtain(registry, name);
    lock_take(taken, 0);
    brief.ttl_ms = TTL_MS;
    assert_ok(sqlock_request_acquire(&request, late, PATIENCE_MS, &brief, 0,
                                     &f->err));
    assert_becomes_true(queue_is_waited_at(f), PATIENCE_MS);
    lock_give(holder);
    assert_becomes_true(sqlock_request_status(request) == SQLOCK_REQUEST_HELD,
                        PATIENCE_MS);
    assert_becomes_true(!sqlock_is_held(late), PATIENCE_MS);
    assert_fails(SQLOCK_ETIMEDOUT,
                 sqlock_acquire_many(both, 2, 100, NULL, NULL, &f->err));
    assert_true(sqlock_request_finish(request, &f->err) < 0);
    lock_give(taken);
    registry_end(registry);
    assert_becomes_true(count_sessions(f) <= before, PATIENCE_MS);
    lock_drop(holder);
}

static const struct test tests[] = {
    TEST(test_who_polls_by_option_leaves_others_a_pause),
    TEST_ON(test_F81_false_notifications_give_nobody_the_lock, ON_POSTGRES,
            IN_SQLOCK),
    TEST_ON(test_F81_a_stranger_with_the_queue_lock_delays_nobody_for_ever,
            ON_POSTGRES, IN_SQLOCK),
    TEST_ON(test_a_lease_set_aside_in_vain_gives_up_its_place, ON_SERVERS,
            IN_SQLOCK),
};

const struct topic topic_queue = TOPIC(tests);
