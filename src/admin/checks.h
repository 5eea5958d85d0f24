/*
 * checks.h - the list that sqlock_diagnose() fills
 */
#ifndef LK_CHECKS_H
#define LK_CHECKS_H

#include "sqlock/driver.h"

struct lk_checks {
    sqlock_check *list;
    size_t count;
    bool is_short; /* memory ran out: a check is missing */
};

/* Append a check.  `check` is a constant; `advice` is copied and may be NULL.
 * The text is escaped to fit one line (F79). */
void lk_check(struct lk_checks *checks, const char *check,
              sqlock_severity severity, const char *advice, const char *format,
              ...) __attribute__((format(printf, 5, 6)));

/* Append a check for each rule that applies to these settings, which are rows
 * of name and value. */
void lk_checks_of_rules(struct lk_checks *checks, const sqlock_rule *rules,
                        const sqlock_result *settings);

/* Return the value of a setting, or NULL. */
const char *lk_setting(const sqlock_result *settings, const char *name);

#endif
