/*
 * error.h - fill in an sqlock_error
 */
#ifndef LK_ERROR_H
#define LK_ERROR_H

#include "sqlock.h"

/*
 * Fill an error and return its code, in one expression.  Newlines and tabs
 * become blanks, other control characters and bytes that are not UTF-8 are
 * escaped, and the text is truncated to the size of `message`.  `err` and
 * `sqlstate` may be NULL.
 */
int sqlock_error_set(sqlock_error *err, int code, int native,
                     const char *sqlstate, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Set an error that has no native code of a database, and return its code.
 * This is a macro, so that a static analyzer sees the code that is returned;
 * `code` is evaluated twice. */
#define lk_error(err, code, ...)                                               \
    ((void)sqlock_error_set((err), (code), 0, NULL, __VA_ARGS__), (code))

/* Set and return EINVAL, for an argument that is NULL. */
#define lk_error_null(err, name)                                               \
    lk_error((err), SQLOCK_EINVAL, name " must not be NULL")

/* Set and return ENOMEM. */
#define lk_error_nomem(err) lk_error((err), SQLOCK_ENOMEM, "out of memory")

/* Set and return ERESOURCE, for a call that has failed with errno's `error` by
 * a limit of this process or machine; err->native becomes `error`. */
int lk_error_limit(sqlock_error *err, const char *call, int error);

/* Return EMFILE or ENFILE if next to no descriptor can be opened any more, too
 * few for a connection; otherwise 0.  A client library that has met the limit
 * may say something else. */
int lk_error_descriptors_missing(void);

/* Return ENOMEM if there is no room for a client library, or 0: the loader says
 * only that it cannot map a file. */
int lk_error_memory_missing(void);

/* Return whether an error is such a limit, which no wait raises: files that may
 * be open, their size, memory, or threads. */
bool lk_error_is_limit(const sqlock_error *err);

/* Return rc, the result of a call that has filled an error of its own, also
 * where it has succeeded then.  Copy that to the caller's (NULL: none) on
 * failure only. */
int lk_error_pass(sqlock_error *err, const sqlock_error *own, int rc);

#endif
