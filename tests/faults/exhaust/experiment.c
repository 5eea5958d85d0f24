/*
 * experiment.c - see exhaust.h
 */
#include "exhaust.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define CALLS_MAX 2000 /* of one kind in an experiment, or the test fails */
#define ROUNDS_MAX 6   /* until descriptors and threads do not grow any more */

static struct {
    bool is_running;
    enum exhaust_kind kind;
    unsigned nth;
    bool is_lasting;
    char call[160]; /* the last public call that failed, with its message */
} now;

sqlock_options exhaust_options(const struct fixture *f)
{
    sqlock_options options = fixture_options(f);

    /* While all allocations fail, some calls try again for this long. */
    options.statement_timeout_ms = (now.is_lasting ? 1000 : 10000) * SLOWNESS;
    options.connect_timeout_ms = PATIENCE_MS;
    return options;
}

void exhaust_report(void)
{
    (void)exhaust_disarm();
    if (now.is_running)
        print_error("that was with %s, call %u%s, failing in %s; the last call "
                    "that told a failure: %s\n",
                    exhaust_names[now.kind], now.nth,
                    now.is_lasting ? " and all after it" : "", exhaust_where(),
                    now.call);
    now.is_running = false;
}

bool exhaust_is_lasting(void)
{
    return now.is_lasting;
}

void exhaust_take(sqlock_lock *lock)
{
    sqlock_error err = {0};
    int rc = lock_try(lock, now.is_lasting ? PATIENCE_MS : 0, 0, &err);

    assert_lock_ok(rc, &err);
}

bool exhaust_expect_at(int rc, const sqlock_error *err, const char *call,
                       const char *file, int line)
{
    if (rc == 0)
        return true;
    exhaust_pause();
    (void)snprintf(now.call, sizeof now.call, "%s gave %d: %.100s", call, rc,
                   err->message);
    check_code(rc, rc, err, file, line);
    if (rc > 0)
        _fail(file, line);
    exhaust_go_on();
    return false;
}

/* Run the experiment once, with the failure in `now`; return whether a call
 * failed.  If not, the experiment makes fewer calls. */
static bool run_once(struct fixture *f, const struct experiment *experiment)
{
    void *state = calloc(1, experiment->state_bytes + 1);
    unsigned failed;

    assert_non_null(state);
    fixture_next(f);
    now.call[0] = '\0';
    if (experiment->prepare != NULL)
        experiment->prepare(f, state);
    exhaust_arm(now.kind, now.nth, now.is_lasting, false);
    experiment->act(f, state);
    failed = exhaust_disarm();
    experiment->check(f, state);
    free(state);
    return failed > 0;
}

static unsigned run_kind(struct fixture *f, const struct experiment *experiment,
                         enum exhaust_kind kind, bool is_lasting)
{
    now.kind = kind;
    now.is_lasting = is_lasting;
    now.is_running = true;
    for (now.nth = 1; run_once(f, experiment); now.nth++)
        assert_true(now.nth < CALLS_MAX);
    now.is_running = false;
    return now.nth - 1;
}

/* Use the registry, so that it has the connections that it keeps open. */
static void warm_up(struct fixture *f, sqlock_registry *registry)
{
    sqlock_lock *lock = lock_obtain(registry, f->name);
    sqlock_info *row = NULL;

    lock_take(lock, 0);
    assert_int_equal(sqlock_show(registry, f->name, &row, &f->err), 0);
    sqlock_info_free(row, 1);
    lock_end(lock);
}

static void run_kinds(struct fixture *f, const struct experiment *experiment,
                      unsigned counts[EXHAUST_KINDS])
{
    for (int kind = 0; kind < EXHAUST_KINDS; kind++)
        counts[kind] = run_kind(f, experiment, (enum exhaust_kind)kind, false);
    (void)run_kind(f, experiment, EXHAUST_MEMORY, true);
}

/* Count this process's descriptors and threads; return whether there are more
 * of either than were passed in. */
static bool has_grown(size_t *descriptors, size_t *threads)
{
    size_t before_descriptors = *descriptors;
    size_t before_threads = *threads;

    *descriptors = check_entries("/proc/self/fd");
    *threads = check_entries("/proc/self/task");
    return *descriptors > before_descriptors || *threads > before_threads;
}

void exhaust_all(struct fixture *f, const struct experiment *experiment)
{
    unsigned counts[EXHAUST_KINDS];
    size_t descriptors = SIZE_MAX;
    size_t threads = SIZE_MAX;
    int rounds = 0;

    warm_up(f, f->a);
    warm_up(f, f->b);
    now.nth = CALLS_MAX;
    assert_false(run_once(f, experiment));
    (void)has_grown(&descriptors, &threads);
    /* After a failure the pool may keep one connection more, or a waiter may
     * poll the row by itself, in a thread that stays.  That happens a few times
     * at most; a leak grows in each round. */
    do {
        assert_true(rounds++ < ROUNDS_MAX);
        run_kinds(f, experiment, counts);
        assert_true(counts[EXHAUST_MEMORY] > 0);
    } while (has_grown(&descriptors, &threads));
    print_message("%u allocations, %u descriptors, %u threads, %u polls\n",
                  counts[EXHAUST_MEMORY], counts[EXHAUST_DESCRIPTORS],
                  counts[EXHAUST_THREADS], counts[EXHAUST_POLL]);
}
