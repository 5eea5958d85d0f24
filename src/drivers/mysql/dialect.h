/*
 * dialect.h - the SQL of MySQL and MariaDB
 */
#ifndef LK_MYSQL_DIALECT_H
#define LK_MYSQL_DIALECT_H

#include "sqlock_driver.h"

extern const sqlock_dialect lk_mysql_dialect;
extern const sqlock_examination lk_mysql_examination;

#endif /* LK_MYSQL_DIALECT_H */
