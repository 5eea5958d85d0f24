/*
 * tokens.c - a token rises past a claim that waits behind a Spring service
 * (F30)
 */
#include "conformance.h"

#include "support/peer.h"
#include "support/server.h"
#include "support/workers.h"

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
TEST_ON(test_F30_tokens_rise_past_a_claim_behind_a_peer, ON_POSTGRES,
        HAS_EXPIRY)
{
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
