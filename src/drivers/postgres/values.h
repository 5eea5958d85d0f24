/*
 * values.h - convert parameters and results between our types and libpq's
 */
#ifndef LK_POSTGRES_VALUES_H
#define LK_POSTGRES_VALUES_H

#include "drivers/postgres/client.h"
#include "db/driver.h"

#define LK_PG_PARAMETERS_MAX 64
#define LK_PG_INTEGER_SIZE 24

/* Parameters as libpq takes them, in text format.  Integers are declared as
 * such; the type of a text is left to the server, which infers it: with a
 * LOCK_KEY that is declared as text, the primary key, which is CHAR, would not
 * be used. */
struct lk_pg_arguments {
    int count;
    Oid types[LK_PG_PARAMETERS_MAX];
    const char *values[LK_PG_PARAMETERS_MAX];
    char integers[LK_PG_PARAMETERS_MAX][LK_PG_INTEGER_SIZE];
};

/* Convert parameters.  Texts are not copied, so they must stay valid as long as
 * `arguments`.  Return 0, or EINVAL if there are too many. */
int lk_pg_fill_arguments(struct lk_pg_arguments *arguments,
                         const sqlock_value *parameters, size_t count,
                         sqlock_error *err);

/* Copy the rows of a successful result, and set the number of changed rows.
 * Return 0, or EUNCERTAIN if memory is out; `result` is then empty. */
int lk_pg_hand_up(sqlock_result *result, PGresult *source, sqlock_error *err);

#endif
