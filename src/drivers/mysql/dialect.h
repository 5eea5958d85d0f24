/*
 * dialect.h - the SQL of MySQL and MariaDB
 */
#ifndef LK_MYSQL_DIALECT_H
#define LK_MYSQL_DIALECT_H

#include "sqlock/driver.h"

extern const sqlock_dialect lk_mysql_dialect;
extern const sqlock_fragment lk_mysql_polling[];
extern const sqlock_checks lk_mysql_checks;

/* Not SKIP LOCKED: under REPEATABLE READ a search that passes over its row ends
   in a lock on the gap behind it, where nobody could make a row any more. */
#define LK_MYSQL_SHARE_FREE                                                    \
    " /*M! LOCK IN SHARE MODE NOWAIT *//*!80001 FOR SHARE NOWAIT */"

#endif /* LK_MYSQL_DIALECT_H */
