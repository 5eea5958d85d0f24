/*
 * test_url.c - parse database URLs, and take parameters out of them
 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/url.h"

#define CANARY "s3cr3t"

struct good {
    const char *url;
    const char *scheme;
    const char *user;
    const char *password;
    const char *host;
    const char *port;
    const char *path;
};

static const struct good good_urls[] = {
    {"mysql:", "mysql", NULL, NULL, NULL, NULL, ""},
    {"mysql://h/db", "mysql", NULL, NULL, "h", NULL, "/db"},
    {"mysql://u@h/db", "mysql", "u", NULL, "h", NULL, "/db"},
    {"mysql://u:@h/db", "mysql", "u", "", "h", NULL, "/db"},
    {"mysql://u:p@h:3306/db", "mysql", "u", "p", "h", "3306", "/db"},
    {"mysql://u:p%40%3A%2F%23%3F@h/db", "mysql", "u", "p@:/#?", "h", NULL,
     "/db"},
    {"mysql://%C3%A9:%C3%9F@h/db", "mysql", "\xc3\xa9", "\xc3\x9f", "h", NULL,
     "/db"},
    {"mysql://u:p@[::1]:3306/db", "mysql", "u", "p", "::1", "3306", "/db"},
    {"mysql:///db", "mysql", NULL, NULL, NULL, NULL, "/db"},
    {"mysql://h", "mysql", NULL, NULL, "h", NULL, ""},
    {"mysql://h/", "mysql", NULL, NULL, "h", NULL, "/"},
    {"mysql://u:a:b@h/db", "mysql", "u", "a:b", "h", NULL, "/db"},
    {"sqlite:relative/path.db", "sqlite", NULL, NULL, NULL, NULL,
     "relative/path.db"},
    {"sqlite:/absolute/path.db", "sqlite", NULL, NULL, NULL, NULL,
     "/absolute/path.db"},
    {"sqlite:a%20b.db", "sqlite", NULL, NULL, NULL, NULL, "a b.db"},
    {"MySQL://h/db", "MySQL", NULL, NULL, "h", NULL, "/db"},
};

static void check_part(const char *url, const char *part, const char *got,
                       const char *expected)
{
    if (got == NULL && expected == NULL)
        return;
    if (got == NULL || expected == NULL || strcmp(got, expected) != 0)
        fail_msg("%s: %s is %s, not %s", url, part, got ? got : "none",
                 expected ? expected : "none");
}

static void test_good_urls_are_taken_apart(void **state)
{
    size_t i;

    (void)state;
    for (i = 0; i < sizeof good_urls / sizeof *good_urls; i++) {
        const struct good *row = &good_urls[i];
        struct lk_url url = {0};
        sqlock_error err = {0};
        int rc = lk_url_parse(&url, row->url, &err);

        if (rc != 0)
            print_error("%s\n", row->url);
        assert_lock_ok(rc, &err);
        check_part(row->url, "scheme", url.scheme, row->scheme);
        check_part(row->url, "user", url.user, row->user);
        check_part(row->url, "password", url.password, row->password);
        check_part(row->url, "host", url.host, row->host);
        check_part(row->url, "port", url.port, row->port);
        check_part(row->url, "path", url.path, row->path);
        lk_url_clear(&url);
        assert_null(url.password);
    }
}

static void
test_bad_urls_are_refused_in_one_line_without_the_password(void **state)
{
    static const char *const bad[] = {
        "mysql://u:" CANARY "@h:port/db",
        "mysql://u:" CANARY "%@h/db",
        "mysql://u:" CANARY "%4@h/db",
        "mysql://u:" CANARY "%zz@h/db",
        "mysql://u:" CANARY "%00@h/db",
        "mysql://u:" CANARY "#x@h/db",
        "mysql://u:" CANARY "/x@h/db",
        "mysql://u:" CANARY "?x@h/db",
        "mysql://u:" CANARY "@@h/db",
        "mysql://u:" CANARY " x@h/db",
        "mysql://u:" CANARY "@[::1/db",
        "mysql://u:" CANARY "@h/d b",
        "mysql://u:" CANARY "@h/db#part",
        "mysql://u:" CANARY "\x01@h/db",
        "mysql://u:" CANARY "\xff\xfe@h/d",
        "mysql://u:" CANARY "<>@h/db",
        "sqlite:%",
        "mysql://h/%00",
        "mysql://h/db?x=%",
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct lk_url url = {0};
        sqlock_error err = {0};
        int rc = lk_url_parse(&url, bad[i], &err);

        lk_url_clear(&url);
        if (rc == 0)
            fail_msg("%s was accepted", bad[i]);
        assert_code(SQLOCK_EINVAL, rc, &err);
        assert_lacks(err.message, CANARY);
    }
}

static void test_parameters_are_decoded(void **state)
{
    struct lk_url url = {0};
    sqlock_error err = {0};
    int rc = lk_url_parse(&url,
                          "mysql://h/db?socket=%2Frun%2Fs.sock&tls=verify"
                          "&flag&empty=&ca=a%26b",
                          &err);

    (void)state;
    assert_lock_ok(rc, &err);
    assert_int_equal(url.count, 5);
    assert_string_equal(lk_url_parameter(&url, "socket"), "/run/s.sock");
    assert_string_equal(lk_url_parameter(&url, "tls"), "verify");
    assert_string_equal(lk_url_parameter(&url, "flag"), "");
    assert_string_equal(lk_url_parameter(&url, "empty"), "");
    assert_string_equal(lk_url_parameter(&url, "ca"), "a&b");
    assert_null(lk_url_parameter(&url, "Socket"));
    assert_null(lk_url_parameter(&url, ""));
    lk_url_clear(&url);
}

struct taken {
    const char *url;
    const char *rest;
    const char *value;
};

static void test_taking_a_parameter_leaves_the_rest_as_it_was(void **state)
{
    static const struct taken rows[] = {
        {"postgresql://h/d", "postgresql://h/d", NULL},
        {"postgresql://h/d?n=1", "postgresql://h/d", "1"},
        {"postgresql://h/d?n=1&x=2", "postgresql://h/d?x=2", "1"},
        {"postgresql://h/d?x=2&n=1", "postgresql://h/d?x=2", "1"},
        {"postgresql://h/d?x=2&n=1&y", "postgresql://h/d?x=2&y", "1"},
        {"postgresql://h/d?n", "postgresql://h/d", ""},
        {"postgresql://h/d?n=%26a", "postgresql://h/d", "&a"},
        {"postgresql://h/d?nn=1", "postgresql://h/d?nn=1", NULL},
        {"postgresql://h1:1,h2:2/d?n=1", "postgresql://h1:1,h2:2/d", "1"},
        {"postgresql://u:p?n=2@h/d?n=1", "postgresql://u:p?n=2@h/d", "1"},
        {"postgresql:///d?host=/a,/b&n=x", "postgresql:///d?host=/a,/b", "x"},
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        sqlock_error err = {0};
        char *rest;
        char *value;
        int rc = lk_url_take(rows[i].url, "n", &rest, &value, &err);

        assert_lock_ok(rc, &err);
        check_part(rows[i].url, "rest", rest, rows[i].rest);
        check_part(rows[i].url, "value", value, rows[i].value);
        free(rest);
        free(value);
    }
}

static void test_taking_refuses_what_is_ambiguous(void **state)
{
    static const char *const bad[] = {
        "postgresql://u:" CANARY "@h/d?n=1&n=2",
        "postgresql://u:" CANARY "@h/d?n=%",
        "postgresql://u:" CANARY "@h/d?n=%00",
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof bad / sizeof *bad; i++) {
        sqlock_error err = {0};
        char *rest;
        char *value;
        int rc = lk_url_take(bad[i], "n", &rest, &value, &err);

        free(rest);
        free(value);
        assert_code(SQLOCK_EINVAL, rc, &err);
        assert_lacks(err.message, CANARY);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_good_urls_are_taken_apart),
    cmocka_unit_test(
        test_bad_urls_are_refused_in_one_line_without_the_password),
    cmocka_unit_test(test_parameters_are_decoded),
    cmocka_unit_test(test_taking_a_parameter_leaves_the_rest_as_it_was),
    cmocka_unit_test(test_taking_refuses_what_is_ambiguous),
};
const struct suite suite_url = SUITE("urls", tests);
