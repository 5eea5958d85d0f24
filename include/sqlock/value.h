/*
 * sqlock/value.h - values of SQL statements, and their results
 *
 * Calling sequence
 *     sqlock_value parameters[2];
 *     sqlock_result result = {0};
 *
 *     parameters[0] = sqlock_integer(4711);
 *     parameters[1] = sqlock_text("widget");
 *     sqlock_result_clear(&result);
 */
#ifndef SQLOCK_VALUE_H
#define SQLOCK_VALUE_H

#include <sqlock.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Type of a value. */
typedef enum sqlock_type {
    SQLOCK_NULL = 0, /* SQL's null */
    SQLOCK_INT64,    /* an integer of 64 bits */
    SQLOCK_TEXT      /* UTF-8, any bytes but NUL */
} sqlock_type;

/** A parameter, or a cell of a result.  Other types travel as text, so it never
 *  grows. */
typedef struct sqlock_value {
    sqlock_type type; /* which of the members below counts */
    int64_t integer;  /* with SQLOCK_INT64 */
    const char *text; /* with SQLOCK_TEXT: ends with NUL, never NULL */
    size_t length;    /* of text, in bytes, without the NUL */
} sqlock_value;

/** Result of a statement.  All zero before the first use. */
typedef struct sqlock_result {
    size_t rows;         /* number of rows */
    size_t columns;      /* cells of a row */
    sqlock_value *cells; /* rows x columns, row by row */
    int64_t affected;    /* rows inserted, changed or deleted */
    void *memory;        /* of the cells; private to the library */
} sqlock_result;

/** Free what a result holds, and set it to zero.  NULL is allowed. */
SQLOCK_API void sqlock_result_clear(sqlock_result *result);

/** Make a value of an integer or a text.  The text is not copied; NULL makes
 *  SQL's null. */
SQLOCK_API sqlock_value sqlock_integer(int64_t integer);
SQLOCK_API sqlock_value sqlock_text(const char *text);

#ifdef __cplusplus
}
#endif
#endif /* SQLOCK_VALUE_H */
