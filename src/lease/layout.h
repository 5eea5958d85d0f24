/*
 * layout.h - which of the three layouts a lock table has, and whether it is fit
 * for locks at all
 */
#ifndef LK_LAYOUT_H
#define LK_LAYOUT_H

#include "db/db.h"
#include "db/table.h"

/* 0; ENOTFOUND without filling err: there is no such table; ESCHEMA, EREADONLY
 * or what the database says, filling err. */
int lk_layout_detect(struct lk_db *db, const struct lk_table *table,
                     int64_t deadline_ns, sqlock_layout *out,
                     sqlock_error *err);

#endif
