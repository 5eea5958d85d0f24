/*
 * lease.h - the statements that begin, prolong and end a lease, and what to
 * make of their outcomes; no locking in here
 */
#ifndef LK_LEASE_H
#define LK_LEASE_H

#include "locks/registry.h"

/* What a claim is for, and what came of it. */
struct lk_lease {
    const char *key;
    const char *name; /* as far as it fits the column; may be NULL */
    uint32_t ttl_ms;
    uint32_t cap_ms; /* shortest TTL of a statement about it that got no answer:
                        it may yet arrive and shorten the row, so nothing
                        longer is asked for or believed any more; 0: none */
    bool is_left_free; /* by ourselves: a claim may try the cheaper way first */
    bool is_wanted;    /* claimed, although somebody else has the doorbell */
    struct lk_bell bell;
    char client_id[SQLOCK_KEY_SIZE];
    int64_t token;
    int64_t deadline_boot_ns; /* when the holder stops believing */
};

/* The row of a key. */
struct lk_row {
    bool exists;
    bool is_taken;   /* CLIENT_ID is there and the lease is not over */
    bool is_sqlocks; /* HOLDER says so: its release will ring */
    char client_id[SQLOCK_KEY_SIZE];
    int64_t token;        /* 0: the layout has none */
    int64_t remaining_us; /* negative when over */
    int64_t expires_at_us;
};

/* Of an info row's cells; *row is zeroed. */
void lk_row_from_cells(struct lk_row *row, const sqlock_value *cells);

/* When a holder stops believing in a lease that was asked for at a moment. */
int64_t lk_believe_until(const sqlock_registry *registry, int64_t sent_boot_ns,
                         uint32_t ttl_ms);

/* A statement with that TTL may still be on its way. */
void lk_lease_cap(struct lk_lease *lease, uint32_t ttl_ms);

/* Try once to take the lock for a fresh CLIENT_ID.  EBUSY: held by another;
 * EUNCERTAIN: could not be found out, the registry knows the ghost. */
int lk_lease_claim(sqlock_registry *registry, struct lk_lease *lease,
                   sqlock_error *err);

/* Begin the lease anew unless it is over: sets ttl and deadline.  EEXPIRED,
 * ELOST; after EUNCERTAIN the deadline is one that holds in either case. */
int lk_lease_renew(sqlock_registry *registry, struct lk_lease *lease,
                   uint32_t ttl_ms, sqlock_error *err);

/* Give it back, and its doorbell.  EEXPIRED, ELOST, EUNCERTAIN. */
int lk_lease_release(sqlock_registry *registry, struct lk_lease *lease,
                     sqlock_error *err);

/* From a lease that is not over to a fresh CLIENT_ID, at once: both a release and
 * a claim.  ETIMEDOUT: it was handed over, but the new lease is over already and
 * given back.  EBUSY: nothing was changed, the old lease is to be released as
 * ever.  EUNCERTAIN: likewise, and the registry knows the ghost. */
int lk_lease_hand_over(sqlock_registry *registry, const struct lk_lease *from,
                       struct lk_lease *to, sqlock_error *err);

/* Look at a key's row without locking it.  Never EUNCERTAIN. */
int lk_lease_read(sqlock_registry *registry, const char *key,
                  int64_t deadline_ns, struct lk_row *row, sqlock_error *err);

/* Free the rows of claims that came to nothing, if the database answers now. */
void lk_ghosts_lay(sqlock_registry *registry);
void lk_ghost_add(sqlock_registry *registry, const struct lk_lease *lease,
                  int64_t sent_boot_ns);

#endif
