/*
 * postgres.h - the PostgreSQL driver, as the table of drivers sees it
 */
#ifndef LK_POSTGRES_H
#define LK_POSTGRES_H

#include "sqlock/driver.h"

extern const sqlock_driver lk_driver_postgres;

#endif /* LK_POSTGRES_H */
