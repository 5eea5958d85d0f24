/*
 * sqlite.h - the SQLite driver
 */
#ifndef LK_SQLITE_H
#define LK_SQLITE_H

#include "db/driver.h"

extern const sqlock_driver lk_driver_sqlite;
extern const sqlock_dialect lk_dialect_sqlite;

#endif
