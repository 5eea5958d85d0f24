/*
 * spring.c - what is told of a Spring service on the same table, services at
 * work at the same time, and their clocks
 *
 * The peer (peer.h) acts as Spring 5.4 to 6.5 on the four-column layout, and as
 * Spring 7 on the other two, which are its own and sqlock's.
 */
#include "conformance.h"

#include <sched.h>
#include <stdio.h>
#include <time.h>

#include "sqlock/many.h"
#include "sqlock/shared.h"
#include "support/peer.h"
#include "support/workers.h"

#define CLIENT_1 "11111111-aaaa-4aaa-8aaa-111111111111"
#define CLIENT_2 "22222222-bbbb-4bbb-8bbb-222222222222"

static struct peer peer_of(struct fixture *f)
{
    return (struct peer){.fixture = f,
                         .sql = &f->sql,
                         .client = CLIENT_1,
                         .ttl_ms = PEER_TTL_MS};
}

/* --- four at once --- */

#define MIX_LIMIT_MS 20000

struct mix {
    struct fixture *fixture;
    sqlock_lock *locks[2];
    unsigned rounds;
    atomic_int inside;
    unsigned counter; /* not atomic: the lock guards it */
};

static int enter(struct worker *worker, struct mix *mix)
{
    if (atomic_fetch_add(&mix->inside, 1) != 0)
        return worker_fail(worker, "two owners");
    mix->counter++;
    (void)sched_yield();
    (void)atomic_fetch_sub(&mix->inside, 1);
    return 0;
}

static int as_peer(struct worker *worker, struct mix *mix, struct sql *sql)
{
    int64_t end = check_deadline_ns(MIX_LIMIT_MS);
    struct peer peer = peer_of(mix->fixture);
    unsigned done = 0;

    peer.sql = sql;
    peer.client = worker->index == 0 ? CLIENT_1 : CLIENT_2;
    peer.ttl_ms = LONG_TTL_MS;
    while (done < mix->rounds) {
        int rc = peer_acquire(&peer, mix->fixture->name);

        if (rc == 1) {
            rc = enter(worker, mix);
            if (rc < 0)
                return rc;
            do /* Spring tries again after a deadlock */
                rc = peer_release(&peer, mix->fixture->name);
            while (rc == SQLOCK_ERETRY || rc == SQLOCK_EBUSY);
            if (rc != 1)
                return worker_fail(worker, "the peer's release gave %d", rc);
            done++;
        } else if (rc < 0 && rc != SQLOCK_ERETRY && rc != SQLOCK_EBUSY) {
            return worker_fail(worker, "the peer's acquire gave %d: %s", rc,
                               sql->err.message);
        }
        if (!check_pause(end))
            return worker_fail(worker, "starved after %u rounds", done);
    }
    return 0;
}

static int as_ours(struct worker *worker, struct mix *mix, sqlock_lock *lock)
{
    unsigned i;
    int rc;

    for (i = 0; i < mix->rounds; i++) {
        worker_expect(worker, 0, lock_try(lock, PATIENCE_MS, 0, &worker->err));
        rc = enter(worker, mix);
        if (rc < 0)
            return rc;
        worker_expect(worker, 0, sqlock_release(lock, &worker->err));
        (void)check_pause(INT64_MAX);
    }
    return 0;
}

static int mixed(struct worker *worker)
{
    struct mix *mix = worker->context;
    struct sql sql;
    int rc;

    if (worker->index >= 2)
        return as_ours(worker, mix, mix->locks[worker->index - 2]);
    rc = sql_open(&sql, mix->fixture->database, mix->fixture->url);
    if (rc < 0)
        return worker_fail(worker, "no session: %s", sql.err.message);
    rc = as_peer(worker, mix, &sql);
    sql_close(&sql);
    return rc;
}

TEST(test_peers_and_ours_exclude_each_other_under_load)
{
    struct mix mix = {.fixture = f, .rounds = check_scale(15, 500)};
    sqlock_options options = fixture_options(f);
    sqlock_registry *registries[2];
    struct workers workers;
    int i;

    options.peer_ttl_ms = LONG_TTL_MS; /* no lease is to expire here */
    for (i = 0; i < 2; i++) {
        registries[i] = fixture_registry(f, &options);
        mix.locks[i] = lock_obtain(registries[i], f->name);
    }
    workers_start(&workers, 4, mixed, &mix);
    workers_join(&workers);
    registry_end(registries[0]);
    registry_end(registries[1]);
    assert_int_equal(mix.counter, 4 * mix.rounds);
}

/* --- fair to a peer that polls --- */

#define RUSHERS 4
/* Polls of 100 ms until the peer must have had the lock, and in how many of
 * those that follow it gets it at least.  A row is open for 110 ms now and
 * then, and a busy machine lets the peer miss that often. */
#define FIRST_POLLS 300
#define POLLS 180
#define LEAST_GRANTS 6

static void pause_ms(long ms)
{
    struct timespec pause = {0, ms * 1000000};

    (void)nanosleep(&pause, NULL);
}

/* How ours use the lock. */
struct rush {
    const char *what;
    sqlock_mode mode;
    uint32_t permits;
    bool with_another; /* in one call with a lock that is the thread's own */
    unsigned registries;
    sqlock_registry *of[2];
    sqlock_lock *locks[2];
    sqlock_lock *others[RUSHERS];
    atomic_bool is_over;
};

/* Acquire and release without a pause in between, so that there is always a
 * thread of ours that waits, or shares the lock. */
static int rush(struct worker *worker)
{
    struct rush *rush = worker->context;
    sqlock_lock *const locks[] = {rush->locks[worker->index % rush->registries],
                                  rush->others[worker->index]};
    size_t count = rush->with_another ? 2 : 1;
    sqlock_acquire_options how = SQLOCK_ACQUIRE_INIT;

    how.mode = rush->mode;
    how.permits = rush->permits;
    while (!atomic_load(&rush->is_over)) {
        worker_expect(worker, 0,
                      sqlock_acquire_many(locks, count, PATIENCE_MS, &how, NULL,
                                          &worker->err));
        pause_ms(3);
        worker_expect(worker, 0,
                      sqlock_release_many(locks, count, NULL, &worker->err));
    }
    return 0;
}

/* Ask for the lock every 100 ms, as Spring does, `polls` times, or until it was
 * got `enough` times.  Return how often it was. */
static unsigned poll_as_peer(struct fixture *f, const struct peer *peer,
                             unsigned polls, unsigned enough)
{
    unsigned granted = 0;

    for (unsigned i = 0; i < polls && granted < enough; i++) {
        int rc;

        pause_ms(100);
        if (peer_acquire(peer, f->name) != 1)
            continue;
        granted++;
        while ((rc = peer_release(peer, f->name)) < 0)
            assert_code_of(SQLOCK_ERETRY, SQLOCK_EBUSY, rc, &f->sql.err);
        assert_int_equal(rc, 1);
    }
    return granted;
}

static void check_chance(struct fixture *f, struct rush *ours)
{
    sqlock_options options = fixture_options(f);
    struct peer peer = peer_of(f);
    struct workers workers;
    unsigned first;
    unsigned granted;

    fixture_next(f);
    options.no_peers = false;
    peer.ttl_ms = LONG_TTL_MS;
    for (unsigned i = 0; i < 2; i++) {
        ours->of[i] = fixture_registry(f, &options);
        ours->locks[i] = lock_obtain(ours->of[i], f->name);
    }
    for (unsigned i = 0; i < RUSHERS; i++) {
        char name[120];

        (void)snprintf(name, sizeof name, "%s/%u", f->name, i);
        ours->others[i] = lock_obtain(ours->of[i % ours->registries], name);
    }
    workers_start(&workers, RUSHERS, rush, ours);
    first = poll_as_peer(f, &peer, FIRST_POLLS, 1);
    granted = poll_as_peer(f, &peer, POLLS, LEAST_GRANTS);
    atomic_store(&ours->is_over, true);
    workers_join(&workers);
    registry_end(ours->of[0]);
    registry_end(ours->of[1]);
    if (first == 0 || granted < LEAST_GRANTS)
        fail_msg("beside %s the peer %s, and then %u times in %u polls",
                 ours->what, first == 0 ? "never got the lock" : "got the lock",
                 granted, POLLS);
}

/* A peer that nobody has seen, and that is not notified of a release, has its
 * first turn and then more, while ours use the lock without a pause. */
TEST_ON(test_a_peer_has_its_chance_beside_ours, ON_SERVERS, IN_SQLOCK)
{
    static const struct rush kinds[] = {
        {.what = "threads of one process", .registries = 1},
        {.what = "two processes", .registries = 2},
        {.what = "readers", .registries = 2, .mode = SQLOCK_SHARED},
        {.what = "permits",
         .registries = 2,
         .mode = SQLOCK_SHARED,
         .permits = 3},
        {.what = "calls for several locks",
         .registries = 2,
         .with_another = true},
    };

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct rush ours = kinds[i];

        check_chance(f, &ours);
    }
}

/* Our release sets the end of the lease far back, so that a peer whose clock is
 * behind sees at once that the lock is free.  sqlock_show() still tells when it
 * was released. */
TEST_ON(test_a_peer_with_a_late_clock_need_not_wait, ON_SERVERS, IN_SQLOCK)
{
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    int64_t released_us;
    sqlock_info *info;
    int rc;

    lock_take_and_give(lock);
    released_us = sql_now_us(&f->sql);
    assert_less(fixture_row(f, f->name).expires_us,
                released_us - INT64_C(86400000000));
    rc = sqlock_show(f->b, f->name, &info, &f->err);
    assert_lock_ok(rc, &f->err);
    assert_less(released_us - 60000000, info->expires_at_us);
    assert_less(info->expires_at_us, released_us);
    sqlock_info_free(info, 1);
    lock_drop(lock);
}
