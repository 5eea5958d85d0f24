/*
 * diagnose.h - those steps of sqlock_diagnose() that have files of their own;
 * each appends its checks
 */
#ifndef LK_DIAGNOSE_H
#define LK_DIAGNOSE_H

#include "db/db.h"
#include "admin/checks.h"

/* A rule of sql/DATABASE/doctor.sql, which says what a setting of the server
 * should be. */
struct lk_rule {
    const char *check; /* a constant */
    char setting[64];
    char sign[3];     /* "=": a pattern of `values`; ">=": 0, or from it on */
    char values[128]; /* fnmatch(3) patterns with '|' between them */
    /* the rule is for servers where this setting has such a value; "": all */
    char where[64], where_values[128];
    sqlock_severity otherwise;
    char advice[512]; /* what to do otherwise */
};

/* Read the next rule of the text.  Return the text behind it; NULL: there is
 * none. */
const char *lk_rule_read(const char *text, struct lk_rule *rule);

/* Append a check for each rule of the text, unless its setting is unknown or
 * its condition is not met.  `settings` has rows of name and value. */
void lk_checks_of_rules(struct lk_checks *checks, const char *text,
                        const sqlock_result *settings);

/* Check "tls": whether another server could pose as the intended one.
 * is_local: client and server run on one machine. */
void lk_diagnose_tls(struct lk_checks *checks,
                     const sqlock_description *description, bool is_local);

/* Ask for the server's settings, and check them by the rules, and "tls".
 * has_grace: whether INT_LOCK_SERVER is kept.  Return 0, or why they could not
 * be read. */
int lk_diagnose_settings(struct lk_checks *checks, struct lk_db *db,
                         struct lk_connection *connection,
                         const sqlock_description *description, bool has_grace,
                         int64_t deadline_ns, sqlock_error *err);

/* Check "clock": whether the clocks of the server and of this machine agree;
 * and those of all hosts of the URL, if it names several.  Return 0, or why the
 * server's could not be read. */
int lk_diagnose_clocks(struct lk_checks *checks, struct lk_db *db,
                       struct lk_connection *connection, uint32_t margin_ms,
                       int64_t deadline_ns, sqlock_error *err);

/* Checks "once" and "stock": whether the tables for run-once records and for
 * stock exist, are durable, and can be written by this login; and "collation":
 * whether the tables compare texts by their bytes. */
void lk_diagnose_tables(struct lk_checks *checks, struct lk_db *db,
                        const sqlock_options *options, int64_t deadline_ns);

/* Check "waiting": whether this login can make the file at which others ring,
 * for databases whose bells are files. */
void lk_diagnose_waiting(struct lk_checks *checks, struct lk_db *db,
                         sqlock_layout layout, int64_t deadline_ns);

/* Checks "peers" and "clock": whether rows of the region, read by a registry of
 * its own, show holders that do not run sqlock, or clocks that are off. */
void lk_diagnose_rows(struct lk_checks *checks, const char *url,
                      const sqlock_options *options);

#endif
