/*
 * lease.h - the statements that begin, prolong and end a lease, and what to
 * make of their outcomes; no locking in here
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

/* What a claim is for, and what came of it. */
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

/* The row of a key. */
struct lk_row {
    bool exists;
    bool is_taken;   /* CLIENT_ID is there and the lease is not over */
    bool is_sqlocks; /* HOLDER says so: its release will notify */
    char client_id[SQLOCK_KEY_SIZE];
    int64_t token;        /* 0: the layout has none */
    int64_t remaining_us; /* negative when over */
    int64_t acquired_at_us;
    int64_t expires_at_us;
};

/* Of an info row's cells; *row is zeroed. */
void lk_row_from_cells(struct lk_row *row, const sqlock_value *cells);

/* When a holder stops believing in a lease that was asked for at a moment. */
int64_t lk_believe_until(const struct lk_store *store, int64_t sent_boot_ns,
                         uint32_t ttl_ms);

/* Likewise of a row that has so long left, and was read after that moment: the
 * margin is that of the lease's TTL, however little of it is left. */
int64_t lk_believe_row_until(const struct lk_store *store,
                             int64_t asked_boot_ns, int64_t remaining_us,
                             uint32_t ttl_ms);

/* A statement with that TTL may still be on its way. */
void lk_lease_cap(struct lk_lease *lease, uint32_t ttl_ms);

/* Try once to take the lock for a fresh CLIENT_ID, or for that of the claim in
 * doubt.  EBUSY: held by another; EUNCERTAIN: could not be found out.  A claim
 * that stays in doubt is claimed again, or given to the resolver. */
int lk_lease_claim(struct lk_store *store, struct lk_lease *lease,
                   sqlock_error *err);

/* Begin the lease anew unless it is over: sets ttl and deadline.  EEXPIRED,
 * ELOST; after EUNCERTAIN the deadline is one that holds in either case. */
int lk_lease_renew(struct lk_store *store, struct lk_lease *lease,
                   uint32_t ttl_ms, sqlock_error *err);

/* Give it back, and its queue lock.  EEXPIRED, ELOST; after other errors the
 * resolver goes on, until the lease would be over. */
int lk_lease_release(struct lk_store *store, struct lk_lease *lease,
                     sqlock_error *err);

/* From a lease that is not over to a fresh CLIENT_ID, at once: both a release
 * and a claim.  ETIMEDOUT: it was handed off, but the new lease is over already
 * and given back.  EBUSY: nothing was changed, the old lease is to be released
 * as ever.  EUNCERTAIN: likewise, and the resolver goes on. */
int lk_lease_hand_off(struct lk_store *store, const struct lk_lease *from,
                      struct lk_lease *to, sqlock_error *err);

/* Look at a key's row without locking it.  Never EUNCERTAIN. */
int lk_lease_read(struct lk_store *store, const char *key, int64_t deadline_ns,
                  struct lk_row *row, sqlock_error *err);

/* The text of the holder of a key's live lease, or a peer's CLIENT_ID; "":
 * nobody holds it.  As lk_lease_read(). */
int lk_lease_holder(struct lk_store *store, const char *key,
                    char holder[LK_HOLDER_SIZE], sqlock_error *err);

#endif
