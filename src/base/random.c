/*
 * random.c - make random numbers and identities of bytes from the kernel, so
 * that they do not repeat after a fork or a restart
 *
 * libuuid also reads from the kernel, but takes four times as long, because it
 * mixes in other data, which is no secret.
 */
#include "base/random.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/random.h>
#include <uuid/uuid.h>

#include "base/clock.h"

static bool draw(void *out, size_t size)
{
    ssize_t got;

    do {
        got = getrandom(out, size, 0);
    } while (got < 0 && errno == EINTR);
    return got == (ssize_t)size;
}

/* Make a UUID of version 4, variant 1, as RFC 9562 has it. */
void lk_random_uuid(char out[SQLOCK_KEY_SIZE])
{
    uuid_t id;

    if (draw(id, sizeof id)) {
        id[6] = (unsigned char)((id[6] & 0x0f) | 0x40);
        id[8] = (unsigned char)((id[8] & 0x3f) | 0x80);
    } else { /* a kernel without getrandom */
        uuid_generate_random(id);
    }
    uuid_unparse_lower(id, out);
}

int64_t lk_random_between(int64_t from, int64_t to)
{
    uint64_t value = 0;

    /* The number may be guessed: without getrandom(2) it is the clock's. */
    if (!draw(&value, sizeof value))
        value = (uint64_t)sqlock_monotonic_ns();
    return (int64_t)((uint64_t)from +
                     value % ((uint64_t)to - (uint64_t)from + 1));
}
