/*
 * refuse.c - preloaded, it lets a process fork, and what it has forked once
 * more: `sqlock run` gets its watcher and its supervisor, and that gets no
 * command
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
