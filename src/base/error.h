/*
 * error.h - inside helpers around sqlock_error; sqlock_error_set() itself is
 * in sqlock_driver.h
 */
#ifndef LK_ERROR_H
#define LK_ERROR_H

#include "sqlock_driver.h"

/* Set-and-return for an error of our own, without a native code. */
#define lk_error(err, code, ...)                                               \
    sqlock_error_set((err), (code), 0, NULL, __VA_ARGS__)

/* The usual one. */
int lk_error_nomem(sqlock_error *err);

#endif
