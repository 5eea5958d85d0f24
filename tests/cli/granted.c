/*
 * granted.c - preloaded: send TERM to the process when a thread but the first
 * has written 8 bytes, such as a counter to an eventfd that tells of a grant
 */
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

ssize_t write(int fd, const void *data, size_t length)
{
    ssize_t written = syscall(SYS_write, fd, data, length);

    if (length == sizeof(uint64_t) && gettid() != getpid())
        (void)kill(getpid(), SIGTERM);
    return written;
}
