/*
 * test_checks.c - doctor's rules: settings of a server on which locks would not
 * keep their promises (F58, F59, F60, F61, F63, F65), and TLS
 */
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#include "db/drivers.h"
#include "admin/diagnose.h"

#define SETTINGS_MAX 6

struct server {
    const char *scheme;
    const char *settings[SETTINGS_MAX]; /* name, value, ... */
    const char *check;
    sqlock_severity severity;
    const char *advice; /* a piece of its text */
};

/* The last setting of each server is the one that is judged. */
#define PG "postgresql:"
#define MY "mysql:"
#define LITE "sqlite:"
#define FINE SQLOCK_FINE
#define WARN SQLOCK_WARNING
#define FAIL SQLOCK_FAILURE
static const struct server servers[] = {
    {PG, {"fsync", "on"}, "durability", FINE, NULL},
    {PG, {"fsync", "off"}, "durability", FAIL, "= on"},
    {PG, {"full_page_writes", "off"}, "durability", FAIL, "= on"},
    {PG, {"synchronous_commit", "off"}, "durability", FAIL, "forgets"},
    {PG, {"synchronous_commit", "local"}, "durability", FINE, NULL},
    {PG,
     {"replicas", "2", "synchronous_standby_names", ""},
     "failover",
     WARN,
     "none is synchronous"},
    {PG,
     {"replicas", "2", "synchronous_standby_names", "ANY 1 (*)"},
     "failover",
     FINE,
     NULL},
    {PG, {"in_recovery", "on"}, "failover", FAIL, "primary"},
    {PG, {"default_transaction_read_only", "on"}, "failover", FAIL, "= off"},
    {PG,
     {"transaction_isolation", "serializable"},
     "isolation",
     FAIL,
     "in between"},
    {PG, {"idle_session_timeout", "0"}, "timeouts", FINE, NULL},
    {PG, {"idle_session_timeout", "59999"}, "timeouts", WARN, "minute"},
    {PG, {"idle_session_timeout", "60000"}, "timeouts", FINE, NULL},
    {PG, {"engine", "CockroachDB"}, "connection", WARN, "tokens"},
    {MY,
     {"grace", "no", "innodb_flush_log_at_trx_commit", "2"},
     "durability",
     FAIL,
     "= 1"},
    {MY,
     {"grace", "no", "innodb_flush_log_at_trx_commit", "1"},
     "durability",
     FINE,
     NULL},
    {MY,
     {"grace", "yes", "innodb_flush_log_at_trx_commit", "2"},
     "durability",
     FINE,
     NULL},
    {MY, {"innodb_doublewrite", "OFF"}, "durability", WARN, "= ON"},
    {MY, {"log_bin", "ON", "sync_binlog", "0"}, "durability", WARN, "= 1"},
    {MY,
     {"log_bin", "ON", "binlog_format", "STATEMENT"},
     "isolation",
     FAIL,
     "ROW"},
    {MY, {"tx_isolation", "REPEATABLE-READ"}, "isolation", FAIL, "in between"},
    {MY, {"transaction_isolation", "READ-COMMITTED"}, "isolation", FINE, NULL},
    {MY, {"read_only", "ON"}, "failover", FAIL, "primary"},
    {MY, {"read_only", "1"}, "failover", FAIL, "primary"},
    {MY, {"super_read_only", "ON"}, "failover", FAIL, "primary"},
    {MY, {"wsrep_on", "ON"}, "failover", WARN, "Galera"},
    {MY,
     {"group_replication_group_name", "aaaa",
      "group_replication_single_primary_mode", "OFF"},
     "failover",
     WARN,
     "FOR UPDATE"},
    {MY,
     {"Slaves_connected", "1", "rpl_semi_sync_master_enabled", "OFF"},
     "failover",
     WARN,
     "semi-synchronous"},
    {MY,
     {"rpl_semi_sync_source_enabled", "ON", "Rpl_semi_sync_source_status",
      "OFF"},
     "failover",
     WARN,
     "fallen back"},
    {PG,
     {"idle_in_transaction_session_timeout", "0"},
     "timeouts",
     FINE,
     "sqlock_tx_adopt"},
    {PG,
     {"idle_in_transaction_session_timeout", "9999"},
     "timeouts",
     WARN,
     "longest"},
    {PG,
     {"idle_in_transaction_session_timeout", "10000"},
     "timeouts",
     FINE,
     NULL},
    {MY, {"idle_transaction_timeout", "0"}, "timeouts", FINE, "lend"},
    {MY, {"idle_transaction_timeout", "9"}, "timeouts", WARN, "longest"},
    {MY, {"idle_transaction_timeout", "10"}, "timeouts", FINE, NULL},
    {MY, {"wait_timeout", "59"}, "timeouts", WARN, "minute"},
    {MY, {"wait_timeout", "28800"}, "timeouts", FINE, NULL},
    {MY, {"engine", "TiDB"}, "connection", WARN, "SKIP LOCKED"},
    {LITE, {"journal_mode", "memory"}, "durability", FAIL, "WAL"},
    {LITE, {"journal_mode", "delete"}, "isolation", WARN, "WAL"},
    {LITE, {"file_system", "overlay"}, "sharing", WARN, "volume"},
    {LITE, {"file_system", "local"}, "sharing", FINE, NULL},
    {LITE, {"synchronous", "off"}, "durability", FAIL, "our sessions"},
};

/* Apply the driver's rules to these settings.  Return false if the driver is
 * not compiled in. */
static bool judge(struct lk_checks *checks, const char *scheme,
                  const char *const *settings)
{
    sqlock_result result = {0};
    const sqlock_driver *driver;
    size_t i;

    if (lk_driver_find(&driver, scheme, NULL) < 0)
        return false;
    assert_int_equal(sqlock_result_start(&result, 2), 0);
    for (i = 0; i < SETTINGS_MAX && settings[i] != NULL; i++) {
        sqlock_value value = sqlock_text(settings[i]);

        assert_int_equal(sqlock_result_push(&result, &value), 0);
    }
    lk_checks_of_rules(checks, driver->dialect->doctor, &result);
    sqlock_result_clear(&result);
    return true;
}

static const sqlock_check *find(const struct lk_checks *checks,
                                const char *check)
{
    size_t i;

    for (i = 0; i < checks->count; i++) {
        if (strcmp(checks->list[i].check, check) == 0)
            return &checks->list[i];
    }
    return NULL;
}

TEST(test_F58_to_F65_settings_that_locks_depend_on)
{
    size_t i;

    for (i = 0; i < sizeof servers / sizeof servers[0]; i++) {
        const struct server *server = &servers[i];
        struct lk_checks checks = {0};
        const sqlock_check *check;

        if (!judge(&checks, server->scheme, server->settings))
            continue;
        check = find(&checks, server->check);
        if (check == NULL || check->severity != server->severity) {
            print_message("%s %s\n", server->scheme, server->settings[0]);
            _fail(__FILE__, __LINE__);
            return;
        }
        if (server->advice == NULL)
            assert_null(check->advice);
        else
            assert_contains(check->advice, server->advice);
        lk_checks_clear(&checks);
    }
}

/* Without a replica, a binary log or a group, settings about these do not
 * matter. */
TEST(test_rules_that_do_not_apply_say_nothing)
{
    static const char *const alone[][SETTINGS_MAX] = {
        {"replicas", "0", "synchronous_standby_names", ""},
        {"log_bin", "OFF", "sync_binlog", "0", "binlog_format", "STATEMENT"},
        {"sync_binlog", "0"},
        {"group_replication_group_name", "",
         "group_replication_single_primary_mode", "OFF"},
        {"rpl_semi_sync_master_enabled", "OFF", "Rpl_semi_sync_master_status",
         "OFF"},
    };
    struct lk_checks checks = {0};
    size_t i;

    for (i = 0; i < sizeof alone / sizeof alone[0]; i++) {
        (void)judge(&checks, "postgresql:", alone[i]);
        (void)judge(&checks, "mysql:", alone[i]);
    }
    if (checks.count > 0)
        print_message("%s\n", checks.list[0].found);
    assert_int_equal(checks.count, 0);
    lk_checks_clear(&checks);
}

/* Each line that looks like a rule is one. */
TEST(test_every_rule_is_read)
{
    for (size_t i = 0; lk_drivers[i] != NULL; i++) {
        const char *text = lk_drivers[i]->dialect->doctor;
        const char *at = text;
        struct lk_rule rule;
        int there = 0;
        int read = 0;

        while ((at = strstr(at, ", else ")) != NULL) {
            at++;
            there++;
        }
        while ((text = lk_rule_read(text, &rule)) != NULL) {
            check_row(rule.setting);
            assert_non_null(rule.check);
            assert_true(rule.advice[0] != '\0');
            assert_true(strlen(rule.advice) < sizeof rule.advice - 1);
            read++;
        }
        assert_true(read > 0);
        assert_int_equal(read, there);
    }
    check_row(NULL);
}

TEST(test_F79_findings_are_one_line)
{
    struct lk_checks checks = {0};

    lk_check(&checks, "clock", SQLOCK_WARNING, NULL, "a\nb \x1b[31m \xff");
    assert_int_equal(checks.count, 1);
    assert_string_equal(checks.list[0].found, "a\\x0ab \\x1b[31m \\xff");
    assert_false(checks.is_short);
    lk_checks_clear(&checks);
    sqlock_checks_free(NULL, 0);
}

/* --- TLS --- */

struct meeting {
    const char *tls;
    sqlock_tls_check check;
    bool is_local;
    sqlock_severity severity;
    const char *found; /* a piece of its text */
};

/* Encryption alone does not prove which server it is (F77). */
TEST(test_F77_tls_is_fine_only_where_the_server_is_known)
{
    static const struct meeting meetings[] = {
        {"", SQLOCK_TLS_CHECK_NONE, true, SQLOCK_FINE, "none needed"},
        {"", SQLOCK_TLS_CHECK_NONE, false, SQLOCK_WARNING, "can be read"},
        {"AES", SQLOCK_TLS_CHECK_NONE, true, SQLOCK_FINE, "not checked"},
        {"AES", SQLOCK_TLS_CHECK_NONE, false, SQLOCK_WARNING, "not checked"},
        {"AES", SQLOCK_TLS_CHECK_DEMANDED, true, SQLOCK_WARNING,
         "certificate is not checked"},
        {"AES", SQLOCK_TLS_CHECK_DEMANDED, false, SQLOCK_WARNING,
         "certificate is not checked"},
        {"AES", SQLOCK_TLS_CHECK_AUTHORITY, false, SQLOCK_WARNING,
         "name is not checked"},
        {"AES", SQLOCK_TLS_CHECK_FULL, false, SQLOCK_FINE, "is checked"},
    };
    size_t i;

    for (i = 0; i < sizeof meetings / sizeof meetings[0]; i++) {
        const struct meeting *meeting = &meetings[i];
        sqlock_description description = {.tls_check = meeting->check};
        struct lk_checks checks = {0};

        (void)snprintf(description.tls, sizeof description.tls, "%s",
                       meeting->tls);
        lk_diagnose_tls(&checks, &description, meeting->is_local);
        assert_int_equal(checks.count, 1);
        assert_string_equal(checks.list[0].check, "tls");
        assert_int_equal(checks.list[0].severity, meeting->severity);
        assert_contains(checks.list[0].found, meeting->found);
        if (meeting->severity == SQLOCK_FINE)
            assert_null(checks.list[0].advice);
        else
            assert_contains(checks.list[0].advice, "verify-full");
        lk_checks_clear(&checks);
    }
}
