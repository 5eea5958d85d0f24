/*
 * tokens.c - fencing tokens rise strictly, whatever happens between two
 * acquisitions (F30)
 */
#include "conformance.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "support/peer.h"
#include "support/server.h"
#include "support/workers.h"

/* Acquire and release; assert that the token is greater than *last, and store
 * it there. */
static void check_next(sqlock_registry *registry, const char *name,
                       int64_t *last)
{
    sqlock_lock *lock = lock_obtain(registry, name);

    lock_take(lock, 0);
    assert_less(*last, sqlock_token(lock));
    *last = sqlock_token(lock);
    lock_give(lock);
    lock_drop(lock);
}

static void test_F30_tokens_rise_through_release(void **state)
{
    struct fixture *f = *state;
    int64_t last = 0;
    int i;

    for (i = 0; i < 30; i++)
        check_next(i % 3 ? f->a : f->b, f->name, &last);
}

static void test_F30_tokens_rise_through_takeover(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *old = lock_obtain(f->a, f->name);
    int64_t last = 0;

    check_next(f->a, f->name, &last);
    lock_take(old, 100);
    assert_less(last, sqlock_token(old));
    last = sqlock_token(old);
    fixture_await_expiry(f, f->name);
    check_next(f->b, f->name, &last);
    assert_fails(SQLOCK_ELOST, sqlock_release(old, &f->err));
    check_next(f->a, f->name, &last);
    lock_drop(old);
}

static void test_F30_tokens_rise_through_break(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *old = lock_obtain(f->a, f->name);
    int64_t last;

    lock_take(old, 0);
    last = sqlock_token(old);
    lock_break(f, old, true);
    check_next(f->b, f->name, &last);
    assert_fails(SQLOCK_ELOST, sqlock_release(old, &f->err));
    check_next(f->a, f->name, &last);
    lock_drop(old);
}

/* A reap without retention removes the row, and with it the last token. */
static void test_F30_tokens_rise_through_reap(void **state)
{
    struct fixture *f = *state;
    int64_t last = 0;
    int i;

    for (i = 0; i < 10; i++) {
        int64_t removed;

        check_next(f->a, f->name, &last);
        assert_ok(sqlock_reap(f->b, 0, &removed, &f->err));
    }
}

static void test_F30_tokens_rise_through_another_registry(void **state)
{
    struct fixture *f = *state;
    int64_t last = 0;
    int i;

    for (i = 0; i < 5; i++) {
        sqlock_registry *registry = fixture_registry(f, NULL);

        check_next(registry, f->name, &last);
        registry_end(registry);
    }
}

/* The row has a token that is an hour ahead of the database's clock, which was
 * set back or was read on another node.  Each new token is one more than the
 * last. */
static void test_F30_tokens_rise_though_the_clock_fell_back(void **state)
{
    struct fixture *f = *state;
    int64_t ahead;
    int64_t last = 0;
    int64_t removed;

    check_next(f->a, f->name, &last);
    ahead = last + INT64_C(3600000000);
    (void)sql_run(&f->sql, "UPDATE %s SET FENCE = %lld WHERE LOCK_KEY = '%s'",
                  f->table, (long long)ahead, fixture_row(f, f->name).key);
    last = ahead;
    check_next(f->a, f->name, &last);
    check_next(f->b, f->name, &last);
    /* the row is not reaped before the clock is past its token */
    assert_ok(sqlock_reap(f->a, 0, &removed, &f->err));
    assert_true(fixture_row(f, f->name).exists);
    check_next(f->b, f->name, &last);
    assert_true(last == ahead + 3);
}

static void test_token_stays_while_held(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    int64_t token;

    lock_take(lock, 0);
    token = sqlock_token(lock);
    lock_renew(lock, 0);
    lock_take(lock, 0);
    assert_true(sqlock_token(lock) == token);
    lock_give(lock);
    assert_true(sqlock_token(lock) == token);
    if (f->layout == SQLOCK_LAYOUT_SQLOCK)
        assert_true(fixture_row(f, f->name).fence == token);
    lock_give(lock);
    assert_true(sqlock_token(lock) == 0);
    lock_drop(lock);
}

/* A lock is held over a restart of the server, after a clean stop and after a
 * kill: it is still held, and can be renewed and released.  The tokens of
 * another lock rise over the restart. */
static void test_F30_tokens_and_leases_outlive_a_server_restart(void **state)
{
    static const int numbers[] = {SIGTERM, SIGKILL};
    struct fixture *f = *state;
    sqlock_lock *held;
    int64_t last = 0;
    size_t i;

    if (!server_can_restart(f->database))
        skip_or_fail("the server is not ours to restart");
    for (i = 0; i < 2; i++) {
        char name[64];

        fixture_next(f);
        (void)snprintf(name, sizeof name, "%s", f->name);
        check_next(f->a, name, &last);
        fixture_next(f);
        held = lock_obtain(f->a, f->name);
        lock_take(held, 0);
        /* SIGINT is PostgreSQL's fast shutdown; MariaDB has one kind only */
        server_restart(&f->sql, f->url,
                       numbers[i] == SIGTERM && f->database->bit == ON_POSTGRES
                           ? SIGINT
                           : numbers[i]);
        check_next(f->b, name, &last);
        check_next(f->a, name, &last);
        assert_true(sqlock_is_held(held));
        assert_fails(SQLOCK_EBUSY,
                     lock_try(lock_obtain(f->b, f->name), 0, 0, &f->err));
        lock_renew(held, 0);
        lock_give(held);
        lock_drop(held);
    }
}

/* --- beside a Spring service, which deletes the row --- */

#define PEER "11111111-aaaa-4aaa-8aaa-111111111111"

/* The tokens of two workers that claim at the same time, in the order of the
 * grants. */
struct claims {
    int64_t tokens[2];
    atomic_int granted;
    atomic_int released;
};

struct claim {
    struct worker worker;
    struct claims *claims;
    sqlock_lock *lock;
};

static int claim_once(struct worker *worker)
{
    struct claim *claim = worker->context;
    struct claims *claims = claim->claims;

    worker_expect(worker, 0,
                  lock_try(claim->lock, PATIENCE_MS, 0, &worker->err));
    claims->tokens[atomic_fetch_add(&claims->granted, 1)] =
        sqlock_token(claim->lock);
    worker_expect(worker, 0, sqlock_release(claim->lock, &worker->err));
    (void)atomic_fetch_add(&claims->released, 1);
    return 0;
}

/* Return the process of a PostgreSQL session that waits for a row or advisory
 * lock of `session`; 0: none does. */
static pid_t waits_for(struct sql *sql, int64_t session)
{
    return (pid_t)sql_integer(
        sql,
        "SELECT coalesce(max(pid), 0) FROM pg_stat_activity"
        " WHERE wait_event_type = 'Lock' AND %lld = ANY(pg_blocking_pids(pid))",
        (long long)session);
}

/* A peer's open transaction deletes the row.  A claim, which has computed the
 * token it is to insert, waits for that row, and its server process is stopped.
 * The peer commits, and a second claim is made.  If that is granted and
 * released, the peer acquires and releases once more.  Then the first claim
 * goes on.  The tokens must rise in the order of the grants. */
static void test_F30_tokens_rise_past_a_claim_behind_a_peer(void **state)
{
    struct fixture *f = *state;
    struct claims claims = {.granted = 0};
    struct claim first = {.claims = &claims,
                          .lock = lock_obtain(f->a, f->name)};
    struct claim second = {.claims = &claims,
                           .lock = lock_obtain(f->b, f->name)};
    struct sql sql;
    struct peer peer = {f, &sql, PEER, LONG_TTL_MS};
    int64_t session;
    pid_t stopped;

    if (!server_can_stop(f->database) || database_is_pooled(f->database))
        skip_or_fail("the server's sessions are not ours to stop");
    if (database_is_polled(f->database))
        skip_or_fail("claims take no turns that outlast a peer's DELETE");
    assert_int_equal(sql_open(&sql, f->database, f->url), 0);
    session = sql_integer(&sql, "%s", f->database->connection_id);
    assert_int_equal(peer_acquire(&peer, f->name), 1);
    assert_int_equal(sql_begin(&sql), 0);
    assert_int_equal(peer_release(&peer, f->name), 1);
    worker_start(&first.worker, claim_once, &first);
    assert_becomes_true(waits_for(&f->sql, session) != 0, PATIENCE_MS);
    stopped = waits_for(&f->sql, session);
    server_stop_process(stopped);
    assert_int_equal(sql_commit(&sql), 0);
    worker_start(&second.worker, claim_once, &second);
    assert_becomes_true(atomic_load(&claims.released) == 1 ||
                            waits_for(&f->sql, stopped) != 0,
                        PATIENCE_MS);
    if (atomic_load(&claims.released) == 1) {
        assert_int_equal(peer_acquire(&peer, f->name), 1);
        assert_int_equal(peer_release(&peer, f->name), 1);
    }
    server_go_on();
    worker_join(&first.worker);
    worker_join(&second.worker);
    sql_close(&sql);
    assert_int_equal(atomic_load(&claims.released), 2);
    assert_less(claims.tokens[0], claims.tokens[1]);
}

static const struct test tests[] = {
    TEST(test_F30_tokens_rise_through_release),
    TEST(test_F30_tokens_rise_through_takeover),
    TEST(test_F30_tokens_rise_through_break),
    TEST(test_F30_tokens_rise_through_reap),
    TEST(test_F30_tokens_rise_through_another_registry),
    TEST_ON(test_F30_tokens_rise_though_the_clock_fell_back, ON_ALL, IN_SQLOCK),
    TEST_ON(test_F30_tokens_rise_past_a_claim_behind_a_peer, ON_POSTGRES,
            HAS_EXPIRY),
    TEST(test_token_stays_while_held),
    TEST_STOPPING_IN(test_F30_tokens_and_leases_outlive_a_server_restart,
                     ON_SERVERS, IN_SQLOCK),
};
const struct topic topic_tokens = TOPIC(tests);
