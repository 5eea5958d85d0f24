/*
 * test_executor.c - the executor: no wake-up is lost, and one thread always
 * remains that does not block
 */
#include "support/test.h"

#include <stdatomic.h>

#include "base/clock.h"
#include "lock/executor.h"

static struct lk_executor executor;

/* A task that is suspended by its first runs, and then ends. */
struct probe {
    struct lk_task task;
    atomic_uint runs;
    unsigned suspensions; /* runs before the last one */
    bool wakes_itself;
    bool blocks; /* until is_released */
    atomic_bool is_released;
    atomic_bool is_blocked;
    atomic_bool is_over;
};

static enum lk_task_next run_probe(struct lk_task *task, bool may_block)
{
    struct probe *probe = (struct probe *)(void *)task;
    bool is_due = sqlock_monotonic_ns() >= task->due_ns;

    if (atomic_fetch_add(&probe->runs, 1) < probe->suspensions) {
        if (probe->wakes_itself)
            lk_executor_wake(&executor, task);
        return LK_TASK_SUSPENDS;
    }
    if (probe->blocks && !may_block && !is_due)
        return LK_TASK_BLOCKS;
    atomic_store(&probe->is_blocked, may_block);
    while (probe->blocks && may_block && !atomic_load(&probe->is_released))
        (void)check_pause(INT64_MAX);
    lk_executor_settle(&executor, task);
    atomic_store(&probe->is_over, true);
    lk_executor_remove(&executor);
    return LK_TASK_ENDS;
}

static void add(struct probe *probe, size_t threads_max)
{
    probe->task.run = run_probe;
    if (probe->task.due_ns == 0)
        probe->task.due_ns = LK_NEVER;
    assert_int_equal(
        lk_executor_add(&executor, &probe->task, threads_max, NULL), 0);
}

static void start(struct probe *probe, size_t threads_max)
{
    add(probe, threads_max);
    lk_executor_wake(&executor, &probe->task);
    lk_executor_suspend(&executor, &probe->task);
}

TEST(test_a_task_woken_while_it_runs_runs_again)
{
    static struct probe probe = {.suspensions = 3, .wakes_itself = true};

    lk_executor_init(&executor);
    start(&probe, 1);
    assert_becomes_true(atomic_load(&probe.is_over), PATIENCE_MS);
    assert_int_equal(atomic_load(&probe.runs), 4);
    lk_executor_stop(&executor);
}

TEST(test_a_suspended_task_runs_when_it_is_due)
{
    static struct probe late = {.task.due_ns = LK_NEVER};
    static struct probe due = {.suspensions = 1};

    lk_executor_init(&executor);
    add(&late, 1);
    lk_executor_suspend(&executor, &late.task);
    due.task.due_ns = sqlock_monotonic_ns() + LK_NS_PER_MS;
    start(&due, 1);
    assert_becomes_true(atomic_load(&due.is_over), PATIENCE_MS);
    assert_int_equal(atomic_load(&due.runs), 2);
    assert_int_equal(atomic_load(&late.runs), 0);
    lk_executor_wake(&executor, &late.task);
    assert_becomes_true(atomic_load(&late.is_over), PATIENCE_MS);
    lk_executor_stop(&executor);
}

/* Of two threads one may block; then the other runs what does not, what is due,
 * and what is woken. */
TEST(test_one_thread_remains_that_does_not_block)
{
    static struct probe first = {.blocks = true};
    static struct probe second = {.blocks = true};
    static struct probe due = {.blocks = true};
    static struct probe other;

    lk_executor_init(&executor);
    start(&first, 2);
    assert_becomes_true(atomic_load(&first.is_blocked), PATIENCE_MS);
    due.task.due_ns = sqlock_monotonic_ns() + 50 * LK_NS_PER_MS;
    start(&second, 2);
    start(&due, 2);
    start(&other, 2);
    assert_becomes_true(atomic_load(&other.is_over), PATIENCE_MS);
    assert_becomes_true(atomic_load(&due.is_over), PATIENCE_MS);
    assert_false(atomic_load(&due.is_blocked));
    lk_executor_wake(&executor, &second.task);
    assert_becomes_true(atomic_load(&second.runs) == 2, PATIENCE_MS);
    assert_false(atomic_load(&first.is_over));
    atomic_store(&second.is_released, true);
    atomic_store(&first.is_released, true);
    assert_becomes_true(atomic_load(&first.is_over), PATIENCE_MS);
    assert_becomes_true(atomic_load(&second.is_over), PATIENCE_MS);
    assert_true(atomic_load(&second.is_blocked));
    lk_executor_stop(&executor);
}

/* A task that blocks is run, although no other thread can be had. */
TEST(test_the_only_thread_may_block)
{
    static struct probe probe = {.blocks = true, .is_released = true};

    lk_executor_init(&executor);
    start(&probe, 1);
    assert_becomes_true(atomic_load(&probe.is_over), PATIENCE_MS);
    lk_executor_stop(&executor);
}
