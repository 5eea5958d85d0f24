/*
 * random.c - random numbers straight from the kernel: no state that a fork
 * could duplicate, no seed that a restart could repeat.
 */
#include "base/random.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <uuid/uuid.h>

#include "base/clock.h"
#include "sqlock_driver.h"

void lk_random_uuid(char out[SQLOCK_KEY_SIZE])
{
    uuid_t id;

    /* libuuid asks for much more than the bytes, and takes eight times as long;
     * it knows what to do without getrandom. */
    if (getrandom(id, sizeof id, 0) == (ssize_t)sizeof id) {
        id[6] = (unsigned char)((id[6] & 0x0f) | 0x40); /* version 4 */
        id[8] = (unsigned char)((id[8] & 0x3f) | 0x80); /* RFC 4122 */
    } else {
        uuid_generate_random(id);
    }
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
