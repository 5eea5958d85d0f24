/*
 * refuse.c - preloaded: let two calls of fork() succeed, and later ones fail
 *
 * A child inherits the count of calls.  So `sqlock run` can fork the watcher,
 * and the watcher the supervisor, but the supervisor cannot fork the command.
 */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

pid_t fork(void)
{
    static int count;
    pid_t (*next)(void);
    void *symbol = dlsym(RTLD_NEXT, "fork");

    if (++count > 2) {
        errno = EAGAIN;
        return -1;
    }
    memcpy(&next, &symbol, sizeof next);
    return next();
}
