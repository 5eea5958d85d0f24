/*
 * waiting_session.c - the server ends the session in which a waiter hears
 */
#include "conformance.h"

#include "support/workers.h"

struct waiting {
    sqlock_lock *lock;
    bool fail_fast;
    struct worker worker;
};

static int wait_and_release(struct worker *worker)
{
    struct waiting *waiting = worker->context;
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;

    options.fail_fast = waiting->fail_fast;
    worker_expect(
        worker, 0,
        sqlock_acquire(waiting->lock, SQLOCK_FOREVER, &options, &worker->err));
    worker_expect(worker, 0, sqlock_release(waiting->lock, &worker->err));
    return 0;
}

static bool has_tickets(struct fixture *f, int count)
{
    return sql_integer(&f->sql,
                       "SELECT coalesce(max(char_length(QUEUE) - "
                       "char_length(replace(QUEUE, '[\"', ''))), 0) FROM %s "
                       "WHERE LOCK_NAME = '%s'",
                       f->table, f->name) == 2 * count;
}

/* Return the session that waits for the bell of the first who waits; 0:
 * none. */
static int64_t hearing_session(struct fixture *f)
{
    return sql_integer(
        &f->sql,
        "SELECT coalesce(max(ID), 0) FROM information_schema.PROCESSLIST, %s "
        "WHERE LOCK_NAME = '%s' AND ID <> CONNECTION_ID() AND INFO LIKE "
        "concat('%%GET_LOCK(''sqlock:', "
        "replace(substr(QUEUE, 30, 23), '-', ''), '%%')",
        f->table, f->name);
}

/* The database is there, so neither fail_fast nor a pause is due. */
static void test_a_waiter_whose_session_was_ended_goes_on(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = fixture_options(f);
    sqlock_registry *registry = fixture_registry(f, &options);
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    struct waiting first = {.lock = lock_obtain(f->b, f->name)};
    struct waiting second = {.lock = lock_obtain(registry, f->name),
                             .fail_fast = true};

    lock_take(lock, 0);
    worker_start(&first.worker, wait_and_release, &first);
    assert_becomes_true(has_tickets(f, 1), PATIENCE_MS);
    worker_start(&second.worker, wait_and_release, &second);
    assert_becomes_true(has_tickets(f, 2), PATIENCE_MS);
    for (int i = 0; i < 2; i++) {
        int64_t session = 0;

        assert_becomes_true((session = hearing_session(f)) != 0, PATIENCE_MS);
        (void)sql_run(&f->sql, "KILL %lld", (long long)session);
        assert_becomes_true(hearing_session(f) != session, PATIENCE_MS);
    }
    lock_give(lock);
    worker_join(&first.worker);
    worker_join(&second.worker);
    lock_drop(first.lock);
    lock_drop(second.lock);
    lock_drop(lock);
    registry_end(registry);
}

static const struct test tests[] = {
    TEST_OF_ROWS(test_a_waiter_whose_session_was_ended_goes_on, ON_MYSQL,
                 IN_SQLOCK),
};
const struct topic topic_waiting_session = TOPIC(tests);
