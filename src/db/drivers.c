/*
 * drivers.c - the list of drivers: those compiled in (DRIVERS of the Makefile),
 * then those that a test has added
 */
#include "db/drivers.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "base/thread.h"
#include "sqlock/operator.h"

#define ADDED_MAX 16
#define COMPILED_IN_MAX 3
#define DRIVERS_MAX (COMPILED_IN_MAX + ADDED_MAX)
#define INFO_SIZE 128
#define NAMES_SIZE 256

extern const sqlock_driver lk_driver_sqlite;
extern const sqlock_driver lk_driver_postgres;
extern const sqlock_driver lk_driver_mysql;

const sqlock_driver *const lk_drivers[] = {
#ifdef SQLOCK_WITH_SQLITE
    &lk_driver_sqlite,
#endif
#ifdef SQLOCK_WITH_POSTGRES
    &lk_driver_postgres,
#endif
#ifdef SQLOCK_WITH_MYSQL
    &lk_driver_mysql,
#endif
    NULL,
};

LK_STATIC_MUTEX(guard);
static const sqlock_driver *added[ADDED_MAX];
static size_t added_count;

/* Polling forms: copies of drivers (`of`), without their bell, for URLs
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
    return index < added_count ? added[index] : NULL;
}

/* Find the driver for a scheme.  The caller holds the guard. */
static const sqlock_driver *driver_for(const char *scheme)
{
    const sqlock_driver *driver;

    for (size_t i = 0; (driver = driver_at(i)) != NULL; i++)
        if (lk_text_is_listed(driver->schemes, scheme, strlen(scheme)))
            return driver;
    return NULL;
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
        form->dialect.polls = true;
        form->driver = *driver;
        form->driver.dialect = &form->dialect;
        form->driver.bell = NULL;
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
    pthread_mutex_lock(&guard);
    *out = polling_form(driver);
    pthread_mutex_unlock(&guard);
    return 0;
}

static int check_durability(const sqlock_driver *driver,
                            const struct lk_url *url, sqlock_error *err)
{
    const char *durability = lk_url_parameter(url, "durability");

    if (durability == NULL)
        return 0;
    if (!driver->can_be_fast)
        return lk_error(err, SQLOCK_EINVAL,
                        "durability in the URL is of PostgreSQL; elsewhere the "
                        "settings of the server or file say whether a commit "
                        "waits for the disk");
    return strcmp(durability, "full") == 0 || lk_url_is_fast(url)
               ? 0
               : lk_error(err, SQLOCK_EINVAL,
                          "durability in the URL must be full or fast");
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

int lk_driver_of(const sqlock_driver **out, struct lk_url *url,
                 sqlock_error *err)
{
    const char *waiting = lk_url_take(url, "waiting");
    char names[NAMES_SIZE];
    int rc;

    pthread_mutex_lock(&guard);
    *out = driver_for(url->scheme);
    list_names(names);
    pthread_mutex_unlock(&guard);
    if (*out == NULL)
        return lk_error(err, SQLOCK_ENOTSUP,
                        "no driver for %.40s: URLs; there are drivers for%s",
                        url->scheme, names);
    rc = check_durability(*out, url, err);
    if (rc == 0 && waiting != NULL)
        rc = choose_form(out, waiting, err);
    if (rc < 0)
        *out = NULL;
    return rc;
}

int lk_driver_find(const sqlock_driver **out, const char *url,
                   sqlock_error *err)
{
    struct lk_url parts;
    int rc = lk_url_parse(&parts, url, err);

    *out = NULL;
    if (rc == 0)
        rc = lk_driver_of(out, &parts, err);
    lk_url_clear(&parts);
    return rc;
}

bool lk_driver_add(const sqlock_driver *driver)
{
    bool has_room;

    pthread_mutex_lock(&guard);
    has_room = added_count < ADDED_MAX;
    if (has_room)
        added[added_count++] = driver;
    pthread_mutex_unlock(&guard);
    return has_room;
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
