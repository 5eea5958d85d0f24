/*
 * link.c - send messages between sqlock and the supervisor, through a socket
 *
 * Neither process waits for the other.  End of file means that the other
 * process has ended.
 */
#include "run.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

void run_link_send(int fd, const run_message *message)
{
    ssize_t sent;

    do {
        sent = send(fd, message, sizeof *message, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
}

bool run_link_receive(int *fd, run_message *message)
{
    ssize_t got;

    if (*fd < 0)
        return false;
    /* If a process ends with messages unread, the kernel reports ECONNRESET
     * once, before the messages that the process has sent. */
    do {
        got = recv(*fd, message, sizeof *message, MSG_DONTWAIT);
    } while (got < 0 && (errno == EINTR || errno == ECONNRESET));
    if (got != (ssize_t)sizeof *message && !(got < 0 && errno == EAGAIN)) {
        (void)close(*fd);
        *fd = -1;
    }
    return got == (ssize_t)sizeof *message;
}
