/*
 * late.c - preloaded: delay each thread but the first after it has written 8
 * bytes, such as a counter to an eventfd
 *
 * The reader gets the counter at once, and can answer during the delay.
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
