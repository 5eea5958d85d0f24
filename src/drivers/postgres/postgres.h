/*
 * postgres.h - the PostgreSQL driver, as the table of drivers sees it
 */
#ifndef LK_POSTGRES_H
#define LK_POSTGRES_H

#include "db/driver.h"

extern const sqlock_driver lk_driver_postgres;

#endif /* LK_POSTGRES_H */
