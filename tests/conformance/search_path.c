/*
 * search_path.c - a registry keeps to the table that it has found, whatever
 * tables of that name there are later, and whatever its schema is called
 */
#include "conformance.h"

#include <stdio.h>

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

static void test_a_table_that_is_shadowed_later_stays_ours(void **state)
{
    struct fixture *f = *state;
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

static void test_a_schema_may_have_an_apostrophe(void **state)
{
    struct fixture *f = *state;
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

static const struct test tests[] = {
    TEST_ON(test_a_table_that_is_shadowed_later_stays_ours, ON_POSTGRES,
            IN_ALL),
    TEST_ON(test_a_schema_may_have_an_apostrophe, ON_POSTGRES, IN_ALL),
};
const struct topic topic_search_path = TOPIC(tests);
