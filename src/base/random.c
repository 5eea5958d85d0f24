/*
 * random.c - make random numbers and identities of bytes from the kernel, so
 * that they do not repeat after a fork or a restart
 */
#include "base/random.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"

/* Where a sandbox forbids getrandom(), the bytes are of the clock, the process
 * and a counter, which no other process of the machine has. */
static void draw(void *out, size_t size)
{
    static atomic_uint count;
    ssize_t got;

    do {
        got = getrandom(out, size, 0);
    } while (got < 0 && errno == EINTR);
    if (got != (ssize_t)size) {
        uint64_t own[] = {(uint64_t)sqlock_monotonic_ns(),
                          (uint64_t)getpid() << 32 |
                              atomic_fetch_add(&count, 1)};

        memcpy(out, own, size);
    }
}

/* Make a UUID of version 4, variant 1, as RFC 9562 has it. */
void lk_random_uuid(char out[SQLOCK_KEY_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char id[16];

    draw(id, sizeof id);
    id[6] = (unsigned char)((id[6] & 0x0f) | 0x40);
    id[8] = (unsigned char)((id[8] & 0x3f) | 0x80);
    for (size_t i = 0; i < sizeof id; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *out++ = '-';
        *out++ = digits[id[i] >> 4];
        *out++ = digits[id[i] & 15];
    }
    *out = '\0';
}

int64_t lk_random_between(int64_t from, int64_t to)
{
    uint64_t value = 0;

    draw(&value, sizeof value);
    return (int64_t)((uint64_t)from +
                     value % ((uint64_t)to - (uint64_t)from + 1));
}
