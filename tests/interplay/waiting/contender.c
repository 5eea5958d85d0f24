/*
 * contender.c - threads that contend for a lock, and release it when they are
 * told to (suite.h)
 */
#include "suite.h"

#include <stdio.h>
#include <string.h>

static int contend(struct worker *worker)
{
    struct contender *self = worker->context;
    int rc = sqlock_acquire(self->lock, self->wait_ms, NULL, &worker->err);

    atomic_store(&self->rc, rc);
    if (rc < 0)
        return 0;
    while (!atomic_load(&self->may_release))
        (void)check_pause(INT64_MAX);
    self->released = sqlock_release(self->lock, &worker->err);
    return 0;
}

void contender_open(struct contender *contender, struct fixture *f,
                    uint32_t poll_ms)
{
    sqlock_options options = fixture_options(f);

    options.poll_ms = poll_ms;
    memset(contender, 0, sizeof *contender);
    contender->registry = fixture_registry(f, &options);
    contender->lock = lock_obtain(contender->registry, f->name);
}

void contender_close(struct contender *contender)
{
    lock_drop(contender->lock);
    registry_end(contender->registry);
}

void contender_start(struct contender *contender, sqlock_lock *lock,
                     int64_t wait_ms)
{
    contender->lock = lock;
    contender->wait_ms = wait_ms;
    atomic_store(&contender->may_release, false);
    atomic_store(&contender->rc, 1);
    worker_start(&contender->worker, contend, contender);
}

/* Return whether the thread sleeps in some system call: it must be found asleep
 * five times, 2 ms apart. */
static bool is_asleep(const struct worker *worker)
{
    int tid = atomic_load(&worker->tid);

    for (int i = 0; tid != 0 && i < 5; i++) {
        char path[64];
        char text[256] = "";
        const char *state;
        FILE *file;

        (void)snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
        file = fopen(path, "re");
        if (file == NULL)
            return false;
        (void)!fgets(text, sizeof text, file);
        (void)fclose(file);
        state = strrchr(text, ')');
        if (state == NULL || strncmp(state, ") S", 3) != 0)
            return false;
        (void)check_pause(INT64_MAX);
    }
    return tid != 0;
}

void contender_queue(struct contender *contender, sqlock_lock *lock,
                     int64_t wait_ms)
{
    contender_start(contender, lock, wait_ms);
    assert_becomes_true(atomic_load(&contender->rc) <= 0 ||
                            is_asleep(&contender->worker),
                        PATIENCE_MS);
    if (atomic_load(&contender->rc) < 0)
        assert_code(0, atomic_load(&contender->rc), &contender->worker.err);
}

void contender_await(struct contender *contender)
{
    assert_becomes_true(atomic_load(&contender->rc) <= 0, PATIENCE_MS);
    assert_code(0, atomic_load(&contender->rc), &contender->worker.err);
}

void contender_end(struct contender *contender, int expected)
{
    atomic_store(&contender->may_release, true);
    worker_join(&contender->worker);
    assert_code(expected, contender->released, &contender->worker.err);
}

void contender_finish(struct contender *contender)
{
    contender_await(contender);
    contender_end(contender, 0);
}

void relay_open(struct relay *relay, struct fixture *f, uint32_t poll_ms)
{
    contender_open(&relay->next, f, poll_ms);
    relay->held = lock_obtain(f->a, f->name);
    lock_take(relay->held, 0);
    lock_give(relay->held);
}

void relay_close(struct relay *relay)
{
    contender_finish(&relay->next);
    lock_drop(relay->held);
    contender_close(&relay->next);
}
