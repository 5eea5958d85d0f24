/*
 * refuse.c - preloaded: let two forks succeed, and later ones fail
 *
 * A child inherits the count.  So `sqlock run` can fork the watcher, and the
 * watcher the supervisor, but the supervisor cannot fork the command, whether
 * by fork() or by clone3().
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int count;

pid_t fork(void)
{
    pid_t (*next)(void);
    void *symbol = dlsym(RTLD_NEXT, "fork");

    if (++count > 2) {
        errno = EAGAIN;
        return -1;
    }
    memcpy(&next, &symbol, sizeof next);
    return next();
}

long syscall(long number, ...)
{
    long (*next)(long, ...);
    void *symbol = dlsym(RTLD_NEXT, "syscall");
    long values[6];
    va_list list;

    if (number == SYS_clone3 && count >= 2) {
        errno = EAGAIN;
        return -1;
    }
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        values[i] = va_arg(list, long);
    va_end(list);
    memcpy(&next, &symbol, sizeof next);
    return next(number, values[0], values[1], values[2], values[3], values[4],
                values[5]);
}
