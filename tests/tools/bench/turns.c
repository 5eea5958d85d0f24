/*
 * turns.c - see turns.h
 *
 * The counts are in a memfd.  Client processes inherit its descriptor, whose
 * number is in the environment.
 */
#include "turns.h"
#include "bench.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define VARIABLE "SQLOCK_BENCH_TURNS"

static struct shared {
    atomic_uint last;
    atomic_uint in_a_row;
    atomic_uint most;
    _Atomic uint64_t changes;
} * shared;

static int map(int fd, struct bench_failure *failure)
{
    void *memory =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (memory == MAP_FAILED)
        return bench_fail(failure, "mmap: %s", strerror(errno));
    shared = memory;
    return 0;
}

int bench_turns_open(struct bench_failure *failure)
{
    const char *given = getenv(VARIABLE);
    char number[16];
    int fd;

    if (shared != NULL)
        return 0;
    if (given != NULL)
        return map((int)strtol(given, NULL, 10), failure);
    fd = memfd_create("turns", 0);
    if (fd < 0 || ftruncate(fd, sizeof *shared) < 0)
        return bench_fail(failure, "memfd_create: %s", strerror(errno));
    (void)snprintf(number, sizeof number, "%d", fd);
    (void)setenv(VARIABLE, number, 1);
    return map(fd, failure);
}

void bench_turn(unsigned client)
{
    unsigned in_a_row = 1;

    if (atomic_exchange(&shared->last, client + 1) != client + 1)
        (void)atomic_fetch_add(&shared->changes, 1);
    else
        in_a_row = atomic_load(&shared->in_a_row) + 1;
    atomic_store(&shared->in_a_row, in_a_row);
    if (in_a_row > atomic_load(&shared->most))
        atomic_store(&shared->most, in_a_row);
}

struct bench_turns bench_turns_take(void)
{
    return (struct bench_turns){
        .changes = atomic_exchange(&shared->changes, 0),
        .in_a_row = atomic_exchange(&shared->most, 0),
    };
}
