/*
 * spring.c - what is told of a Spring service on the same table, services at
 * work at the same time, and their clocks
 *
 * The peer (peer.h) acts as Spring 5.4 to 6.5 on the four-column layout, and as
 * Spring 7 on the other two, which are its own and sqlock's.
 */
#include "conformance.h"

#include <sched.h>
#include <string.h>
#include <time.h>

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

static void test_a_peer_takes_over_our_expired_lock(void **state)
{
    struct fixture *f = *state;
    struct peer peer = peer_of(f);
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    sqlock_info *info;
    int rc;

    /* Spring 6 judges our lease by its own TTL. */
    if (f->layout != SQLOCK_LAYOUT_SPRING6)
        peer.ttl_ms = LONG_TTL_MS;
    lock_take(lock, 100);
    fixture_await_expiry(f, f->name);
    assert_int_equal(peer_acquire(&peer, f->name), 1);
    rc = sqlock_renew(lock, 0, &f->err);
    assert_code_of(SQLOCK_ELOST, SQLOCK_EEXPIRED, rc, &f->err);
    assert_fails(SQLOCK_ELOST, sqlock_release(lock, &f->err));
    assert_string_equal(fixture_row(f, f->name).client, CLIENT_1);
    assert_ok(sqlock_show(f->b, f->name, &info, &f->err));
    assert_int_equal(info->state, SQLOCK_HELD);
    assert_string_equal(info->client_id, CLIENT_1);
    if (f->layout == SQLOCK_LAYOUT_SQLOCK)
        assert_string_equal(info->holder, "peer");
    sqlock_info_free(info, 1);
    assert_int_equal(peer_release(&peer, f->name), 1);
    lock_drop(lock);
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

static void test_peers_and_ours_exclude_each_other_under_load(void **state)
{
    struct fixture *f = *state;
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

/* A busy machine may need more of them. */
#define POLLS 30
#define MOST_POLLS 120

static void pause_ms(long ms)
{
    struct timespec pause = {0, ms * 1000000};

    (void)nanosleep(&pause, NULL);
}

struct rush {
    sqlock_lock *lock;
    atomic_bool is_over;
};

/* Acquire and release without a pause in between, so that there is always a
 * thread of ours that waits. */
static int rush(struct worker *worker)
{
    struct rush *rush = worker->context;

    while (!atomic_load(&rush->is_over)) {
        worker_expect(worker, 0,
                      lock_try(rush->lock, PATIENCE_MS, 0, &worker->err));
        pause_ms(3);
        worker_expect(worker, 0, sqlock_release(rush->lock, &worker->err));
    }
    return 0;
}

/* A peer asks for the lock every 100 ms, as Spring does, and is not notified of
 * a release, while threads of ours use the lock without a pause.  If we left it
 * no chance, it would find the lock free once in ten times or less; it must get
 * the lock at least once in five times. */
static void test_a_peer_has_its_chance_beside_threads_of_ours(void **state)
{
    struct fixture *f = *state;
    struct peer peer = peer_of(f);
    struct rush ours = {.lock = lock_obtain(f->a, f->name)};
    struct workers workers;
    unsigned granted = 0;
    unsigned i;

    peer.ttl_ms = LONG_TTL_MS;
    assert_int_equal(peer_acquire(&peer, f->name), 1);
    workers_start(&workers, 3, rush, &ours);
    for (i = 0; i < MOST_POLLS && (i % POLLS > 0 || granted < i / 5 || i == 0);
         i++) {
        int rc;

        pause_ms(100);
        if (i == 3) /* our threads have seen that it holds the lock */
            assert_int_equal(peer_release(&peer, f->name), 1);
        rc = i < 4 ? 0 : peer_acquire(&peer, f->name);
        if (rc != 1)
            continue;
        granted++;
        while ((rc = peer_release(&peer, f->name)) < 0)
            assert_code_of(SQLOCK_ERETRY, SQLOCK_EBUSY, rc, &f->sql.err);
        assert_int_equal(rc, 1);
    }
    atomic_store(&ours.is_over, true);
    workers_join(&workers);
    lock_drop(ours.lock);
    if (granted < i / 5)
        fail_msg("the peer got the lock %u times of %u", granted, i);
}

/* Our release sets the end of the lease far back, so that a peer whose clock is
 * behind sees at once that the lock is free.  sqlock_show() still tells when it
 * was released. */
static void test_a_peer_with_a_late_clock_need_not_wait(void **state)
{
    struct fixture *f = *state;
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

static const struct test tests[] = {
    TEST(test_a_peer_takes_over_our_expired_lock),
    TEST(test_peers_and_ours_exclude_each_other_under_load),
    TEST_ON(test_a_peer_has_its_chance_beside_threads_of_ours, ON_SERVERS,
            IN_SQLOCK),
    TEST_ON(test_a_peer_with_a_late_clock_need_not_wait, ON_SERVERS, IN_SQLOCK),
};
const struct topic topic_spring = TOPIC(tests);
