/*
 * doctor.c - sqlock_diagnose() finds the faults that a database has, and none
 * on a healthy one
 */
#include "diagnosis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/around.h"
#include "support/login.h"
#include "support/tap.h"

static int diagnose(struct fixture *f, const char *url,
                    struct diagnosis *diagnosis)
{
    sqlock_options options = fixture_options(f);
    size_t i;
    int rc;

    /* a region without rows of other tests */
    options.region = "doctor";
    rc = sqlock_diagnose(url, &options, &diagnosis->checks, &diagnosis->count,
                         &f->err);

    for (i = 0; i < diagnosis->count; i++) {
        assert_true(check_one_line(diagnosis->checks[i].found));
        assert_lacks(diagnosis->checks[i].found, LOGIN_PASSWORD);
        if (diagnosis->checks[i].severity == SQLOCK_FINE &&
            strcmp(diagnosis->checks[i].check, "timeouts") != 0 &&
            strcmp(diagnosis->checks[i].check, "view") != 0)
            assert_null(diagnosis->checks[i].advice);
    }
    return rc;
}

/* Tell whether the connection is not encrypted and, as the server sees it,
 * comes from another host, as it does to a server in a container, too. */
static bool is_overheard(struct fixture *f)
{
    char cipher[80] = "";

    if (f->database->bit == ON_SQLITE)
        return false;
    if (f->database->bit == ON_POSTGRES)
        return sql_integer(&f->sql,
                           "SELECT COUNT(*) FROM pg_stat_ssl WHERE"
                           " pid = pg_backend_pid() AND NOT ssl AND NOT"
                           " COALESCE(inet_client_addr(), '127.0.0.1') <<="
                           " '127.0.0.0/8'") == 1;
    (void)sql_text(&f->sql, cipher, sizeof cipher,
                   "SHOW STATUS WHERE Variable_name = 'Ssl_cipher'"
                   " AND Value <> ''");
    return cipher[0] == '\0' &&
           sql_integer(&f->sql, "SELECT SUBSTRING_INDEX(USER(), '@', -1) NOT IN"
                                " ('localhost', '127.0.0.1')") == 1;
}

TEST(test_a_healthy_database_has_no_findings_but_fine_ones)
{
    static const char *const checks[] = {"connection", "isolation", "clock",
                                         "rights",     "peers",     "failover",
                                         "timeouts",   "pooler",    "tls"};
    struct diagnosis found = {NULL, 0};
    bool has_server = f->database->bit != ON_SQLITE;
    int rc = diagnose(f, f->url, &found);
    size_t i;

    assert_lock_ok(rc, &f->err);
    for (i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        int expected = i < 5 || has_server ? SQLOCK_FINE : -1;

        if (strcmp(checks[i], "pooler") == 0 && database_is_pooled(f->database))
            expected = SQLOCK_WARNING;
        if (strcmp(checks[i], "tls") == 0 && is_overheard(f))
            expected = SQLOCK_WARNING;
        /* Galera, where several nodes take writes: a warning, because a node
         * may lose a commit. */
        if (strcmp(checks[i], "failover") == 0 &&
            fixture_gives(f).row_locks == SQLOCK_SUPPORT_REFUSED)
            expected = SQLOCK_WARNING;
        assert_int_equal(diagnosis_worst(&found, checks[i]), expected);
    }
    assert_int_equal(diagnosis_worst(&found, "layout"),
                     f->layout == SQLOCK_LAYOUT_SPRING6 ? SQLOCK_WARNING
                                                        : SQLOCK_FINE);
    diagnosis_clear(&found);
}

TEST_ON(test_no_table_is_a_failure, ON_ALL, IN_SQLOCK)
{
    sqlock_options options = fixture_options(f);
    struct diagnosis found;

    options.table_prefix = "nowhere_";
    found = diagnosis_make(f, f->url, &options);
    assert_int_equal(diagnosis_worst(&found, "layout"), SQLOCK_FAILURE);
    assert_contains(diagnosis_find(&found, "layout")->advice, "sqlock init");
    assert_int_equal(diagnosis_worst(&found, "rights"), -1);
    diagnosis_clear(&found);
}

/* Make the column REGION of a lock table ignore case.  On SQLite the table is
 * made anew, as a table there cannot change. */
static void loosen_region(struct fixture *f, const char *table)
{
    loosen(f, table, "REGION", "VARCHAR(100)");
    if (f->database->bit != ON_SQLITE)
        return;
    (void)sql_run(&f->sql, "DROP TABLE %s", table);
    (void)sql_run(&f->sql,
                  "CREATE TABLE %s (LOCK_KEY TEXT NOT NULL, "
                  "REGION TEXT COLLATE NOCASE NOT NULL, CLIENT_ID TEXT, "
                  "CREATED_DATE INTEGER NOT NULL, "
                  "EXPIRED_AFTER INTEGER NOT NULL, "
                  "PRIMARY KEY (LOCK_KEY, REGION))",
                  table);
}

/* The advice "...: ALTER TABLE ..." is a statement that cures. */
TEST_ON(test_regions_that_are_one_for_the_database, ON_ALL, IN_SQLOCK)
{
    sqlock_options options = fixture_options(f);
    struct diagnosis found;
    const sqlock_check *check;
    const char *cure;
    char table[32];

    options.table_prefix = "loose_";
    (void)snprintf(table, sizeof table, "loose_LOCK");
    (void)sql_try(&f->sql, NULL, "DROP TABLE %s", table);
    assert_ok(
        sqlock_schema_create(f->url, &options, SQLOCK_LAYOUT_SPRING7, &f->err));
    found = diagnosis_make(f, f->url, &options);
    assert_int_equal(diagnosis_worst(&found, "collation"), SQLOCK_FINE);
    diagnosis_clear(&found);
    loosen_region(f, table);
    found = diagnosis_make(f, f->url, &options);
    assert_int_equal(diagnosis_worst(&found, "collation"), SQLOCK_WARNING);
    check = diagnosis_find(&found, "collation");
    assert_contains(check->found, "REGION (");
    assert_lacks(check->found, "CLIENT_ID");
    if (f->database->bit == ON_SQLITE) {
        assert_contains(check->advice, "sqlock init --print");
    } else {
        cure = strstr(check->advice, "ALTER TABLE");
        assert_non_null(cure);
        (void)sql_run(&f->sql, "%s", cure);
        diagnosis_clear(&found);
        found = diagnosis_make(f, f->url, &options);
        assert_int_equal(diagnosis_worst(&found, "collation"), SQLOCK_FINE);
    }
    diagnosis_clear(&found);
    (void)sql_run(&f->sql, "DROP TABLE %s", table);
}

TEST_ON(test_what_cannot_be_diagnosed, ON_ALL, IN_SQLOCK)
{
    struct diagnosis found = {(sqlock_check *)1, 9};

    assert_fails(SQLOCK_EINVAL,
                 sqlock_diagnose(f->url, NULL, NULL, &found.count, &f->err));
    assert_fails(SQLOCK_ENOTSUP, sqlock_diagnose("oracle:", NULL, &found.checks,
                                                 &found.count, &f->err));
    assert_null(found.checks);
    assert_int_equal(found.count, 0);
}

TEST_ON(test_a_server_that_does_not_answer, ON_SERVERS, IN_SQLOCK)
{
    sqlock_options options = fixture_options(f);
    struct url_parts parts;
    struct diagnosis found = {NULL, 0};
    char url[512];

    url_take_apart(f->url, &parts);
    (void)snprintf(parts.port, sizeof parts.port, "1");
    options.connect_timeout_ms = 300;
    assert_fails(SQLOCK_EUNREACHABLE,
                 sqlock_diagnose(url_put_together(&parts, url), &options,
                                 &found.checks, &found.count, &f->err));
    assert_int_equal(found.count, 1);
    assert_int_equal(diagnosis_worst(&found, "connection"), SQLOCK_FAILURE);
    assert_contains(found.checks[0].found, f->err.message);
    diagnosis_clear(&found);
}

static int fail_deletes(void *context, const struct tap_event *event)
{
    (void)context;
    return event->call == TAP_EXECUTE && event->text != NULL &&
                   strncmp(event->text, "DELETE", 6) == 0
               ? SQLOCK_EDATABASE
               : 0;
}

/* Rows that cannot be removed are no matter of rights, unless the database says
 * so: a trigger or a setting may refuse the statement. */
TEST_ON(test_a_refused_removal_is_no_missing_right, ON_ALL, IN_SQLOCK)
{
    struct diagnosis found = {NULL, 0};
    char url[1024];
    int rc;

    tap_install();
    tap_reset();
    tap_hooks(fail_deletes, NULL, NULL);
    rc = diagnose(f, tap_url(url, f->url), &found);
    tap_hooks(NULL, NULL, NULL);
    assert_lock_ok(rc, &f->err);
    assert_int_equal(diagnosis_worst(&found, "rights"), SQLOCK_WARNING);
    assert_contains(diagnosis_find(&found, "rights")->found, "removed");
    assert_null(diagnosis_find(&found, "rights")->advice);
    diagnosis_clear(&found);
}

TEST_ON(test_rights_that_are_missing, ON_SERVERS, IN_SQLOCK)
{
    struct diagnosis reader = {NULL, 0};
    struct diagnosis writer = {NULL, 0};
    struct login login;
    int rc;

    login_make(&login, f, "sick");
    login_grant(&login, "SELECT", f->table);
    rc = diagnose(f, login.url, &reader);
    if (rc == 0) {
        login_grant(&login, "INSERT, UPDATE", f->table);
        rc = diagnose(f, login.url, &writer);
    }
    login_drop(&login, f);
    assert_lock_ok(rc, &f->err);
    assert_int_equal(diagnosis_worst(&reader, "rights"), SQLOCK_FAILURE);
    assert_contains(diagnosis_find(&reader, "rights")->advice, "grant");
    assert_int_equal(diagnosis_worst(&reader, "peers"), SQLOCK_FINE);
    assert_int_equal(diagnosis_worst(&writer, "rights"), SQLOCK_WARNING);
    assert_contains(diagnosis_find(&writer, "rights")->advice, "DELETE");
    diagnosis_clear(&reader);
    diagnosis_clear(&writer);
}

TEST_ON(test_peers_are_told, ON_ALL, IN_SQLOCK)
{
    sqlock_options options = fixture_options(f);
    struct diagnosis found;
    char region[32];

    (void)snprintf(region, sizeof region, "peers-%u", f->serial);
    fixture_put_row(f, "a-key", region, "somebody", -1000, 60000000);
    options.region = region;
    found = diagnosis_make(f, f->url, &options);
    assert_int_equal(diagnosis_worst(&found, "peers"), SQLOCK_WARNING);
    assert_contains(diagnosis_find(&found, "peers")->found, "1 of the 1 locks");
    diagnosis_clear(&found);
}

TEST(test_F62_after_a_restore_nobody_holds_a_lock)
{
    sqlock_registry *elsewhere = fixture_in_region(f, "another");
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    sqlock_lock *other = lock_obtain(elsewhere, f->name);
    int64_t token;
    int64_t rows = 0;
    struct row row;

    lock_take(lock, LONG_TTL_MS);
    lock_take(other, LONG_TTL_MS);
    token = sqlock_token(lock);
    assert_ok(sqlock_after_restore(f->b, &rows, &f->err));
    assert_true(rows >= 2);
    row = fixture_row(f, f->name);
    if (f->layout == SQLOCK_LAYOUT_SQLOCK) {
        assert_string_equal(row.client, "");
        assert_less(token, row.fence);
    } else {
        assert_false(row.exists);
    }
    assert_fails(SQLOCK_ELOST, sqlock_renew(lock, 0, &f->err));
    assert_fails(SQLOCK_ELOST, sqlock_renew(other, 0, &f->err));
    assert_fails(SQLOCK_ELOST, sqlock_release(lock, &f->err));
    assert_fails(SQLOCK_ELOST, sqlock_release(other, &f->err));
    lock_take(lock, LONG_TTL_MS);
    assert_less(token, sqlock_token(lock));
    lock_give(lock);
    lock_drop(lock);
    lock_drop(other);
    registry_end(elsewhere);
}

/* The statement meets a server that has become a standby. */
static int meet_a_standby(void *context, const struct tap_event *event)
{
    unsigned *times = context;

    return event->call == TAP_EXECUTE && event->count == 0 &&
                   (strncmp(event->text, "UPDATE", 6) == 0 ||
                    strncmp(event->text, "DELETE", 6) == 0) &&
                   (*times)++ == 0
               ? SQLOCK_EREADONLY
               : 0;
}

/* A session stays on its server, also when the address leads to another one by
 * now: so the next call opens another session. */
TEST_ON(test_F62_after_a_restore_no_session_on_a_standby_is_kept, ON_SERVERS,
        IN_ALL)
{
    sqlock_options options = fixture_options(f);
    sqlock_registry *registry = fixture_tapped(f, &options);
    unsigned times = 0;
    uint64_t opens;

    tap_hooks(meet_a_standby, NULL, &times);
    assert_fails(SQLOCK_EREADONLY,
                 sqlock_after_restore(registry, NULL, &f->err));
    opens = tap_count(TAP_OPEN);
    assert_ok(sqlock_after_restore(registry, NULL, &f->err));
    assert_true(tap_count(TAP_OPEN) > opens);
    tap_reset();
    registry_end(registry);
}

/* --- a pooler --- */

/* A driver that stands between the library and the real driver, as PgBouncer
 * with pool_mode = transaction does between client and server: it runs each
 * statement on the first server connection (backend) that is not in a
 * transaction. */
#define BACKENDS 3

struct client {
    void *backend; /* of its open transaction; NULL: none */
};

static struct {
    struct around around;
    const char *url; /* of the server */
    void *backends[BACKENDS];
    bool is_taken[BACKENDS];
    /* As with pool_mode = session, for two clients: the second backend has the
     * transactions, the first one all other statements. */
    bool keeps_sessions;
} pooler;

static size_t first_free(void)
{
    size_t i = 0;

    while (pooler.is_taken[i])
        i++;
    assert_true(i < BACKENDS);
    return i;
}

static int backend_of(const struct client *client, const sqlock_connect *how,
                      void **backend, sqlock_error *err)
{
    sqlock_connect own = {.statement_timeout_ms = 5000};
    size_t i;

    if (how != NULL)
        own = *how;
    own.dog = NULL; /* the backends outlive the registry */

    if (client->backend != NULL) {
        *backend = client->backend;
        return 0;
    }
    i = first_free();
    if (pooler.backends[i] == NULL) {
        pooler.backends[i] = calloc(1, pooler.around.real->connection_bytes);
        own.deadline_ns = check_deadline_ns(10000);
        own.lock_timeout_ms = 1000;
        if (driver_open(pooler.around.real, pooler.backends[i], pooler.url,
                        &own, err) < 0)
            return SQLOCK_EUNREACHABLE;
    }
    *backend = pooler.backends[i];
    return 0;
}

static int pooled_open(void *connection, const struct lk_url *url,
                       const sqlock_connect *how, sqlock_error *err)
{
    void *backend;

    (void)url;
    return backend_of(connection, how, &backend, err);
}

static void pooled_close(void *connection)
{
    (void)connection;
}

static bool pooled_is_alive(void *connection)
{
    (void)connection;
    return true;
}

static int pooled_execute(void *connection, const sqlock_statement *statement,
                          const sqlock_value *parameters, size_t count,
                          int64_t deadline_ns, sqlock_result *result,
                          sqlock_error *err)
{
    sqlock_statement unprepared = *statement;
    void *backend;
    int rc = backend_of(connection, NULL, &backend, err);

    unprepared.id = 0;
    if (rc < 0)
        return rc;
    return pooler.around.real->execute(backend, &unprepared, parameters, count,
                                       deadline_ns, result, err);
}

static int pooled_begin(void *connection, int64_t deadline_ns,
                        sqlock_error *err)
{
    struct client *client = connection;
    size_t i = pooler.keeps_sessions ? 1 : first_free();
    void *backend;
    int rc;

    if (pooler.keeps_sessions)
        pooler.is_taken[0] = true;
    rc = backend_of(client, NULL, &backend, err);
    if (pooler.keeps_sessions)
        pooler.is_taken[0] = false;
    if (rc < 0)
        return rc;
    pooler.is_taken[i] = true;
    client->backend = backend;
    return pooler.around.real->begin(backend, deadline_ns, err);
}

static int pooled_end(void *connection, int64_t deadline_ns, sqlock_error *err)
{
    struct client *client = connection;
    size_t i;
    int rc;

    if (client->backend == NULL)
        return 0;
    rc = pooler.around.real->rollback(client->backend, deadline_ns, err);
    for (i = 0; i < BACKENDS; i++) {
        if (pooler.backends[i] == client->backend)
            pooler.is_taken[i] = false;
    }
    client->backend = NULL;
    return rc;
}

static void pooled_abort(void *connection)
{
    (void)connection;
}

static void *pooled_native(void *connection)
{
    (void)connection;
    return NULL;
}

/* Describe the connection with a number that is not that of a server's session,
 * as a pooler does. */
static void pooled_describe(void *connection, sqlock_description *description)
{
    (void)connection;
    pooler.around.real->describe(pooler.backends[0], description);
    description->connection_id = 1;
}

static void put_pooler_between(struct fixture *f, char url[1024])
{
    sqlock_driver *driver = &pooler.around.driver;

    if (around_make(&pooler.around, f, "pooled")) {
        driver->connection_bytes = sizeof(struct client);
        driver->open = pooled_open;
        driver->close = pooled_close;
        driver->is_alive = pooled_is_alive;
        driver->execute = pooled_execute;
        driver->begin = pooled_begin;
        driver->commit = pooled_end;
        driver->rollback = pooled_end;
        driver->abort = pooled_abort;
        driver->native = pooled_native;
        driver->describe = pooled_describe;
        driver->transactions = NULL;
        around_register(&pooler.around);
    }
    pooler.url = f->url;
    (void)around_url(url, &pooler.around, f);
}

static void remove_pooler(void)
{
    size_t i;

    for (i = 0; i < BACKENDS; i++) {
        if (pooler.backends[i] != NULL)
            pooler.around.real->close(pooler.backends[i]);
        free(pooler.backends[i]);
        pooler.backends[i] = NULL;
        pooler.is_taken[i] = false;
    }
}

/* Diagnose through the pooler; fail the test unless this severity is the worst
 * that the check "pooler" has found.  Free the findings with
 * diagnosis_clear(). */
static struct diagnosis check_pooler(struct fixture *f, bool keeps_sessions,
                                     sqlock_severity severity)
{
    struct diagnosis found = {NULL, 0};
    char url[1024];
    int rc;

    put_pooler_between(f, url);
    pooler.keeps_sessions = keeps_sessions;
    rc = diagnose(f, url, &found);
    remove_pooler();
    assert_lock_ok(rc, &f->err);
    assert_int_equal(diagnosis_worst(&found, "pooler"), severity);
    return found;
}

TEST_ON(test_a_pooler_that_moves_sessions_is_a_failure, ON_SERVERS, IN_SQLOCK)
{
    struct diagnosis found = check_pooler(f, false, SQLOCK_FAILURE);

    assert_contains(diagnosis_find(&found, "pooler")->advice, "session");
    diagnosis_clear(&found);
}

TEST_ON(test_a_proxy_that_keeps_sessions_is_a_warning, ON_SERVERS, IN_SQLOCK)
{
    struct diagnosis found = check_pooler(f, true, SQLOCK_WARNING);

    diagnosis_clear(&found);
}
