/*
 * drivers.h - list the drivers, and find the one for a URL
 */
#ifndef LK_DRIVERS_H
#define LK_DRIVERS_H

#include "db/driver.h"

/* The drivers compiled in, NULL-terminated. */
extern const sqlock_driver *const lk_drivers[];

/* Find the driver for a URL by the scheme; for a URL with waiting=poll, its
 * variant without a wait queue.  *out stays valid as long as the process, and
 * is NULL after a failure.  Return 0, SQLOCK_EINVAL if the URL has no scheme or
 * an unknown value of `waiting`, SQLOCK_ENOTSUP if there is no such driver or
 * variant, or SQLOCK_ENOMEM. */
int lk_driver_find(const sqlock_driver **out, const char *url,
                   sqlock_error *err);

/* For tests, which stand between the library and a driver: add a driver with
 * schemes of its own, whose members are complete, as a copy's are.  It must
 * stay valid as long as the process.  Return false if the list is full. */
bool lk_driver_add(const sqlock_driver *driver);

#endif
