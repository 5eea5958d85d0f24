/*
 * checks.h - the list to which the steps of sqlock_diagnose() append
 *
 * A step does not fail for want of memory, where it would have to end halfway:
 * the list notes that a check is missing, and the caller looks once.
 */
#ifndef LK_CHECKS_H
#define LK_CHECKS_H

#include "db/driver.h"

struct lk_checks {
    sqlock_check *list;
    size_t count;
    bool is_short; /* memory ran out: a check is missing */
};

/* Append a check.  `check` is a string constant, which is not copied; `advice`
 * is copied and may be NULL.  Control characters of the formatted text are
 * escaped, so that it stays one line (F79).  Without memory set is_short. */
void lk_check(struct lk_checks *checks, const char *check,
              sqlock_severity severity, const char *advice, const char *format,
              ...) __attribute__((format(printf, 5, 6)));

/* Free the checks. */
void lk_checks_clear(struct lk_checks *checks);

/* Copy the checks, with their texts, into one block of memory.  Return NULL
 * when out of memory. */
sqlock_check *lk_checks_copy(const struct lk_checks *checks);

#endif
