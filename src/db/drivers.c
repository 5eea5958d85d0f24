/*
 * drivers.c - the drivers that are compiled in: DRIVERS of the Makefile
 */
#include <stddef.h>

#include "db/driver.h"

extern const sqlock_driver lk_driver_sqlite;
extern const sqlock_driver lk_driver_postgres;
extern const sqlock_driver lk_driver_mysql;

const sqlock_driver *const lk_drivers[] = {
#ifdef SQLOCK_WITH_SQLITE
    &lk_driver_sqlite,
#endif
#ifdef SQLOCK_WITH_POSTGRES
    &lk_driver_postgres,
#endif
#ifdef SQLOCK_WITH_MYSQL
    &lk_driver_mysql,
#endif
    NULL,
};
