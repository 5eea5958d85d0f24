/*
 * dialect.h - the SQL of MySQL and MariaDB
 */
#ifndef LK_MYSQL_DIALECT_H
#define LK_MYSQL_DIALECT_H

#include "db/driver.h"

extern const sqlock_dialect lk_mysql_dialect;
extern const sqlock_fragment lk_mysql_polling[];

/* FOR SHARE without waiting.  SKIP LOCKED is not used: under REPEATABLE READ a
   search that skips its row locks the gap behind the row, and then nobody can
   insert a row there. */
#define LK_MYSQL_SHARE_FREE                                                    \
    " /*M! LOCK IN SHARE MODE NOWAIT *//*!80001 FOR SHARE NOWAIT */"

#endif /* LK_MYSQL_DIALECT_H */
