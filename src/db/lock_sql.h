/*
 * lock_sql.h - the statements about locks that databases share
 */
#ifndef LK_LOCK_SQL_H
#define LK_LOCK_SQL_H

#include "db/driver.h"

/* Templates by kind of statement.  Where a text is NULL, each dialect has its
 * own, or none. */
extern const sqlock_template lk_lock_templates[SQLOCK_SQL_KINDS];
extern const char *const lk_tx_templates[SQLOCK_TX_KINDS];

/* The fragments used for names that a dialect does not define: those of a
 * layout, and after them those of all layouts. */
extern const sqlock_fragment lk_lock_fragments[];
extern const sqlock_fragment *const lk_layout_fragments[SQLOCK_LAYOUTS];

#endif
