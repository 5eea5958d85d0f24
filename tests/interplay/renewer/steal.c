/*
 * steal.c - the option observe_before_steal: changes of the row decide whether
 * a peer with an unknown clock still holds the lock, not its time stamps
 */
#include "renewer.h"

#include <string.h>

#include "base/clock.h"
#include "sqlock/many.h"
#include "support/tap.h"
#include "support/workers.h"

/* TTL of the peers, on each layout: long enough that no peer that renews is
 * late. */
#define PEERS_TTL_MS (1500 * SLOWNESS)
#define PEER "00000000-0000-4000-8000-00000000beef"
#define PAST_US INT64_C(-60000000) /* end of the lease by the peer's stamps */
#define OWN_US INT64_C(100000)     /* its length by the peer's stamps */

struct peer_row {
    struct fixture *fixture;
    char key[SQLOCK_KEY_SIZE];
    struct sql sql; /* the peer's own session */
    atomic_bool stops;
    _Atomic int64_t renewed_ns; /* just before the last renewal was sent */
    atomic_uint renewals;
};

static void find_key(struct fixture *f, struct peer_row *peer)
{
    assert_lock_ok(
        sqlock_key_of(peer->key, f->name, SQLOCK_KEY_CURRENT, &f->err),
        &f->err);
}

static void put_peer(struct fixture *f, struct peer_row *peer, const char *name)
{
    assert_ok(sqlock_key_of(peer->key, name, SQLOCK_KEY_CURRENT, &f->err));
    peer->fixture = f;
    fixture_put_row(f, peer->key, "DEFAULT", PEER,
                    f->layout == SQLOCK_LAYOUT_SPRING6 ? PAST_US
                                                       : PAST_US - OWN_US,
                    PAST_US);
}

/* Body of a worker: renew the row at every third of the TTL, as Spring does,
 * but with stamps that are far in the past. */
static int renew_as_peer(struct worker *worker)
{
    struct peer_row *peer = worker->context;
    struct fixture *f = peer->fixture;
    const char *column =
        f->layout == SQLOCK_LAYOUT_SPRING6 ? "CREATED_DATE" : "EXPIRED_AFTER";
    char stamp[160];

    while (!atomic_load(&peer->stops)) {
        int64_t until = check_deadline_ns(PEERS_TTL_MS / 3);
        int64_t affected = 0;
        int rc;

        (void)fixture_time(f, stamp, PAST_US);
        atomic_store(&peer->renewed_ns, lk_boottime_ns());
        rc = sql_try(&peer->sql, &affected,
                     "UPDATE %s SET %s = %s WHERE LOCK_KEY = '%s' AND"
                     " CLIENT_ID = '" PEER "'",
                     f->table, column, stamp, peer->key);
        if (rc < 0)
            return worker_fail(worker, "the peer's renewal: %s",
                               peer->sql.err.message);
        if (affected != 1)
            return worker_fail(worker, "%s", "the peer has lost its lock");
        (void)atomic_fetch_add(&peer->renewals, 1);
        while (check_pause(until))
            ;
    }
    return 0;
}

static void start_peer(struct fixture *f, struct peer_row *peer,
                       struct worker *worker, const char *name)
{
    assert_lock_ok(sql_open(&peer->sql, f->database, f->url), &peer->sql.err);
    put_peer(f, peer, name);
    worker_start(worker, renew_as_peer, peer);
    assert_becomes_true(atomic_load(&peer->renewals) > 0, PATIENCE_MS);
}

static void end_peer(struct peer_row *peer, struct worker *worker)
{
    atomic_store(&peer->stops, true);
    worker_join(worker);
    sql_close(&peer->sql);
}

static sqlock_options observing(struct fixture *f, uint32_t ttl_ms,
                                uint32_t peer_ttl_ms)
{
    sqlock_options options = fixture_options(f);

    options.ttl_ms = ttl_ms;
    options.peer_ttl_ms = peer_ttl_ms;
    options.observe_before_steal = true;
    return options;
}

static sqlock_registry *observer(struct fixture *f)
{
    sqlock_options options = observing(f, PEERS_TTL_MS, PEERS_TTL_MS);

    return fixture_registry(f, &options);
}

static void test_a_peer_that_renews_with_bad_stamps_keeps_its_lock(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = observer(f);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    struct peer_row peer = {0};
    struct worker worker;
    int64_t last;
    int rc;

    start_peer(f, &peer, &worker, f->name);
    rc = lock_try(lock, 4 * PEERS_TTL_MS, 0, &f->err);
    assert_code(SQLOCK_ETIMEDOUT, rc, &f->err);
    assert_string_equal(fixture_row(f, f->name).client, PEER);
    /* The peer ends: after its last renewal the row stays as it is. */
    end_peer(&peer, &worker);
    last = atomic_load(&peer.renewed_ns);
    assert_ok(lock_try(lock, PATIENCE_MS, LONG_TTL_MS, &f->err));
    assert_true(lk_boottime_ns() - last >= PEERS_TTL_MS * LK_NS_PER_MS);
    lock_end(lock);
    registry_end(registry);
}

/* Without the option, a peer's stamps are believed. */
static void test_without_it_the_stamps_decide(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    struct peer_row peer = {0};

    put_peer(f, &peer, f->name);
    lock_take(lock, 0);
    assert_string_not_equal(fixture_row(f, f->name).client, PEER);
    lock_end(lock);
}

static void test_a_row_that_stays_unchanged_is_taken_over(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = observer(f);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    struct peer_row peer = {0};
    int64_t began;

    put_peer(f, &peer, f->name);
    assert_fails(SQLOCK_EBUSY, lock_try(lock, 0, 0, &f->err));
    began = lk_boottime_ns();
    assert_ok(lock_try(lock, PATIENCE_MS, LONG_TTL_MS, &f->err));
    assert_true(lk_boottime_ns() - began >= PEERS_TTL_MS * LK_NS_PER_MS);
    lock_give(lock);
    lock_take(lock, LONG_TTL_MS); /* a free row is not observed */
    lock_end(lock);
    registry_end(registry);
}

static void test_many_locks_are_observed_as_well(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = observer(f);
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    struct peer_row peer = {0};
    struct worker worker;
    sqlock_lock *locks[3];
    int results[3];
    char name[96];
    size_t i;
    int rc;

    options.ttl_ms = LONG_TTL_MS;
    for (i = 0; i < 3; i++)
        locks[i] = nth_lock(f, registry, i);
    start_peer(f, &peer, &worker, nth_name(f, name, 1));
    rc = sqlock_acquire_many(locks, 3, 3 * PEERS_TTL_MS, &options, results,
                             &f->err);
    assert_code(SQLOCK_ETIMEDOUT, rc, &f->err);
    options.partial = true;
    rc = sqlock_acquire_many(locks, 3, 0, &options, results, &f->err);
    assert_code(SQLOCK_EBUSY, rc, &f->err);
    assert_int_equal(results[0], 0);
    assert_int_equal(results[1], SQLOCK_EBUSY);
    assert_int_equal(results[2], 0);
    assert_string_equal(fixture_row(f, name).client, PEER);
    lock_give(locks[0]);
    lock_give(locks[2]);
    end_peer(&peer, &worker);
    options.partial = false;
    rc = sqlock_acquire_many(locks, 3, PATIENCE_MS, &options, results, &f->err);
    assert_lock_ok(rc, &f->err);
    assert_string_not_equal(fixture_row(f, name).client, PEER);
    for (i = 0; i < 3; i++)
        lock_end(locks[i]);
    registry_end(registry);
}

/* Take the lock over from a peer, in a new registry with those TTLs, and return
 * how long that takes. */
static int64_t take_over_ns(struct fixture *f, uint32_t ttl_ms,
                            uint32_t peer_ttl_ms)
{
    sqlock_options options = observing(f, ttl_ms, peer_ttl_ms);
    sqlock_registry *registry = fixture_registry(f, &options);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    int64_t began;

    began = lk_boottime_ns();
    assert_ok(lock_try(lock, PATIENCE_MS, LONG_TTL_MS, &f->err));
    began = lk_boottime_ns() - began;
    lock_end(lock);
    registry_end(registry);
    return began;
}

static void test_the_longest_ttl_decides_how_long_to_look(void **state)
{
    struct fixture *f = *state;
    struct peer_row peer = {0};
    int64_t least = PEERS_TTL_MS * LK_NS_PER_MS;

    put_peer(f, &peer, f->name);
    assert_true(take_over_ns(f, 100, PEERS_TTL_MS) >= least);
    fixture_next(f);
    put_peer(f, &peer, f->name);
    assert_true(take_over_ns(f, PEERS_TTL_MS, 100) >= least);
    if (f->layout == SQLOCK_LAYOUT_SPRING6) /* no column for the end */
        return;
    fixture_next(f);
    find_key(f, &peer);
    fixture_put_row(f, peer.key, "DEFAULT", PEER,
                    PAST_US - INT64_C(1000) * PEERS_TTL_MS, PAST_US);
    assert_true(take_over_ns(f, PEERS_TTL_MS / 4, PEERS_TTL_MS / 4) >= least);
}

/* ----------------------------- changes between the reading and the claim -- */

/* Context of hooks that change the row just before it is claimed. */
struct meddler {
    struct fixture *fixture;
    const char *claim; /* the row changes before this is first sent */
    struct peer_row peer;
    bool takes; /* a peer takes the free row; else it renews its row */
    atomic_uint claims;
    atomic_bool spared; /* the first claim did not take the row */
};

static int meddle(void *context, const struct tap_event *event)
{
    struct meddler *meddler = context;
    struct fixture *f = meddler->fixture;
    char stamp[160];

    if (event->text != meddler->claim ||
        atomic_fetch_add(&meddler->claims, 1) > 0)
        return 0;
    if (meddler->takes) {
        put_peer(f, &meddler->peer, f->name);
        return 0;
    }
    (void)fixture_time(f, stamp, PAST_US + 1000000);
    (void)sql_run(
        &f->sql, "UPDATE %s SET %s = %s WHERE LOCK_KEY = '%s'", f->table,
        f->layout == SQLOCK_LAYOUT_SPRING6 ? "CREATED_DATE" : "EXPIRED_AFTER",
        stamp, meddler->peer.key);
    return 0;
}

static int look_afterwards(void *context, const struct tap_event *event, int rc)
{
    struct meddler *meddler = context;
    struct fixture *f = meddler->fixture;

    if (event->text == meddler->claim && atomic_load(&meddler->claims) == 1)
        atomic_store(&meddler->spared,
                     strcmp(fixture_row(f, f->name).client, PEER) == 0);
    return rc;
}

/* Acquire the lock, alone or by sqlock_acquire_many().  Try again if the
 * acquisition ended with EUNREACHABLE before its claim: on a busy machine a
 * reading that is not answered in time ends a wait for many. */
static int take_meddled(struct meddler *meddler, sqlock_lock *lock, bool many)
{
    struct fixture *f = meddler->fixture;
    int64_t wait_ms = meddler->takes ? 0 : PATIENCE_MS;
    int rc = SQLOCK_EUNREACHABLE;

    for (int i = 0; i < 20 && rc == SQLOCK_EUNREACHABLE &&
                    atomic_load(&meddler->claims) == 0;
         i++)
        rc = many ? sqlock_acquire_many(&lock, 1, wait_ms, NULL, NULL, &f->err)
                  : lock_try(lock, wait_ms, 0, &f->err);
    return rc;
}

static void check_meddling(struct fixture *f, bool takes, bool many)
{
    sqlock_options options = observing(f, PEERS_TTL_MS / 4, PEERS_TTL_MS / 4);
    struct meddler meddler = {.fixture = f, .takes = takes};
    sqlock_registry *registry;
    sqlock_lock *lock;
    int rc;

    registry = fixture_tapped(f, &options);
    meddler.claim = census_text(registry, SQLOCK_SQL_CLAIM_OBSERVED);
    lock = lock_obtain(registry, f->name);
    find_key(f, &meddler.peer);
    if (!takes)
        fixture_put_row(f, meddler.peer.key, "DEFAULT", PEER, PAST_US - 2000,
                        PAST_US);
    tap_hooks(meddle, look_afterwards, &meddler);
    rc = take_meddled(&meddler, lock, many);
    tap_hooks(NULL, NULL, NULL);
    if (takes) {
        assert_code(SQLOCK_EBUSY, rc, &f->err);
        assert_string_equal(fixture_row(f, f->name).client, PEER);
    } else {
        assert_lock_ok(rc, &f->err);
    }
    assert_true(atomic_load(&meddler.spared));
    registry_end(registry);
}

static void test_a_row_that_was_renewed_since_the_look_is_spared(void **state)
{
    struct fixture *f = *state;

    check_meddling(f, false, false);
    fixture_next(f);
    check_meddling(f, false, true);
}

static void test_a_row_that_was_taken_since_the_look_is_spared(void **state)
{
    struct fixture *f = *state;

    check_meddling(f, true, false);
    fixture_next(f);
    check_meddling(f, true, true);
}

/* --------------------------------------- many, of which one claim fails -- */

#define MANY 3

struct refusal {
    const char *claim;
    unsigned refused; /* which of the claims, from 1 */
    atomic_uint claims;
};

static int refuse_one(void *context, const struct tap_event *event)
{
    struct refusal *refusal = context;

    if (event->text != refusal->claim)
        return 0;
    return atomic_fetch_add(&refusal->claims, 1) + 1 == refusal->refused
               ? SQLOCK_EDATABASE
               : 0;
}

/* Observed rows are claimed one by one.  The last claim fails: the rows claimed
 * before it are freed. */
static void test_observed_claims_before_a_failure_are_given_up(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = observing(f, LONG_TTL_MS, LONG_TTL_MS);
    struct refusal refusal = {.refused = MANY};
    sqlock_registry *registry = fixture_tapped(f, &options);
    sqlock_lock *locks[MANY];
    char name[96];
    size_t i;

    refusal.claim = census_text(registry, SQLOCK_SQL_CLAIM_OBSERVED);
    for (i = 0; i < MANY; i++)
        locks[i] = nth_lock(f, registry, i);
    tap_hooks(refuse_one, NULL, &refusal);
    assert_fails(SQLOCK_EDATABASE,
                 sqlock_acquire_many(locks, MANY, 0, NULL, NULL, &f->err));
    tap_hooks(NULL, NULL, NULL);
    assert_int_equal(atomic_load(&refusal.claims), MANY);
    for (i = 0; i < MANY; i++)
        assert_true(fixture_is_free(f, nth_name(f, name, i)));
    for (i = 0; i < MANY; i++)
        lock_drop(locks[i]);
    registry_end(registry);
}

static const struct test tests[] = {
    TEST_ON(test_a_peer_that_renews_with_bad_stamps_keeps_its_lock, ON_ALL,
            IN_ALL),
    TEST_ON(test_without_it_the_stamps_decide, ON_ALL, IN_ALL),
    TEST_ON(test_a_row_that_stays_unchanged_is_taken_over, ON_ALL, IN_ALL),
    TEST_ON(test_many_locks_are_observed_as_well, ON_ALL, IN_ALL),
    TEST_ON(test_the_longest_ttl_decides_how_long_to_look, ON_ALL, IN_ALL),
    TEST_ON(test_a_row_that_was_renewed_since_the_look_is_spared, ON_ALL,
            IN_ALL),
    TEST_ON(test_a_row_that_was_taken_since_the_look_is_spared, ON_ALL, IN_ALL),
    TEST_ON(test_observed_claims_before_a_failure_are_given_up, ON_ALL, IN_ALL),
};
const struct topic topic_steal = TOPIC(tests);
