/*
 * dialect.h - the SQL of MySQL and MariaDB
 */
#ifndef LK_MYSQL_DIALECT_H
#define LK_MYSQL_DIALECT_H

#include "db/driver.h"

extern const sqlock_dialect lk_mysql_dialect;

#endif /* LK_MYSQL_DIALECT_H */
