/*
 * error.h - internal helpers for sqlock_error; sqlock_error_set() is in
 * sqlock/driver.h
 */
#ifndef LK_ERROR_H
#define LK_ERROR_H

#include "sqlock/driver.h"

/* Set an error of our own, without a native code, and return its code.  The
 * code is the macro's own value, so that a reader and an analyzer see what is
 * returned; it is evaluated twice. */
#define lk_error(err, code, ...)                                               \
    ((void)sqlock_error_set((err), (code), 0, NULL, __VA_ARGS__), (code))

/* Set and return ENOMEM. */
#define lk_error_nomem(err) lk_error((err), SQLOCK_ENOMEM, "out of memory")

#endif
