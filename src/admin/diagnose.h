/*
 * diagnose.h - the parts of sqlock_diagnose(), each of which appends its checks
 */
#ifndef LK_DIAGNOSE_H
#define LK_DIAGNOSE_H

#include "db/db.h"
#include "admin/checks.h"

/* Check "tls": whether another server could pose as the intended one. */
void lk_diagnose_tls(struct lk_checks *checks,
                     const sqlock_description *description, bool is_local);

/* Checks "once" and "stock": whether the tables beside the lock table exist,
 * have the right columns, and can be written by this login. */
void lk_diagnose_tables(struct lk_checks *checks, struct lk_db *db,
                        const sqlock_options *options, int64_t deadline_ns);

/* Check "waiting": whether this login can open the file at which processes
 * wait, for databases whose wait queue is a file. */
void lk_diagnose_waiting(struct lk_checks *checks, struct lk_db *db,
                         sqlock_layout layout, int64_t deadline_ns);

/* Checks "peers" and "clock": what the rows reveal about other holders and
 * their clocks. */
void lk_diagnose_rows(struct lk_checks *checks, const char *url,
                      const sqlock_options *options);

#endif
