/*
 * peer.h - find out why an address will never lead to a server of the right
 * kind, after an attempt to connect has failed
 */
#ifndef LK_PEER_H
#define LK_PEER_H

#include <stdbool.h>
#include <stdint.h>

enum lk_peer {
    LK_PEER_UNKNOWN, /* it does not answer, or is something else */
    LK_PEER_MYSQL,
    LK_PEER_POSTGRES
};

/** Ask what kind of server listens at an address: MySQL speaks first, and
 *  PostgreSQL answers a request for TLS with one byte.  Closes the connection
 *  that this takes. */
enum lk_peer lk_peer_at(const char *host, unsigned int port,
                        int64_t deadline_ns);

#endif
