/*
 * random.c - identities of libuuid, which draws each from the kernel (2 us), and
 * numbers straight from it: nothing that a fork or a restart could repeat.
 */
#include "base/random.h"

#include <errno.h>
#include <sys/random.h>
#include <uuid/uuid.h>

#include "base/clock.h"
#include "sqlock_driver.h"

void lk_random_uuid(char out[SQLOCK_KEY_SIZE])
{
    uuid_t id;

    uuid_generate_random(id);
    uuid_unparse_lower(id, out);
}

int64_t lk_random_between(int64_t from, int64_t to)
{
    uint64_t value = 0;
    ssize_t got;

    do {
        got = getrandom(&value, sizeof value, 0);
    } while (got < 0 && errno == EINTR);
    /* Only jitter is drawn here: a kernel without getrandom gets the clock. */
    if (got != (ssize_t)sizeof value)
        value = (uint64_t)sqlock_monotonic_ns();
    return (int64_t)((uint64_t)from +
                     value % ((uint64_t)to - (uint64_t)from + 1));
}
