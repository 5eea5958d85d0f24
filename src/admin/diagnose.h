/*
 * diagnose.h - parts of sqlock_diagnose(), each of which appends what it finds
 */
#ifndef LK_DIAGNOSE_H
#define LK_DIAGNOSE_H

#include "db/db.h"
#include "admin/checks.h"

/* "tls": whether the server can be another one than is meant. */
void lk_diagnose_tls(struct lk_checks *checks,
                     const sqlock_description *description, bool is_local);

/* "once" and "stock": whether the tables beside the lock table are there, fit,
 * and open to this login. */
void lk_diagnose_tables(struct lk_checks *checks, struct lk_db *db,
                        const sqlock_options *options, int64_t deadline_ns);

/* "waiting": whether what processes wait at can be opened, where that is not
 * the database itself. */
void lk_diagnose_waiting(struct lk_checks *checks, struct lk_db *db,
                         sqlock_layout layout, int64_t deadline_ns);

/* "peers" and "clock": what the rows say of others and of their clocks. */
void lk_diagnose_rows(struct lk_checks *checks, const char *url,
                      const sqlock_options *options);

#endif
