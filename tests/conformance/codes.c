/*
 * codes.c - calls about locks and for administration return only the codes that
 * the headers list for them, whatever the database answers
 */
#include "conformance.h"

#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "sqlock/async.h"
#include "sqlock/lease.h"
#include "sqlock/many.h"
#include "sqlock/operator.h"
#include "sqlock/once.h"
#include "support/contract.h"
#include "support/login.h"
#include "support/tap.h"

/* Table entries: a call made on every database, with both locks free, or
 * held. */
/* clang-format off */
#define FREE(name_, call_, codes_)                                             \
    {.name = (name_), .databases = ON_ALL, .call = (call_), .codes = (codes_)}
#define HELD(name_, call_, codes_)                                             \
    {.name = (name_), .databases = ON_ALL, .is_held = true, .call = (call_),   \
     .codes = (codes_)}
/* clang-format on */

/* ---------------------------------------------------------------- locks -- */

static int call_acquire(struct contract *c, sqlock_error *err)
{
    return sqlock_acquire(c->locks[0], 0, NULL, err);
}

static int call_acquire_waiting(struct contract *c, sqlock_error *err)
{
    return sqlock_acquire(c->locks[0], 30, NULL, err);
}

static int call_renew(struct contract *c, sqlock_error *err)
{
    return sqlock_renew(c->locks[0], 0, err);
}

static int call_release(struct contract *c, sqlock_error *err)
{
    return sqlock_release(c->locks[0], err);
}

static int call_orphans(struct contract *c, sqlock_error *err)
{
    int64_t count;

    return sqlock_stale_sessions(c->locks[0], &count, err);
}

static int call_acquire_many(struct contract *c, sqlock_error *err)
{
    return sqlock_acquire_many(c->locks, 2, 0, NULL, NULL, err);
}

static int call_renew_many(struct contract *c, sqlock_error *err)
{
    return sqlock_renew_many(c->locks, 2, NULL, err);
}

static int call_release_many(struct contract *c, sqlock_error *err)
{
    return sqlock_release_many(c->locks, 2, NULL, err);
}

static int call_request(struct contract *c, sqlock_error *err)
{
    sqlock_request *request = NULL;
    int fd = eventfd(0, EFD_CLOEXEC);
    struct pollfd done = {.fd = fd, .events = POLLIN};
    int rc;

    assert_true(fd >= 0);
    rc = sqlock_request_acquire(&request, c->locks[0], 0, NULL, fd, err);
    if (rc == 0) {
        assert_int_equal(poll(&done, 1, PATIENCE_MS), 1);
        rc = sqlock_request_finish(request, err);
    }
    (void)close(fd);
    return rc;
}

#define ACQUIRE_CODES (CODES_NOT_APPLIED | CODE(ETIMEDOUT) | CODE(EUNCERTAIN))

static const struct contract_call of_locks[] = {
    FREE("sqlock_acquire", call_acquire, ACQUIRE_CODES),
    FREE("sqlock_acquire with a wait", call_acquire_waiting,
         ACQUIRE_CODES & ~CODE(EBUSY)),
    FREE("sqlock_request_finish", call_request, ACQUIRE_CODES),
    HELD("sqlock_renew", call_renew, CODES_NOT_APPLIED | CODE(EUNCERTAIN)),
    HELD("sqlock_release", call_release, CODES_NOT_APPLIED | CODE(EUNCERTAIN)),
    {.name = "sqlock_stale_sessions",
     .databases = ON_POSTGRES,
     .is_held = true,
     .call = call_orphans,
     .codes = CODES_NOT_APPLIED},
    FREE("sqlock_acquire_many", call_acquire_many, ACQUIRE_CODES),
    HELD("sqlock_renew_many", call_renew_many,
         CODES_NOT_APPLIED | CODE(EUNCERTAIN)),
    HELD("sqlock_release_many", call_release_many,
         CODES_NOT_APPLIED | CODE(EUNCERTAIN)),
};

TEST_ON(test_locks_keep_to_their_codes, ON_ALL, IN_SQLOCK)
{
    contract_check(f, of_locks, sizeof of_locks / sizeof *of_locks);
}

/* ------------------------------------------------------- administration -- */

static int call_open(struct contract *c, sqlock_error *err)
{
    sqlock_registry *registry = NULL;
    int rc = sqlock_registry_open(&registry, c->url, &c->options, err);

    tap_hooks(NULL, NULL, NULL);
    (void)sqlock_registry_close(registry, NULL);
    return rc;
}

static int call_list(struct contract *c, sqlock_error *err)
{
    sqlock_info *rows = NULL;
    size_t count = 0;
    int rc = list_all(c->registry, &rows, &count, err);

    sqlock_info_free(rows, count);
    return rc;
}

static int call_show(struct contract *c, sqlock_error *err)
{
    sqlock_info *row = NULL;
    int rc = sqlock_show(c->registry, sqlock_name(c->locks[0]), &row, err);

    sqlock_info_free(row, 1);
    return rc;
}

static int call_break(struct contract *c, sqlock_error *err)
{
    sqlock_break_options options = SQLOCK_BREAK_INIT;
    char client[SQLOCK_KEY_SIZE];

    options.token = sqlock_token(c->locks[0]);
    sqlock_client_id(c->locks[0], client);
    options.client_id = client;
    return sqlock_break(c->registry, sqlock_name(c->locks[0]), &options, err);
}

static int call_reap(struct contract *c, sqlock_error *err)
{
    return sqlock_reap(c->registry, SQLOCK_RETENTION_DEFAULT_MS, NULL, err);
}

static int call_done_check(struct contract *c, sqlock_error *err)
{
    return sqlock_once_check(c->registry, "no such record", err);
}

static int call_create(struct contract *c, sqlock_error *err)
{
    return sqlock_schema_create(c->url, &c->options, SQLOCK_LAYOUT_SQLOCK, err);
}

static int call_after_restore(struct contract *c, sqlock_error *err)
{
    return sqlock_after_restore(c->registry, NULL, err);
}

static int call_capabilities(struct contract *c, sqlock_error *err)
{
    sqlock_capabilities found = SQLOCK_CAPABILITIES_INIT;

    return sqlock_capabilities_of(c->url, &c->options, &found, err);
}

static void make_done_table(struct contract *c)
{
    sqlock_options options = fixture_options(c->f);

    assert_lock_ok(sqlock_once_schema_create(c->f->url, &options, &c->f->err),
                   &c->f->err);
}

static void drop_done_table(struct contract *c)
{
    assert_int_equal(
        sql_try(&c->f->sql, NULL, "DROP TABLE %sDONE", c->f->prefix), 0);
}

/* Create the table, and shorten the lease: sqlock_once_record() tries again
 * until the lease ends. */
static void make_done_table_for_short(struct contract *c)
{
    make_done_table(c);
    assert_becomes_true(sqlock_renew(c->locks[0], 500 * SLOWNESS, &c->f->err) ==
                            0,
                        PATIENCE_MS);
}

static int call_done_record(struct contract *c, sqlock_error *err)
{
    return sqlock_once_record(c->locks[0], err);
}

/* Open another registry that holds a lock, which the close has to release. */
static void open_holder(struct contract *c)
{
    sqlock_registry *registry = NULL;
    sqlock_lock *lock;

    assert_becomes_true(
        sqlock_registry_open(&registry, c->url, &c->options, &c->f->err) == 0,
        PATIENCE_MS);
    lock = lock_obtain(registry, sqlock_name(c->locks[0]));
    assert_becomes_true(lock_try(lock, 0, 0, &c->f->err) == 0, PATIENCE_MS);
    c->state = registry;
}

static int call_close(struct contract *c, sqlock_error *err)
{
    return sqlock_registry_close(c->state, err);
}

static int call_diagnose(struct contract *c, sqlock_error *err)
{
    sqlock_check *checks = NULL;
    size_t count = 0;
    int rc = sqlock_diagnose(c->url, &c->options, &checks, &count, err);

    sqlock_checks_free(checks, count);
    return rc;
}

/* The codes of sqlock_tx_retry() with a transaction that guards the lease. */
#define RECORD_CODES                                                           \
    (CODES_NOT_APPLIED | CODE(ERETRY) | CODE(ETIMEDOUT) | CODE(ELOST) |        \
     CODE(EEXPIRED) | CODE(ECANCELED) | CODE(EUNCERTAIN) | CODE(ENOTSUP))

static const struct contract_call of_administration[] = {
    FREE("sqlock_registry_open", call_open, CODES_NOT_APPLIED),
    FREE("sqlock_find", call_list, CODES_NOT_APPLIED),
    HELD("sqlock_show", call_show, CODES_NOT_APPLIED | CODE(ENOTFOUND)),
    HELD("sqlock_break", call_break,
         CODES_NOT_APPLIED | CODE(EUNCERTAIN) | CODE(ECONFLICT) |
             CODE(ENOTFOUND)),
    FREE("sqlock_reap", call_reap, CODES_NOT_APPLIED | CODE(EUNCERTAIN)),
};

static const struct contract_call of_records[] = {
    {.name = "sqlock_once_check",
     .databases = ON_ALL,
     .prepare = make_done_table,
     .call = call_done_check,
     .finish = drop_done_table,
     .codes = CODES_NOT_APPLIED | CODE(ENOTFOUND) | CODE(ENOTSUP)},
    {.name = "sqlock_once_record",
     .databases = ON_ALL,
     .is_held = true,
     .prepare = make_done_table_for_short,
     .call = call_done_record,
     .finish = drop_done_table,
     .codes = RECORD_CODES},
};

static const struct contract_call of_databases[] = {
    FREE("sqlock_schema_create", call_create,
         CODES_NOT_APPLIED | CODE(ECONFLICT)),
    HELD("sqlock_after_restore", call_after_restore,
         CODES_NOT_APPLIED | CODE(EUNCERTAIN) | CODE(ENOTSUP)),
    FREE("sqlock_capabilities_of", call_capabilities,
         CODES_NOT_APPLIED | CODE(ETIMEDOUT)),
    {.name = "sqlock_registry_close",
     .databases = ON_ALL,
     .prepare = open_holder,
     .call = call_close,
     .codes = CODES_NOT_APPLIED | CODE(EUNCERTAIN)},
    FREE("sqlock_diagnose", call_diagnose, CODES_NOT_APPLIED),
};

TEST_ON(test_administration_keeps_to_its_codes, ON_ALL, IN_SQLOCK)
{
    contract_check(f, of_administration,
                   sizeof of_administration / sizeof *of_administration);
}

TEST_ON(test_records_keep_to_their_codes, ON_ALL, IN_SQLOCK)
{
    contract_check(f, of_records, sizeof of_records / sizeof *of_records);
}

TEST_ON(test_calls_about_databases_keep_to_their_codes, ON_ALL, IN_SQLOCK)
{
    contract_check(f, of_databases, sizeof of_databases / sizeof *of_databases);
}

/* ------------------------------------------------- what a server answers -- */

static int take_one(sqlock_lock *lock, sqlock_error *err)
{
    return sqlock_acquire(lock, PATIENCE_MS, NULL, err);
}

static int renew_one(sqlock_lock *lock, sqlock_error *err)
{
    return sqlock_renew(lock, 0, err);
}

static int renew_many(sqlock_lock *lock, sqlock_error *err)
{
    return sqlock_renew_many(&lock, 1, NULL, err);
}

/* Make the call, again and again after EUNCERTAIN and EUNREACHABLE, which only
 * say that a busy machine delayed the server's answer.  Return the result. */
static int answer_of(int (*call)(sqlock_lock *, sqlock_error *),
                     sqlock_lock *lock, sqlock_error *err)
{
    int64_t until = check_deadline_ns(PATIENCE_MS);
    int rc;

    do
        rc = call(lock, err);
    while ((rc == SQLOCK_EUNCERTAIN || rc == SQLOCK_EUNREACHABLE) &&
           check_pause(until));
    return rc;
}

/* A transaction keeps the row locked, and the server's time limits end the
 * statements of two renewals and a release: EBUSY.  Oracle's MySQL limits
 * statements that write by whole seconds, so the timeout is longer there. */
TEST(test_a_locked_row_is_busy)
{
    sqlock_options options = fixture_options(f);
    sqlock_registry *registry;
    sqlock_lock *lock;
    int renewed, renewed_many, released;
    sqlock_error errs[3] = {{0}};

    options.statement_timeout_ms = fixture_is_oracles(f) ? 5000 : 500;
    registry = fixture_registry(f, &options);
    lock = lock_obtain(registry, f->name);
    assert_ok(answer_of(take_one, lock, &f->err));
    assert_int_equal(sql_begin(&f->sql), 0);
    (void)sql_run(&f->sql,
                  "UPDATE %s SET CREATED_DATE = CREATED_DATE "
                  "WHERE LOCK_KEY = '%s'",
                  f->table, sqlock_key(lock));
    if (f->database->bit != ON_SQLITE)
        (void)sql_integer(&f->sql,
                          "SELECT 1 FROM %s WHERE LOCK_KEY = '%s' FOR UPDATE",
                          f->table, sqlock_key(lock));
    renewed = answer_of(renew_one, lock, &errs[0]);
    renewed_many = answer_of(renew_many, lock, &errs[1]);
    released = sqlock_release(lock, &errs[2]);
    assert_int_equal(sql_rollback(&f->sql), 0);
    assert_code(SQLOCK_EBUSY, renewed, &errs[0]);
    assert_code(SQLOCK_EBUSY, renewed_many, &errs[1]);
    assert_code_of(SQLOCK_EBUSY, SQLOCK_EUNCERTAIN, released, &errs[2]);
    registry_end(registry);
}

static void limit_connections(struct login *login, const struct fixture *f)
{
    (void)sql_run(&login->admin,
                  f->database->bit == ON_POSTGRES
                      ? "ALTER ROLE %s CONNECTION LIMIT 1"
                      : "ALTER USER %s WITH MAX_USER_CONNECTIONS 1",
                  login->parts.user);
}

/* A login may have one connection, which a registry uses.  Opening another one
 * tries again until its time is up.  The result is ERESOURCE even if the time
 * ends before the server has refused the last try, as happens now and then. */
TEST_ON(test_no_connection_left_is_a_resource, ON_SERVERS, IN_SQLOCK)
{
    sqlock_options options = fixture_options(f);
    sqlock_registry *registry;
    struct login login;

    if (database_is_pooled(f->database))
        skip_or_fail("a pooler answers for the server");
    login_make(&login, f, "sqlock_crowded");
    login_grant(&login, "SELECT, INSERT, UPDATE, DELETE", f->table);
    limit_connections(&login, f);
    registry = fixture_registry_at(f, login.url, &options);
    options.connect_timeout_ms = 1500;
    for (int i = 0; i < 3; i++) {
        int64_t until = check_deadline_ns(PATIENCE_MS);
        sqlock_registry *other = NULL;
        int rc;

        do /* a busy machine may refuse too late */
            rc = sqlock_registry_open(&other, login.url, &options, &f->err);
        while (rc == SQLOCK_EUNREACHABLE && check_pause(until));
        assert_code(SQLOCK_ERESOURCE, rc, &f->err);
    }
    registry_end(registry);
    login_drop(&login, f);
}

/* Break the connection at each statement.  Refuse the first attempt to connect
 * again (ERESOURCE); to the later ones no server answers (EUNREACHABLE). */
static int refuse_then_fall_silent(void *context, const struct tap_event *event)
{
    unsigned *opens = context;

    if (event->call == TAP_OPEN)
        return (*opens)++ == 0 ? SQLOCK_ERESOURCE : SQLOCK_EUNREACHABLE;
    return SQLOCK_EUNREACHABLE;
}

TEST_ON(test_a_refusal_is_told_when_time_is_up, ON_ALL, IN_SQLOCK)
{
    sqlock_options options = fixture_options(f);
    sqlock_registry *registry;
    sqlock_info *row = NULL;
    unsigned opens = 0;
    int rc;

    options.statement_timeout_ms = 2000;
    registry = fixture_tapped(f, &options);
    tap_hooks(refuse_then_fall_silent, NULL, &opens);
    rc = sqlock_show(registry, f->name, &row, &f->err);
    tap_hooks(NULL, NULL, NULL);
    assert_true(opens > 1);
    assert_code(SQLOCK_ERESOURCE, rc, &f->err);
    registry_end(registry);
}

void assert_timed_out(const sqlock_error *err)
{
    assert_non_null(strstr(err->message, "timed out"));
    assert_non_null(strstr(err->message, "raise statement_timeout_ms"));
    assert_null(strstr(err->message, "cancel"));
}

/* The tap ends each statement that writes, as a time limit of the server
 * does. */
static int end_writes(void *context, const struct tap_event *event)
{
    (void)context;
    return event->call == TAP_EXECUTE && strncmp(event->text, "SELECT", 6) != 0
               ? SQLOCK_ECANCELED
               : 0;
}

TEST(test_a_time_out_says_so)
{
    sqlock_options options = fixture_options(f);
    sqlock_registry *registry = fixture_tapped(f, &options);
    sqlock_lock *lock = lock_obtain(registry, f->name);

    tap_hooks(end_writes, NULL, NULL);
    assert_fails(SQLOCK_ETIMEDOUT, sqlock_acquire(lock, 0, NULL, &f->err));
    assert_timed_out(&f->err);
    tap_hooks(NULL, NULL, NULL);
    lock_take(lock, 0);
    tap_hooks(end_writes, NULL, NULL);
    assert_fails(SQLOCK_EBUSY, sqlock_renew(lock, 0, &f->err));
    assert_timed_out(&f->err);
    assert_fails(SQLOCK_EBUSY, sqlock_release(lock, &f->err));
    assert_timed_out(&f->err);
    tap_hooks(NULL, NULL, NULL);
    assert_becomes_true(fixture_is_free(f, f->name), PATIENCE_MS);
    lock_drop(lock);
    registry_end(registry);
}
