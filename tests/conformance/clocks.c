/*
 * clocks.c - which clock decides about a lease, when it is read, and in which
 * time zone (F9, F10, F12, F14)
 */
#include "conformance.h"

#include <stdlib.h>
#include <time.h>

#include "support/workers.h"

/* Acquire a lock in `writer`, and assert that `reader` reads the same end of
 * the lease from the table, and finds the lock busy until its release. */
static void check_agreement(struct fixture *f, sqlock_registry *writer,
                            sqlock_registry *reader)
{
    sqlock_lock *lock = lock_obtain(writer, f->name);
    sqlock_lock *other = lock_obtain(reader, f->name);
    int64_t now = sql_now_us(&f->sql);
    sqlock_info *info;
    struct row row;

    lock_take(lock, 20000);
    row = fixture_row(f, f->name);
    assert_less(now - 1000, row.expires_us - 19000000);
    assert_less(row.expires_us, sql_now_us(&f->sql) + 20001000);
    assert_ok(sqlock_show(reader, f->name, &info, &f->err));
    assert_int_equal(info->state, SQLOCK_HELD);
    assert_in_range(info->remaining_ms, 1, 20000);
    assert_true(info->expires_at_us == row.expires_us);
    sqlock_info_free(info, 1);
    assert_busy(other);
    lock_renew(lock, 0);
    lock_give(lock);
    lock_take_and_give(other);
    lock_drop(lock);
    lock_drop(other);
}

/* Check that a registry opened now and those of the fixture agree. */
static void check_zone(struct fixture *f)
{
    sqlock_registry *registry = fixture_registry(f, NULL);

    check_agreement(f, registry, f->a);
    check_agreement(f, f->b, registry);
    registry_end(registry);
}

/* libpq takes the session's time zone from PGTZ, and the C library of every
 * client takes its own from TZ. */
TEST(test_F12_the_zone_of_the_client_does_not_matter)
{
    static const char *const zones[] = {"Asia/Tokyo", "America/New_York",
                                        "Europe/Amsterdam", "UTC"};
    size_t i;

    for (i = 0; i < sizeof zones / sizeof *zones; i++) {
        check_row(zones[i]);
        assert_int_equal(setenv("TZ", zones[i], 1), 0);
        assert_int_equal(setenv("PGTZ", zones[i], 1), 0);
        tzset();
        check_zone(f);
    }
    check_row(NULL);
    assert_int_equal(unsetenv("TZ"), 0);
    assert_int_equal(unsetenv("PGTZ"), 0);
    tzset();
}

static int set_zone(struct fixture *f, struct sql *admin, const char *zone)
{
    char database[64];

    if (f->database->bit == ON_MYSQL)
        return sql_try(admin, NULL, "SET GLOBAL time_zone = '%s'", zone);
    assert_true(sql_text(admin, database, sizeof database,
                         "SELECT current_database()"));
    return sql_try(admin, NULL, "ALTER DATABASE %s SET timezone = '%s'",
                   database, zone);
}

TEST_STOPPING_IN(test_F12_the_zone_of_the_server_does_not_matter, ON_SERVERS,
                 IN_ALL)
{
    static const char *const zones[] = {"+09:00", "-05:00", "+00:00"};
    char before[64];
    struct sql admin;
    size_t i;
    int rc = sql_open(&admin, f->database, database_admin_url(f->database));

    assert_lock_ok(rc, &admin.err);
    assert_true(sql_text(&admin, before, sizeof before,
                         f->database->bit == ON_POSTGRES
                             ? "SHOW timezone"
                             : "SELECT @@global.time_zone"));
    for (i = 0; i < sizeof zones / sizeof *zones; i++) {
        check_row(zones[i]);
        rc = set_zone(f, &admin, zones[i]);
        if (rc == SQLOCK_EACCESS) {
            sql_close(&admin);
            skip_or_fail("there is no administrator's URL");
        }
        assert_lock_ok(rc, &admin.err);
        check_zone(f);
    }
    check_row(NULL);
    assert_lock_ok(set_zone(f, &admin, before), &admin.err);
    sql_close(&admin);
}

/* --- F9, F10: a statement that had to wait for a row --- */

struct blocked {
    sqlock_lock *lock;
    uint32_t ttl_ms;
    bool is_over; /* the lease that was granted */
};

/* Tell whether a result only says that the lock was not acquired in time: the
 * wait was over, the outcome is unknown, or no connection was opened within the
 * short limit. */
static bool may_try_again(int rc)
{
    return rc == SQLOCK_ETIMEDOUT || rc == SQLOCK_EUNCERTAIN ||
           rc == SQLOCK_EUNREACHABLE;
}

static int acquire_blocked(struct worker *worker)
{
    struct blocked *blocked = worker->context;
    int64_t end = check_deadline_ns(PATIENCE_MS);
    int rc;

    do
        rc =
            lock_try(blocked->lock, PATIENCE_MS, blocked->ttl_ms, &worker->err);
    while (may_try_again(rc) && check_pause(end));
    if (rc < 0)
        return worker_fail(worker, "acquire gave %d: %s", rc,
                           worker->err.message);
    blocked->is_over = !sqlock_is_held(blocked->lock) ||
                       sqlock_remaining_ms(blocked->lock) <= 0;
    rc = sqlock_release(blocked->lock, &worker->err);
    if (!blocked->is_over && rc != SQLOCK_EEXPIRED)
        worker_expect(worker, 0, rc);
    return 0;
}

/* A transaction locks the row for 600 ms.  Meanwhile a worker claims a lease of
 * 400 ms, and waits for the row.  Return whether the worker, when the
 * transaction has committed or rolled back, gets a lease that is not over
 * yet. */
static bool is_fresh_behind_a_transaction(struct fixture *f, bool commits,
                                          uint32_t statement_timeout_ms)
{
    struct blocked blocked = {.ttl_ms = 400};
    sqlock_lock *first = lock_obtain(f->b, f->name);
    sqlock_options options = fixture_options(f);
    sqlock_registry *registry;
    struct worker worker;
    int64_t release_at;
    int rc;

    options.statement_timeout_ms = statement_timeout_ms;
    registry = fixture_registry(f, &options);
    blocked.lock = lock_obtain(registry, f->name);
    lock_take_and_give(first);
    if (!fixture_row(f, f->name).exists) /* Spring's layouts have deleted it */
        fixture_put_row(f, sqlock_key(first), "DEFAULT", "gone", -2000000,
                        -1000000);
    assert_int_equal(sql_begin(&f->sql), 0);
    (void)sql_run(&f->sql,
                  "UPDATE %s SET CLIENT_ID = CLIENT_ID WHERE LOCK_KEY = '%s'",
                  f->table, sqlock_key(first));
    worker_start(&worker, acquire_blocked, &blocked);
    release_at = check_deadline_ns(600);
    while (check_pause(release_at))
        continue;
    rc = commits ? sql_commit(&f->sql) : sql_rollback(&f->sql);
    worker_join(&worker);
    assert_int_equal(rc, 0);
    lock_drop(first);
    registry_end(registry);
    return !blocked.is_over;
}

/* A busy machine may look at a fresh lease when it is over, but not each
 * time. */
static void check_behind_a_transaction(struct fixture *f, bool commits,
                                       uint32_t statement_timeout_ms)
{
    for (int i = 0; i < 5; i++)
        if (is_fresh_behind_a_transaction(f, commits, statement_timeout_ms))
            return;
    fail_msg("granted a lease that is over");
}

TEST(test_F10_a_claim_behind_a_transaction_is_no_stale_lease)
{
    check_behind_a_transaction(f, true, 0); /* the default timeout */
    fixture_next(f);
    check_behind_a_transaction(f, false, 0);
}

/* The transaction lasts longer than a statement may, so the claim fails and is
 * sent again. */
TEST(test_F10_a_claim_behind_a_long_transaction_is_tried_again)
{
    check_behind_a_transaction(f, true, 200);
}

/* A lease begins when its statement runs, not when the session began or ran an
 * earlier statement or transaction. */
TEST(test_F9_a_lease_begins_when_its_statement_runs)
{
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    int64_t before;
    int64_t past;
    int i;

    for (i = 0; i < 3; i++) {
        lock_take_and_give(lock);
        past = sql_now_us(&f->sql) + 120000;
        assert_becomes_true(sql_now_us(&f->sql) > past, PATIENCE_MS);
        /* lock_take() uses the connection that was opened long before */
        before = sql_now_us(&f->sql);
        lock_take(lock, 0);
        assert_less(before - 1001, sqlock_token(lock));
        assert_less(before - 1001 + LONG_TTL_MS * INT64_C(1000),
                    fixture_row(f, f->name).expires_us);
        lock_give(lock);
    }
    lock_drop(lock);
}

/* SQLite's CURRENT_TIMESTAMP has whole seconds; sqlock's times must be
 * finer. */
TEST_ON(test_F14_times_are_integers_finer_than_a_second, ON_SQLITE, IN_ALL)
{
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    char type[32];
    int64_t token;
    int fine = 0;
    int i;

    for (i = 0; i < 5; i++) {
        lock_take(lock, 300);
        token = sqlock_token(lock);
        fine += token % 1000000 != 0;
        assert_true(sql_text(&f->sql, type, sizeof type,
                             "SELECT typeof(CREATED_DATE) FROM %s"
                             " WHERE LOCK_KEY = '%s'",
                             f->table, sqlock_key(lock)));
        assert_string_equal(type, "integer");
        if (f->layout != SQLOCK_LAYOUT_SPRING6) {
            struct row row = fixture_row(f, f->name);

            assert_true(row.expires_us - row.created_us == 300000);
        }
        lock_give(lock);
    }
    assert_true(fine > 0);
    lock_drop(lock);
}

/* Tolerance for the length of a lease of 300 ms: less than the error if the
 * lease were rounded to 0 or to a second. */
#define PAUSE_US 250000

TEST(test_F14_a_lease_shorter_than_a_second)
{
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    sqlock_lock *other = lock_obtain(f->b, f->name);
    int64_t granted;
    struct row row;

    lock_take(lock, 300);
    granted = sqlock_token(lock);
    row = fixture_row(f, f->name);
    /* The server reads its clock for the token and again for the end of the
     * lease, and a busy server may pause in between. */
    assert_true(row.expires_us >= granted + 300000 - PAUSE_US);
    assert_true(row.expires_us <= granted + 300000 + PAUSE_US);
    assert_ok(lock_try(other, PATIENCE_MS, 0, &f->err));
    assert_less(row.expires_us, sqlock_token(other));
    lock_give(other);
    assert_fails(SQLOCK_ELOST, sqlock_release(lock, &f->err));
    lock_drop(other);
    lock_drop(lock);
}
