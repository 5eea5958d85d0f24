/*
 * access.c - databases that cannot be reached or refuse access: the code tells
 * which, and the message is one line without the password
 */
#include "conformance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/login.h"
#include "support/tap.h"

#define CANARY LOGIN_PASSWORD

static int open_within(struct fixture *f, const char *url, uint32_t timeout_ms)
{
    sqlock_options options = fixture_options(f);
    sqlock_registry *registry = (sqlock_registry *)1;
    int rc;

    options.connect_timeout_ms = timeout_ms;
    rc = sqlock_registry_open(&registry, url, &options, &f->err);
    if (rc == 0)
        registry_end(registry);
    else
        assert_null(registry);
    return rc;
}

static int open_at(struct fixture *f, const char *url)
{
    return open_within(f, url, 10000);
}

/* Open with a short limit: where no server answers, opening tries again until
 * the limit. */
static int open_nowhere(struct fixture *f, const char *url)
{
    return open_within(f, url, 300);
}

TEST_ON(test_a_wrong_password_is_no_access, ON_SERVERS, IN_SQLOCK)
{
    struct url_parts parts;
    char url[512];
    int refused = SQLOCK_EACCESS;

    /* A pooler refuses a wrong password without an error code for it. */
    if (database_is_pooled(f->database))
        refused = SQLOCK_EUNREACHABLE;

    url_take_apart(f->url, &parts);
    (void)snprintf(parts.password, sizeof parts.password, CANARY);
    assert_fails(refused, open_at(f, url_put_together(&parts, url)));
    assert_lacks(f->err.message, CANARY);
    assert_fails(refused, sqlock_schema_create(url, NULL, SQLOCK_LAYOUT_SQLOCK,
                                               &f->err));
    assert_lacks(f->err.message, CANARY);
}

/* URLs with one wrong part, and the codes expected.  For an unknown database,
 * MySQL refuses access instead, since it does not reveal which databases
 * exist. */
#define PART(part) offsetof(struct url_parts, part)
static const struct wrong_part {
    const char *name;
    size_t offset; /* in struct url_parts */
    const char *value;
    uint32_t timeout_ms; /* opening ends then if no server answers */
    int code;
    int other_code;
} wrong_parts[] = {
    {"an unknown host", PART(host), "no-such-host.invalid", 300, SQLOCK_EINVAL,
     SQLOCK_EINVAL},
    {"a port where nobody listens", PART(port), "1", 300, SQLOCK_EUNREACHABLE,
     SQLOCK_EUNREACHABLE},
    {"an unknown database", PART(database), "no_such_database", 10000,
     SQLOCK_ESCHEMA, SQLOCK_EACCESS},
};

TEST_ON(test_a_url_that_leads_nowhere_is_refused, ON_SERVERS, IN_SQLOCK)
{
    size_t i;

    for (i = 0; i < sizeof wrong_parts / sizeof *wrong_parts; i++) {
        const struct wrong_part *wrong = &wrong_parts[i];
        struct url_parts parts;
        char url[512];
        int rc;

        url_take_apart(f->url, &parts);
        memcpy((char *)&parts + wrong->offset, wrong->value,
               strlen(wrong->value) + 1);
        check_row(wrong->name);
        rc = open_within(f, url_put_together(&parts, url), wrong->timeout_ms);
        assert_code_of(wrong->code, wrong->other_code, rc, &f->err);
        assert_lacks(f->err.message, parts.password);
    }
    check_row(NULL);
}

TEST_ON(test_bad_urls_are_refused_in_one_line, ON_SERVERS, IN_SQLOCK)
{
    static const char *const rests[] = {
        "://u:" CANARY "@h:notaport/d", "://u:" CANARY "@[::1/d",
        "://u:" CANARY "%zz@h/d",       "://u:" CANARY "@h/d?nonsense=1",
        "://u:" CANARY "@h:99999/d",
    };
    struct url_parts parts;
    char url[512];
    size_t i;

    url_take_apart(f->url, &parts);
    for (i = 0; i < sizeof rests / sizeof *rests; i++) {
        int rc;

        (void)snprintf(url, sizeof url, "%s%s", parts.scheme, rests[i]);
        check_row(rests[i]);
        rc = open_nowhere(f, url);
        assert_fails(SQLOCK_EINVAL, rc);
        assert_lacks(f->err.message, CANARY);
    }
    check_row(NULL);
}

/* --- sessions of another login --- */

/* MySQL refuses such a login the database, PostgreSQL the table. */
TEST_ON(test_no_privilege_on_the_table_is_no_access, ON_SERVERS, IN_SQLOCK)
{
    struct login login;
    int rc;

    login_make(&login, f, "none");
    rc = open_at(f, login.url);
    login_drop(&login, f);
    assert_code(SQLOCK_EACCESS, rc, &f->err);
    assert_lacks(f->err.message, CANARY);
}

TEST_ON(test_no_privilege_to_read_is_no_access, ON_SERVERS, IN_SQLOCK)
{
    struct login login;
    int rc;

    login_make(&login, f, "writer");
    login_grant(&login, "INSERT, UPDATE", f->table);
    rc = open_at(f, login.url);
    login_drop(&login, f);
    assert_code(SQLOCK_EACCESS, rc, &f->err);
    assert_contains(f->err.message, "may not read");
}

TEST_ON(test_no_privilege_to_write_is_no_access, ON_SERVERS, IN_ALL)
{
    sqlock_options options = fixture_options(f);
    sqlock_registry *registry;
    struct login login;
    int rc;

    login_make(&login, f, "reader");
    login_grant(&login, "SELECT", f->table);
    rc = sqlock_registry_open(&registry, login.url, &options, &f->err);
    if (rc == 0) {
        sqlock_lock *lock = lock_obtain(registry, f->name);
        sqlock_info *rows;
        size_t count;

        assert_ok(list_all(registry, &rows, &count, &f->err));
        sqlock_info_free(rows, count);
        rc = lock_try(lock, 0, 0, &f->err);
        registry_end(registry);
    }
    login_drop(&login, f);
    assert_code(SQLOCK_EACCESS, rc, &f->err);
}

/* A login with the least rights of an application (grants-application.sql) can
 * acquire, renew, release and break a lock.  Only reaping is refused. */
TEST_ON(test_the_least_rights_are_enough, ON_SERVERS, IN_ALL)
{
    sqlock_break_options expected = SQLOCK_BREAK_INIT;
    sqlock_lock *mine = lock_obtain(f->a, f->name);
    sqlock_registry *registry;
    sqlock_lock *lock;
    struct login login;

    login_make(&login, f, "least");
    login_grant(&login,
                f->layout == SQLOCK_LAYOUT_SQLOCK
                    ? "SELECT, INSERT, UPDATE"
                    : "SELECT, INSERT, UPDATE, DELETE",
                f->table);
    registry = fixture_registry_at(f, login.url, NULL);
    lock = lock_obtain(registry, f->name);
    lock_take(lock, 0);
    lock_renew(lock, 0);
    lock_give(lock);
    if (f->layout == SQLOCK_LAYOUT_SQLOCK) {
        lock_take(mine, 0);
        expected.token = sqlock_token(mine);
        expected.now = true;
        assert_ok(sqlock_break(registry, f->name, &expected, &f->err));
        assert_fails(SQLOCK_ELOST, sqlock_release(mine, &f->err));
        assert_fails(
            SQLOCK_EACCESS,
            sqlock_reap(registry, SQLOCK_RETENTION_DEFAULT_MS, NULL, &f->err));
    }
    lock_drop(mine);
    registry_end(registry);
    login_drop(&login, f);
}

/* A login that may only read the row of the server, which is of another one,
 * cannot note that.  It waits once, from when it first saw that: not again with
 * each session, nor with each look. */
TEST_ON(test_F57_a_login_that_only_reads_the_row_waits_once,
        ON_POSTGRES | ON_MYSQL, IN_SQLOCK)
{
    char server[sizeof f->table + 8], mark[sizeof server];
    sqlock_options options = fixture_options(f);
    sqlock_registry *registry;
    sqlock_lock *lock;
    struct login login;

    (void)snprintf(server, sizeof server, "%s_SERVER", f->table);
    login_make(&login, f, "sees");
    login_grant(&login, "SELECT, INSERT, UPDATE", f->table);
    login_grant(&login, "SELECT", server);
    if (f->database->bit == ON_POSTGRES) {
        /* It is refused until it may read the mark, too. */
        assert_fails(SQLOCK_EACCESS, sqlock_registry_open(&registry, login.url,
                                                          &options, &f->err));
        assert_contains(f->err.message, "grants-");
        (void)snprintf(mark, sizeof mark, "%s_MARK", f->table);
        login_grant(&login, "SELECT", mark);
    }
    (void)sql_run(&f->sql, "UPDATE %s SET EPOCH = 'another', LONGEST_MS = 8000",
                  server);
    registry = fixture_registry_at(f, login.url, NULL);
    lock = lock_obtain(registry, f->name);
    assert_fails(SQLOCK_EBUSY, lock_try(lock, 0, 0, &f->err));
    assert_contains(f->err.message, "forgotten");
    assert_ok(lock_try(lock, PATIENCE_MS, 0, &f->err));
    lock_give(lock);
    lock_drop(lock);
    registry_end(registry);
    (void)sql_run(&f->sql, "UPDATE %s SET EPOCH = NULL, LONGEST_MS = 30000",
                  server);
    login_drop(&login, f);
}

/* --- read-only servers (F59) --- */

static int acquire_once(struct fixture *f, sqlock_registry *registry)
{
    sqlock_lock *lock = lock_obtain(registry, f->name);
    int rc = lock_try(lock, 0, 0, &f->err);

    if (rc == 0)
        lock_give(lock);
    lock_drop(lock);
    return rc;
}

TEST_ON(test_F59_a_read_only_login_is_refused, ON_POSTGRES, IN_SQLOCK)
{
    struct login login;
    int rc;

    login_make(&login, f, "ro");
    login_grant(&login, "SELECT, INSERT, UPDATE", f->table);
    (void)sql_run(&login.admin,
                  "ALTER ROLE %s SET default_transaction_read_only = on",
                  login.parts.user);
    rc = open_at(f, login.url);
    login_drop(&login, f);
    assert_code(SQLOCK_EREADONLY, rc, &f->err);
}

static int list_once(struct fixture *f, sqlock_registry *registry)
{
    sqlock_info *rows = NULL;
    size_t count = 0;
    int rc = sqlock_find(registry, NULL, &rows, &count, &f->err);

    sqlock_info_free(rows, count);
    return rc;
}

/* The whole server is read-only for a time.  An open registry cannot acquire,
 * but list who does, and a new one cannot be opened: EREADONLY.  Afterwards the
 * open registry works again.  No other test of this suite runs meanwhile. */
TEST_STOPPING_IN(test_F59_a_read_only_server_is_refused, ON_MYSQL, IN_SQLOCK)
{
    sqlock_error acquiring = {0};
    sqlock_registry *before = fixture_registry(f, NULL);
    struct sql admin;
    int opened;
    int listed;
    int acquired;
    int rc = sql_open(&admin, f->database, database_admin_url(f->database));

    assert_lock_ok(rc, &admin.err);
    rc = sql_try(&admin, NULL, "SET GLOBAL read_only = 1");
    if (rc == SQLOCK_EACCESS) {
        sql_close(&admin);
        registry_end(before);
        skip_or_fail("there is no administrator's URL");
    }
    assert_lock_ok(rc, &admin.err);
    acquired = acquire_once(f, before);
    acquiring = f->err;
    listed = list_once(f, before);
    opened = open_at(f, f->url);
    (void)sql_run(&admin, "SET GLOBAL read_only = 0");
    sql_close(&admin);
    assert_code(SQLOCK_EREADONLY, acquired, &acquiring);
    assert_code(SQLOCK_EREADONLY, opened, &f->err);
    assert_int_equal(listed, 0);
    assert_int_equal(acquire_once(f, before), 0);
    registry_end(before);
}

/* --- files --- */

TEST_ON(test_files_that_cannot_be_opened, ON_SQLITE, IN_SQLOCK)
{
    char path[300];
    char url[320];
    FILE *file;
    int rc = open_nowhere(f, "sqlite:/nonexistent/directory/file.db");

    assert_fails(SQLOCK_EINVAL, rc);
    rc = open_nowhere(f, "sqlite:/");
    assert_true(rc < 0);
    assert_true(check_one_line(f->err.message));
    assert_fails(SQLOCK_EINVAL, open_at(f, "sqlite:"));
    assert_fails(SQLOCK_EINVAL, open_at(f, "sqlite:a%00b"));
    assert_fails(SQLOCK_EINVAL, open_at(f, "sqlite:a%zz"));

    (void)snprintf(path, sizeof path, "%s.not-a-database",
                   strchr(f->url, ':') + 1);
    file = fopen(path, "w");
    assert_non_null(file);
    (void)fputs("This is a text, and long enough to be looked at as if it were "
                "the header of a database file, which has a hundred bytes.\n",
                file);
    (void)fclose(file);
    (void)snprintf(url, sizeof url, "sqlite:%s", path);
    rc = open_at(f, url);
    (void)unlink(path);
    assert_code_of(SQLOCK_ESCHEMA, SQLOCK_EDATABASE, rc, &f->err);
}

/* Open the URL as a user without the right to write: if root runs the test, as
 * user 65534 for the time of the call.  A child process would not do: it cannot
 * open a SQLite file, since its parent has one open (F17). */
static int open_as_nobody(struct fixture *f, const char *url)
{
    bool is_root = geteuid() == 0;
    int rc;

    if (is_root)
        assert_true(setegid(65534) == 0 && seteuid(65534) == 0);
    rc = open_at(f, url);
    if (is_root)
        assert_true(seteuid(0) == 0 && setegid(0) == 0);
    return rc;
}

TEST_ON(test_F59_a_read_only_file_is_refused, ON_SQLITE, IN_SQLOCK)
{
    char directory[] = "/tmp/sqlock-ro.XXXXXX";
    char command_path[64];
    char url[80];
    int rc;

    assert_non_null(mkdtemp(directory));
    (void)snprintf(command_path, sizeof command_path, "%s/db", directory);
    (void)snprintf(url, sizeof url, "sqlite:%s", command_path);
    assert_ok(sqlock_schema_create(url, NULL, SQLOCK_LAYOUT_SQLOCK, &f->err));
    assert_int_equal(chmod(command_path, 0444), 0);
    assert_int_equal(chmod(directory, 0555), 0);
    rc = open_as_nobody(f, url);
    (void)chmod(directory, 0755);
    (void)unlink(command_path);
    (void)rmdir(directory);
    assert_code_of(SQLOCK_EREADONLY, SQLOCK_EACCESS, rc, &f->err);
}

static int refuse_writes(void *context, const struct tap_event *event)
{
    unsigned *writes = context;

    if (event->call != TAP_BEGIN &&
        (event->text == NULL || strstr(event->text, "INSERT") == NULL))
        return 0;
    ++*writes;
    return SQLOCK_EREADONLY;
}

/* Nobody else will make the file writable: a wait of any length ends with the
 * first answer, while one for a server goes on until another is promoted. */
TEST_ON(test_a_wait_ends_where_a_file_cannot_be_written, ON_SQLITE, 0)
{
    sqlock_registry *registry = fixture_tapped(f, NULL);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    unsigned writes = 0;

    tap_hooks(refuse_writes, NULL, &writes);
    assert_fails(SQLOCK_EREADONLY, lock_try(lock, PATIENCE_MS, 0, &f->err));
    assert_int_equal(writes, 1);
    tap_hooks(NULL, NULL, NULL);
    lock_take_and_give(lock);
    lock_drop(lock);
    registry_end(registry);
}

TEST_ON(test_the_server_is_told_whose_session_it_is, ON_SERVERS, IN_SQLOCK)
{
    char host[64] = "";
    sqlock_lock *lock;

    if (database_is_pooled(f->database))
        skip_or_fail("the sessions are the pooler's");
    if (f->database->bit == ON_MYSQL &&
        sql_integer(&f->sql, "SELECT @@performance_schema") == 0)
        skip_or_fail("the server does not show what it is told");
    lock = lock_obtain(f->a, f->name);
    lock_take_and_give(lock);
    lock_drop(lock);
    (void)gethostname(host, sizeof host - 1);
    assert_in_range(
        sql_integer(&f->sql, "SELECT count(*) FROM %s = 'sqlock %.45s %ld'",
                    f->database->bit == ON_MYSQL
                        ? "performance_schema.session_account_connect_attrs "
                          "WHERE attr_name = 'program_name' AND attr_value"
                        : "pg_stat_activity WHERE application_name",
                    host, (long)getpid()),
        1, 100);
}
