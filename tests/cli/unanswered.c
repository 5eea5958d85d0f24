/*
 * unanswered.c - preloaded: a server whose answer never comes: a connection has
 * ended for who reads it, once the text of the environment variable UNANSWERED
 * has been sent, in which '$' stands for NUL
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static int ended = -1;

ssize_t send(int fd, const void *bytes, size_t count, int flags)
{
    char word[64];
    int length = snprintf(word, sizeof word, "%s", getenv("UNANSWERED"));
    char *dollar = strchr(word, '$');
    ssize_t sent = syscall(SYS_sendto, fd, bytes, count, flags, NULL, 0);

    if (dollar != NULL)
        *dollar = '\0';
    if (sent > 0 && memmem(bytes, (size_t)sent, word, (size_t)length) != NULL)
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
