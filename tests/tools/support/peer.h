/*
 * peer.h - act as a Spring service on the lock table, by its documented
 * statements
 *
 * The service is of Spring 5.4 to 6.5 on the four-column layout, and of Spring
 * 7 on the others.  To acquire a lock it updates, in one transaction, the row
 * that is its own or has expired; if there is none, it inserts one.  To release
 * the lock it deletes its own row.
 */
#ifndef TESTS_PEER_H
#define TESTS_PEER_H

#include "fixture.h"

struct peer {
    struct fixture *fixture;
    struct sql *sql; /* a session that only this peer uses */
    const char *client;
    uint32_t ttl_ms;
};

/* Acquire.  Return 1: acquired; 0: another holder has the row; or the negative
 * code of an error that Spring would report or retry after. */
int peer_acquire(const struct peer *peer, const char *name);

/* Release, or renew.  Return 1: the row was the peer's own; 0: it was not
 * ("lost"); or a negative code. */
int peer_release(const struct peer *peer, const char *name);
int peer_renew(const struct peer *peer, const char *name);

#endif
