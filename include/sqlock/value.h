/*
 * sqlock/value.h - values of SQL statements, and their results
 */
#ifndef SQLOCK_VALUE_H
#define SQLOCK_VALUE_H

#include <sqlock.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sqlock_type {
    SQLOCK_NULL = 0,
    SQLOCK_INT64,
    SQLOCK_TEXT /* UTF-8, any bytes but NUL */
} sqlock_type;

/* A parameter or a result cell.  Other types travel as their text. */
typedef struct sqlock_value {
    sqlock_type type;
    int64_t integer;  /* SQLOCK_INT64 */
    const char *text; /* SQLOCK_TEXT: NUL-terminated, not NULL */
    size_t length;    /* of text, in bytes, without the NUL */
} sqlock_value;

/* What a statement gave.  All zero before the first use. */
typedef struct sqlock_result {
    size_t rows;
    size_t columns;
    sqlock_value *cells; /* rows x columns, row by row */
    int64_t affected;    /* rows inserted, changed or deleted */
    void *memory;        /* of the cells, private to the library */
} sqlock_result;

/** Free what a result holds and zero it.  NULL is allowed. */
SQLOCK_API void sqlock_result_clear(sqlock_result *result);

/** A value of each type; the text is not copied. */
SQLOCK_API sqlock_value sqlock_integer(int64_t integer);
SQLOCK_API sqlock_value sqlock_text(const char *text); /* NULL: null */

#ifdef __cplusplus
}
#endif
#endif /* SQLOCK_VALUE_H */
