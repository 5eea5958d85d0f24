/*
 * test_pooled.c - a pooler lends the server's sessions for one transaction at a
 * time: what a statement needs goes with it, and nothing stays on a session
 */
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sqlock/doctor.h"
#include "sqlock/many.h"
#include "support/pooler.h"

/* A session of the server that all clients of the pooler share, one of them the
 * stranger, which has made settings on it. */
struct shared {
    struct pooler pooler;
    struct app stranger;
    sqlock_registry *registry;
    char *before; /* the session's settings */
};

/* With the table that the trigger of watch() fills. */
static void forget_seen(struct fixture *f)
{
    (void)sql_run(&f->sql, "DELETE FROM %s_seen", stock_name(f));
}

/* Have each write to the lock table noted, with the settings that it had. */
static void watch(struct fixture *f)
{
    const char *name = stock_name(f);

    (void)sql_run(&f->sql, "CREATE TABLE %s_seen (text TEXT)", name);
    (void)sql_run(
        &f->sql,
        "CREATE FUNCTION %s_note() RETURNS trigger LANGUAGE plpgsql AS $$ "
        "BEGIN INSERT INTO public.%s_seen VALUES ("
        "concat_ws(', ', current_setting('synchronous_commit'), "
        "current_setting('transaction_isolation'), "
        "current_setting('TimeZone'), current_setting('lock_timeout'), "
        "current_setting('statement_timeout'))); "
        "IF NEW.LOCK_NAME LIKE '%%sleep' THEN PERFORM pg_sleep(600); END IF; "
        "RETURN NEW; END $$",
        name, name);
    (void)sql_run(&f->sql,
                  "CREATE TRIGGER %s_note BEFORE INSERT OR UPDATE ON %s FOR "
                  "EACH ROW EXECUTE PROCEDURE %s_note()",
                  name, f->table, name);
}

static void watch_no_more(struct fixture *f)
{
    const char *name = stock_name(f);

    (void)sql_run(&f->sql, "DROP TRIGGER %s_note ON %s", name, f->table);
    (void)sql_run(&f->sql, "DROP FUNCTION %s_note()", name);
    (void)sql_run(&f->sql, "DROP TABLE %s_seen", name);
}

/* Settings with which claims would be neither durable nor limited, and would
 * read from a snapshot. */
static void make_settings(struct app *stranger)
{
    static const char *const texts[] = {
        "SET synchronous_commit = off",
        "SET statement_timeout = 0",
        "SET lock_timeout = 0",
        "SET default_transaction_isolation = 'serializable'",
        "SET client_min_messages = 'debug1'",
        "SET search_path = public, pg_catalog",
        "DO $$ BEGIN END $$", /* PL/pgSQL brings settings of its own */
    };

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        app_run(stranger, "%s", texts[i]);
}

static void shared_open(struct fixture *f, struct shared *shared,
                        const sqlock_options *options)
{
    char url[600];

    if (database_is_pooled(f->database))
        skip();
    pooler_start(&shared->pooler, f, "default_pool_size = 1");
    watch(f);
    /* PgBouncer itself takes an application's name along. */
    (void)snprintf(url, sizeof url, "%s?application_name=stranger",
                   shared->pooler.url);
    app_open(&shared->stranger, f->database, url);
    app_run(&shared->stranger, "PREPARE theirs AS SELECT 1");
    make_settings(&shared->stranger);
    shared->before = app_settings(&shared->stranger);
    shared->registry = fixture_registry_at(f, shared->pooler.url, options);
    make_settings(&shared->stranger); /* after ours, if we had made any */
    forget_seen(f);
}

/* Assert that the session has the settings of the stranger, and nothing of
 * ours. */
static void shared_close(struct fixture *f, struct shared *shared)
{
    registry_end(shared->registry);
    settings_compare(&shared->stranger, shared->before);
    assert_int_equal(app_integer(&shared->stranger,
                                 "SELECT count(*) FROM pg_prepared_statements "
                                 "WHERE name <> 'theirs'"),
                     0);
    assert_int_equal(app_integer(&shared->stranger,
                                 "SELECT count(*) FROM pg_locks WHERE "
                                 "locktype = 'advisory' AND "
                                 "pid = pg_backend_pid()"),
                     0);
    app_close(&shared->stranger);
    watch_no_more(f);
    pooler_end(&shared->pooler);
}

/* Assert that all writes that were noted had our limits and READ COMMITTED, and
 * were durable, or not: a release need not be. */
static void assert_seen(struct fixture *f, const char *commit)
{
    char expected[80];
    char seen[400];

    (void)snprintf(expected, sizeof expected,
                   "%s, read committed, UTC, 1s, 4500ms", commit);
    assert_true(sql_text(&f->sql, seen, sizeof seen,
                         "SELECT string_agg(DISTINCT text, '; ') FROM %s_seen",
                         stock_name(f)));
    assert_string_equal(seen, expected);
    forget_seen(f);
}

TEST_ON(test_a_claim_takes_its_settings_along, ON_POSTGRES, 0)
{
    struct shared shared;
    sqlock_lock *locks[2];
    char name[80];

    shared_open(f, &shared, NULL);
    (void)snprintf(name, sizeof name, "%s/2", f->name);
    locks[0] = lock_obtain(shared.registry, f->name);
    locks[1] = lock_obtain(shared.registry, name);
    for (int i = 0; i < 3; i++) {
        lock_take(locks[0], 0);
        assert_seen(f, "on");
        lock_renew(locks[0], 0);
        assert_seen(f, "on");
        lock_give(locks[0]);
        assert_seen(f, "off");
    }
    assert_ok(sqlock_acquire_many(locks, 2, 0, NULL, NULL, &f->err));
    assert_seen(f, "on");
    assert_ok(sqlock_release_many(locks, 2, NULL, &f->err));
    lock_drop(locks[0]);
    lock_drop(locks[1]);
    shared_close(f, &shared);
}

/* An error in the transaction that a statement is sent in ends there. */
TEST_ON(test_a_failed_claim_leaves_nothing, ON_POSTGRES, 0)
{
    struct shared shared;
    sqlock_lock *held = lock_obtain(f->a, f->name);
    sqlock_lock *lock;
    struct sql dba;

    lock_take(held, 0);
    shared_open(f, &shared, NULL);
    lock = lock_obtain(shared.registry, f->name);
    assert_busy(lock);
    fixture_lock_row(f, &dba, held);
    assert_fails(SQLOCK_EBUSY, lock_try(lock, 0, 0, &f->err));
    fixture_unlock_row(&dba);
    lock_give(held);
    lock_take_and_give(lock);
    lock_drop(lock);
    lock_drop(held);
    shared_close(f, &shared);
}

/* The statement that the registry gave up is ended by the server, since the
 * limit that was sent with it applies to it. */
TEST_ON(test_the_limit_of_a_statement_goes_with_it, ON_POSTGRES, 0)
{
    sqlock_options options = fixture_options(f);
    struct shared shared;
    sqlock_lock *lock;
    char name[80];

    options.statement_timeout_ms = 2000;
    shared_open(f, &shared, &options);
    (void)snprintf(name, sizeof name, "%s/sleep", f->name);
    lock = lock_obtain(shared.registry, name);
    assert_true(lock_try(lock, 0, 0, &f->err) < 0);
    assert_becomes_true(sql_integer(&f->sql,
                                    "SELECT count(*) FROM pg_stat_activity "
                                    "WHERE wait_event = 'PgSleep'") == 0,
                        PATIENCE_MS);
    lock_drop(lock);
    registry_end(shared.registry);
    /* PgBouncer may have closed the server's session: nothing to compare. */
    free(shared.before);
    app_close(&shared.stranger);
    watch_no_more(f);
    pooler_end(&shared.pooler);
}

static void show(struct fixture *f, sqlock_tx *tx, const char *setting,
                 const char *expected)
{
    sqlock_result result = {0};
    char text[80];

    (void)snprintf(text, sizeof text, "SHOW %s", setting);
    assert_ok(sqlock_tx_execute(tx, text, NULL, 0, &result, &f->err));
    assert_string_equal(result.cells[0].text, expected);
    sqlock_result_clear(&result);
}

TEST_ON(test_a_transaction_takes_its_settings_along, ON_POSTGRES, 0)
{
    struct shared shared;
    sqlock_tx *tx;

    shared_open(f, &shared, NULL);
    for (int i = 0; i < 2; i++) {
        assert_ok(sqlock_tx_begin(&tx, shared.registry, &f->err));
        show(f, tx, "synchronous_commit", "on");
        show(f, tx, "lock_timeout", "1s");
        show(f, tx, "transaction_isolation", "read committed");
        assert_ok(i == 0 ? sqlock_tx_commit(tx, &f->err)
                         : sqlock_tx_rollback(tx, &f->err));
    }
    shared_close(f, &shared);
}

/* The application's own connection leads through the pooler, too: its
 * transaction keeps the settings that it has. */
TEST_ON(test_an_adopted_transaction_leaves_nothing, ON_POSTGRES, 0)
{
    const char *name = f->name;
    struct shared shared;
    sqlock_lock *lock;
    struct app app;
    sqlock_tx *tx;

    shared_open(f, &shared, NULL);
    lock = lock_obtain(shared.registry, f->name);
    lock_take(lock, 0);
    app_open(&app, f->database, shared.pooler.url);
    assert_ok(sqlock_tx_adopt(&tx, f->a, app.native, &f->err));
    show(f, tx, "synchronous_commit", "off");
    show(f, tx, "lock_timeout", "0");
    assert_ok(sqlock_tx_lock(tx, &name, 1, 1000, false, NULL, &f->err));
    show(f, tx, "lock_timeout", "0");
    assert_ok(sqlock_tx_commit(tx, &f->err));
    app_close(&app);
    lock_end(lock);
    shared_close(f, &shared);
}

/* --- what is found out about the pooler --- */

/* With two sessions by turns, each statement of a client finds another one, but
 * two clients in step find the same ones again and again. */
TEST_ON(test_the_doctor_leaves_no_lock_on_a_session, ON_POSTGRES, 0)
{
    sqlock_options options = fixture_options(f);
    sqlock_capabilities gives = {.size = sizeof gives};
    sqlock_check *checks = NULL;
    struct pooler pooler;
    char url[600];
    size_t count = 0;
    bool is_told = false;

    if (database_is_pooled(f->database))
        skip();
    pooler_start(&pooler, f, "default_pool_size = 2\nserver_round_robin = 1");
    (void)snprintf(url, sizeof url, "%s?application_name=%s", pooler.url,
                   f->prefix);
    assert_ok(sqlock_diagnose(url, &options, &checks, &count, &f->err));
    for (size_t i = 0; i < count; i++)
        is_told = is_told || (strcmp(checks[i].check, "pooler") == 0 &&
                              checks[i].severity == SQLOCK_FAILURE);
    assert_true(is_told);
    sqlock_checks_free(checks, count);
    assert_ok(sqlock_capabilities_of(url, &options, &gives, &f->err));
    assert_int_equal(gives.wakeups, SQLOCK_SUPPORT_REFUSED);
    assert_int_equal(
        sql_integer(&f->sql,
                    "SELECT count(*) FROM pg_locks JOIN pg_stat_activity "
                    "USING (pid) WHERE locktype = 'advisory' AND "
                    "application_name = '%s'",
                    f->prefix),
        0);
    pooler_end(&pooler);
}

/* A crash of the server does not end the session that the pooler shows. */
TEST_ON(test_fast_leases_need_sessions_of_their_own, ON_POSTGRES, 0)
{
    sqlock_options options = SQLOCK_OPTIONS_INIT;
    sqlock_registry *registry = NULL;
    struct pooler pooler;
    char url[sizeof pooler.url + 24];

    pooler_start(&pooler, f, "");
    options.table_prefix = f->prefix;
    (void)snprintf(url, sizeof url, "%s%cdurability=fast", pooler.url,
                   strchr(pooler.url, '?') == NULL ? '?' : '&');
    assert_fails(SQLOCK_ENOTSUP,
                 sqlock_registry_open(&registry, url, &options, &f->err));
    assert_contains(f->err.message, "pooler");
    pooler_end(&pooler);
}
