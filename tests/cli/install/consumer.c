/*
 * consumer.c - a program as an application writes it: creates the lock table,
 * takes a lock and gives it back
 *
 * Compiles as C and as C++.
 */
#include <sqlock.h>
#include <stdio.h>

static int failed(const char *what, const sqlock_error *err)
{
    fprintf(stderr, "%s: %s\n", what, err->message);
    return 1;
}

int main(int argc, char **argv)
{
    sqlock_options options = SQLOCK_OPTIONS_INIT;
    sqlock_registry *registry = NULL;
    sqlock_lock *lock = NULL;
    sqlock_error err;
    int status = 0;

    if (argc != 2) {
        fprintf(stderr, "usage: %s URL\n", argv[0]);
        return 2;
    }
    printf("libsqlock %s\n", sqlock_version());
    if (sqlock_schema_create(argv[1], NULL, SQLOCK_LAYOUT_SQLOCK, &err) != 0)
        return failed("create", &err);
    options.region = "consumer";
    if (sqlock_registry_open(&registry, argv[1], &options, &err) != 0)
        return failed("open", &err);
    if (sqlock_obtain(&lock, registry, "consumer", &err) != 0 ||
        sqlock_acquire(lock, 0, NULL, &err) != 0)
        status = failed("acquire", &err);
    else if (!sqlock_is_held(lock) || sqlock_token(lock) <= 0)
        status = 1;
    else if (sqlock_release(lock, &err) != 0)
        status = failed("release", &err);
    if (sqlock_drop(lock, &err) != 0)
        status = failed("drop", &err);
    if (sqlock_registry_close(registry, &err) != 0)
        status = failed("close", &err);
    return status;
}
