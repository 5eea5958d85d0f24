/*
 * peer.c - find out why an address leads to no server (peer.h)
 */
#include "drivers/peer.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "db/driver.h"
#include "drivers/lookup.h"

/* A server of MySQL's kind greets sooner; it may look up our name first. */
#define GREETING_MS 300

/* The name servers may have gone since the client library asked them. */
static bool look_up(const char *host, const char *port, int64_t deadline_ns,
                    struct addrinfo **found)
{
    const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM};

    return lk_look_up(host, deadline_ns, NULL) == 0 &&
           getaddrinfo(host, port, &wanted, found) == 0;
}

/* Wait for an event of the socket.  Return false if the deadline comes first.
 */
static bool await(int fd, short event, int64_t deadline_ns)
{
    struct pollfd entry = {.fd = fd, .events = event};
    int count;

    do {
        int64_t left_ns = deadline_ns - sqlock_monotonic_ns();

        count =
            poll(&entry, 1, left_ns > 0 ? (int)(left_ns / LK_NS_PER_MS) : 0);
    } while (count < 0 && errno == EINTR);
    return count > 0;
}

static int open_connection(const struct addrinfo *address, int64_t deadline_ns)
{
    int fd = socket(address->ai_family,
                    SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int error = 0;
    socklen_t size = sizeof error;

    if (fd < 0)
        return -1;
    if (connect(fd, address->ai_addr, address->ai_addrlen) == 0)
        return fd;
    if (errno == EINPROGRESS && await(fd, POLLOUT, deadline_ns) &&
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0)
        return fd;
    (void)close(fd);
    return -1;
}

static enum lk_peer ask(int fd, int64_t deadline_ns)
{
    /* length 8, code 80877103: PostgreSQL's request for TLS */
    static const unsigned char request[] = {0, 0, 0, 8, 4, 0xd2, 0x16, 0x2f};
    unsigned char answer[5];
    ssize_t got;

    if (await(fd, POLLIN,
              lk_sooner(deadline_ns,
                        lk_after_ms(sqlock_monotonic_ns(), GREETING_MS)))) {
        got = recv(fd, answer, sizeof answer, 0);
        /* the length, the number 0 of the packet, version 10 of the protocol */
        return got == sizeof answer && answer[3] == 0 && answer[4] == 10
                   ? LK_PEER_MYSQL
                   : LK_PEER_UNKNOWN;
    }
    if (send(fd, request, sizeof request, MSG_NOSIGNAL) != sizeof request ||
        !await(fd, POLLIN, deadline_ns))
        return LK_PEER_UNKNOWN;
    got = recv(fd, answer, sizeof answer, 0);
    return got == 1 && (answer[0] == 'S' || answer[0] == 'N') ? LK_PEER_POSTGRES
                                                              : LK_PEER_UNKNOWN;
}

enum lk_peer lk_peer_at(const char *host, unsigned int port,
                        int64_t deadline_ns)
{
    struct addrinfo *found = NULL;
    const struct addrinfo *address;
    enum lk_peer kind = LK_PEER_UNKNOWN;
    char digits[12];

    (void)snprintf(digits, sizeof digits, "%u", port);
    if (!look_up(host, digits, deadline_ns, &found))
        return LK_PEER_UNKNOWN;
    for (address = found; address != NULL && kind == LK_PEER_UNKNOWN;
         address = address->ai_next) {
        int fd = open_connection(address, deadline_ns);

        if (fd < 0)
            continue;
        kind = ask(fd, deadline_ns);
        (void)close(fd);
    }
    freeaddrinfo(found);
    return kind;
}
