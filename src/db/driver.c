/*
 * driver.c - the list of drivers: those compiled in, then those registered by
 * the application
 *
 * sqlock_driver_register() refuses a driver that lacks a required member, so
 * that other code need not check for it.
 */
#include "db/driver.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/secret.h"
#include "base/thread.h"
#include "base/url.h"
#include "db/statement.h"

#define REGISTERED_MAX 16
#define COMPILED_IN_MAX 3
#define DRIVERS_MAX (COMPILED_IN_MAX + REGISTERED_MAX)
#define INFO_SIZE 128
#define NAMES_SIZE 256

LK_STATIC_MUTEX(guard);
static const sqlock_driver *registered[REGISTERED_MAX];
static size_t registered_count;

/* Polling forms: copies of drivers (`of`), without their wait queue, for URLs
 * with waiting=poll.  The first one without `of` ends the list. */
static struct form {
    const sqlock_driver *of;
    sqlock_driver driver;
    sqlock_dialect dialect;
} forms[DRIVERS_MAX + 1];

/* Return a driver by its index in the list of all, or NULL.  The caller holds
 * the guard. */
static const sqlock_driver *driver_at(size_t index)
{
    size_t compiled_in = 0;

    while (lk_drivers[compiled_in] != NULL)
        compiled_in++;
    if (index < compiled_in)
        return lk_drivers[index];
    index -= compiled_in;
    return index < registered_count ? registered[index] : NULL;
}

/* Return whether a scheme of that length is one of "a|b|c". */
static bool is_listed(const char *schemes, const char *scheme, size_t length)
{
    while (*schemes != '\0') {
        size_t end = strcspn(schemes, "|");

        if (end == length && strncmp(schemes, scheme, length) == 0)
            return true;
        schemes += end;
        if (*schemes == '|')
            schemes++;
    }
    return false;
}

/* Find the driver for a scheme.  The caller holds the guard. */
static const sqlock_driver *driver_for(const char *scheme, size_t length)
{
    const sqlock_driver *driver;

    for (size_t i = 0; (driver = driver_at(i)) != NULL; i++)
        if (is_listed(driver->schemes, scheme, length))
            return driver;
    return NULL;
}

/* Find a driver by its name.  The caller holds the mutex `guard`. */
static const sqlock_driver *driver_named(const char *name)
{
    const sqlock_driver *driver;
    size_t i = 0;

    while ((driver = driver_at(i)) != NULL && strcmp(driver->name, name) != 0)
        i++;
    return driver;
}

/* Return the polling form of a listed driver; the first call for the driver
 * makes it.  The caller holds the guard. */
static const sqlock_driver *polling_form(const sqlock_driver *driver)
{
    struct form *form = forms;

    while (form->of != driver && form->of != NULL)
        form++;
    if (form->of == NULL) {
        form->of = driver;
        form->dialect = *driver->dialect;
        form->dialect.overrides = driver->polling;
        form->driver = *driver;
        form->driver.dialect = &form->dialect;
        form->driver.wait_queue = NULL;
    }
    return &form->driver;
}

/* Replace *out by the driver's polling form if `waiting` is "poll"; leave it if
 * `waiting` is "queue", the default. */
static int choose_form(const sqlock_driver **out, const char *waiting,
                       sqlock_error *err)
{
    const sqlock_driver *driver = *out;

    if (strcmp(waiting, "queue") == 0)
        return 0;
    if (strcmp(waiting, "poll") != 0)
        return lk_error(err, SQLOCK_EINVAL,
                        "waiting in the URL must be queue or poll");
    if (driver->polling == NULL && driver->wait_queue != NULL)
        return lk_error(err, SQLOCK_ENOTSUP,
                        "the driver %s needs its wait queue: remove "
                        "waiting=poll from the URL",
                        driver->name);
    if (driver->polling != NULL) {
        pthread_mutex_lock(&guard);
        *out = polling_form(driver);
        pthread_mutex_unlock(&guard);
    }
    return 0;
}

/* List the drivers: " mysql postgresql".  The caller holds the guard. */
static void list_names(char names[NAMES_SIZE])
{
    const sqlock_driver *driver;
    size_t length = 0;

    names[0] = '\0';
    for (size_t i = 0; (driver = driver_at(i)) != NULL; i++) {
        int written =
            snprintf(names + length, NAMES_SIZE - length, " %s", driver->name);

        if (written < 0 || (size_t)written >= NAMES_SIZE - length)
            break;
        length += (size_t)written;
    }
}

static int find_by_scheme(const sqlock_driver **out, const char *url,
                          sqlock_error *err)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789+.-";
    char names[NAMES_SIZE];
    size_t length;

    *out = NULL;
    if (url == NULL)
        return lk_error(err, SQLOCK_EINVAL, "the database URL is missing");
    length = strspn(url, allowed);
    if (length == 0 || url[length] != ':')
        return lk_error(err, SQLOCK_EINVAL,
                        "the database URL has no scheme: begin with "
                        "postgresql://, mysql:// or sqlite:");
    pthread_mutex_lock(&guard);
    *out = driver_for(url, length);
    list_names(names);
    pthread_mutex_unlock(&guard);
    if (*out == NULL)
        return lk_error(err, SQLOCK_ENOTSUP,
                        "no driver for %.*s: URLs; there are drivers for%s",
                        (int)(length < 40 ? length : 40), url, names);
    return 0;
}

int lk_driver_find(const sqlock_driver **out, const char *url,
                   sqlock_error *err)
{
    char *rest = NULL;
    char *waiting = NULL;
    int rc = find_by_scheme(out, url, err);

    if (rc == 0)
        rc = lk_url_take(url, "waiting", &rest, &waiting, err);
    lk_wipe_free(rest); /* may hold a password */
    if (rc == 0 && waiting != NULL)
        rc = choose_form(out, waiting, err);
    lk_wipe_free(waiting);
    if (rc < 0)
        *out = NULL;
    return rc;
}

/* Return whether a statement is valid.  Statements about many leases, and those
 * that enum sqlock_statement_kind lists after them, may be missing. */
static bool can_render(const sqlock_dialect *dialect, sqlock_layout layout,
                       sqlock_statement_kind kind)
{
    struct lk_statement statement;
    int rc = lk_statement_of_kind(&statement, dialect, layout, kind, "", 0);

    lk_statement_clear(&statement);
    return rc == 0 || (rc == SQLOCK_ENOTSUP && kind >= SQLOCK_SQL_CLAIM_MANY);
}

static bool has_all_statements(const sqlock_dialect *dialect)
{
    for (int layout = 0; layout < SQLOCK_LAYOUTS; layout++)
        for (int kind = 0; kind < SQLOCK_SQL_KINDS; kind++)
            if (!can_render(dialect, (sqlock_layout)layout,
                            (sqlock_statement_kind)kind))
                return false;
    return true;
}

static const char *what_is_missing(const sqlock_driver *driver)
{
    if (driver->size < sizeof *driver)
        return "its size";
    if (driver->name == NULL || driver->schemes == NULL ||
        driver->connection_bytes == 0)
        return "name, schemes or size of a connection";
    if (driver->client == NULL || driver->check_url == NULL ||
        driver->open == NULL || driver->close == NULL ||
        driver->is_alive == NULL || driver->execute == NULL ||
        driver->begin == NULL || driver->commit == NULL ||
        driver->rollback == NULL || driver->abort == NULL ||
        driver->native == NULL || driver->describe == NULL)
        return "a function";
    if (driver->dialect == NULL || driver->dialect->columns == NULL ||
        driver->dialect->identifier_max == 0 ||
        !has_all_statements(driver->dialect))
        return "a part of the dialect";
    return NULL;
}

/* Add a driver to the list.  The caller holds the guard. */
static int add(const sqlock_driver *driver, sqlock_error *err)
{
    const char *scheme = driver->schemes;

    if (registered_count == REGISTERED_MAX)
        return lk_error(err, SQLOCK_ENOMEM,
                        "at most %d drivers can be registered", REGISTERED_MAX);
    if (driver_named(driver->name) != NULL)
        return lk_error(err, SQLOCK_ECONFLICT, "there is a driver %s already",
                        driver->name);
    while (*scheme != '\0') {
        size_t length = strcspn(scheme, "|");

        if (driver_for(scheme, length) != NULL)
            return lk_error(err, SQLOCK_ECONFLICT,
                            "the scheme %.*s has a driver already", (int)length,
                            scheme);
        scheme += length;
        if (*scheme == '|')
            scheme++;
    }
    registered[registered_count++] = driver;
    return 0;
}

int sqlock_driver_register(const sqlock_driver *driver, sqlock_error *err)
{
    const char *missing;
    int rc;

    if (driver == NULL)
        return lk_error(err, SQLOCK_EINVAL, "the driver argument is NULL");
    missing = what_is_missing(driver);
    if (missing != NULL)
        return lk_error(err, SQLOCK_EINVAL, "the driver lacks %s", missing);
    pthread_mutex_lock(&guard);
    rc = add(driver, err);
    pthread_mutex_unlock(&guard);
    return rc;
}

const sqlock_driver *sqlock_driver_named(const char *name)
{
    const sqlock_driver *driver;

    if (name == NULL)
        return NULL;
    pthread_mutex_lock(&guard);
    driver = driver_named(name);
    pthread_mutex_unlock(&guard);
    return driver;
}

const char *sqlock_driver_info(size_t index)
{
    static char infos[DRIVERS_MAX][INFO_SIZE];
    const sqlock_driver *driver;
    const char *info = NULL;

    pthread_mutex_lock(&guard);
    driver = driver_at(index);
    if (driver != NULL) {
        /* Written once, since the application may keep the pointer. */
        if (infos[index][0] == '\0')
            (void)snprintf(infos[index], INFO_SIZE, "%s (%s)", driver->name,
                           driver->client());
        info = infos[index];
    }
    pthread_mutex_unlock(&guard);
    return info;
}
