/*
 * value.c - values of the application, and whether they can be bound
 */
#include "tx/tx.h"

#include <string.h>

#include "base/error.h"

sqlock_value sqlock_integer(int64_t integer)
{
    return (sqlock_value){.type = SQLOCK_INT64, .integer = integer};
}

sqlock_value sqlock_text(const char *text)
{
    if (text == NULL)
        return (sqlock_value){.type = SQLOCK_NULL};
    return (sqlock_value){
        .type = SQLOCK_TEXT, .text = text, .length = strlen(text)};
}

int lk_tx_check_value(const char *what, const sqlock_value *value,
                      sqlock_error *err)
{
    if (value == NULL)
        return lk_error(err, SQLOCK_EINVAL, "%s is missing", what);
    switch (value->type) {
    case SQLOCK_NULL:
    case SQLOCK_INT64:
        return 0;
    case SQLOCK_TEXT:
        if (value->text != NULL && strlen(value->text) == value->length)
            return 0;
        return lk_error(err, SQLOCK_EINVAL,
                        "%s is a text without its length: use sqlock_text()",
                        what);
    }
    return lk_error(err, SQLOCK_EINVAL, "%s has an unknown type", what);
}
