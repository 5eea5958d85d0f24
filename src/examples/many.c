/*
 * many.c - take several locks at once, all or none, in one statement
 *
 *     many URL NAME...
 *
 * Two processes with the same names in different orders never deadlock.  Exit
 * status: 0 all were taken and given back, 1 not.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sqlock/many.h"

enum { MOST = 100, WAIT_MS = 5000 };

static void say(sqlock_lock *const *locks, const int *results, size_t count)
{
    for (size_t i = 0; i < count; i++)
        (void)printf("%s: %s\n", sqlock_name(locks[i]),
                     results[i] == 0 ? "taken" : sqlock_strerror(results[i]));
}

int main(int argc, char **argv)
{
    sqlock_registry *registry = NULL;
    sqlock_lock *locks[MOST];
    int results[MOST] = {0};
    size_t count = 0;
    sqlock_error err = {0};
    int rc;

    if (argc < 3 || argc - 2 > MOST) {
        (void)fprintf(stderr, "usage: many URL NAME... (at most %d)\n", MOST);
        return 2;
    }
    rc = sqlock_registry_open(&registry, argv[1], NULL, &err);
    while (rc == 0 && count < (size_t)argc - 2) {
        rc = sqlock_obtain(&locks[count], registry, argv[count + 2], &err);
        if (rc == 0)
            count++;
    }
    if (rc == 0) {
        rc = sqlock_acquire_many(locks, count, WAIT_MS, NULL, results, &err);
        say(locks, results, count);
    }
    if (rc == 0)
        rc = sqlock_release_many(locks, count, results, &err);
    (void)sqlock_registry_close(registry, NULL);
    if (rc < 0)
        (void)fprintf(stderr, "many: %s\n", err.message);
    return rc < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
