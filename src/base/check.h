/*
 * check.h - check the arguments of public functions
 */
#ifndef LK_CHECK_H
#define LK_CHECK_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* A public struct that may grow: its first member is the size that the caller's
 * header gives it. */
struct lk_sized {
    const char *type; /* "sqlock_options" */
    const char *init; /* "SQLOCK_OPTIONS_INIT" */
    size_t size;      /* of the struct in this library */
};

/* Check the size of the caller's struct.  EINVAL: NULL, too small to have a
 * size, or greater than the library's. */
int lk_sized_check(const struct lk_sized *sized, const void *given,
                   sqlock_error *err);

/* Copy the caller's struct: members that an older header does not have become
 * zero.  With `given` NULL all are zero.  EINVAL as above. */
int lk_sized_read(void *out, const struct lk_sized *sized, const void *given,
                  sqlock_error *err);

/* Write the members that the caller's header has to a checked struct. */
void lk_sized_write(void *out, const void *full);

/* Replace 0 by the default, and check the limits.  EINVAL names the option. */
int lk_check_number(const char *name, uint32_t *value, uint32_t otherwise,
                    uint32_t least, uint32_t most, sqlock_error *err);

#endif
