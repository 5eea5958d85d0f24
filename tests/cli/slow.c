/*
 * slow.c - preloaded: delay each thread but the first before it writes to
 * stderr, as on a busy machine
 */
#include <dlfcn.h>
#include <sys/types.h>
#include <unistd.h>

#define LATE_US 300000

ssize_t write(int fd, const void *bytes, size_t count)
{
    static ssize_t (*real)(int, const void *, size_t);

    if (real == NULL)
        real = (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    if (fd == STDERR_FILENO && gettid() != getpid())
        (void)usleep(LATE_US);
    return real(fd, bytes, count);
}
