/*
 * test_queue.c - the tickets of many processes in one row, each here a registry
 * of its own: all are served
 */
#include "suite.h"

#include "sqlock/admin.h"

/* MySQL and MariaDB take a chain of 32 sessions for a deadlock. */
#define WAITERS 60

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

/* Serve whoever has the lock.  Return whether it was somebody. */
static bool serve_one(struct fixture *f, struct line *line)
{
    for (int i = 0; i < WAITERS; i++) {
        if (line->requests[i] == NULL ||
            sqlock_request_status(line->requests[i]) != SQLOCK_REQUEST_HELD)
            continue;
        assert_ok(sqlock_request_finish(line->requests[i], &f->err));
        line->requests[i] = NULL;
        lock_end(line->locks[i]);
        return true;
    }
    return false;
}

TEST(test_many_processes_are_all_served)
{
    sqlock_lock *held = lock_obtain(f->a, f->name);
    struct line line;

    lock_take(held, 0);
    line_up(f, &line);
    lock_end(held);
    for (int i = 0; i < WAITERS; i++)
        assert_becomes_true(serve_one(f, &line), PATIENCE_MS);
    for (int i = 0; i < WAITERS; i++)
        registry_end(line.registries[i]);
}
