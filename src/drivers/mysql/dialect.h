/*
 * dialect.h - the SQL of MySQL and MariaDB
 */
#ifndef LK_MYSQL_DIALECT_H
#define LK_MYSQL_DIALECT_H

#include "sqlock_driver.h"

extern const sqlock_dialect lk_mysql_dialect;
extern const sqlock_examination lk_mysql_examination;

/* Delete the rows of region {2} from behind {1} to {9} for which a condition
   holds, unless somebody has them locked: a DELETE alone would wait for any row
   that it passes, of other regions, too.  The limit, more than a page of the
   reaper's, keeps the inner SELECT a table of its own, which comes first. */
/* clang-format off */
#define LK_MYSQL_DELETE_FREE(condition)                                        \
    "DELETE t FROM (SELECT LOCK_KEY AS free_key FROM {table} "                 \
    "WHERE REGION = {2} AND LOCK_KEY > {1} AND LOCK_KEY <= {9} AND "           \
    condition " ORDER BY LOCK_KEY LIMIT 1000000 FOR UPDATE SKIP LOCKED) "      \
    "AS free STRAIGHT_JOIN {table} t FORCE INDEX (PRIMARY) "                   \
    "ON t.LOCK_KEY = free.free_key AND t.REGION = {2}"
/* clang-format on */

#endif /* LK_MYSQL_DIALECT_H */
