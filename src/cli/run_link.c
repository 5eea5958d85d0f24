/*
 * run_link.c - the messages between sqlock and the supervisor: whole ones, on a
 * socket whose end of file is the other's death.  Neither waits for it.
 */
#include "run.h"

#include <errno.h>
#include <sys/socket.h>

void run_link_send(int fd, const run_message *message)
{
    ssize_t sent;

    do {
        sent = send(fd, message, sizeof *message, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
}

run_link_result run_link_receive(int fd, run_message *message)
{
    ssize_t got;

    /* Who ends with something unread resets the link, which is told once, and
     * before what had been sent until then. */
    do {
        got = recv(fd, message, sizeof *message, MSG_DONTWAIT);
    } while (got < 0 && (errno == EINTR || errno == ECONNRESET));
    if (got == (ssize_t)sizeof *message)
        return RUN_LINK_MESSAGE;
    if (got < 0 && errno == EAGAIN)
        return RUN_LINK_NOTHING;
    return RUN_LINK_CLOSED;
}
