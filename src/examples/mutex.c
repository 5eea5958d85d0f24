/*
 * mutex.c - do something under a lock, renewed meanwhile, and stop at its loss
 *
 *     mutex URL NAME SECONDS
 *
 * Waits for the lock, works that many seconds, gives the lock back.  The table
 * of locks is there already: `sqlock init` makes it.  Exit status: 0 done, 1
 * failed or lost.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "sqlock/async.h"

/* The work of a second.  Instead of sleeping, a real program would look at
 * sqlock_remaining_ms() before each side effect. */
static bool is_lost_within_a_second(int lost_fd)
{
    struct pollfd loss = {.fd = lost_fd, .events = POLLIN};

    return poll(&loss, 1, 1000) == 1;
}

static int work(sqlock_lock *lock, int seconds, sqlock_error *err)
{
    int lost_fd;
    int rc;

    rc = sqlock_lost_fd(&lost_fd, lock, err);
    for (int done = 0; rc == 0 && done < seconds; done++) {
        if (is_lost_within_a_second(lost_fd))
            break; /* sqlock_release() says how it was lost */
        (void)printf("%d of %d, %lld ms left\n", done + 1, seconds,
                     (long long)sqlock_remaining_ms(lock));
    }
    return rc;
}

int main(int argc, char **argv)
{
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    sqlock_registry *registry = NULL;
    sqlock_lock *lock = NULL;
    sqlock_error err = {0};
    int released;
    int rc;

    if (argc != 4) {
        (void)fprintf(stderr, "usage: mutex URL NAME SECONDS\n");
        return 2;
    }
    options.auto_renew = true; /* in the background, four times in a TTL */
    rc = sqlock_registry_open(&registry, argv[1], NULL, &err);
    if (rc == 0)
        rc = sqlock_obtain(&lock, registry, argv[2], &err);
    if (rc == 0)
        rc = sqlock_acquire(lock, SQLOCK_FOREVER, &options, &err);
    if (rc == 0) {
        (void)printf("held, token %lld\n", (long long)sqlock_token(lock));
        (void)fflush(stdout);
        rc = work(lock, (int)strtol(argv[3], NULL, 10), &err);
        released = sqlock_release(lock, rc == 0 ? &err : NULL);
        if (rc == 0)
            rc = released;
    }
    (void)sqlock_registry_close(registry, NULL); /* and the lock with it */
    if (rc < 0)
        (void)fprintf(stderr, "mutex: %s\n", err.message);
    return rc < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
