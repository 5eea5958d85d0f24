/*
 * late.c - how long after the lease's deadline a loss is reported, compared
 * with a timer that was set for the same moment (F3)
 *
 * The delays of reports and of timers are sorted before they are compared, the
 * shortest with the shortest, because a busy machine delays any thread at any
 * time.
 */
#include "renewer.h"

#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "support/tap.h"
#include "support/workers.h"

#define LEASES 10
#define ROUNDS_MAX 200
/* How much later than a timer a report may be. */
#define LATER_MAX_NS INT64_C(50000000)

struct sample {
    sqlock_lock *lock;
    struct told told;
    int64_t deadline_ns;
    int64_t timer_ns; /* when the timer went off */
    struct worker timer;
};

static int sleep_until(struct worker *worker)
{
    struct sample *sample = worker->context;
    const struct timespec at = lk_timespec(sample->deadline_ns);

    while (clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &at, NULL) != 0)
        ;
    sample->timer_ns = lk_boottime_ns();
    return 0;
}

/* Renewals that do not return until a round is over. */
struct hang {
    const char *renewal; /* its text; NULL: the leases are not renewed */
    atomic_bool is_over;
    atomic_uint count; /* of those that hung */
};

static int hang_up(void *context, const struct tap_event *event)
{
    struct hang *hang = context;

    if (event->text != hang->renewal)
        return 0;
    (void)atomic_fetch_add(&hang->count, 1);
    while (!atomic_load(&hang->is_over))
        check_sleep(1);
    return 0;
}

/* Let leases run out a few milliseconds apart, each with a timer. */
static void run_round(struct fixture *f, struct sample *samples,
                      struct hang *hang)
{
    atomic_store(&hang->is_over, false);
    for (size_t i = 0; i < LEASES; i++) {
        struct sample *sample = &samples[i];
        sqlock_acquire_options options =
            told_options(TTL_MS + 3 * (uint32_t)i, &sample->told);

        options.auto_renew = hang->renewal != NULL;
        atomic_store(&sample->told.times, 0);
        take_briefly(sample->lock, &options);
        sample->deadline_ns = lock_deadline(sample->lock);
        worker_start(&sample->timer, sleep_until, sample);
    }
    for (size_t i = 0; i < LEASES; i++) {
        struct sample *sample = &samples[i];

        worker_join(&sample->timer);
        assert_becomes_true(atomic_load(&sample->told.times) > 0, PATIENCE_MS);
        assert_true(atomic_load(&sample->told.at_ns) >= sample->deadline_ns);
        /* A timer is late on a busy machine, too. */
        assert_less(atomic_load(&sample->told.at_ns),
                    sample->timer_ns + LATE_MAX_NS);
    }
    atomic_store(&hang->is_over, true);
    for (size_t i = 0; i < LEASES; i++)
        assert_fails(SQLOCK_EEXPIRED, sqlock_release(samples[i].lock, &f->err));
}

static int by_value(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a;
    int64_t right = *(const int64_t *)b;

    return (left > right) - (left < right);
}

static void print_distribution(const char *what, int64_t *ns, size_t count)
{
    qsort(ns, count, sizeof *ns, by_value);
    print_message("%s, us: least %lld, half %lld, 90%% %lld, 99%% %lld, "
                  "most %lld of %zu\n",
                  what, (long long)ns[0] / 1000,
                  (long long)ns[count / 2] / 1000,
                  (long long)ns[count * 9 / 10] / 1000,
                  (long long)ns[count * 99 / 100] / 1000,
                  (long long)ns[count - 1] / 1000, count);
}

/* Compare the delays of many rounds, of locks of that registry. */
static void compare(struct fixture *f, sqlock_registry *registry,
                    struct hang *hang)
{
    static struct sample samples[LEASES];
    static int64_t late[ROUNDS_MAX * LEASES];
    static int64_t timers[ROUNDS_MAX * LEASES];
    unsigned rounds = check_scale(8, ROUNDS_MAX);
    unsigned percent = check_scale(90, 99); /* so many have to be in time */
    size_t count = 0;

    for (size_t i = 0; i < LEASES; i++)
        samples[i].lock = nth_lock(f, registry, i);
    for (unsigned round = 0; round < rounds; round++) {
        run_round(f, samples, hang);
        for (size_t i = 0; i < LEASES; i++) {
            int64_t told = atomic_load(&samples[i].told.at_ns);

            late[count] = told - samples[i].deadline_ns;
            timers[count] = samples[i].timer_ns - samples[i].deadline_ns;
            count++;
        }
    }
    /* in a round a busy machine may begin none */
    assert_int_equal(atomic_load(&hang->count) > 0, hang->renewal != NULL);
    print_distribution("told after the deadline", late, count);
    print_distribution("and the timers", timers, count);
    for (size_t i = 0; i < count * percent / 100; i++)
        assert_less(late[i], timers[i] + LATER_MAX_NS);
    for (size_t i = 0; i < LEASES; i++)
        lock_drop(samples[i].lock);
}

TEST(test_F3_how_late_a_loss_is_told)
{
    struct hang none = {.renewal = NULL};

    compare(f, f->a, &none);
}

TEST(test_F3_how_late_a_loss_is_told_while_renewals_hang)
{
    sqlock_registry *registry = renewer_tapped(f);
    struct hang hang = {.renewal =
                            statement_text(registry, SQLOCK_SQL_RENEW_MANY)};

    tap_hooks(hang_up, NULL, &hang);
    compare(f, registry, &hang);
    tap_reset();
    registry_end(registry);
}
