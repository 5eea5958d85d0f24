/*
 * driver.h - list the drivers, and find the one for a URL
 */
#ifndef LK_DRIVER_H
#define LK_DRIVER_H

#include "sqlock/driver.h"

/* The drivers compiled in, NULL-terminated. */
extern const sqlock_driver *const lk_drivers[];

/* Find the driver for a URL by the scheme; for a URL with waiting=poll, its
 * variant without a wait queue.  *out stays valid as long as the process, and
 * is NULL after a failure.  Return 0, SQLOCK_EINVAL if the URL has no scheme or
 * an unknown value of `waiting`, SQLOCK_ENOTSUP if there is no such driver or
 * variant, or SQLOCK_ENOMEM. */
int lk_driver_find(const sqlock_driver **out, const char *url,
                   sqlock_error *err);

#endif
