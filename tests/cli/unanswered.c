/*
 * unanswered.c - preloaded: a server whose answer never comes: the connection
 * is shut down for reading once the text of the environment variable UNANSWERED
 * has been sent
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

ssize_t send(int fd, const void *bytes, size_t count, int flags)
{
    const char *word = getenv("UNANSWERED");
    ssize_t sent = syscall(SYS_sendto, fd, bytes, count, flags, NULL, 0);

    if (sent > 0 && memmem(bytes, (size_t)sent, word, strlen(word)) != NULL)
        (void)shutdown(fd, SHUT_RD);
    return sent;
}
