/*
 * peer.h - act as a Spring service on the lock table, by its documented
 * statements
 *
 * Spring 5.4 to 6.5 on the four-column layout, Spring 7 on the others: in one
 * transaction an UPDATE of the row that is its own or has expired, then an
 * INSERT; release is a DELETE of its own row.
 */
#ifndef TESTS_PEER_H
#define TESTS_PEER_H

#include "fixture.h"

struct peer {
    struct fixture *fixture;
    struct sql *sql; /* its own session */
    const char *client;
    uint32_t ttl_ms;
};

/* Acquire.  1: acquired; 0: not; or the negative code of an error that Spring
 * would show or retry after. */
int peer_acquire(const struct peer *peer, const char *name);

/* Release.  1: its row existed; 0: it did not ("lost"); or a negative code. */
int peer_release(const struct peer *peer, const char *name);
int peer_renew(const struct peer *peer, const char *name);

#endif
