/*
 * test_target.c - what a URL of MySQL and the user's option file come to
 */
#include "support/test.h"

#ifdef SQLOCK_WITH_MYSQL

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/url.h"
#include "drivers/mysql/target.h"

#define LONG_NAME 257

static int read_target(struct lk_mysql_target *out, struct lk_url *url,
                       const char *text, sqlock_error *err)
{
    assert_lock_ok(lk_url_parse(url, text, err), err);
    return lk_mysql_target_read(out, url, 0, err);
}

static void check_refused(const char *text, const char *said)
{
    struct lk_mysql_target target;
    struct lk_url url;
    sqlock_error err = {0};

    check_row(text);
    assert_code(SQLOCK_EINVAL, read_target(&target, &url, text, &err), &err);
    assert_non_null(strstr(err.message, said));
    lk_mysql_target_clear(&target);
    lk_url_clear(&url);
    check_row(NULL);
}

TEST(test_what_names_no_server_or_database_is_refused)
{
    char text[LONG_NAME + 32];

    check_refused("mysql://u@h/a/b", "the name of a database only");
    (void)snprintf(text, sizeof text, "mysql://u@h/%0*d", LONG_NAME, 0);
    check_refused(text, "the name of a database only");
    check_refused("mysql://u@h", "names no database");
    check_refused("mysql://u@a%2Cb:1/db", "with ',' between");
}

/* Write the option file of a user, whose folder is `home`. */
static void write_options(const char *home)
{
    char path[128];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/.my.cnf", home);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs("[client]\nuser = other\npassword = secret\n"
                      "host = elsewhere\nport = 7\n",
                      file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, S_IRUSR | S_IWUSR), 0);
}

/* Nobody trusts an option file that another user has written, or may. */
static void assert_options_are_left(const char *home)
{
    struct lk_mysql_target target;
    struct lk_url url;
    sqlock_error err = {0};

    check_row(home);
    assert_lock_ok(read_target(&target, &url, "mysql://me@h/db", &err), &err);
    assert_null(target.password);
    lk_mysql_target_clear(&target);
    lk_url_clear(&url);
}

TEST(test_the_option_file_gives_what_the_url_does_not)
{
    static const struct {
        const char *url, *user, *password, *host;
        unsigned port;
    } rows[] = {
        {"mysql://me:mine@h:1/db", "me", "mine", "h", 1},
        {"mysql://me@h/db", "me", "secret", "h", 0},
        {"mysql:///db", "other", "secret", "elsewhere", 7},
    };
    char home[] = "/tmp/sqlock-target.XXXXXX";
    char path[128];

    assert_non_null(mkdtemp(home));
    write_options(home);
    assert_int_equal(setenv("HOME", home, 1), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct lk_mysql_target target;
        struct lk_url url;
        sqlock_error err = {0};

        check_row(rows[i].url);
        assert_lock_ok(read_target(&target, &url, rows[i].url, &err), &err);
        assert_string_equal(target.user, rows[i].user);
        assert_string_equal(target.password, rows[i].password);
        assert_string_equal(target.host, rows[i].host);
        assert_int_equal(target.port, rows[i].port);
        lk_mysql_target_clear(&target);
        lk_url_clear(&url);
    }
    check_row(NULL);
    (void)snprintf(path, sizeof path, "%s/.my.cnf", home);
    assert_int_equal(chmod(path, 0666), 0);
    assert_options_are_left(home);
    assert_int_equal(chmod(path, 0600), 0);
    if (geteuid() == 0) {
        assert_int_equal(chown(path, 1, 1), 0);
        assert_options_are_left(home);
    }
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(home), 0);
}

#endif
