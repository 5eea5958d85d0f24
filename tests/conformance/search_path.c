/*
 * search_path.c - a registry keeps to the table that it has found, whatever
 * tables of that name there are later
 */
#include "conformance.h"

#include <stdio.h>
#include <string.h>

/* Open a registry whose sessions look into the schema `first` before that of
 * the fixture's table. */
static sqlock_registry *open_with_path(struct fixture *f, const char *first)
{
    sqlock_options options = fixture_options(f);
    sqlock_registry *registry;
    char url[1024];

    (void)snprintf(url, sizeof url, "%s%coptions=-csearch_path%%3D%s,public",
                   f->url, strchr(f->url, '?') != NULL ? '&' : '?', first);
    assert_ok(sqlock_registry_open(&registry, url, &options, &f->err));
    return registry;
}

static void test_a_table_that_is_shadowed_later_stays_ours(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *holder;
    sqlock_registry *other;
    sqlock_lock *lock;
    sqlock_lock *same;
    char first[96];

    (void)snprintf(first, sizeof first, "%sfirst", f->prefix);
    (void)sql_run(&f->sql, "CREATE SCHEMA %s", first);
    holder = open_with_path(f, first);
    other = open_with_path(f, first);
    lock = lock_obtain(holder, f->name);
    same = lock_obtain(other, f->name);
    lock_take(lock, LONG_TTL_MS);
    (void)sql_run(&f->sql, "CREATE TABLE %s.%s (LIKE %s INCLUDING ALL)", first,
                  f->table, f->table);
    assert_busy(same);
    lock_give(lock);
    assert_ok(lock_try(same, 0, LONG_TTL_MS, &f->err));
    lock_end(same);
    lock_drop(lock);
    registry_end(other);
    registry_end(holder);
    (void)sql_run(&f->sql, "DROP SCHEMA %s CASCADE", first);
}

static const struct test tests[] = {
    TEST_ON(test_a_table_that_is_shadowed_later_stays_ours, ON_POSTGRES,
            IN_ALL),
};
const struct topic topic_search_path = TOPIC(tests);
