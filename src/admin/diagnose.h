/*
 * diagnose.h - those steps of sqlock_diagnose() that have files of their own;
 * each appends its checks
 */
#ifndef LK_DIAGNOSE_H
#define LK_DIAGNOSE_H

#include "db/db.h"
#include "admin/checks.h"

/* Check "tls": whether another server could pose as the intended one.
 * is_local: client and server run on one machine. */
void lk_diagnose_tls(struct lk_checks *checks,
                     const sqlock_description *description, bool is_local);

/* Checks "once" and "stock": whether the tables for run-once records and for
 * stock exist, are durable, and can be written by this login. */
void lk_diagnose_tables(struct lk_checks *checks, struct lk_db *db,
                        const sqlock_options *options, int64_t deadline_ns);

/* Check "collation": whether the tables compare texts by their bytes. */
void lk_diagnose_texts(struct lk_checks *checks, struct lk_db *db,
                       const sqlock_options *options, int64_t deadline_ns);

/* Check "waiting": whether this login can open the file at which processes
 * wait, for databases whose wait queue is a file. */
void lk_diagnose_waiting(struct lk_checks *checks, struct lk_db *db,
                         sqlock_layout layout, int64_t deadline_ns);

/* Checks "peers" and "clock": whether rows of the region, read by a registry of
 * its own, show holders that do not run sqlock, or clocks that are off. */
void lk_diagnose_rows(struct lk_checks *checks, const char *url,
                      const sqlock_options *options);

#endif
