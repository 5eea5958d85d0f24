/*
 * lease.h - a lease, and how long it may be believed.  batch.h begins, renews
 * and ends leases.  Nothing in this folder takes the mutex of a lock.
 */
#ifndef LK_LEASE_H
#define LK_LEASE_H

#include "lease/store.h"

/* The queue lock of a lease: what has it until the release. */
struct lk_place {
    struct lk_connection *connection; /* one of those that wait; NULL */
    uint64_t session;                 /* or one of the pool's, by number; 0 */
};

/* The row as it was seen last, to be taken only if it is still the same. */
struct lk_observed {
    char client_id[SQLOCK_KEY_SIZE]; /* "": free, or there is none */
    int64_t expires_at_us;
    int64_t since_ns; /* CLOCK_MONOTONIC; 0: not seen yet */
    bool saw_peer;    /* that had the lock: a Spring service */
};

/* A lease: the claim's arguments, and what was granted. */
struct lk_lease {
    const char *key;
    const char *name; /* as far as it fits the column; may be NULL */
    uint32_t ttl_ms;
    uint32_t cap_ms; /* shortest TTL of a statement about it that got no answer:
                        it may yet arrive and shorten the row, so nothing
                        longer is asked for or believed any more; 0: none */
    bool is_left_free; /* by ourselves: a claim may try the cheaper way first */
    bool
        is_in_doubt; /* in and out: a claim of this CLIENT_ID got no answer; the
                          next one is the same claim again */
    bool is_contended; /* claimed, although somebody else has the queue lock */
    bool is_new_row;   /* claimed where there was no row */
    /* What was observed, before it is claimed: of the rows that are over no
     * other is taken.  NULL: the time stamps are believed. */
    const struct lk_observed *observed;
    bool is_claim_late; /* one that got no answer may yet be carried out */
    int64_t asked_ns;   /* since when it is asked for, CLOCK_MONOTONIC; as
                           lk_run of the registry's statements */
    struct lk_place place;
    char client_id[SQLOCK_KEY_SIZE];
    int64_t token;
    int64_t deadline_boot_ns; /* when the holder stops believing */
};

/* Return when a holder stops believing in a lease that was asked for then. */
int64_t lk_believe_until(const struct lk_store *store, int64_t sent_boot_ns,
                         uint32_t ttl_ms);

/* Return when a holder stops believing in a row that has so long left and was
 * read after that moment.  The margin is that of the lease's TTL, however
 * little of it is left.  */
int64_t lk_believe_row_until(const struct lk_store *store,
                             int64_t asked_boot_ns, int64_t remaining_us,
                             uint32_t ttl_ms);

/* Note that a statement with that TTL may still reach the row. */
void lk_lease_cap(struct lk_lease *lease, uint32_t ttl_ms);

/* Return the TTL to ask for where that one is wanted. */
uint32_t lk_capped_ms(const struct lk_lease *lease, uint32_t ttl_ms);

/* Hand a lease that is not over off to a fresh CLIENT_ID: a release and a claim
 * in one statement.  ETIMEDOUT: it was handed off, but the new lease is over
 * already and given back.  EBUSY: nothing was changed, the old lease is to be
 * released as ever.  EUNCERTAIN: it is to be released, too, and the resolver
 * goes on.  */
int lk_lease_hand_off(struct lk_store *store, const struct lk_lease *from,
                      struct lk_lease *to, sqlock_error *err);

#endif
