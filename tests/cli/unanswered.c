/*
 * unanswered.c - preloaded: a server whose answer never comes: a connection has
 * ended for who reads it, once the text of the environment variable UNANSWERED
 * has been sent
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static int ended = -1;

ssize_t send(int fd, const void *bytes, size_t count, int flags)
{
    const char *word = getenv("UNANSWERED");
    ssize_t sent = syscall(SYS_sendto, fd, bytes, count, flags, NULL, 0);

    if (sent > 0 && memmem(bytes, (size_t)sent, word, strlen(word)) != NULL)
        ended = fd;
    return sent;
}

ssize_t recv(int fd, void *bytes, size_t count, int flags)
{
    return fd == ended
               ? 0
               : syscall(SYS_recvfrom, fd, bytes, count, flags, NULL, NULL);
}

int close(int fd)
{
    ended = fd == ended ? -1 : ended; /* the next one may have its number */
    return (int)syscall(SYS_close, fd);
}
