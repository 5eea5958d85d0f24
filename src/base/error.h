/*
 * error.h - internal helpers for sqlock_error; sqlock_error_set() is in
 * sqlock/driver.h
 */
#ifndef LK_ERROR_H
#define LK_ERROR_H

#include "sqlock/driver.h"

/* Set an error that has no native code of a database, and return its code.
 * This is a macro, so that a static analyzer sees the code that is returned;
 * `code` is evaluated twice. */
#define lk_error(err, code, ...)                                               \
    ((void)sqlock_error_set((err), (code), 0, NULL, __VA_ARGS__), (code))

/* Set and return ENOMEM. */
#define lk_error_nomem(err) lk_error((err), SQLOCK_ENOMEM, "out of memory")

#endif
