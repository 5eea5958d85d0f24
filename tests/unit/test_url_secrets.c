/*
 * test_url_secrets.c - a driver's message about a URL that it refuses has
 * nothing of the password in it, even if the password was not percent-encoded
 */
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#include "db/drivers.h"
#include "support/database.h"

#define SECRET_1 "qxqx"
#define SECRET_2 "zwzw"
#define SECRET_3 "jkjk"

/* A position of the password in a URL: behind the scheme and `head`, before
 * `tail`. */
struct place {
    const char *head;
    const char *tail;
};

static const struct place places[] = {
    {"://u:", "@h/db"},      {"://u:", "@h:1/db?x=1"},
    {"://u:", "@h:port/db"}, {"://u:", "@h/db?no_such_parameter=1"},
    {"://u:", "@[::1/db"},   {"://u:", "@h,i:1/db"},
    {"://u:", "@/db"},       {"://u:", "@h"},
    {"://u:", ""},           {"://u:", "/db"},
    {"://:", "@h/db"},       {"://", "@h/db"},
    {":u:", "@h/db"},        {":/u:", "@h/db"},
    {":u/", "@h/db?%zz"},
};

/* Texts with a meaning in URLs.  Each pair of them separates the three pieces
 * of a password. */
static const char *const specials[] = {
    "",  "%", "%4", "%zz", "%00", "/",  "?",    "#",    "@",        ":",
    "[", "]", "&",  "=",   " ",   "\\", "\"",   "'",    "<",        "^",
    "`", "{", "|",  ",",   ";",   "+",  "\x01", "\xff", "\xc3\xa9", "//"};

static const char *const schemes[] = {"postgresql", "postgres", "mysql",
                                      "mariadb", "sqlite"};

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Return whether the URL is refused.  Fail the test if the message of a refusal
 * has a piece of the password in it, or is not one line. */
static bool is_refused_in_silence(const char *url)
{
    const sqlock_driver *driver;
    sqlock_error err = {0};
    int rc = lk_driver_find(&driver, url, &err);

    if (rc == 0)
        rc = driver_check(driver, url, &err);
    if (rc == 0)
        return false;
    if (strstr(err.message, SECRET_1) != NULL ||
        strstr(err.message, SECRET_2) != NULL ||
        strstr(err.message, SECRET_3) != NULL || !check_one_line(err.message))
        fail_msg("%s: %s", url, err.message);
    return true;
}

/* Try every pair of `specials` in a password that begins with `first`, which
 * may look like a port.  Return how many URLs are refused. */
static size_t refuse_all(const char *scheme, const struct place *place,
                         const char *first)
{
    char password[64];
    char url[256];
    size_t refused = 0;

    for (size_t i = 0; i < COUNT(specials); i++) {
        for (size_t k = 0; k < COUNT(specials); k++) {
            (void)snprintf(password, sizeof password, "%s%s%s%s%s", first,
                           specials[i], SECRET_2, specials[k], SECRET_3);
            (void)snprintf(url, sizeof url, "%s%s%s%s", scheme, place->head,
                           password, place->tail);
            refused += is_refused_in_silence(url) ? 1 : 0;
        }
    }
    return refused;
}

TEST(test_nothing_of_a_password_is_in_a_refusal)
{
    size_t refused = 0;

    for (size_t s = 0; s < COUNT(schemes); s++) {
        for (size_t t = 0; t < COUNT(places); t++) {
            refused += refuse_all(schemes[s], &places[t], SECRET_1);
            refused += refuse_all(schemes[s], &places[t], "1234");
        }
    }
    assert_true(refused > 1000);
}

/* The message gives the parameter's number, since the parameter's name may be a
 * piece of a password. */
TEST(test_an_unknown_parameter_is_told)
{
    static const struct {
        const char *url;
        const char *said;
    } rows[] = {
        {"postgresql://u:p@h/db?sslmod=require", "parameter number 1 "},
        {"postgresql://h/db?sslmode=require&sslmod=x", "parameter number 2 "},
        {"mysql://u:p@h:1/db?sslmod=require", "parameter number 1 "},
        {"mysql://h/db?tls=off&sslmod=require", "parameter number 2 "},
    };
    const sqlock_driver *driver;
    sqlock_error err = {0};

    for (size_t i = 0; i < COUNT(rows); i++) {
        if (lk_driver_find(&driver, rows[i].url, &err) != 0)
            continue; /* not compiled in */
        assert_code(SQLOCK_EINVAL, driver_check(driver, rows[i].url, &err),
                    &err);
        assert_non_null(strstr(err.message, rows[i].said));
    }
}
