/*
 * values.h - parameters and results, between our types and libpq's
 */
#ifndef LK_POSTGRES_VALUES_H
#define LK_POSTGRES_VALUES_H

#include <libpq-fe.h>

#include "sqlock/driver.h"

#define LK_PG_PARAMETERS_MAX 64
#define LK_PG_INTEGER_SIZE 24

/* Parameters as libpq takes them: text, with the type where we know better than
 * the server.  A LOCK_KEY that says it is text would not use the primary key,
 * which is CHAR; the server itself infers it right. */
struct lk_pg_arguments {
    int count;
    Oid types[LK_PG_PARAMETERS_MAX];
    const char *values[LK_PG_PARAMETERS_MAX];
    char integers[LK_PG_PARAMETERS_MAX][LK_PG_INTEGER_SIZE];
};

/* Write parameters as libpq takes them. 0, EINVAL.  The texts stay the
 * caller's. */
int lk_pg_fill_arguments(struct lk_pg_arguments *arguments,
                         const sqlock_value *parameters, size_t count,
                         sqlock_error *err);

/* Hand up the rows and the count of a success. 0, EUNCERTAIN: out of memory. */
int lk_pg_hand_up(sqlock_result *result, PGresult *source, sqlock_error *err);

#endif
