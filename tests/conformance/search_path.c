/*
 * search_path.c - a registry keeps to the table that it has found, whatever
 * tables of that name there are later, and whatever its schema is called
 */
#include "diagnosis.h"

#include <stdio.h>
#include <string.h>

#include "sqlock/once.h"
#include "sqlock/stock.h"
#include "support/login.h"

#define RIGHTS "SELECT, INSERT, UPDATE, DELETE"

/* Make a role whose sessions look into the schema `first` before that of the
 * fixture's table. */
static void make_role(struct fixture *f, struct login *login, const char *first)
{
    login_make(login, f, "path");
    login_grant(login, RIGHTS, f->table);
    (void)sql_run(&login->admin, "GRANT USAGE ON SCHEMA %s TO %s", first,
                  login->parts.user);
    (void)sql_run(&login->admin, "ALTER ROLE %s SET search_path = %s, public",
                  login->parts.user, first);
}

TEST_ON(test_a_table_that_is_shadowed_later_stays_ours, ON_POSTGRES, IN_ALL)
{
    sqlock_registry *holder;
    sqlock_registry *other;
    struct login login;
    sqlock_lock *lock;
    sqlock_lock *same;
    char first[96];
    char shadow[160];

    (void)snprintf(first, sizeof first, "%sfirst", f->prefix);
    (void)snprintf(shadow, sizeof shadow, "%s.%s", first, f->table);
    (void)sql_run(&f->sql, "CREATE SCHEMA %s", first);
    make_role(f, &login, first);
    holder = fixture_registry_at(f, login.url, NULL);
    other = fixture_registry_at(f, login.url, NULL);
    lock = lock_obtain(holder, f->name);
    same = lock_obtain(other, f->name);
    lock_take(lock, LONG_TTL_MS);
    (void)sql_run(&f->sql, "CREATE TABLE %s (LIKE %s INCLUDING ALL)", shadow,
                  f->table);
    login_grant(&login, RIGHTS, shadow);
    assert_busy(same);
    lock_give(lock);
    assert_ok(lock_try(same, 0, LONG_TTL_MS, &f->err));
    lock_end(same);
    lock_drop(lock);
    registry_end(other);
    registry_end(holder);
    (void)sql_run(&f->sql, "DROP SCHEMA %s CASCADE", first);
    login_drop(&login, f);
}

TEST_ON(test_a_schema_may_have_an_apostrophe, ON_POSTGRES, IN_ALL)
{
    sqlock_registry *registry;
    struct login login;
    sqlock_lock *lock;
    char schema[96];
    char table[160];

    (void)snprintf(schema, sizeof schema, "\"%so'clock\"", f->prefix);
    (void)snprintf(table, sizeof table, "%s.%s", schema, f->table);
    (void)sql_run(&f->sql, "CREATE SCHEMA %s", schema);
    (void)sql_run(&f->sql, "CREATE TABLE %s (LIKE %s INCLUDING ALL)", table,
                  f->table);
    make_role(f, &login, schema);
    login_grant(&login, RIGHTS, table);
    registry = fixture_registry_at(f, login.url, NULL);
    lock = lock_obtain(registry, f->name);
    lock_take(lock, LONG_TTL_MS);
    lock_give(lock);
    lock_drop(lock);
    assert_ok(sqlock_reap(registry, 0, NULL, &f->err));
    registry_end(registry);
    (void)sql_run(&f->sql, "DROP SCHEMA %s CASCADE", schema);
    login_drop(&login, f);
}

static const char *const beside[] = {"DONE", "STOCK", "STOCK_ENTRY",
                                     "STOCK_RESERVATION"};

/* Make the tables beside that of locks, by that URL: the calls have that
 * result, and if it is a failure, say where there is one. */
static void expect_beside(struct fixture *f, const char *url,
                          const sqlock_options *options, int rc,
                          const char *where)
{
    assert_fails(rc, sqlock_once_schema_create(url, options, &f->err));
    if (rc < 0)
        assert_contains(f->err.message, where);
    assert_fails(rc, sqlock_stock_schema_create(url, options, &f->err));
    if (rc < 0)
        assert_contains(f->err.message, where);
}

static void drop_beside(struct fixture *f, const char *prefix)
{
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++)
        (void)sql_run(&f->sql, "DROP TABLE %s%s", prefix, beside[i]);
}

/* The tables of what was done once, and of stock, are made in no second place,
 * whichever of those of stock is found in the first. */
TEST_ON(test_tables_elsewhere_beside_that_of_locks_are_told, ON_POSTGRES,
        IN_SQLOCK)
{
    sqlock_options options = fixture_options(f);
    struct login login;
    char first[96];

    (void)snprintf(first, sizeof first, "%sbeside", f->prefix);
    (void)sql_run(&f->sql, "CREATE SCHEMA %s", first);
    expect_beside(f, f->url, &options, 0, NULL);
    make_role(f, &login, first);
    (void)sql_run(&login.admin, "GRANT CREATE ON SCHEMA %s TO %s", first,
                  login.parts.user);
    (void)sql_run(&login.admin, "ALTER ROLE %s SET search_path = %s",
                  login.parts.user, first);
    (void)sql_run(&f->sql, "GRANT SELECT ON %sDONE TO %s", f->prefix,
                  login.parts.user);
    for (size_t i = 1; i < sizeof beside / sizeof *beside; i++) {
        (void)sql_run(&f->sql, "GRANT SELECT ON %s%s TO %s", f->prefix,
                      beside[i], login.parts.user);
        expect_beside(f, login.url, &options, SQLOCK_ECONFLICT,
                      "there is public.");
        (void)sql_run(&f->sql, "REVOKE SELECT ON %s%s FROM %s", f->prefix,
                      beside[i], login.parts.user);
    }
    drop_beside(f, f->prefix);
    expect_beside(f, login.url, &options, 0, NULL);
    expect_beside(f, login.url, &options, 0, NULL);
    (void)sql_run(&f->sql, "DROP SCHEMA %s CASCADE", first);
    login_drop(&login, f);
}

/* Of stock's tables the first is not found, or only the first. */
TEST_ON(test_a_stock_that_is_elsewhere_is_not_opened, ON_POSTGRES, IN_SQLOCK)
{
    sqlock_options options = fixture_options(f);
    sqlock_registry *registry;
    sqlock_stock *stock = NULL;
    struct diagnosis found;
    struct login login;
    char first[96];
    char table[160];

    (void)snprintf(first, sizeof first, "%sstock", f->prefix);
    (void)sql_run(&f->sql, "CREATE SCHEMA %s", first);
    expect_beside(f, f->url, &options, 0, NULL);
    make_role(f, &login, first);
    (void)sql_run(&login.admin, "ALTER ROLE %s SET search_path = %s",
                  login.parts.user, first);
    (void)sql_run(&f->sql, "GRANT SELECT ON %sDONE TO %s", f->prefix,
                  login.parts.user);
    (void)snprintf(table, sizeof table, "%s.%s", first, f->table);
    (void)sql_run(&f->sql, "CREATE TABLE %s (LIKE %s INCLUDING ALL)", table,
                  f->table);
    login_grant(&login, RIGHTS, table);
    registry = fixture_registry_at(f, login.url, NULL);
    for (size_t i = 1; i < 3; i++) {
        (void)sql_run(&f->sql, "GRANT SELECT ON %s%s TO %s", f->prefix,
                      beside[i], login.parts.user);
        assert_fails(SQLOCK_ESCHEMA,
                     sqlock_stock_open(&stock, registry, NULL, &f->err));
        assert_contains(f->err.message, "there is public.");
        found = diagnosis_make(f, login.url, &options);
        assert_int_equal(diagnosis_worst(&found, "once"), SQLOCK_FAILURE);
        assert_int_equal(diagnosis_worst(&found, "stock"), SQLOCK_FAILURE);
        assert_contains(diagnosis_find(&found, "once")->found, "public.");
        assert_contains(diagnosis_find(&found, "stock")->found, "public.");
        diagnosis_clear(&found);
        (void)snprintf(table, sizeof table, "%s.%s%s", first, f->prefix,
                       beside[i]);
        (void)sql_run(&f->sql, "CREATE TABLE %s (LIKE %s%s INCLUDING ALL)",
                      table, f->prefix, beside[i]);
        login_grant(&login, RIGHTS, table);
    }
    registry_end(registry);
    drop_beside(f, f->prefix);
    (void)sql_run(&f->sql, "DROP SCHEMA %s CASCADE", first);
    login_drop(&login, f);
}

/* A role whose sessions find no table, or another one than the fixture's. */
TEST_ON(test_a_table_elsewhere_of_the_same_name_is_told, ON_POSTGRES, IN_ALL)
{
    sqlock_options options = fixture_options(f);
    sqlock_registry *registry = NULL;
    sqlock_once_info *rows = NULL;
    size_t count = 0;
    struct diagnosis found;
    struct login login;
    char first[96];
    char shadow[160];

    (void)snprintf(first, sizeof first, "%selse", f->prefix);
    (void)snprintf(shadow, sizeof shadow, "%s.%s", first, f->table);
    (void)sql_run(&f->sql, "CREATE SCHEMA %s", first);
    make_role(f, &login, first);
    (void)sql_run(&login.admin, "GRANT CREATE ON SCHEMA %s TO %s", first,
                  login.parts.user);
    found = diagnosis_make(f, login.url, &options);
    assert_int_equal(diagnosis_worst(&found, "place"), SQLOCK_FINE);
    diagnosis_clear(&found);

    (void)sql_run(&login.admin, "ALTER ROLE %s SET search_path = %s",
                  login.parts.user, first);
    assert_fails(SQLOCK_ESCHEMA,
                 sqlock_registry_open(&registry, login.url, &options, &f->err));
    assert_contains(f->err.message, "there is public.");
    assert_fails(SQLOCK_ECONFLICT,
                 sqlock_schema_create(login.url, &options, f->layout, &f->err));
    assert_contains(f->err.message, "there is public.");
    found = diagnosis_make(f, login.url, &options);
    assert_int_equal(diagnosis_worst(&found, "layout"), SQLOCK_FAILURE);
    assert_contains(diagnosis_find(&found, "layout")->found, "public.");
    diagnosis_clear(&found);

    (void)sql_run(&f->sql, "CREATE TABLE %s (LIKE %s INCLUDING ALL)", shadow,
                  f->table);
    login_grant(&login, RIGHTS, shadow);
    found = diagnosis_make(f, login.url, &options);
    assert_int_equal(diagnosis_worst(&found, "place"), SQLOCK_WARNING);
    assert_contains(diagnosis_find(&found, "place")->found, "public.");
    assert_contains(diagnosis_find(&found, "place")->advice, "table prefix");
    diagnosis_clear(&found);

    assert_ok(sqlock_once_schema_create(f->url, &options, &f->err));
    (void)sql_run(&f->sql, "GRANT SELECT ON public.%sDONE TO %s", f->prefix,
                  login.parts.user);
    registry = fixture_registry_at(f, login.url, NULL);
    assert_fails(SQLOCK_ESCHEMA,
                 sqlock_once_list(registry, "", &rows, &count, &f->err));
    assert_contains(f->err.message, "there is public.");
    registry_end(registry);
    (void)sql_run(&f->sql, "DROP TABLE public.%sDONE", f->prefix);
    (void)sql_run(&f->sql, "DROP SCHEMA %s CASCADE", first);
    login_drop(&login, f);
}

/* The names differ in their capitals, which count on some servers. */
TEST_ON(test_a_table_of_other_capitals_is_told, ON_MYSQL, IN_ALL)
{
    sqlock_options options = fixture_options(f);
    sqlock_registry *registry = NULL;
    struct diagnosis found;
    char prefix[sizeof f->prefix];

    if (sql_integer(&f->sql, "SELECT @@lower_case_table_names") != 0)
        skip(); /* there cannot be two */
    (void)snprintf(prefix, sizeof prefix, "%s", f->prefix);
    prefix[0] = 't';
    options.table_prefix = prefix;
    assert_fails(SQLOCK_ESCHEMA,
                 sqlock_registry_open(&registry, f->url, &options, &f->err));
    assert_contains(f->err.message, f->table);
    assert_fails(SQLOCK_ECONFLICT,
                 sqlock_schema_create(f->url, &options, f->layout, &f->err));
    options.table_prefix = f->prefix;
    expect_beside(f, f->url, &options, 0, NULL);
    options.table_prefix = prefix;
    expect_beside(f, f->url, &options, SQLOCK_ECONFLICT, f->prefix);
    drop_beside(f, f->prefix);
    (void)sql_run(&f->sql, "CREATE TABLE %sLOCK LIKE %s", prefix, f->table);
    found = diagnosis_make(f, f->url, &options);
    assert_int_equal(diagnosis_worst(&found, "place"), SQLOCK_WARNING);
    assert_contains(diagnosis_find(&found, "place")->found, f->table);
    diagnosis_clear(&found);
    (void)sql_run(&f->sql, "DROP TABLE %sLOCK", prefix);
}

/* A relative path leads to another file from another directory. */
TEST_ON(test_the_file_is_told, ON_SQLITE, IN_SQLOCK)
{
    sqlock_options options = fixture_options(f);
    struct diagnosis found = diagnosis_make(f, f->url, &options);

    assert_int_equal(diagnosis_worst(&found, "place"), SQLOCK_FINE);
    assert_contains(diagnosis_find(&found, "place")->found, "the file /");
    assert_contains(diagnosis_find(&found, "place")->found,
                    strchr(f->url, '/'));
    diagnosis_clear(&found);
}
