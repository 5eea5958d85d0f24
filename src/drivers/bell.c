/*
 * bell.c - names of bells (bell.h)
 */
#include "drivers/bell.h"

#include <string.h>

#include "db/driver.h"

bool lk_is_bell(const char *name)
{
    size_t length = strnlen(name, SQLOCK_BELL_MAX + 1);

    return length > 0 && length <= SQLOCK_BELL_MAX &&
           strspn(name, "0123456789abcdef") == length;
}

int lk_check_bell(const char *name, sqlock_error *err)
{
    if (lk_is_bell(name))
        return 0;
    return lk_error(err, SQLOCK_EINVAL,
                    "the name of a bell is 1 to %d characters of 0 to 9 and a "
                    "to f",
                    SQLOCK_BELL_MAX);
}
