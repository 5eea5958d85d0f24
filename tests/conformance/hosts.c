/*
 * hosts.c - URLs that name several hosts: the first that can be used is, and
 * one that does not answer costs its share of the time
 */
#include "conformance.h"

#include <stdio.h>
#include <string.h>

#include "support/login.h"
#include "support/proxy.h"

#define CANARY LOGIN_PASSWORD

/* Write the fixture's URL to out, with other hosts before or behind its own. */
static const char *with_hosts(struct fixture *f, char out[512],
                              const char *before, const char *behind)
{
    struct url_parts parts;

    url_take_apart(f->url, &parts);
    (void)snprintf(out, 512, "%s://%s:%s@%s%s:%s%s/%s", parts.scheme,
                   parts.user, parts.password, before, parts.host, parts.port,
                   behind, parts.database);
    return out;
}

static int open_within(struct fixture *f, const char *url, uint32_t timeout_ms,
                       sqlock_registry **registry)
{
    sqlock_options options = fixture_options(f);

    options.connect_timeout_ms = timeout_ms;
    *registry = NULL;
    return sqlock_registry_open(registry, url, &options, &f->err);
}

/* Acquire and release the fixture's lock by a registry of that URL. */
static void use(struct fixture *f, const char *url, uint32_t timeout_ms)
{
    sqlock_registry *registry;
    sqlock_lock *lock;

    assert_ok(open_within(f, url, timeout_ms, &registry));
    lock = lock_obtain(registry, f->name);
    lock_take_and_give(lock);
    lock_drop(lock);
    registry_end(registry);
}

TEST_ON(test_a_host_that_cannot_be_used_is_passed_over, ON_SERVERS, IN_SQLOCK)
{
    static const char *const before[] = {
        "127.0.0.1:1,",
        "[::1]:1,",
        "no-such-host.invalid:1,",
        "127.0.0.1:1,[::1]:1,localhost:1,",
    };
    char url[512];

    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        check_row(before[i]);
        use(f, with_hosts(f, url, before[i], ""), 10000);
    }
    check_row(NULL);
    use(f, with_hosts(f, url, "", ",127.0.0.1:1"), 10000);
}

TEST_ON(test_a_silent_host_costs_its_share_of_the_time, ON_SERVERS, IN_SQLOCK)
{
    struct proxy *silent = proxy_open(f->database, f->url);
    struct url_parts parts;
    char through[1024];
    char before[96];
    char url[512];

    assert_non_null(silent);
    proxy_blackhole(silent);
    url_take_apart(proxy_url(silent, through, f->url), &parts);
    (void)snprintf(before, sizeof before, "%s:%s,", parts.host, parts.port);
    use(f, with_hosts(f, url, before, ""), 6000);
    proxy_close(silent);
}

TEST_ON(test_hosts_that_are_all_away_are_out_of_reach, ON_SERVERS, IN_SQLOCK)
{
    sqlock_registry *registry;
    struct url_parts parts;
    char url[512];

    url_take_apart(f->url, &parts);
    (void)snprintf(parts.host, sizeof parts.host, "127.0.0.1:1,127.0.0.1");
    (void)snprintf(parts.port, sizeof parts.port, "2");
    assert_fails(SQLOCK_EUNREACHABLE,
                 open_within(f, url_put_together(&parts, url), 300, &registry));
    assert_contains(f->err.message, "127.0.0.1");
}

/* Another host would say the same, so none is asked. */
TEST_ON(test_a_refusal_names_its_host, ON_SERVERS, IN_SQLOCK)
{
    sqlock_registry *registry;
    struct url_parts parts;
    char expected[96];
    char url[512];

    url_take_apart(f->url, &parts);
    (void)snprintf(expected, sizeof expected, "%s, port %s", parts.host,
                   parts.port);
    (void)snprintf(url, sizeof url, "%s://%s:" CANARY "@%s:%s,%s:1/%s",
                   parts.scheme, parts.user, parts.host, parts.port, parts.host,
                   parts.database);
    assert_fails(SQLOCK_EACCESS, open_within(f, url, 10000, &registry));
    assert_lacks(f->err.message, CANARY);
    if (f->database->bit == ON_MYSQL)
        assert_contains(f->err.message, expected);
}

/* Return the severity of the check of that name that says it; fail the test if
 * there is none. */
static sqlock_severity said(const sqlock_check *checks, size_t count,
                            const char *name, const char *part)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(checks[i].check, name) == 0 &&
            strstr(checks[i].found, part) != NULL)
            return checks[i].severity;
    fail_msg("no check says %s", part);
    return SQLOCK_FAILURE;
}

TEST_ON(test_doctor_compares_the_clocks_of_all_hosts, ON_SERVERS, IN_SQLOCK)
{
    sqlock_options options = fixture_options(f);
    sqlock_check *checks = NULL;
    size_t count = 0;
    char url[512];

    assert_ok(sqlock_diagnose(with_hosts(f, url, "127.0.0.1:1,", ""), &options,
                              &checks, &count, &f->err));
    assert_int_equal(said(checks, count, "clock", "host 1 of the URL"),
                     SQLOCK_WARNING);
    assert_int_equal(said(checks, count, "clock", "does not tell its clock"),
                     SQLOCK_WARNING);
    assert_int_equal(said(checks, count, "clock", "the clock of host 2"),
                     SQLOCK_FINE);
    sqlock_checks_free(checks, count);
}

TEST_ON(test_bad_lists_are_refused_in_one_line, ON_MYSQL, IN_SQLOCK)
{
    static const char *const rests[] = {
        "h1,,h2/d", "h1,/d", ",h1/d", "h1;h2,h3/d", "h1,h2/d?socket=%2Fs",
    };
    sqlock_registry *registry;
    char url[128];

    for (size_t i = 0; i < sizeof rests / sizeof *rests; i++) {
        (void)snprintf(url, sizeof url, "mysql://u:" CANARY "@%s", rests[i]);
        check_row(rests[i]);
        assert_fails(SQLOCK_EINVAL, open_within(f, url, 300, &registry));
        assert_true(check_one_line(f->err.message));
        assert_lacks(f->err.message, CANARY);
    }
    check_row(NULL);
}
