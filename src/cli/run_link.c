/*
 * run_link.c - messages between sqlock and the supervisor, on a socket whose
 * end of file means that the other one has ended; neither waits for it
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

    /* A process that ends with unread messages resets the link.  That is
     * reported once, before the messages sent until then. */
    do {
        got = recv(fd, message, sizeof *message, MSG_DONTWAIT);
    } while (got < 0 && (errno == EINTR || errno == ECONNRESET));
    if (got == (ssize_t)sizeof *message)
        return RUN_LINK_MESSAGE;
    if (got < 0 && errno == EAGAIN)
        return RUN_LINK_NOTHING;
    return RUN_LINK_CLOSED;
}
