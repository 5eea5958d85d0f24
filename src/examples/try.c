/*
 * try.c - take a lock if it is free, or within a time; else say who has it
 *
 *     try URL NAME [MILLISECONDS]
 *
 * Exit status: 0 taken and given back, 75 not to be had in time, 1 failed.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sqlock/admin.h"

enum { EXIT_BUSY = 75 };

static void say_who(sqlock_registry *registry, const char *name)
{
    sqlock_info *row;

    if (sqlock_show(registry, name, &row, NULL) != 0)
        return; /* the row is gone, or the database does not answer */
    (void)printf("held by %s for %lld ms more\n",
                 row->holder != NULL ? row->holder : "nobody now",
                 (long long)row->remaining_ms);
    sqlock_info_free(row, 1);
}

int main(int argc, char **argv)
{
    sqlock_registry *registry = NULL;
    sqlock_lock *lock = NULL;
    sqlock_error err = {0};
    int64_t wait_ms = 0; /* one try */
    int rc;

    if (argc != 3 && argc != 4) {
        (void)fprintf(stderr, "usage: try URL NAME [MILLISECONDS]\n");
        return 2;
    }
    if (argc == 4)
        wait_ms = strtoll(argv[3], NULL, 10);
    rc = sqlock_registry_open(&registry, argv[1], NULL, &err);
    if (rc == 0)
        rc = sqlock_obtain(&lock, registry, argv[2], &err);
    if (rc == 0)
        rc = sqlock_acquire(lock, wait_ms, NULL, &err);
    if (rc == 0) {
        (void)printf("taken for %lld ms\n",
                     (long long)sqlock_remaining_ms(lock));
        rc = sqlock_release(lock, &err);
    } else if (rc == SQLOCK_EBUSY || rc == SQLOCK_ETIMEDOUT) {
        say_who(registry, argv[2]);
    }
    (void)sqlock_registry_close(registry, NULL);
    if (rc == SQLOCK_EBUSY || rc == SQLOCK_ETIMEDOUT)
        return EXIT_BUSY;
    if (rc < 0) /* any other: not held */
        (void)fprintf(stderr, "try: %s\n", err.message);
    return rc < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
