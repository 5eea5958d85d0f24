/*
 * test_url.c - parse database URLs, and check their parameters
 */
#include "support/test.h"

#include <stdio.h>
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
    {"postgresql://", "postgresql", NULL, NULL, NULL, NULL, ""},
    {"postgresql://u@h1:1,h2,[::1]:3/d", "postgresql", "u", NULL, "h1,h2,::1",
     "1,,3", "/d"},
    {"postgresql://h1,h2/d", "postgresql", NULL, NULL, "h1,h2", NULL, "/d"},
    {"postgresql://%2Frun%2Fpg:5433/d", "postgresql", NULL, NULL, "/run/pg",
     "5433", "/d"},
    {"postgresql://h/d?user=a@b", "postgresql", NULL, NULL, "h", NULL, "/d"},
    {"sqlite:a@b", "sqlite", NULL, NULL, NULL, NULL, "a@b"},
    {"sqlite:\xc3\xa9.db", "sqlite", NULL, NULL, NULL, NULL, "\xc3\xa9.db"},
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

TEST(test_good_urls_are_taken_apart)
{
    size_t i;

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

TEST(test_bad_urls_are_refused_in_one_line_without_the_password)
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
        "mysql://h/db?x=1&x=2",
        "mysql://u:1234" CANARY "/db",
        "mysql://h:0/db",
        "mysql://h:65536/db",
        "mysql://h1:1,h2:" CANARY "/db",
        "sqlite:a#b",
        "mysql",
        "://h/db",
    };
    size_t i;

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

TEST(test_parameters_are_decoded)
{
    struct lk_url url = {0};
    sqlock_error err = {0};
    int rc = lk_url_parse(&url,
                          "mysql://h/db?socket=%2Frun%2Fs.sock&tls=verify"
                          "&flag&empty=&ca=a%26b",
                          &err);

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

TEST(test_a_url_has_room_for_so_many_parameters)
{
    char text[LK_URL_PARAMETERS_MAX * 8] = "mysql://h/db?p0";
    struct lk_url url = {0};
    sqlock_error err = {0};
    size_t length = strlen(text);

    for (int i = 1; i < LK_URL_PARAMETERS_MAX; i++)
        length += (size_t)snprintf(text + length, 8, "&p%d", i);
    assert_lock_ok(lk_url_parse(&url, text, &err), &err);
    assert_int_equal(url.count, LK_URL_PARAMETERS_MAX);
    lk_url_clear(&url);
    (void)snprintf(text + length, 8, "&more");
    assert_code(SQLOCK_EINVAL, lk_url_parse(&url, text, &err), &err);
    lk_url_clear(&url);
}

TEST(test_taking_a_parameter_leaves_the_others)
{
    struct lk_url url = {0};
    sqlock_error err = {0};

    assert_lock_ok(
        lk_url_parse(&url, "postgresql:///d?host=/a,/b&n=%26x&y", &err), &err);
    assert_null(lk_url_take(&url, "z"));
    assert_string_equal(lk_url_take(&url, "n"), "&x");
    assert_null(lk_url_take(&url, "n"));
    assert_int_equal(url.count, 2);
    assert_string_equal(lk_url_parameter(&url, "host"), "/a,/b");
    assert_string_equal(lk_url_parameter(&url, "y"), "");
    lk_url_clear(&url);
}

TEST(test_parameters_are_checked)
{
    static const struct {
        const char *query;
        int code;
    } rows[] = {
        {"", 0},
        {"?a=1&bc=2", 0},
        {"?b=1", SQLOCK_EINVAL},
        {"?A=1", SQLOCK_EINVAL},
        {"?=1", SQLOCK_EINVAL},
        {"?a=", SQLOCK_EINVAL},
        {"?a", SQLOCK_EINVAL},
        {"?a=1&&bc=2", SQLOCK_EINVAL},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct lk_url url = {0};
        sqlock_error err = {0};
        char text[64];

        (void)snprintf(text, sizeof text, "mysql://h/db%s", rows[i].query);
        assert_lock_ok(lk_url_parse(&url, text, &err), &err);
        if (lk_url_check_parameters(&url, "a|bc", &err) != rows[i].code)
            fail_msg("%s", text);
        lk_url_clear(&url);
    }
}

TEST(test_a_password_is_given_once)
{
    static const struct {
        const char *url;
        const char *password;
        int code;
    } rows[] = {
        {"mysql://u:p@h/db", "p", 0},
        {"mysql://u@h/db", NULL, 0},
        {"mysql://u@h/db?password_env=UNIT_URL_PASSWORD", CANARY, 0},
        {"mysql://u@h/db?password_env=UNIT_URL_NONE", NULL, SQLOCK_EINVAL},
        {"mysql://u:p@h/db?password_env=UNIT_URL_PASSWORD", NULL,
         SQLOCK_EINVAL},
    };

    (void)setenv("UNIT_URL_PASSWORD", CANARY, 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct lk_url url = {0};
        sqlock_error err = {0};
        const char *password;
        int rc;

        assert_lock_ok(lk_url_parse(&url, rows[i].url, &err), &err);
        rc = lk_url_password(&url, &password, &err);
        assert_int_equal(rc, rows[i].code);
        assert_lacks(err.message, CANARY);
        if (rc == 0)
            check_part(rows[i].url, "password", password, rows[i].password);
        lk_url_clear(&url);
    }
    (void)unsetenv("UNIT_URL_PASSWORD");
}

TEST(test_a_url_of_one_of_several_hosts)
{
    static const struct {
        const char *url;
        size_t index;
        const char *host, *port;
    } rows[] = {
        {"mysql://u@h1:1,h2,[::1]:3/db", 0, "h1", "1"},
        {"mysql://u@h1:1,h2,[::1]:3/db", 1, "h2", NULL},
        {"mysql://u@h1:1,h2,[::1]:3/db", 2, "::1", "3"},
        {"postgresql:///db?host=h1,h2&port=7", 1, "h2", "7"},
        {"postgresql://h:1/db?host=h1,h2&port=7,8", 1, "h2", "8"},
        {"postgresql://h1,h2/db?hostaddr=::1,::2", 1, "h2", NULL},
        {"postgresql://h1,h2/db?target_session_attrs=primary", 1, "h2", NULL},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct lk_url url, one;
        sqlock_error err = {0};
        char *host, *port;

        check_row(rows[i].url);
        assert_lock_ok(lk_url_parse(&url, rows[i].url, &err), &err);
        assert_true(lk_url_hosts(&url) > rows[i].index);
        assert_true(lk_url_at_host(&one, &url, rows[i].index, &host, &port));
        assert_string_equal(one.host, rows[i].host);
        assert_true(rows[i].port == NULL ? one.port == NULL
                                         : strcmp(one.port, rows[i].port) == 0);
        assert_int_equal(lk_url_hosts(&one), 1);
        assert_int_equal(one.count, 0);
        free(host);
        free(port);
        lk_url_clear(&url);
    }
    check_row(NULL);
}
