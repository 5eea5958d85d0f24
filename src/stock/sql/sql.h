/*
 * sql.h - the statements about stock that databases share
 */
#ifndef LK_STOCK_SQL_H
#define LK_STOCK_SQL_H

#include "db/driver.h"

/* Templates by kind; NULL: each dialect has its own, or none. */
extern const char *const lk_stock_templates[SQLOCK_STOCK_KINDS];

/* The fragments used for names that a dialect does not define. */
extern const sqlock_fragment lk_stock_fragments[];

#endif
