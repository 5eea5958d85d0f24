/*
 * limits.c - settings of the server, or of the login, that refuse a statement
 * or change what it means: none of them concerns a lease that was granted
 *
 * A registry that is opened under the setting acquires, renews, releases, lists
 * and reaps; where the setting refuses the acquire, nothing was granted.
 */
#include "conformance.h"

#include <stdio.h>

#include "sqlock/admin.h"
#include "sqlock/many.h"
#include "support/login.h"

#define COUNT 3

static void obtain_all(struct fixture *f, sqlock_registry *registry,
                       sqlock_lock *locks[COUNT])
{
    char name[96];

    for (size_t i = 0; i < COUNT; i++) {
        (void)snprintf(name, sizeof name, "%s-%zu", f->name, i);
        locks[i] = lock_obtain(registry, name);
    }
}

static void use_locks(struct fixture *f, const char *url)
{
    sqlock_options options = fixture_options(f);
    sqlock_acquire_options how = SQLOCK_ACQUIRE_INIT;
    sqlock_info *infos = NULL;
    size_t count = 0;
    sqlock_registry *registry;
    sqlock_lock *locks[COUNT];

    options.renew_period_ms = 50;
    registry = fixture_registry_at(f, url, &options);
    obtain_all(f, registry, locks);
    how.auto_renew = true;
    assert_ok(sqlock_acquire_many(locks, COUNT, 0, &how, NULL, &f->err));
    for (size_t i = 0; i < COUNT; i++) {
        int64_t ends_us = fixture_row(f, sqlock_name(locks[i])).expires_us;

        /* in the background, on a connection of its own */
        assert_becomes_true(fixture_row(f, sqlock_name(locks[i])).expires_us >
                                ends_us,
                            PATIENCE_MS);
        lock_renew(locks[i], 0);
    }
    assert_ok(sqlock_renew_many(locks, COUNT, NULL, &f->err));
    assert_ok(list_all(registry, &infos, &count, &f->err));
    assert_true(count >= COUNT);
    sqlock_info_free(infos, count);
    assert_ok(sqlock_release_many(locks, COUNT, NULL, &f->err));
    lock_take_and_give(locks[0]);
    assert_ok(sqlock_reap(registry, 1, NULL, &f->err));
    for (size_t i = 0; i < COUNT; i++)
        lock_drop(locks[i]);
    registry_end(registry);
}

/* Set a global variable of MySQL, or return false if the server does not know
 * it or the login may not. */
static bool set_global(struct sql *admin, const char *name, const char *value)
{
    return sql_try(admin, NULL, "SET GLOBAL %s = %s", name, value) == 0;
}

TEST_STOPPING_IN(test_settings_of_mysql, ON_MYSQL, IN_SQLOCK)
{
    static const struct {
        const char *name;
        const char *value;
    } settings[] = {
        {"sql_safe_updates", "1"},
        {"sql_select_limit", "1"},
        {"sql_auto_is_null", "1"},
        {"tx_read_only", "1"},
        {"transaction_read_only", "1"},
        {"autocommit", "0"},
        {"completion_type", "1"},
        {"max_join_size", "1"},
        {"max_sort_length", "8"},
        {"max_statement_time", "0.000001"},
        {"sql_mode", "'ANSI'"},
        {"sql_mode", "'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_"
                     "LENGTH,ONLY_FULL_GROUP_BY,IGNORE_SPACE,"
                     "HIGH_NOT_PRECEDENCE,NO_UNSIGNED_SUBTRACTION'"},
        {"sql_mode", "''"},
        {"init_connect", "'SET autocommit = 0, timestamp = 1000'"},
        {"time_zone", "'+13:00'"},
    };
    struct sql admin;
    struct login login;
    size_t known = 0;

    login_make(&login, f, "plain"); /* init_connect spares administrators */
    login_grant(&login, "SELECT, INSERT, UPDATE, DELETE", f->table);
    assert_lock_ok(
        sql_open(&admin, f->database, database_admin_url(f->database)),
        &admin.err);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        char before[600];

        check_row(settings[i].name);
        if (sql_try(&admin, NULL, "SELECT @@global.%s", settings[i].name) < 0)
            continue;
        assert_true(sql_text(&admin, before, sizeof before,
                             "SELECT IF(@@global.%s REGEXP '^[0-9.]+$', "
                             "@@global.%s, QUOTE(@@global.%s))",
                             settings[i].name, settings[i].name,
                             settings[i].name));
        if (!set_global(&admin, settings[i].name, settings[i].value))
            continue;
        known++;
        use_locks(f, login.url);
        assert_true(set_global(&admin, settings[i].name, before));
        fixture_next(f);
    }
    check_row(NULL);
    assert_true(known > 8);
    sql_close(&admin);
    login_drop(&login, f);
}

TEST_ON(test_settings_of_postgres, ON_POSTGRES, IN_SQLOCK)
{
    static const char *const settings[] = {
        "default_transaction_isolation = 'serializable'",
        "default_transaction_deferrable = on",
        "statement_timeout = 50",
        "lock_timeout = 1",
        "row_security = off",
        "search_path = pg_catalog, public",
        "standard_conforming_strings = off",
        "backslash_quote = off",
        "bytea_output = 'escape'",
        "\"DateStyle\" = 'SQL, DMY'",
        "\"IntervalStyle\" = 'iso_8601'",
        "extra_float_digits = -15",
        "\"TimeZone\" = 'Asia/Kathmandu'",
        "transform_null_equals = on",
        "exit_on_error = on",
        "array_nulls = off",
        "quote_all_identifiers = on",
        "plan_cache_mode = 'force_generic_plan'",
        "enable_indexscan = off",
        "client_min_messages = 'debug5'",
    };
    struct login login;

    login_make(&login, f, "plain");
    login_grant(&login, "SELECT, INSERT, UPDATE, DELETE", f->table);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        check_row(settings[i]);
        (void)sql_run(&login.admin, "ALTER ROLE %s SET %s", login.parts.user,
                      settings[i]);
        use_locks(f, login.url);
        (void)sql_run(&login.admin, "ALTER ROLE %s RESET ALL",
                      login.parts.user);
        fixture_next(f);
    }
    check_row(NULL);
    login_drop(&login, f);
}
