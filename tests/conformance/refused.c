/*
 * refused.c - batches in which the database refuses the row of one lock: the
 * statement fails as a whole, and the other leases must not suffer from it
 *
 * A trigger refuses each change of the row.
 */
#include "conformance.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "sqlock/event.h"
#include "sqlock/many.h"

#define COUNT 7
#define BAD 4 /* the lock whose row is refused */

/* How a server's trigger ends the statement. */
struct ending {
    const char *postgres, *mysql;
};
static const struct ending error = {"", "SQLSTATE '45000' SET"};
/* as somebody does who cancels it, or kills it by KILL QUERY */
static const struct ending killed = {
    " USING ERRCODE = ''57014''", "SQLSTATE '70100' SET MYSQL_ERRNO = 1317,"};

static void refuse_by(struct fixture *f, const char *key,
                      const struct ending *ending)
{
    switch (f->database->bit) {
    case ON_POSTGRES:
        (void)sql_run(&f->sql,
                      "CREATE OR REPLACE FUNCTION %srefuse() RETURNS trigger "
                      "LANGUAGE plpgsql AS "
                      "'BEGIN RAISE EXCEPTION ''refused''%s; END'",
                      f->prefix, ending->postgres);
        (void)sql_run(&f->sql,
                      "CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON %s "
                      "FOR EACH ROW WHEN (NEW.LOCK_KEY = '%s') "
                      "EXECUTE FUNCTION %srefuse()",
                      f->table, key, f->prefix);
        break;
    case ON_MYSQL:
        (void)sql_run(&f->sql,
                      "CREATE TRIGGER %srefuse BEFORE UPDATE ON %s "
                      "FOR EACH ROW IF NEW.LOCK_KEY = '%s' THEN "
                      "SIGNAL %s MESSAGE_TEXT = 'refused'; END IF",
                      f->prefix, f->table, key, ending->mysql);
        (void)sql_run(&f->sql,
                      "CREATE TRIGGER %srefusei BEFORE INSERT ON %s "
                      "FOR EACH ROW IF NEW.LOCK_KEY = '%s' THEN "
                      "SIGNAL %s MESSAGE_TEXT = 'refused'; END IF",
                      f->prefix, f->table, key, ending->mysql);
        break;
    default:
        (void)sql_run(&f->sql,
                      "CREATE TRIGGER %srefuse BEFORE UPDATE ON %s "
                      "WHEN NEW.LOCK_KEY = '%s' "
                      "BEGIN SELECT RAISE(ABORT, 'refused'); END",
                      f->prefix, f->table, key);
        (void)sql_run(&f->sql,
                      "CREATE TRIGGER %srefusei BEFORE INSERT ON %s "
                      "WHEN NEW.LOCK_KEY = '%s' "
                      "BEGIN SELECT RAISE(ABORT, 'refused'); END",
                      f->prefix, f->table, key);
        break;
    }
}

static void refuse(struct fixture *f, const char *key)
{
    refuse_by(f, key, &error);
}

static void allow(struct fixture *f)
{
    if (f->database->bit == ON_POSTGRES) {
        (void)sql_run(&f->sql, "DROP TRIGGER refuse ON %s", f->table);
        (void)sql_run(&f->sql, "DROP FUNCTION %srefuse()", f->prefix);
        return;
    }
    (void)sql_run(&f->sql, "DROP TRIGGER %srefuse", f->prefix);
    (void)sql_run(&f->sql, "DROP TRIGGER %srefusei", f->prefix);
}

static void obtain_all(struct fixture *f, sqlock_registry *registry,
                       sqlock_lock *locks[COUNT])
{
    char name[96];

    for (size_t i = 0; i < COUNT; i++) {
        (void)snprintf(name, sizeof name, "%s-%zu", f->name, i);
        locks[i] = lock_obtain(registry, name);
    }
}

/* Assert that only lock BAD has a failure, and that it is the database's. */
static void expect_one(const int results[COUNT])
{
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(results[i], i == BAD ? SQLOCK_EDATABASE : 0);
}

static void test_one_row_that_is_refused_hinders_no_other(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *locks[COUNT];
    sqlock_lock *other;
    int results[COUNT];
    /* elsewhere a release deletes the row, which no trigger refuses */
    bool is_kept = f->layout == SQLOCK_LAYOUT_SQLOCK;

    obtain_all(f, f->a, locks);
    assert_ok(sqlock_acquire_many(locks, COUNT, 0, NULL, NULL, &f->err));
    refuse(f, sqlock_key(locks[BAD]));
    assert_fails(SQLOCK_EDATABASE,
                 sqlock_renew_many(locks, COUNT, results, &f->err));
    expect_one(results);
    assert_contains(f->err.message, sqlock_name(locks[BAD]));
    assert_true(sqlock_is_held(locks[BAD]));
    assert_fails(is_kept ? SQLOCK_EDATABASE : 0,
                 sqlock_release_many(locks, COUNT, results, &f->err));
    allow(f);
    if (is_kept)
        expect_one(results);
    for (size_t i = 0; i < COUNT; i++) {
        other = lock_obtain(f->b, sqlock_name(locks[i]));
        /* the refused release is repeated in the background */
        assert_ok(lock_try(other, i == BAD ? PATIENCE_MS : 0, 0, &f->err));
        lock_end(other);
        lock_drop(locks[i]);
    }
}

/* Somebody ends the statement: the error says what the server says. */
static void test_what_ended_a_statement_is_told(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    int rc;

    lock_take(lock, 0);
    refuse_by(f, sqlock_key(lock), &killed);
    rc = sqlock_renew(lock, 0, &f->err);
    allow(f);
    assert_code(SQLOCK_EBUSY, rc, &f->err);
    assert_contains(f->err.message, "refused");
    lock_give(lock);
    refuse_by(f, sqlock_key(lock), &killed);
    rc = sqlock_acquire(lock, 0, NULL, &f->err);
    allow(f);
    assert_code(SQLOCK_ETIMEDOUT, rc, &f->err);
    assert_contains(f->err.message, "refused");
    lock_drop(lock);
}

/* A claim that is refused for one lock acquires none. */
static void test_one_claim_that_is_refused_refuses_all(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *locks[COUNT];

    obtain_all(f, f->a, locks);
    refuse(f, sqlock_key(locks[BAD]));
    assert_fails(SQLOCK_EDATABASE,
                 sqlock_acquire_many(locks, COUNT, 0, NULL, NULL, &f->err));
    allow(f);
    for (size_t i = 0; i < COUNT; i++) {
        assert_false(sqlock_is_held(locks[i]));
        lock_drop(locks[i]);
    }
}

/* The last news of one lease whose renewal failed.  On a slow machine there may
 * be news of all, which got no answer in time. */
struct news {
    pthread_mutex_t mutex;
    int code;
    char key[SQLOCK_KEY_SIZE];
    char text[256];
};

static void hear(void *context, const sqlock_event *event)
{
    struct news *news = context;

    if (event->kind != SQLOCK_EVENT_NOT_RENEWED || event->key == NULL)
        return;
    pthread_mutex_lock(&news->mutex);
    news->code = event->code;
    (void)snprintf(news->key, sizeof news->key, "%s", event->key);
    (void)snprintf(news->text, sizeof news->text, "%s", event->text);
    pthread_mutex_unlock(&news->mutex);
}

/* The renewals in the background share a statement, too. */
static void test_one_renewal_that_is_refused_hinders_no_other(void **state)
{
    static struct news news = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    struct fixture *f = *state;
    sqlock_options options = fixture_options(f);
    sqlock_acquire_options how = SQLOCK_ACQUIRE_INIT;
    sqlock_registry *registry;
    sqlock_lock *locks[COUNT];

    options.on_event = hear;
    options.event_context = &news;
    options.event_level = SQLOCK_LEVEL_WARNING;
    registry = fixture_registry(f, &options);
    how.auto_renew = true;
    how.ttl_ms = 8000 * SLOWNESS;
    obtain_all(f, registry, locks);
    assert_ok(sqlock_acquire_many(locks, COUNT, 0, &how, NULL, &f->err));
    refuse(f, sqlock_key(locks[BAD]));
    assert_becomes_true(!sqlock_is_held(locks[BAD]), PATIENCE_MS);
    for (size_t i = 0; i < COUNT; i++)
        assert_true(sqlock_is_held(locks[i]) == (i != BAD));
    pthread_mutex_lock(&news.mutex);
    assert_int_equal(news.code, SQLOCK_EDATABASE);
    assert_contains(news.text, "refused");
    assert_string_equal(news.key, sqlock_key(locks[BAD]));
    assert_contains(news.text, sqlock_name(locks[BAD]));
    pthread_mutex_unlock(&news.mutex);
    allow(f);
    for (size_t i = 0; i < COUNT; i++) {
        if (i == BAD)
            assert_fails(SQLOCK_EEXPIRED, sqlock_release(locks[i], &f->err));
        else
            lock_give(locks[i]);
        lock_drop(locks[i]);
    }
    registry_end(registry);
}

static const struct test tests[] = {
    TEST_ON(test_one_row_that_is_refused_hinders_no_other, ON_ALL, IN_ALL),
    TEST_ON(test_one_claim_that_is_refused_refuses_all, ON_ALL, IN_ALL),
    TEST_ON(test_what_ended_a_statement_is_told, ON_SERVERS, IN_SQLOCK),
    TEST_ON(test_one_renewal_that_is_refused_hinders_no_other, ON_ALL,
            IN_SQLOCK),
};
const struct topic topic_refused = TOPIC(tests);
