/*
 * loses.c - an application that takes a lock, has it renewed, and says when it
 * has lost it
 *
 *     loses URL NAME
 *
 * Prints "held", and "lost" once the lease is over before it was released.
 * Exit status: 0 lost, 1 anything else.
 */
#include <poll.h>
#include <sqlock.h>
#include <sqlock/async.h>
#include <stdio.h>

static int failed(const sqlock_error *err)
{
    fprintf(stderr, "loses: %s\n", err->message);
    return 1;
}

int main(int argc, char **argv)
{
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    sqlock_registry *registry = NULL;
    sqlock_lock *lock = NULL;
    struct pollfd lost = {-1, POLLIN, 0};
    sqlock_error err;

    if (argc != 3) {
        fprintf(stderr, "usage: loses URL NAME\n");
        return 1;
    }
    options.auto_renew = true;
    options.ttl_ms = 2000;
    if (sqlock_registry_open(&registry, argv[1], NULL, &err) != 0 ||
        sqlock_obtain(&lock, registry, argv[2], &err) != 0 ||
        sqlock_acquire(lock, 0, &options, &err) != 0 ||
        sqlock_lost_fd(&lost.fd, lock, &err) != 0)
        return failed(&err);
    printf("held\n");
    fflush(stdout);
    if (poll(&lost, 1, 60000) != 1 || sqlock_is_held(lock))
        return 1;
    printf("lost\n");
    if (sqlock_release(lock, &err) != SQLOCK_ELOST)
        return failed(&err);
    (void)sqlock_drop(lock, NULL);
    return sqlock_registry_close(registry, &err) != 0 ? failed(&err) : 0;
}
