/*
 * layout.h - detect which of the three layouts a lock table has, and whether it
 * can be used for locks
 */
#ifndef LK_LAYOUT_H
#define LK_LAYOUT_H

#include "db/db.h"
#include "db/table.h"

/* Detect the layout.  0; ENOTFOUND, without filling err: there is no such
 * table; ESCHEMA, EREADONLY or the database's error. */
int lk_layout_detect(struct lk_db *db, const struct lk_table *table,
                     int64_t deadline_ns, sqlock_layout *out,
                     sqlock_error *err);

/* As lk_layout_detect(), but ESCHEMA where there is no such table. */
int lk_layout_require(struct lk_db *db, const struct lk_table *table,
                      int64_t deadline_ns, sqlock_layout *out,
                      sqlock_error *err);

#endif
