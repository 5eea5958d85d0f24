/*
 * clone.c - preloaded: note each clone3() of sqlock's own, by which `sqlock
 * run` forks the command in its control group, and refuse what the environment
 * says
 *
 * CLONE_ERRNO is the error of clone3(), as of an old kernel or a filter of
 * system calls; CLONE_NO_GROUP lets no control group be made; CLONE_LOG names
 * the file of notes.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void note(const char *text)
{
    const char *log = getenv("CLONE_LOG");
    int fd = log != NULL ? open(log, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;

    if (fd >= 0) {
        (void)!write(fd, text, strlen(text));
        (void)close(fd);
    }
}

long syscall(long number, ...)
{
    long (*next)(long, ...);
    void *symbol = dlsym(RTLD_NEXT, "syscall");
    const char *refused = getenv("CLONE_ERRNO");
    long values[6];
    va_list list;
    long result;

    va_start(list, number);
    for (int i = 0; i < 6; i++)
        values[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_clone3 && refused != NULL) {
        note("refused\n");
        errno = atoi(refused);
        return -1;
    }
    memcpy(&next, &symbol, sizeof next);
    result = next(number, values[0], values[1], values[2], values[3], values[4],
                  values[5]);
    if (number == SYS_clone3 && result > 0)
        note("forked\n");
    return result;
}

int mkdirat(int dir, const char *path, mode_t mode)
{
    if (getenv("CLONE_NO_GROUP") != NULL) {
        errno = EACCES;
        return -1;
    }
    return (int)syscall(SYS_mkdirat, dir, path, mode);
}
