/*
 * silent.c - preloaded: a disk that never answers, for each thread but the
 * first: what SQLite writes to it never ends
 *
 * The thread says "silent" on stderr before.
 */
#include <sys/syscall.h>
#include <unistd.h>

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at)
{
    static const char word[] = "silent\n";

    while (gettid() != getpid()) {
        (void)!write(STDERR_FILENO, word, sizeof word - 1);
        (void)pause();
    }
    return syscall(SYS_pwrite64, fd, bytes, count, at);
}
