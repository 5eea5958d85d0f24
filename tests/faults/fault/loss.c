/*
 * loss.c - on_lost tells the holder of a renewed lock in time that the lease is
 * lost, whatever the database and the network do (F1, F3, F5, F35, F36)
 *
 * Party B waits for the lock meanwhile: the history shows whether A was told
 * before B got the lock.  A plain timer is set to A's deadline, too, and the
 * delay of on_lost is compared with that of the timer.  In a campaign the
 * delays of all rounds are sorted first, since a busy machine does not delay
 * both threads of a round alike.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "fault.h"
#include "lock/hold.h"
#include "lock/registry.h"
#include "support/server.h"
#include "support/workers.h"

#define ROUNDS_MAX 200
/* The margin, a twentieth of the TTL, is how late on_lost may be on a busy
 * machine before another client can get the lock. */
#define LOSS_TTL_MS (2 * TTL_MS)
#define LATE_MAX_NS INT64_C(2000000000) /* after the timer, in `make test` */
#define LATER_MAX_NS INT64_C(50000000)  /* after the timer, in a campaign */
#define CHANGE_NS INT64_C(3000000)

struct outage {
    void (*begin)(void);
    void (*end)(void);
    bool occupies_pool; /* the pool's only connection hangs, too */
};

struct watch {
    atomic_int times;
    _Atomic int64_t at_ns;
    atomic_int code;
};

/* ------------------------------------------------------------- one round -- */

static void on_lost(void *context, sqlock_lock *lock, int code)
{
    struct watch *watch = context;

    atomic_store(&watch->at_ns, lk_boottime_ns());
    history_told(&stage.histories[0], PARTY_A);
    atomic_store(&watch->code, code);
    (void)sqlock_is_held(lock); /* on_lost may call it */
    (void)atomic_fetch_add(&watch->times, 1);
}

static int64_t deadline_of(sqlock_lock *lock)
{
    int64_t deadline;

    pthread_mutex_lock(&lk_mutex);
    deadline = lk_present(lock->slot)->lease.believed.until_boot_ns;
    pthread_mutex_unlock(&lk_mutex);
    return deadline;
}

static void keep_first(struct watch *watch)
{
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    int64_t asked = lk_boottime_ns();
    int rc;

    memset(watch, 0, sizeof *watch);
    options.ttl_ms = LOSS_TTL_MS;
    options.auto_renew = true;
    options.on_lost = on_lost;
    options.lost_context = watch;
    rc = sqlock_acquire(stage.a.locks[0], 0, &options, &stage.a.err);
    assert_lock_ok(rc, &stage.a.err);
    history_granted(&stage.histories[0], PARTY_A, asked,
                    deadline_of(stage.a.locks[0]),
                    sqlock_token(stage.a.locks[0]));
}

/* Record a renewal in the history if A's deadline is later than `known`; return
 * the later one. */
static int64_t sample(int64_t known)
{
    int64_t now = lk_boottime_ns();
    int64_t deadline = deadline_of(stage.a.locks[0]);

    if (deadline > known + CHANGE_NS && sqlock_is_held(stage.a.locks[0]))
        history_renewed(&stage.histories[0], PARTY_A, now, deadline);
    return deadline > known ? deadline : known;
}

/* Acquire and release as party B, in one thread: the thread that acquires the
 * lock is its owner. */
static int wait_as_b(struct worker *worker)
{
    int rc = party_acquire(&stage.b, 0, PATIENCE_MS);

    worker->err = stage.b.err;
    worker_expect(worker, 0, rc);
    worker_expect(worker, 0, party_release(&stage.b, 0));
    return 0;
}

/* Use the only connection of A's pool all the time, so that it hangs in a call
 * during the outage. */
static int occupy_pool(struct worker *worker)
{
    struct sqlock_lock *lock = stage.a.locks[1];
    const atomic_bool *over = worker->context;

    while (!atomic_load(over))
        if (sqlock_acquire(lock, 0, NULL, &worker->err) == 0 &&
            sqlock_release(lock, &worker->err) < 0)
            continue; /* the outage has begun */
    return 0;
}

static int sleep_until_deadline(struct worker *worker)
{
    int64_t *until = worker->context;
    const struct timespec at = lk_timespec(*until);

    while (clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &at, NULL) != 0)
        ;
    *until = lk_boottime_ns();
    return 0;
}

/* Wait for so many renewals, and record them; return the last deadline.  Fails
 * the test if the lock is lost. */
static int64_t await_renewals(unsigned count)
{
    int64_t known = deadline_of(stage.a.locks[0]);
    unsigned seen = 0;

    while (seen < count) {
        int64_t before = known;

        assert_becomes_true((known = sample(known)) > before ||
                                !sqlock_is_held(stage.a.locks[0]),
                            PATIENCE_MS);
        assert_true(sqlock_is_held(stage.a.locks[0]));
        seen++;
    }
    return known;
}

/* Wait until the deadline does not move any more, and return it: a renewal that
 * was under way when the outage began may still succeed. */
static int64_t await_last_deadline(int64_t known, const struct watch *watch)
{
    int64_t since = lk_boottime_ns();

    while (atomic_load(&watch->times) == 0 &&
           lk_boottime_ns() < since + LOSS_TTL_MS / 4 * INT64_C(1000000)) {
        int64_t now_known = sample(known);

        if (now_known > known)
            since = lk_boottime_ns();
        known = now_known;
        (void)check_pause(INT64_MAX);
    }
    return known;
}

struct lateness {
    int64_t ours_ns;
    int64_t timers_ns;
};

static void settle_round(const struct watch *watch)
{
    int rc;

    assert_int_equal(atomic_load(&watch->times), 1);
    assert_false(sqlock_is_held(stage.a.locks[0]));
    rc = party_release(&stage.a, 0);
    assert_code_of(SQLOCK_ELOST, SQLOCK_EUNCERTAIN, rc, &stage.a.err);
    history_check(&stage.histories[0]);
    history_clear(&stage.histories[0]);
    history_init(&stage.histories[0]);
}

static struct lateness run_round(const struct outage *outage)
{
    struct lateness lateness;
    struct worker waiter;
    struct worker timer;
    struct worker occupier;
    atomic_bool over = false;
    struct watch watch;
    int64_t deadline;
    int64_t woken;
    bool told;

    keep_first(&watch);
    if (outage->occupies_pool)
        worker_start(&occupier, occupy_pool, &over);
    deadline = await_renewals(3);
    worker_start(&waiter, wait_as_b, NULL);
    outage->begin();
    deadline = await_last_deadline(deadline, &watch);
    woken = deadline;
    worker_start(&timer, sleep_until_deadline, &woken);
    told = wait_until(atomic_load(&watch.times) > 0, PATIENCE_MS);
    outage->end();
    atomic_store(&over, true);
    worker_join(&timer);
    if (outage->occupies_pool)
        worker_join(&occupier);
    worker_join(&waiter);
    assert_true(told);
    lateness.ours_ns = atomic_load(&watch.at_ns) - deadline;
    lateness.timers_ns = woken - deadline;
    settle_round(&watch);
    return lateness;
}

/* ------------------------------------------------------------- the table -- */

static int by_size(const void *a, const void *b)
{
    const int64_t *left = a;
    const int64_t *right = b;

    return (*left > *right) - (*left < *right);
}

static double ms(int64_t ns)
{
    return (double)ns / 1e6;
}

static void print_line(const char *what, const char *whose, int64_t *late,
                       size_t count)
{
    qsort(late, count, sizeof *late, by_size);
    print_message("loss told  %-9s %-26s %-8s %4zu  p50 %8.3f  p99 %8.3f  "
                  "max %8.3f ms after the deadline\n",
                  stage.fixture.database->name, what, whose, count,
                  ms(late[count / 2]), ms(late[count * 99 / 100]),
                  ms(late[count - 1]));
}

static void check_outage(const char *what, const struct outage *outage)
{
    static int64_t ours[ROUNDS_MAX];
    static int64_t timers[ROUNDS_MAX];
    size_t count = check_scale(1, 60);
    int64_t allowed_ns = check_scale(1, 0) == 1 ? LATE_MAX_NS : LATER_MAX_NS;

    assert_lock_ok(party_warm_up(&stage.a), &stage.a.err);
    for (size_t i = 0; i < count; i++) {
        struct lateness lateness = run_round(outage);

        ours[i] = lateness.ours_ns;
        timers[i] = lateness.timers_ns;
    }
    print_line(what, "library", ours, count); /* sorted from here on */
    print_line(what, "timer", timers, count);
    for (size_t i = 0; i < count; i++)
        assert_less(ours[i], timers[i] + allowed_ns);
}

/* ----------------------------------------------------------- the outages -- */

static void begin_blackhole(void)
{
    proxy_blackhole(stage.proxy);
}

static void end_blackhole(void)
{
    proxy_heal(stage.proxy);
}

static void test_F3_loss_is_told_through_a_blackhole(void **state)
{
    const struct outage outage = {begin_blackhole, end_blackhole, false};

    (void)state;
    check_outage("blackhole", &outage);
}

static void test_F35_loss_is_told_though_the_pool_of_one_hangs(void **state)
{
    const struct outage outage = {begin_blackhole, end_blackhole, true};

    (void)state;
    check_outage("blackhole, pool of 1", &outage);
}

static void end_every_session(void)
{
    const struct proxy_plan plan = {
        .point = PROXY_BEFORE,
        .act = PROXY_CUT,
        .containing = sqlock_key(stage.a.locks[0]),
        .hook = end_session_of,
    };

    proxy_arm(stage.proxy, &plan);
}

static void test_F5_loss_is_told_when_every_renewal_is_terminated(void **state)
{
    const struct outage outage = {end_every_session, end_blackhole, false};

    (void)state;
    atomic_store(&stage.sessions_ended, 0);
    check_outage("every renewal terminated", &outage);
    assert_true(atomic_load(&stage.sessions_ended) > 0);
}

static void begin_stop(void)
{
    server_stop(stage.fixture.database);
}

static void test_F1_loss_is_told_while_the_server_is_stopped(void **state)
{
    const struct outage outage = {begin_stop, server_go_on, false};

    (void)state;
    stage_need_stopping();
    check_outage("server stopped", &outage);
}

static struct sql locker;

static void lock_file(void)
{
    fixture_lock_row(&stage.fixture, &locker, NULL);
}

static void unlock_file(void)
{
    fixture_unlock_row(&locker);
}

static void test_F36_loss_is_told_while_the_file_is_locked(void **state)
{
    const struct outage outage = {lock_file, unlock_file, false};

    (void)state;
    check_outage("file locked", &outage);
}

static const struct test tests[] = {
    TEST_ON(test_F3_loss_is_told_through_a_blackhole, ON_SERVERS, 0),
    TEST_ON(test_F35_loss_is_told_though_the_pool_of_one_hangs, ON_SERVERS, 0),
    TEST_ON(test_F5_loss_is_told_when_every_renewal_is_terminated, ON_SERVERS,
            0),
    TEST_STOPPING(test_F1_loss_is_told_while_the_server_is_stopped, ON_SERVERS),
    TEST_ON(test_F36_loss_is_told_while_the_file_is_locked, ON_SQLITE, 0),
};
const struct topic topic_loss = TOPIC(tests);
