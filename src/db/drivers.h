/*
 * drivers.h - list the drivers, and find the one for a URL
 */
#ifndef LK_DRIVERS_H
#define LK_DRIVERS_H

#include "db/driver.h"

/* The drivers compiled in, NULL-terminated. */
extern const sqlock_driver *const lk_drivers[];

/* Find the driver for a URL by the scheme; for a URL with waiting=poll, its
 * variant without a bell.  The parameter `waiting` is taken out of the
 * URL.  *out stays valid as long as the process, and is NULL after a failure.
 * Return 0, SQLOCK_EINVAL if the value of `waiting` is unknown, or
 * `durability` is, or is not the database's, or
 * SQLOCK_ENOTSUP if there is no such driver or variant. */
int lk_driver_of(const sqlock_driver **out, struct lk_url *url,
                 sqlock_error *err);

/* Find the driver for the text of a URL, of which only the scheme and `waiting`
 * count, as lk_driver_of() and lk_url_parse(). */
int lk_driver_find(const sqlock_driver **out, const char *url,
                   sqlock_error *err);

/* For tests, which stand between the library and a driver: add a driver with
 * schemes of its own, whose members are complete, as a copy's are.  It must
 * stay valid as long as the process.  Return false if the list is full. */
bool lk_driver_add(const sqlock_driver *driver);

#endif
