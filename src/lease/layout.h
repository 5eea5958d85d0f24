/*
 * layout.h - detect which of the three layouts a lock table has, and whether it
 * can be used for locks
 */
#ifndef LK_LAYOUT_H
#define LK_LAYOUT_H

#include "db/db.h"
#include "db/table.h"

/* Detect the layout, by one query.  Return 0; ENOTFOUND, without filling err,
 * if there is no such table; ESCHEMA if the table cannot hold locks; EACCESS if
 * this login may not read it; EREADONLY if the server is read-only; or another
 * error of the database. */
int lk_layout_detect(struct lk_db *db, struct lk_table *table,
                     int64_t deadline_ns, sqlock_layout *out,
                     sqlock_error *err);

/* Detect the layout as lk_layout_detect() does, but return ESCHEMA, and fill
 * err, if there is no such table. */
int lk_layout_require(struct lk_db *db, struct lk_table *table,
                      int64_t deadline_ns, sqlock_layout *out,
                      sqlock_error *err);

#endif
