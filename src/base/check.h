/*
 * check.h - check the arguments of public functions
 */
#ifndef LK_CHECK_H
#define LK_CHECK_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* A public struct that may grow.  Its first member is its size according to the
 * header that the application was compiled with. */
struct lk_sized {
    const char *type; /* "sqlock_options" */
    const char *init; /* "SQLOCK_OPTIONS_INIT" */
    size_t size;      /* of the struct in this library */
};

/* Check the size of the application's struct.  Return 0, or SQLOCK_EINVAL if
 * `given` is NULL, too small to have a size, larger than the library's struct,
 * or ends within a member. */
int lk_sized_check(const struct lk_sized *sized, const void *given,
                   sqlock_error *err);

/* Copy the application's struct to `out`.  Members that an older header of the
 * application lacks are set to zero, as are all members if `given` is NULL,
 * which is allowed here.  Return 0, or SQLOCK_EINVAL if the size is wrong. */
int lk_sized_read(void *out, const struct lk_sized *sized, const void *given,
                  sqlock_error *err);

/* Copy to `out`, which lk_sized_check() has accepted, those members of the
 * library's struct `full` that the application's header has. */
void lk_sized_write(void *out, const void *full);

/* A row of a list: a public struct that may grow, and has no size in it. */
struct lk_row_size {
    const char *type; /* "sqlock_info" */
    size_t least;     /* of the members that each header has */
    size_t size;      /* of the struct in this library */
};

/* Check the size that a row has according to the header that the application
 * was compiled with.  Return 0; or SQLOCK_EINVAL if it is too small or large,
 * or ends within a member. */
int lk_row_check(const struct lk_row_size *row, size_t given,
                 sqlock_error *err);

/* Move the rows of a list, of `size` bytes each, together, so that each has the
 * size `given`, which lk_row_check() has accepted. */
void lk_rows_pack(void *rows, size_t count, size_t size, size_t given);

/* Check the arguments of a wait: a time, or SQLOCK_FOREVER, and a descriptor
 * that is open, or 0.  Return 0 or SQLOCK_EINVAL. */
int lk_check_wait(int64_t wait_ms, int cancel_fd, sqlock_error *err);

/* Replace a value of 0 by `otherwise`, the default.  Return 0, or SQLOCK_EINVAL
 * if the value is not within the limits; the error's text has `name`. */
int lk_check_number(const char *name, uint32_t *value, uint32_t otherwise,
                    uint32_t least, uint32_t most, sqlock_error *err);

#endif
