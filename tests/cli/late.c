/*
 * late.c - preloaded, it makes threads other than the first go on late after
 * they have written a counter to an event descriptor
 *
 * The counter is there at once: its reader answers before the writer has gone
 * on.
 */
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

ssize_t write(int fd, const void *data, size_t length)
{
    static const struct timespec late = {.tv_nsec = 300000000};
    ssize_t written = syscall(SYS_write, fd, data, length);

    if (length == sizeof(uint64_t) && gettid() != getpid())
        (void)nanosleep(&late, NULL);
    return written;
}
