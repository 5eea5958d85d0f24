/*
 * test_queue.c - the tickets of many processes in one row, each here a registry
 * of its own: who waits is quiet, and all are served in order
 */
#include "suite.h"

#include <stdio.h>

#include "sqlock/admin.h"
#include "sqlock/stats.h"

/* MySQL and MariaDB take a chain of 32 sessions for a deadlock. */
#define WAITERS 60

/* A waiter enqueues, is rung a few times on its way to the front, claims and
 * releases; where it hears one other only, it also reads the row at times.  One
 * whose wait is refused each time sends hundreds. */
#define STATEMENTS_MAX (40 * WAITERS)

struct line {
    sqlock_registry *registries[WAITERS];
    sqlock_lock *locks[WAITERS];
    sqlock_request *requests[WAITERS];
};

static int32_t count_waiters(struct fixture *f)
{
    sqlock_info *row;
    int32_t count;

    assert_ok(sqlock_show(f->b, f->name, &row, &f->err));
    count = row->waiters;
    sqlock_info_free(row, 1);
    return count;
}

/* Let each registry wait for the lock, one after another. */
static void line_up(struct fixture *f, struct line *line)
{
    sqlock_options options = fixture_options(f);

    options.pool_size = 1;
    for (int i = 0; i < WAITERS; i++) {
        line->registries[i] = fixture_registry(f, &options);
        line->locks[i] = lock_obtain(line->registries[i], f->name);
        assert_ok(sqlock_request_acquire(&line->requests[i], line->locks[i],
                                         SQLOCK_FOREVER, NULL, 0, &f->err));
        assert_becomes_true(count_waiters(f) == i + 1, PATIENCE_MS);
    }
}

static uint64_t count_statements(const struct line *line)
{
    uint64_t count = 0;

    for (int i = 0; i < WAITERS; i++) {
        sqlock_stats stats = SQLOCK_STATS_INIT;

        assert_int_equal(
            sqlock_registry_stats(line->registries[i], &stats, NULL), 0);
        count += stats.statement.count;
    }
    return count;
}

/* Serve the waiter that is next.  Nobody behind it has the lock before. */
static void serve(struct fixture *f, struct line *line, int next)
{
    assert_becomes_true(sqlock_request_status(line->requests[next]) ==
                            SQLOCK_REQUEST_HELD,
                        PATIENCE_MS);
    for (int i = next + 1; i < WAITERS; i++)
        assert_int_equal(sqlock_request_status(line->requests[i]),
                         SQLOCK_REQUEST_FETCHING);
    assert_ok(sqlock_request_finish(line->requests[next], &f->err));
    lock_end(line->locks[next]);
}

static void test_many_processes_wait_quietly_and_in_order(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *held = lock_obtain(f->a, f->name);
    struct line line;

    lock_take(held, 0);
    line_up(f, &line);
    lock_end(held);
    for (int i = 0; i < WAITERS; i++)
        serve(f, &line, i);
    assert_in_range(count_statements(&line), WAITERS, STATEMENTS_MAX);
    for (int i = 0; i < WAITERS; i++)
        registry_end(line.registries[i]);
}

static const struct test tests[] = {
    TEST(test_many_processes_wait_quietly_and_in_order),
};

const struct topic topic_queue = TOPIC(tests);
