/*
 * values.c - convert parameters to libpq's text format, and the cells of a
 * result to integers and texts
 */
#include "drivers/postgres/session.h"

#include <string.h>

#include "base/error.h"

/* Type numbers of the server's catalogue, fixed for good. */
enum {
    OID_UNKNOWN = 0,
    OID_BOOL = 16,
    OID_INT8 = 20,
    OID_INT2 = 21,
    OID_INT4 = 23,
    OID_BPCHAR = 1042
};

/* ------------------------------------------------------------ parameters -- */

/* Write an integer as "%lld" would, in a fraction of the time.  Return where in
 * `out` its text begins. */
static const char *digits_of(char out[LK_PG_INTEGER_SIZE], int64_t integer)
{
    uint64_t rest = integer < 0 ? 0 - (uint64_t)integer : (uint64_t)integer;
    char *at = out + LK_PG_INTEGER_SIZE;

    *--at = '\0';
    do {
        *--at = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (integer < 0)
        *--at = '-';
    return at;
}

int lk_pg_fill_arguments(struct lk_pg_arguments *arguments,
                         const sqlock_value *parameters, size_t count,
                         sqlock_error *err)
{
    size_t i;

    if (count > LK_PG_PARAMETERS_MAX)
        return lk_error(err, SQLOCK_EINVAL, "more than %d parameters",
                        LK_PG_PARAMETERS_MAX);
    arguments->count = (int)count;
    for (i = 0; i < count; i++) {
        const sqlock_value *value = &parameters[i];

        arguments->types[i] = OID_UNKNOWN;
        switch (value->type) {
        case SQLOCK_INT64:
            arguments->types[i] = OID_INT8;
            arguments->values[i] =
                digits_of(arguments->integers[i], value->integer);
            break;
        case SQLOCK_TEXT:
            arguments->values[i] = value->text;
            break;
        default:
            arguments->values[i] = NULL;
            break;
        }
    }
    return 0;
}

/* --------------------------------------------------------------- results -- */

/* Return the value of an integer, which always fits, or of 't' or 'f', as the
 * server writes them. */
static int64_t integer_of(const char *text)
{
    bool negative = *text == '-';
    uint64_t number = 0;

    if (*text == 't')
        return 1;
    for (text += negative ? 1 : 0; *text >= '0' && *text <= '9'; text++)
        number = number * 10 + (uint64_t)(*text - '0');
    return (int64_t)(negative ? 0 - number : number);
}

static void read_cell(sqlock_value *cell, const PGresult *source, int row,
                      int column)
{
    memset(cell, 0, sizeof *cell);
    if (PQgetisnull(source, row, column))
        return;
    cell->text = PQgetvalue(source, row, column);
    cell->length = (size_t)PQgetlength(source, row, column);
    switch (PQftype(source, column)) {
    case OID_BOOL:
    case OID_INT2:
    case OID_INT4:
    case OID_INT8:
        cell->type = SQLOCK_INT64;
        cell->integer = integer_of(cell->text);
        break;
    case OID_BPCHAR: /* CHAR(n) comes padded */
        while (cell->length > 0 && cell->text[cell->length - 1] == ' ')
            cell->length--;
        cell->type = SQLOCK_TEXT;
        break;
    default:
        cell->type = SQLOCK_TEXT;
        break;
    }
}

/* Return the number of rows that were changed: 0 for a SELECT, whose rows the
 * server counts, too. */
static int64_t affected_by(PGresult *source)
{
    const char *tag = PQcmdStatus(source);

    if (strncmp(tag, "INSERT", 6) != 0 && strncmp(tag, "UPDATE", 6) != 0 &&
        strncmp(tag, "DELETE", 6) != 0 && strncmp(tag, "MERGE", 5) != 0)
        return 0;
    return integer_of(PQcmdTuples(source));
}

int lk_pg_hand_up(sqlock_result *result, PGresult *source, sqlock_error *err)
{
    int rows = PQntuples(source);
    int columns = PQnfields(source);
    sqlock_value cell;
    int row, column, rc;

    rc = sqlock_result_start(result, (size_t)columns);
    for (row = 0; rc == 0 && row < rows; row++) {
        for (column = 0; rc == 0 && column < columns; column++) {
            read_cell(&cell, source, row, column);
            rc = sqlock_result_push(result, &cell);
        }
    }
    if (rc < 0) {
        /* The statement was executed, but its result is lost. */
        sqlock_result_clear(result);
        return lk_error(err, SQLOCK_EUNCERTAIN, "out of memory for the answer");
    }
    result->affected = affected_by(source);
    return 0;
}
