/*
 * fixture.c - see fixture.h
 *
 * Table prefixes carry the process id, so that suites can run side by side on
 * one server.
 */
#include "fixture.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tap.h"

const char *layout_name(sqlock_layout layout)
{
    static const char *const names[SQLOCK_LAYOUTS] = {"sqlock", "spring7",
                                                      "spring6"};

    return names[layout];
}

sqlock_options fixture_options(const struct fixture *fixture)
{
    sqlock_options options = SQLOCK_OPTIONS_INIT;

    options.table_prefix = fixture->prefix;
    options.ttl_ms = LONG_TTL_MS;
    options.peer_ttl_ms = PEER_TTL_MS;
    options.poll_ms = 5;
    options.no_peers = true; /* unless a test is about services */
    options.holder_note = "fixture";
    return options;
}

sqlock_registry *fixture_registry_at(struct fixture *fixture, const char *url,
                                     const sqlock_options *options)
{
    sqlock_options defaults = fixture_options(fixture);
    int64_t end_ns = check_deadline_ns(PATIENCE_MS);
    sqlock_registry *registry;
    int rc;

    /* On a busy machine an attempt may exceed the test's time limits. */
    do
        rc = sqlock_registry_open(&registry, url,
                                  options != NULL ? options : &defaults,
                                  &fixture->err);
    while (rc == SQLOCK_EUNREACHABLE && check_pause(end_ns));
    assert_lock_ok(rc, &fixture->err);
    assert_non_null(registry);
    return registry;
}

sqlock_registry *fixture_registry(struct fixture *fixture,
                                  const sqlock_options *options)
{
    return fixture_registry_at(fixture, fixture->url, options);
}

sqlock_registry *fixture_tapped(struct fixture *fixture,
                                const sqlock_options *options)
{
    char url[1024];
    sqlock_registry *registry;

    tap_install();
    registry =
        fixture_registry_at(fixture, tap_url(url, fixture->url), options);
    tap_reset();
    return registry;
}

sqlock_registry *fixture_in_region(struct fixture *fixture, const char *region)
{
    sqlock_options options = fixture_options(fixture);

    options.region = region;
    return fixture_registry(fixture, &options);
}

void registry_end(sqlock_registry *registry)
{
    sqlock_error err = {0};
    int rc = sqlock_registry_close(registry, &err);

    assert_lock_ok(rc, &err);
}

sqlock_capabilities fixture_gives(struct fixture *fixture)
{
    sqlock_options options = fixture_options(fixture);
    sqlock_capabilities found = SQLOCK_CAPABILITIES_INIT;

    if (fixture->gives.size == 0) {
        int rc;

        /* SQLite's second transaction waits this long for the first one. */
        options.statement_timeout_ms = 2000 * SLOWNESS;
        rc = sqlock_capabilities_of(fixture->url, &options, &found,
                                    &fixture->err);

        assert_lock_ok(rc, &fixture->err);
        fixture->gives = found;
    }
    return fixture->gives;
}

static int give_up(const struct fixture *fixture, const char *what, int rc,
                   const sqlock_error *err)
{
    print_error("%s, layout %s: %s gave %d: %s\n", fixture->database->name,
                layout_name(fixture->layout), what, rc, err->message);
    return -1;
}

int fixture_create(struct fixture *fixture, const struct database *database,
                   sqlock_layout layout, const char *prefix)
{
    sqlock_options options;

    memset(fixture, 0, sizeof *fixture);
    fixture->database = database;
    fixture->layout = layout;
    fixture->url = database_url(database);
    (void)snprintf(fixture->prefix, sizeof fixture->prefix, "%s", prefix);
    (void)snprintf(fixture->table, sizeof fixture->table, "%sLOCK",
                   fixture->prefix);
    options = fixture_options(fixture);
    return sqlock_schema_create(fixture->url, &options, layout, &fixture->err);
}

int fixture_open(struct fixture *fixture, const struct database *database,
                 sqlock_layout layout)
{
    sqlock_options options;
    char prefix[32];
    int rc;

    (void)snprintf(prefix, sizeof prefix, "T%ld_%d_", (long)getpid(),
                   (int)layout);
    rc = fixture_create(fixture, database, layout, prefix);
    options = fixture_options(fixture);
    if (rc < 0)
        return give_up(fixture, "schema_create", rc, &fixture->err);
    rc = sql_open(&fixture->sql, database, fixture->url);
    if (rc < 0)
        return give_up(fixture, "sql_open", rc, &fixture->sql.err);
    rc = sqlock_registry_open(&fixture->a, fixture->url, &options,
                              &fixture->err);
    if (rc == 0)
        rc = sqlock_registry_open(&fixture->b, fixture->url, &options,
                                  &fixture->err);
    if (rc < 0)
        return give_up(fixture, "registry_open", rc, &fixture->err);
    return 0;
}

void fixture_close(struct fixture *fixture)
{
    (void)sqlock_registry_close(fixture->a, NULL);
    (void)sqlock_registry_close(fixture->b, NULL);
    if (fixture->sql.connection != NULL)
        sql_drop_locks(&fixture->sql, fixture->prefix);
    sql_close(&fixture->sql);
}

void fixture_next(struct fixture *fixture)
{
    fixture->serial++;
    (void)snprintf(fixture->name, sizeof fixture->name, "lock/%ld/%u",
                   (long)getpid(), fixture->serial);
    memset(&fixture->err, 0, sizeof fixture->err);
}

sqlock_lock *lock_obtain(sqlock_registry *registry, const char *name)
{
    sqlock_error err = {0};
    sqlock_lock *lock;
    int rc = sqlock_obtain(&lock, registry, name, &err);

    assert_lock_ok(rc, &err);
    assert_non_null(lock);
    return lock;
}

void lock_drop(sqlock_lock *lock)
{
    sqlock_error err = {0};
    int rc = sqlock_drop(lock, &err);

    assert_lock_ok(rc, &err);
}

void lock_break(struct fixture *fixture, sqlock_lock *lock, bool now)
{
    sqlock_break_options expected = SQLOCK_BREAK_INIT;
    struct row row = fixture_row(fixture, sqlock_name(lock));
    int rc;

    expected.token = sqlock_token(lock);
    expected.client_id = row.client;
    expected.reason = "maintenance";
    expected.now = now;
    rc = sqlock_break(fixture->b, sqlock_name(lock), &expected, &fixture->err);
    assert_lock_ok(rc, &fixture->err);
}

int lock_try(sqlock_lock *lock, int64_t wait_ms, uint32_t ttl_ms,
             sqlock_error *err)
{
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;

    options.ttl_ms = ttl_ms;
    return sqlock_acquire(lock, wait_ms, &options, err);
}

void lock_take_at(sqlock_lock *lock, uint32_t ttl_ms, const char *file,
                  int line)
{
    int64_t end = check_deadline_ns(PATIENCE_MS);
    sqlock_error err = {0};
    int rc;

    /* On a busy machine a claim may outlast a short lease: ETIMEDOUT. */
    do
        rc = lock_try(lock, 0, ttl_ms, &err);
    while (rc == SQLOCK_ETIMEDOUT && check_pause(end));
    check_code(0, rc, &err, file, line);
}

void lock_give_at(sqlock_lock *lock, const char *file, int line)
{
    sqlock_error err = {0};
    int rc = sqlock_release(lock, &err);

    check_code(0, rc, &err, file, line);
}

void lock_renew_at(sqlock_lock *lock, uint32_t ttl_ms, const char *file,
                   int line)
{
    sqlock_error err = {0};
    int rc = sqlock_renew(lock, ttl_ms, &err);

    check_code(0, rc, &err, file, line);
}

void lock_take_and_give_at(sqlock_lock *lock, const char *file, int line)
{
    lock_take_at(lock, 0, file, line);
    lock_give_at(lock, file, line);
}

void lock_busy_at(sqlock_lock *lock, const char *file, int line)
{
    sqlock_error err = {0};
    int rc = lock_try(lock, 0, 0, &err);

    check_code(SQLOCK_EBUSY, rc, &err, file, line);
}

static int64_t column_us(struct fixture *fixture, const char *column,
                         const char *key)
{
    char expression[160];

    (void)snprintf(expression, sizeof expression,
                   fixture->database->bit == ON_POSTGRES
                       ? "(extract(epoch FROM %s) * 1000000)::bigint"
                   : fixture->database->bit == ON_MYSQL
                       ? "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', %s)"
                       : "%s",
                   column);
    return sql_integer(&fixture->sql, "SELECT %s FROM %s WHERE LOCK_KEY = '%s'",
                       expression, fixture->table, key);
}

bool fixture_is_oracles(struct fixture *fixture)
{
    return fixture->database->bit == ON_MYSQL &&
           sql_integer(&fixture->sql, "SELECT VERSION() LIKE '%%MariaDB%%'") ==
               0;
}

/* Return the number of statements: Oracle's MySQL reads the tokens in a second
 * one. */
unsigned fixture_claims_of_many(struct fixture *fixture)
{
    return fixture_is_oracles(fixture) ? 2 : 1;
}

const char *fixture_holder(const struct fixture *fixture)
{
    if (fixture->database->bit == ON_MYSQL &&
        fixture->layout == SQLOCK_LAYOUT_SQLOCK)
        return "IF(EXPIRED_AFTER < '1970-01-01', NULL, CLIENT_ID)";
    return "CLIENT_ID";
}

struct row fixture_row(struct fixture *fixture, const char *name)
{
    struct row row = {0};
    int rc = sqlock_key_of(row.key, name, SQLOCK_KEY_CURRENT, &fixture->err);

    assert_lock_ok(rc, &fixture->err);
    row.exists = sql_text(&fixture->sql, row.client, sizeof row.client,
                          "SELECT %s FROM %s WHERE LOCK_KEY = '%s'",
                          fixture_holder(fixture), fixture->table, row.key);
    if (!row.exists)
        return row;
    row.created_us = column_us(fixture, "CREATED_DATE", row.key);
    if (fixture->layout == SQLOCK_LAYOUT_SPRING6)
        row.expires_us = row.created_us + INT64_C(1000) * PEER_TTL_MS;
    else
        row.expires_us = column_us(fixture, "EXPIRED_AFTER", row.key);
    if (fixture->layout == SQLOCK_LAYOUT_SQLOCK)
        row.fence = sql_integer(&fixture->sql,
                                "SELECT FENCE FROM %s WHERE LOCK_KEY = '%s'",
                                fixture->table, row.key);
    return row;
}

bool fixture_is_free(struct fixture *fixture, const char *name)
{
    char key[SQLOCK_KEY_SIZE] = "";
    int rc = sqlock_key_of(key, name, SQLOCK_KEY_CURRENT, &fixture->err);

    assert_lock_ok(rc, &fixture->err);
    return sql_integer(&fixture->sql,
                       "SELECT COUNT(*) FROM %s WHERE LOCK_KEY = '%s' AND %s "
                       "IS NOT NULL",
                       fixture->table, key, fixture_holder(fixture)) == 0;
}

void fixture_lock_row(struct fixture *fixture, struct sql *sql,
                      const sqlock_lock *lock)
{
    assert_lock_ok(sql_open(sql, fixture->database, fixture->url), &sql->err);
    assert_lock_ok(sql_begin(sql), &sql->err);
    if (lock != NULL)
        (void)sql_run(sql, "SELECT 1 FROM %s WHERE LOCK_KEY = '%s' FOR UPDATE",
                      fixture->table, sqlock_key(lock));
}

void fixture_unlock_row(struct sql *sql)
{
    assert_lock_ok(sql_rollback(sql), &sql->err);
    sql_close(sql);
}

void fixture_await_expiry(struct fixture *fixture, const char *name)
{
    struct row row = fixture_row(fixture, name);

    assert_true(row.exists);
    assert_becomes_true(sql_now_us(&fixture->sql) > row.expires_us,
                        PATIENCE_MS);
}

void fixture_expire(struct fixture *fixture, const char *name)
{
    struct row row = fixture_row(fixture, name);
    char began[160];
    char ended[160];

    assert_true(row.exists);
    if (fixture->layout == SQLOCK_LAYOUT_SPRING6) {
        (void)fixture_time(fixture, began,
                           INT64_C(-1000) * PEER_TTL_MS - 50000);
        (void)sql_run(&fixture->sql,
                      "UPDATE %s SET CREATED_DATE = %s WHERE LOCK_KEY = '%s'",
                      fixture->table, began, row.key);
        return;
    }
    assert_int_equal(
        sql_run(&fixture->sql,
                "UPDATE %s SET CREATED_DATE = %s, EXPIRED_AFTER = %s "
                "WHERE LOCK_KEY = '%s'",
                fixture->table, fixture_time(fixture, began, -100000),
                fixture_time(fixture, ended, -50000), row.key),
        1);
}

void fixture_set_back(struct fixture *fixture, const char *key)
{
    static const char *const an_hour[] = {"+ interval '1 hour'",
                                          "+ INTERVAL 1 HOUR", "+ 3600000000"};
    const char *later = an_hour[fixture->database - databases];
    char end[80] = "";

    if (fixture->layout != SQLOCK_LAYOUT_SPRING6)
        (void)snprintf(end, sizeof end, ", EXPIRED_AFTER = EXPIRED_AFTER %s",
                       later);
    assert_int_equal(sql_run(&fixture->sql,
                             "UPDATE %s SET CREATED_DATE = CREATED_DATE %s%s "
                             "WHERE LOCK_KEY = '%s'",
                             fixture->table, later, end, key),
                     1);
}

void fixture_delete(struct fixture *fixture, const char *name)
{
    assert_int_equal(sql_run(&fixture->sql,
                             "DELETE FROM %s WHERE LOCK_KEY = '%s'",
                             fixture->table, fixture_row(fixture, name).key),
                     1);
}

const char *fixture_time(const struct fixture *fixture, char out[160],
                         int64_t offset_us)
{
    struct timespec now;

    switch (fixture->database->bit) {
    case ON_POSTGRES:
        (void)snprintf(out, 160,
                       "(clock_timestamp() AT TIME ZONE 'UTC'"
                       " + interval '1 microsecond' * (%lld))",
                       (long long)offset_us);
        break;
    case ON_MYSQL:
        (void)snprintf(out, 160,
                       "(UTC_TIMESTAMP(6) + INTERVAL (%lld) MICROSECOND)",
                       (long long)offset_us);
        break;
    default:
        (void)clock_gettime(CLOCK_REALTIME, &now);
        (void)snprintf(out, 160, "%lld",
                       (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000 +
                           offset_us);
        break;
    }
    return out;
}

void fixture_put_row(struct fixture *fixture, const char *key,
                     const char *region, const char *client,
                     int64_t created_in_us, int64_t expires_in_us)
{
    const char *columns =
        fixture->layout == SQLOCK_LAYOUT_SPRING6 ? "" : ", EXPIRED_AFTER";
    const char *quote = client != NULL ? "'" : "";
    char created[160];
    char expires[160];

    (void)fixture_time(fixture, created, created_in_us);
    (void)fixture_time(fixture, expires, expires_in_us);
    (void)sql_run(&fixture->sql,
                  "INSERT INTO %s (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE%s)"
                  " VALUES ('%s', '%s', %s%s%s, %s%s%s)",
                  fixture->table, columns, key, region, quote,
                  client != NULL ? client : "NULL", quote, created,
                  *columns != '\0' ? ", " : "",
                  *columns != '\0' ? expires : "");
}

void fixture_put_many(struct fixture *fixture, const char *region)
{
    int i;

    assert_int_equal(sql_begin(&fixture->sql), 0);
    for (i = 0; i < FIXTURE_MANY; i++) {
        char key[SQLOCK_KEY_SIZE];

        (void)snprintf(key, sizeof key, "row-%05d", (i * 7) % FIXTURE_MANY);
        fixture_put_row(fixture, key, region, "peer-client", -1000000,
                        60000000);
    }
    assert_int_equal(sql_commit(&fixture->sql), 0);
}

void fixture_delete_region(struct fixture *fixture, const char *region)
{
    (void)sql_run(&fixture->sql, "DELETE FROM %s WHERE REGION = '%s'",
                  fixture->table, region);
}
