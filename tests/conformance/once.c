/*
 * once.c - records of work that is done once: made by the holder only, kept
 * after the release, beside a lock table of any layout
 */
#include "conformance.h"

#include <stdio.h>
#include <string.h>

#include "sqlock/once.h"
#include "support/tap.h"

static sqlock_lock *take_first(struct fixture *f)
{
    sqlock_options options = fixture_options(f);
    sqlock_lock *lock = lock_obtain(f->a, f->name);

    assert_ok(sqlock_once_schema_create(f->url, &options, &f->err));
    lock_take(lock, 0);
    return lock;
}

/* Drop the table of records; each test that made it calls this at its end. */
static void drop_table(struct fixture *f)
{
    assert_int_equal(sql_try(&f->sql, NULL, "DROP TABLE %sDONE", f->prefix), 0);
}

/* On a database that cannot guard a lease, assert that sqlock_once_check(),
 * which is called before the work, returns ENOTSUP as sqlock_once_record()
 * does, and that nothing is recorded.  Release and drop the lock, and drop the
 * table. */
static void expect_refusal(struct fixture *f, sqlock_lock *lock)
{

    assert_fails(SQLOCK_ENOTSUP, sqlock_once_check(f->b, f->name, &f->err));
    assert_fails(SQLOCK_ENOTSUP, sqlock_once_record(lock, &f->err));
    assert_true(
        sql_integer(&f->sql, "SELECT COUNT(*) FROM %sDONE", f->prefix) == 0);
    lock_give(lock);
    lock_drop(lock);
    drop_table(f);
}

static void test_a_record_is_there_for_all_and_for_good(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = take_first(f);
    sqlock_registry *elsewhere;
    int64_t token = sqlock_token(lock);

    if (fixture_gives(f).guards == SQLOCK_SUPPORT_REFUSED) {
        expect_refusal(f, lock);
        return;
    }
    assert_fails(SQLOCK_ENOTFOUND, sqlock_once_check(f->b, f->name, &f->err));
    assert_ok(sqlock_once_record(lock, &f->err));
    lock_give(lock);
    assert_ok(sqlock_once_check(f->b, f->name, &f->err));
    assert_true(sql_integer(&f->sql,
                            "SELECT COUNT(*) FROM %sDONE WHERE LOCK_KEY = '%s' "
                            "AND LOCK_NAME = '%s' AND FENCE = %lld",
                            f->prefix, sqlock_key(lock), f->name,
                            (long long)token) == 1);
    assert_ok(sqlock_reap(f->a, 0, NULL, &f->err));
    assert_ok(sqlock_once_check(f->a, f->name, &f->err));
    /* The record counts in this region only. */
    elsewhere = fixture_in_region(f, "elsewhere");
    assert_fails(SQLOCK_ENOTFOUND,
                 sqlock_once_check(elsewhere, f->name, &f->err));
    registry_end(elsewhere);
    lock_drop(lock);
    drop_table(f);
}

/* DONE_DATE is the database's time in UTC, whatever the session's time zone. */
static void test_F13_a_record_has_the_databases_time(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = take_first(f);
    char early[160];
    char late[160];

    assert_ok(sqlock_once_record(lock, &f->err));
    (void)fixture_time(f, early, -60000000);
    (void)fixture_time(f, late, 60000000);
    assert_true(sql_integer(&f->sql,
                            "SELECT COUNT(*) FROM %sDONE WHERE LOCK_KEY = '%s' "
                            "AND DONE_DATE > %s AND DONE_DATE < %s",
                            f->prefix, sqlock_key(lock), early, late) == 1);
    lock_give(lock);
    lock_drop(lock);
    drop_table(f);
}

static void test_only_the_holder_records(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = take_first(f);
    sqlock_lock *other = lock_obtain(f->b, f->name);
    sqlock_info *row = NULL;
    sqlock_break_options how = SQLOCK_BREAK_INIT;

    assert_fails(SQLOCK_EEXPIRED, sqlock_once_record(other, &f->err));
    assert_ok(sqlock_show(f->b, f->name, &row, &f->err));
    how.token = row->token;
    how.client_id = row->client_id;
    how.reason = "test";
    how.now = true;
    assert_ok(sqlock_break(f->b, f->name, &how, &f->err));
    sqlock_info_free(row, 1);
    lock_take(other, 0);
    assert_fails(SQLOCK_ELOST, sqlock_once_record(lock, &f->err));
    assert_fails(SQLOCK_ENOTFOUND, sqlock_once_check(f->b, f->name, &f->err));
    lock_give(other);
    (void)!sqlock_release(lock, NULL);
    lock_drop(other);
    lock_drop(lock);
    drop_table(f);
}

static int lose_commit(void *context, const struct tap_event *event, int rc)
{
    bool *is_lost = context;

    if (event->call != TAP_COMMIT || *is_lost)
        return rc;
    *is_lost = true;
    return SQLOCK_EUNCERTAIN;
}

static void test_F41_a_record_whose_commit_got_no_answer(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *first = take_first(f);
    sqlock_registry *registry = fixture_tapped(f, NULL);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    bool is_lost = false;

    lock_give(first);
    lock_drop(first);
    lock_take(lock, 0);
    tap_hooks(NULL, lose_commit, &is_lost);
    assert_ok(sqlock_once_record(lock, &f->err));
    tap_hooks(NULL, NULL, NULL);
    assert_true(is_lost);
    assert_ok(sqlock_once_check(f->a, f->name, &f->err));
    lock_give(lock);
    lock_drop(lock);
    registry_end(registry);
    drop_table(f);
}

/* A holder whose commit gets no answer, and is not carried out; before it asks
 * for the record, its lease is over, and another one has done the work. */
struct successor {
    struct fixture *fixture;
    sqlock_lock *lock;
    bool is_lost, has_recorded;
    bool comes_at_begin; /* and no transaction begins from then on */
};

static int record_again(void *context, const struct tap_event *event)
{
    struct successor *next = context;
    struct fixture *f = next->fixture;

    if (event->call == TAP_COMMIT && !next->is_lost) {
        next->is_lost = true;
        return SQLOCK_EUNCERTAIN;
    }
    if (next->comes_at_begin && next->has_recorded)
        return event->call == TAP_BEGIN ? SQLOCK_ECANCELED : 0;
    if (next->is_lost && !next->has_recorded &&
        (next->comes_at_begin
             ? event->call == TAP_BEGIN
             : event->call == TAP_EXECUTE && event->text != NULL &&
                   strcasestr(event->text, "DONE") != NULL)) {
        next->has_recorded = true;
        fixture_expire(f, f->name);
        lock_take(next->lock, 0);
        assert_ok(sqlock_once_record(next->lock, &f->err));
        return next->comes_at_begin ? SQLOCK_ECANCELED : 0;
    }
    return 0;
}

static void be_succeeded(struct fixture *f, bool comes_at_begin)
{
    sqlock_lock *first = take_first(f);
    sqlock_registry *registry = fixture_tapped(f, NULL);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    struct successor next = {
        .fixture = f, .lock = first, .comes_at_begin = comes_at_begin};
    sqlock_error err = {0};
    int rc;

    lock_give(first);
    lock_take(lock, 2000);
    tap_hooks(record_again, NULL, &next);
    rc = sqlock_once_record(lock, &err);
    tap_hooks(NULL, NULL, NULL);
    assert_true(next.has_recorded);
    assert_code_of(SQLOCK_ELOST, SQLOCK_EUNCERTAIN, rc, &err);
    assert_fails(SQLOCK_ELOST, sqlock_release(lock, &f->err));
    lock_give(first);
    lock_drop(first);
    lock_drop(lock);
    registry_end(registry);
    drop_table(f);
}

static void test_a_later_holders_record_is_no_own_one(void **state)
{
    be_succeeded(*state, false);
    be_succeeded(*state, true);
}

/* A commit that got no answer; then the record cannot be read, nor can another
 * transaction begin, until that was tried. */
struct silence {
    bool is_lost, has_begun;
    bool may_read_then;
};

static int be_silent(void *context, const struct tap_event *event)
{
    struct silence *silence = context;

    if (!silence->is_lost)
        return 0;
    if (event->call == TAP_BEGIN) {
        silence->has_begun = true;
        return SQLOCK_EACCESS;
    }
    return event->call == TAP_EXECUTE && event->text != NULL &&
                   strcasestr(event->text, "DONE") != NULL &&
                   !(silence->has_begun && silence->may_read_then)
               ? SQLOCK_EACCESS
               : 0;
}

static int lose_commit_before(void *context, const struct tap_event *event,
                              int rc)
{
    struct silence *silence = context;

    return lose_commit(&silence->is_lost, event, rc);
}

static void test_F41_a_commit_without_an_answer_is_never_a_failure(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *first = take_first(f);
    sqlock_registry *registry = fixture_tapped(f, NULL);
    sqlock_lock *lock = lock_obtain(registry, f->name);

    lock_give(first);
    lock_drop(first);
    for (unsigned may_read_then = 0; may_read_then < 2; may_read_then++) {
        struct silence silence = {.may_read_then = may_read_then != 0};

        check_row(may_read_then != 0 ? "it is seen later" : "it is not seen");
        lock_take(lock, LONG_TTL_MS);
        tap_hooks(be_silent, lose_commit_before, &silence);
        if (may_read_then != 0)
            assert_ok(sqlock_once_record(lock, &f->err));
        else
            assert_fails(SQLOCK_EUNCERTAIN, sqlock_once_record(lock, &f->err));
        tap_hooks(NULL, NULL, NULL);
        assert_true(silence.has_begun);
        lock_give(lock);
        assert_ok(sqlock_once_check(f->a, f->name, &f->err));
        assert_ok(sqlock_once_forget(f->a, f->name, &f->err));
    }
    check_row(NULL);
    lock_drop(lock);
    registry_end(registry);
    drop_table(f);
}

/* A failure of the first statement that begins with `verb` and names DONE. */
struct trouble {
    const char *verb;
    unsigned seen;
};

static bool strikes(struct trouble *trouble, const struct tap_event *event)
{
    return event->call == TAP_EXECUTE && event->text != NULL &&
           strncmp(event->text, trouble->verb, strlen(trouble->verb)) == 0 &&
           strcasestr(event->text, "DONE") != NULL && trouble->seen++ == 0;
}

static int break_before(void *context, const struct tap_event *event)
{
    return strikes(context, event) ? SQLOCK_EUNREACHABLE : 0;
}

static int lose_answer(void *context, const struct tap_event *event, int rc)
{
    return strikes(context, event) ? SQLOCK_EUNCERTAIN : rc;
}

/* The connection breaks at the INSERT of the record.  The work is done and the
 * lease is still held, so the record is made on another connection. */
static void test_a_record_outlasts_its_connection(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *first = take_first(f);
    sqlock_registry *registry = fixture_tapped(f, NULL);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    struct trouble trouble = {.verb = "INSERT"};

    lock_give(first);
    lock_drop(first);
    lock_take(lock, 0);
    tap_hooks(break_before, NULL, &trouble);
    assert_ok(sqlock_once_record(lock, &f->err));
    tap_hooks(NULL, NULL, NULL);
    assert_true(trouble.seen > 1);
    assert_ok(sqlock_once_check(f->a, f->name, &f->err));
    lock_give(lock);
    lock_drop(lock);
    registry_end(registry);
    drop_table(f);
}

/* The answer to the DELETE is lost: EUNCERTAIN.  It is not sent again, since it
 * could then remove the record of work that was done again meanwhile, or find
 * no record and return ENOTFOUND. */
static void test_a_record_is_forgotten_once(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = take_first(f);
    sqlock_registry *registry = fixture_tapped(f, NULL);
    struct trouble trouble = {.verb = "DELETE"};

    assert_ok(sqlock_once_record(lock, &f->err));
    tap_hooks(NULL, lose_answer, &trouble);
    assert_fails(SQLOCK_EUNCERTAIN,
                 sqlock_once_forget(registry, f->name, &f->err));
    tap_hooks(NULL, NULL, NULL);
    assert_int_equal(trouble.seen, 1);
    assert_fails(SQLOCK_ENOTFOUND, sqlock_once_check(f->a, f->name, &f->err));
    lock_give(lock);
    lock_drop(lock);
    registry_end(registry);
    drop_table(f);
}

static void test_what_is_recorded_is_not_tried_again(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *first = take_first(f);
    sqlock_registry *registry = fixture_tapped(f, NULL);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    uint64_t before;

    lock_give(first);
    lock_drop(first);
    lock_take(lock, 0);
    assert_ok(sqlock_once_record(lock, &f->err));
    before = tap_count(TAP_BEGIN);
    assert_ok(sqlock_once_record(lock, &f->err));
    assert_int_equal(tap_count(TAP_BEGIN), before + 1);
    lock_give(lock);
    lock_drop(lock);
    registry_end(registry);
    drop_table(f);
}

static void test_without_a_table_it_is_said(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = take_first(f);

    drop_table(f);
    assert_fails(SQLOCK_ESCHEMA, sqlock_once_check(f->a, f->name, &f->err));
    assert_contains(f->err.message, "init --once");
    assert_fails(SQLOCK_ESCHEMA, sqlock_once_record(lock, &f->err));
    lock_give(lock);
    lock_drop(lock);
}

/* The application changes its texts as soon as the registry is open. */
static void test_the_prefix_was_copied(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = take_first(f);
    sqlock_options options = fixture_options(f);
    sqlock_registry *registry = NULL;
    char prefix[64];

    (void)snprintf(prefix, sizeof prefix, "%s", options.table_prefix);
    options.table_prefix = prefix;
    assert_ok(sqlock_registry_open(&registry, f->url, &options, &f->err));
    memset(prefix, 'x', strlen(prefix));
    assert_fails(SQLOCK_ENOTFOUND,
                 sqlock_once_check(registry, f->name, &f->err));
    registry_end(registry);
    lock_end(lock);
    drop_table(f);
}

static const struct test tests[] = {
    TEST(test_a_record_is_there_for_all_and_for_good),
    TEST_OF_ROWS(test_the_prefix_was_copied, ON_ALL, 0),
    TEST_OF_ROWS(test_F13_a_record_has_the_databases_time, ON_ALL, 0),
    TEST_OF_ROWS(test_only_the_holder_records, ON_ALL, 0),
    TEST_OF_ROWS(test_F41_a_record_whose_commit_got_no_answer, ON_ALL, 0),
    TEST_OF_ROWS(test_F41_a_commit_without_an_answer_is_never_a_failure, ON_ALL,
                 0),
    TEST_OF_ROWS(test_a_later_holders_record_is_no_own_one, ON_ALL, 0),
    TEST_OF_ROWS(test_a_record_outlasts_its_connection, ON_ALL, 0),
    TEST_OF_ROWS(test_a_record_is_forgotten_once, ON_ALL, 0),
    TEST_OF_ROWS(test_what_is_recorded_is_not_tried_again, ON_ALL, 0),
    TEST_OF_ROWS(test_without_a_table_it_is_said, ON_ALL, 0),
};
const struct topic topic_once = TOPIC(tests);
