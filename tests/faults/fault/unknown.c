/*
 * unknown.c - outcomes that the client does not learn: commits that are cut
 * off, claims that are given up, statements that arrive late (F26, F38 to F40,
 * F51, F62)
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "fault.h"
#include "support/server.h"

/* ----------------------------------------------------------- F38: claims -- */

static void test_F38_claims_cut_before_their_answer_are_found_out(void **state)
{
    const struct proxy_plan plan = {
        .point = PROXY_SENT, .act = PROXY_CUT, .nth = 1};
    unsigned rounds = check_scale(25, 1000);
    unsigned found = 0;
    int rc;

    (void)state;
    assert_lock_ok(party_warm_up(&stage.a), &stage.a.err);
    for (unsigned i = 0; i < rounds; i++) {
        int64_t began_ns = lk_boottime_ns();
        int64_t token;

        proxy_arm(stage.proxy, &plan);
        rc = sqlock_acquire(stage.a.locks[0], 0, NULL, &stage.a.err);
        proxy_heal(stage.proxy);
        if (is_late(rc)) {
            assert_true(lk_boottime_ns() - began_ns >
                        STATEMENT_MS / 2 * INT64_C(1000000));
            assert_becomes_true(stage_row(0).client[0] == '\0', PATIENCE_MS);
            continue;
        }
        assert_lock_ok(rc, &stage.a.err);
        assert_int_equal(proxy_times(stage.proxy), 1);
        token = sqlock_token(stage.a.locks[0]);
        assert_true(stage_row(0).fence == token);
        assert_int_equal(strlen(stage_row(0).client), 36);
        rc = sqlock_release(stage.a.locks[0], &stage.a.err);
        if (!is_late(rc))
            assert_lock_ok(rc, &stage.a.err);
        assert_becomes_true(stage_row(0).client[0] == '\0', PATIENCE_MS);
        found++;
    }
    assert_true(found > rounds / 2);
}

/* ---------------------------------------------------------- F38: commits -- */

static const char *table(void)
{
    return stage.fixture.table;
}

/* Write LOCK_NAME in a transaction of the driver, through the proxy.  The plan
 * is armed just before the COMMIT.  Return the result of the commit. */
static int commit_through(const struct proxy_plan *plan, const char *key,
                          const char *text)
{
    char url[1024];
    struct sql sql;
    int rc;

    rc = sql_open(&sql, stage.fixture.database,
                  proxy_url(stage.proxy, url, stage.fixture.url));
    assert_lock_ok(rc, &sql.err);
    assert_int_equal(sql_begin(&sql), 0);
    assert_int_equal(sql_run(&sql,
                             "UPDATE %s SET LOCK_NAME = '%s'"
                             " WHERE LOCK_KEY = '%s'",
                             table(), text, key),
                     1);
    proxy_arm(stage.proxy, plan);
    rc = sql_commit(&sql);
    assert_true(proxy_await(stage.proxy, PATIENCE_MS));
    proxy_heal(stage.proxy);
    sql_close(&sql);
    return rc;
}

static bool is_written(const char *key, const char *text)
{
    char name[64];

    assert_true(sql_text(&stage.fixture.sql, name, sizeof name,
                         "SELECT LOCK_NAME FROM %s WHERE LOCK_KEY = '%s'",
                         table(), key));
    return strcmp(name, text) == 0;
}

/* The connection is cut before the COMMIT reaches the server: nothing is
 * written.  It is cut before the answer arrives: the change is written.  Both
 * give EUNCERTAIN.  It is cut after the answer: 0. */
static void test_F38_a_commit_cut_off_is_uncertain(void **state)
{
    struct proxy_plan plan = {
        .act = PROXY_CUT, .nth = 1, .containing = "COMMIT"};
    struct row row;

    (void)state;
    assert_lock_ok(party_warm_up(&stage.a), &stage.a.err);
    row = stage_row(0);
    plan.point = PROXY_BEFORE;
    assert_int_equal(commit_through(&plan, row.key, "one"), SQLOCK_EUNCERTAIN);
    assert_false(is_written(row.key, "one"));
    plan.point = PROXY_SENT;
    assert_int_equal(commit_through(&plan, row.key, "two"), SQLOCK_EUNCERTAIN);
    assert_true(is_written(row.key, "two"));
    plan.point = PROXY_REPLIED;
    assert_int_equal(commit_through(&plan, row.key, "three"), 0);
    assert_true(is_written(row.key, "three"));
}

/* ------------------------------------------------ F26: refused at commit -- */

/* A deferred trigger refuses the commit of a claim whose UPDATE succeeded. */
static void test_F26_a_claim_refused_at_commit_is_no_grant(void **state)
{
    int rc;

    (void)state;
    assert_lock_ok(party_warm_up(&stage.a), &stage.a.err);
    (void)sql_run(&stage.fixture.sql,
                  "CREATE FUNCTION refuse_%s() RETURNS trigger LANGUAGE plpgsql"
                  " AS $$ BEGIN RAISE EXCEPTION 'not now'; END $$",
                  table());
    (void)sql_run(&stage.fixture.sql,
                  "CREATE CONSTRAINT TRIGGER refuse AFTER UPDATE ON %s"
                  " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW"
                  " EXECUTE FUNCTION refuse_%s()",
                  table(), table());
    rc = party_ask(&stage.a, 0);
    (void)sql_run(&stage.fixture.sql, "DROP TRIGGER refuse ON %s", table());
    (void)sql_run(&stage.fixture.sql, "DROP FUNCTION refuse_%s()", table());
    assert_code(SQLOCK_EDATABASE, rc, &stage.a.err);
    assert_false(sqlock_is_held(stage.a.locks[0]));
    assert_string_equal(stage_row(0).client, "");
    assert_lock_ok(party_ask(&stage.a, 0), &stage.a.err);
}

/* ---------------------------------------------------- F39: ghost acquire -- */

/* The process is killed while its claim waits for a row in the server.  Even if
 * the claim is carried out afterwards, its lease ends within a TTL, and party B
 * gets the lock. */
static void
test_F39_a_claim_outlives_its_process_no_longer_than_a_lease(void **state)
{
    struct holder holder;
    struct sql blocker;
    unsigned before;
    struct row row;
    int64_t now_us;

    (void)state;
    holder_start(&holder, OP_ACQUIRE, FAULT_SENT, HALT_NOT);
    fixture_lock_row(&stage.fixture, &blocker, stage.b.locks[0]);
    before = proxy_requests(stage.proxy);
    holder_go(&holder);
    assert_becomes_true(proxy_requests(stage.proxy) > before, PATIENCE_MS);
    holder_kill(&holder);
    fixture_unlock_row(&blocker);
    assert_true(proxy_await_quiet(stage.proxy, PATIENCE_MS));
    now_us = sql_now_us(&stage.fixture.sql);
    row = stage_row(0);
    if (row.client[0] != '\0')
        assert_less(row.expires_us, now_us + TTL_MS * INT64_C(1000));
    assert_lock_ok(party_acquire(&stage.b, 0, PATIENCE_MS), &stage.b.err);
    assert_lock_ok(party_release(&stage.b, 0), &stage.b.err);
}

/* ---------------------------------------------------- F40: late arrivals -- */

static void refuse_opens(void *context)
{
    const struct fault_plan plan = {
        .call = TAP_OPEN, .point = FAULT_BEFORE, .code = SQLOCK_EUNREACHABLE};

    (void)context;
    fault_arm(&plan);
}

/* A renewal that shortens the lease is carried out, its answer is lost, and the
 * database cannot be reached to ask: the shorter deadline holds. */
static void test_F40_an_unknown_renewal_is_not_believed_longer(void **state)
{
    const struct fault_plan plan = {.call = TAP_EXECUTE,
                                    .nth = 1,
                                    .point = FAULT_SENT,
                                    .code = SQLOCK_EUNCERTAIN,
                                    .hook = refuse_opens};
    sqlock_lock *lock = stage.a.locks[0];
    int64_t left;
    int rc;

    (void)state;
    stage.a.ttl_ms = LONG_TTL_MS;
    rc = party_ask(&stage.a, 0);
    stage.a.ttl_ms = TTL_MS;
    assert_lock_ok(rc, &stage.a.err);
    fault_arm(&plan);
    rc = sqlock_renew(lock, TTL_MS, &stage.a.err);
    left = sqlock_remaining_ms(lock);
    fault_heal();
    assert_code(SQLOCK_EUNCERTAIN, rc, &stage.a.err);
    assert_less(left, TTL_MS);
    history_renewed(&stage.histories[0], PARTY_A, lk_boottime_ns(),
                    lk_boottime_ns() + sqlock_remaining_ms(lock) * 1000000);
    assert_lock_ok(party_acquire(&stage.b, 0, PATIENCE_MS), &stage.b.err);
    assert_false(sqlock_is_held(lock));
    assert_code(SQLOCK_ELOST, party_release(&stage.a, 0), &stage.a.err);
    history_check(&stage.histories[0]);
}

/* A statement reaches the server late, when A has given it up and B holds the
 * lock: B's row does not change. */
static void check_late_arrival(enum op op)
{
    const struct proxy_plan plan = {
        .point = PROXY_BEFORE, .act = PROXY_LATE, .nth = 1};
    struct row row;
    int rc = party_warm_up(&stage.a);

    assert_lock_ok(rc, &stage.a.err);
    assert_lock_ok(op_prepare(&stage.a, op), &stage.a.err);
    proxy_arm(stage.proxy, &plan);
    rc = op_perform(&stage.a, op);
    assert_int_equal(proxy_times(stage.proxy), 1);
    /* a renewal is given up; a claim or release is sent again, and answered */
    assert_code(op == OP_RENEW ? SQLOCK_EUNCERTAIN : 0, rc, &stage.a.err);
    if (sqlock_hold_count(stage.a.locks[0]) > 0) {
        assert_lock_ok(party_release(&stage.a, 0), &stage.a.err);
    }
    assert_lock_ok(party_acquire(&stage.b, 0, 0), &stage.b.err);
    row = stage_row(0);
    proxy_heal(stage.proxy); /* now the statement arrives */
    assert_true(proxy_await_quiet(stage.proxy, PATIENCE_MS));
    assert_string_equal(stage_row(0).client, row.client);
    assert_true(stage_row(0).expires_us == row.expires_us);
    assert_true(stage_row(0).fence == row.fence);
    assert_true(sqlock_is_held(stage.b.locks[0]));
    assert_lock_ok(party_release(&stage.b, 0), &stage.b.err);
    history_check(&stage.histories[0]);
}

static void test_F40_a_late_renewal_misses_the_next_owner(void **state)
{
    (void)state;
    check_late_arrival(OP_RENEW);
}

static void test_F40_a_late_release_misses_the_next_owner(void **state)
{
    (void)state;
    check_late_arrival(OP_RELEASE);
}

static void test_F39_a_late_claim_misses_the_next_owner(void **state)
{
    (void)state;
    check_late_arrival(OP_ACQUIRE);
}

/* The statement that frees all locks after a restore reaches the server late,
 * when the call was made again, and B holds a lock: B's row does not change. */
static void test_F62_a_late_restore_misses_the_next_owner(void **state)
{
    const struct proxy_plan plan = {.point = PROXY_BEFORE,
                                    .act = PROXY_LATE,
                                    .nth = 1,
                                    .containing = "NULL, HOLDER = NULL"};
    struct row row;
    int rc;

    (void)state;
    assert_lock_ok(party_warm_up(&stage.a), &stage.a.err);
    proxy_arm(stage.proxy, &plan);
    do
        rc = sqlock_after_restore(stage.a.registry, NULL, &stage.a.err);
    while (rc == SQLOCK_EUNCERTAIN || rc == SQLOCK_EUNREACHABLE);
    assert_lock_ok(rc, &stage.a.err);
    assert_int_equal(proxy_times(stage.proxy), 1);
    assert_lock_ok(party_acquire(&stage.b, 0, 0), &stage.b.err);
    row = stage_row(0);
    proxy_heal(stage.proxy); /* now the statement arrives */
    assert_true(proxy_await_quiet(stage.proxy, PATIENCE_MS));
    assert_string_equal(stage_row(0).client, row.client);
    assert_true(stage_row(0).fence == row.fence);
    assert_lock_ok(party_release(&stage.b, 0), &stage.b.err);
}

/* --------------------------------------------------------- F51: given up -- */

/* Let A claim one lock, or all.  The claim is carried out and gets no answer:
 * its result is EUNCERTAIN. */
static void give_up_claim(int which)
{
    const struct proxy_plan plan = {
        .point = PROXY_SENT, .act = PROXY_BLACKHOLE, .nth = 1};
    int rc;

    assert_lock_ok(party_warm_up(&stage.a), &stage.a.err);
    stage.a.ttl_ms = LONG_TTL_MS;
    proxy_arm(stage.proxy, &plan);
    rc = party_acquire(&stage.a, which, 0);
    stage.a.ttl_ms = TTL_MS;
    proxy_heal(stage.proxy);
    assert_code(SQLOCK_EUNCERTAIN, rc, &stage.a.err);
}

/* A gives up a claim that was carried out: A does not hold the lock, and the
 * row is freed in the background, long before the lease would end. */
static void test_F51_a_claim_given_up_is_freed(void **state)
{
    struct row row;

    (void)state;
    give_up_claim(0);
    assert_false(sqlock_is_held(stage.a.locks[0]));
    row = stage_row(0);
    assert_true(row.exists); /* since the warm-up */
    assert_becomes_true(stage_row(0).client[0] == '\0', PATIENCE_MS);
    assert_lock_ok(party_acquire(&stage.b, 0, 0), &stage.b.err);
    assert_less(row.fence, sqlock_token(stage.b.locks[0]));
}

/* A gives up a claim of several locks: the rows are freed in the background. */
static void test_F51_claims_of_many_given_up_are_freed(void **state)
{
    (void)state;
    give_up_claim(ALL_LOCKS);
    for (size_t i = 0; i < LOCKS; i++)
        assert_false(sqlock_is_held(stage.a.locks[i]));
    for (size_t i = 0; i < LOCKS; i++)
        assert_becomes_true(stage_row(i).client[0] == '\0', PATIENCE_MS);
    assert_lock_ok(party_acquire(&stage.b, ALL_LOCKS, 0), &stage.b.err);
}

/* A waits for a row that is locked, and gives up.  When the row is unlocked, A
 * does not get the lock any more. */
static void test_F51_a_wait_that_ended_takes_no_lock_later(void **state)
{
    struct sql blocker;
    int rc;

    (void)state;
    assert_lock_ok(party_warm_up(&stage.a), &stage.a.err);
    fixture_lock_row(&stage.fixture, &blocker, stage.b.locks[0]);
    rc = party_acquire(&stage.a, 0, 50);
    fixture_unlock_row(&blocker);
    assert_true(rc < 0);
    assert_false(sqlock_is_held(stage.a.locks[0]));
    if (rc != SQLOCK_EUNCERTAIN)
        assert_string_equal(stage_row(0).client, "");
    assert_lock_ok(party_acquire(&stage.b, 0, PATIENCE_MS), &stage.b.err);
}

/* A renewal to a short TTL is late in the network, and a longer one follows on
 * another connection and succeeds.  A's deadline is still that of the short
 * TTL, since the first renewal may yet arrive, and then does. */
#define SHORT_TTL_MS (6 * STATEMENT_MS)
static void test_F40_a_late_short_renewal_is_no_surprise(void **state)
{
    const struct proxy_plan plan = {
        .point = PROXY_BEFORE, .act = PROXY_LATE, .nth = 1};
    int rc;
    int64_t asked;

    (void)state;
    assert_lock_ok(party_warm_up(&stage.a), &stage.a.err);
    assert_lock_ok(party_ask(&stage.a, 0), &stage.a.err);
    proxy_arm(stage.proxy, &plan);
    (void)!sqlock_renew(stage.a.locks[0], SHORT_TTL_MS, &stage.a.err);
    asked = lk_boottime_ns();
    rc = sqlock_renew(stage.a.locks[0], LONG_TTL_MS, &stage.a.err);
    assert_lock_ok(rc, &stage.a.err);
    assert_true(sqlock_remaining_ms(stage.a.locks[0]) <= SHORT_TTL_MS);
    history_renewed(&stage.histories[0], PARTY_A, asked,
                    lk_boottime_ns() +
                        sqlock_remaining_ms(stage.a.locks[0]) * LK_NS_PER_MS);
    proxy_heal(stage.proxy);
    (void)proxy_await_quiet(stage.proxy, PATIENCE_MS);
    assert_lock_ok(party_acquire(&stage.b, 0, PATIENCE_MS), &stage.b.err);
    assert_int_equal(sqlock_remaining_ms(stage.a.locks[0]), 0);
}

static const struct test tests[] = {
    TEST_ON(test_F38_claims_cut_before_their_answer_are_found_out, ON_SERVERS,
            0),
    TEST_ON(test_F38_a_commit_cut_off_is_uncertain, ON_SERVERS, 0),
    TEST_ON(test_F26_a_claim_refused_at_commit_is_no_grant, ON_POSTGRES, 0),
    TEST_ON(test_F39_a_claim_outlives_its_process_no_longer_than_a_lease,
            ON_SERVERS, 0),
    TEST_ON(test_F39_a_late_claim_misses_the_next_owner, ON_SERVERS, 0),
    TEST_ON(test_F40_a_late_renewal_misses_the_next_owner, ON_SERVERS, 0),
    TEST_ON(test_F40_a_late_release_misses_the_next_owner, ON_SERVERS, 0),
    TEST_ON(test_F40_an_unknown_renewal_is_not_believed_longer, ON_ALL, 0),
    TEST_ON(test_F40_a_late_short_renewal_is_no_surprise, ON_SERVERS, 0),
    TEST_ON(test_F62_a_late_restore_misses_the_next_owner, ON_SERVERS, 0),
    TEST_ON(test_F51_a_claim_given_up_is_freed, ON_SERVERS, 0),
    TEST_ON(test_F51_claims_of_many_given_up_are_freed, ON_SERVERS, 0),
    TEST_ON(test_F51_a_wait_that_ended_takes_no_lock_later, ON_SERVERS, 0),
};
const struct topic topic_unknown = TOPIC(tests);
