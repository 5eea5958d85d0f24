/*
 * diagnose.h - parts of sqlock_diagnose(), each of which appends what it finds
 */
#ifndef LK_DIAGNOSE_H
#define LK_DIAGNOSE_H

#include "db/db.h"
#include "admin/checks.h"

/* Check "tls": whether another server could pose as the one that is meant. */
void lk_diagnose_tls(struct lk_checks *checks,
                     const sqlock_description *description, bool is_local);

/* Checks "once" and "stock": whether the tables beside the lock table are
 * there, fit, and open to this login. */
void lk_diagnose_tables(struct lk_checks *checks, struct lk_db *db,
                        const sqlock_options *options, int64_t deadline_ns);

/* Check "waiting": whether the file that processes wait at can be opened,
 * where they do not wait in the database itself. */
void lk_diagnose_waiting(struct lk_checks *checks, struct lk_db *db,
                         sqlock_layout layout, int64_t deadline_ns);

/* Checks "peers" and "clock": what the rows say of other holders and of
 * their clocks. */
void lk_diagnose_rows(struct lk_checks *checks, const char *url,
                      const sqlock_options *options);

#endif
