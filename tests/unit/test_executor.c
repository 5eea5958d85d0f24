/*
 * test_executor.c - the executor: no wake-up is lost, and one thread always
 * remains that runs no task that may block
 */
#include "unit.h"

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
    bool blocks; /* until is_released, where it may */
    atomic_bool is_released;
    atomic_bool might_wait; /* in its last run */
    atomic_bool is_over;
};

static bool run_probe(struct lk_task *task, bool may_wait)
{
    struct probe *probe = (struct probe *)(void *)task;

    atomic_store(&probe->might_wait, may_wait);
    if (atomic_fetch_add(&probe->runs, 1) < probe->suspensions) {
        if (probe->wakes_itself)
            lk_executor_wake(&executor, task);
        return true;
    }
    while (probe->blocks && may_wait && !atomic_load(&probe->is_released))
        (void)check_pause(INT64_MAX);
    lk_executor_settle(&executor, task);
    atomic_store(&probe->is_over, true);
    lk_executor_remove(&executor);
    return false;
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

static void test_a_task_woken_while_it_runs_runs_again(void **state)
{
    static struct probe probe = {.suspensions = 3, .wakes_itself = true};

    (void)state;
    lk_executor_init(&executor);
    start(&probe, 1);
    assert_becomes_true(atomic_load(&probe.is_over), PATIENCE_MS);
    assert_int_equal(atomic_load(&probe.runs), 4);
    lk_executor_stop(&executor);
}

static void test_a_suspended_task_runs_when_it_is_due(void **state)
{
    static struct probe late = {.task.due_ns = LK_NEVER};
    static struct probe due = {.suspensions = 1};

    (void)state;
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

/* Of two threads one may block; then the other runs all other tasks. */
static void test_one_thread_remains_that_may_not_block(void **state)
{
    static struct probe probes[4] = {
        {.blocks = true}, {.blocks = true}, {.blocks = true}, {.blocks = true}};
    size_t others = 0;

    (void)state;
    lk_executor_init(&executor);
    for (size_t i = 0; i < 4; i++)
        start(&probes[i], 2);
    for (size_t i = 1; i < 4; i++)
        assert_becomes_true(atomic_load(&probes[i].is_over), PATIENCE_MS);
    assert_false(atomic_load(&probes[0].is_over));
    atomic_store(&probes[0].is_released, true);
    assert_becomes_true(atomic_load(&probes[0].is_over), PATIENCE_MS);
    for (size_t i = 0; i < 4; i++)
        others += !atomic_load(&probes[i].might_wait);
    assert_int_equal(others, 3);
    lk_executor_stop(&executor);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_a_task_woken_while_it_runs_runs_again),
    cmocka_unit_test(test_a_suspended_task_runs_when_it_is_due),
    cmocka_unit_test(test_one_thread_remains_that_may_not_block),
};
const struct suite suite_executor = SUITE("executor", tests);
