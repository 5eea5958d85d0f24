/*
 * findings.h - the list that sqlock_diagnose() fills
 */
#ifndef LK_FINDINGS_H
#define LK_FINDINGS_H

#include "sqlock_driver.h"

struct lk_findings {
    sqlock_finding *list;
    size_t count;
    bool is_short; /* memory ran out: something is missing */
};

/* Append one; `check` is a constant, `advice` is copied and may be NULL.  What
 * is found is written for one line (F79). */
void lk_finding(struct lk_findings *findings, const char *check,
                sqlock_severity severity, const char *advice,
                const char *format, ...) __attribute__((format(printf, 5, 6)));

/* A finding for each rule that applies to these settings: rows of name and
 * value. */
void lk_findings_of_rules(struct lk_findings *findings,
                          const sqlock_rule *rules,
                          const sqlock_result *settings);

/* The value of a setting, or NULL. */
const char *lk_setting(const sqlock_result *settings, const char *name);

#endif
