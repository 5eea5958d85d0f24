/*
 * lease.h - a lease, and how long its holder may rely on it
 *
 * The functions of batch.h claim, renew and release leases.  No function in
 * src/lease takes lk_mutex (src/lock).
 */
#ifndef LK_LEASE_H
#define LK_LEASE_H

#include "lease/store.h"

/* The session that has the bell of a lease, until the release. */
struct lk_place {
    struct lk_connection *connection; /* of db.waiting; NULL: none */
};

/* State of a claim, of which another copy is sent when one gets no answer. */
enum lk_claim_fate {
    LK_CLAIM_ANSWERED, /* each copy was answered */
    /* a repetition was answered, but an earlier copy was not, and may still be
     * carried out */
    LK_CLAIM_LATE,
    LK_CLAIM_IN_DOUBT /* no copy was answered: the next claim repeats it */
};

/* A lease: what is asked of the row, what it has answered, and what is believed
 * since.  It does not own its strings. */
struct lk_lease {
    const char *key;
    const char *name; /* truncated to fit the column; may be NULL */
    uint64_t owner;   /* to be told by its CLIENT_ID */
    char client_id[SQLOCK_KEY_SIZE];
    /* of the next statement; set before it is sent */
    struct {
        uint32_t ttl_ms;
        bool may_wait; /* a claim that is refused leaves a ticket in the row */
        /* the CLIENT_ID is that of a ticket, and goes on to wait when it is
         * refused */
        bool has_ticket;
        bool takes_bell; /* for its session, which is the claim's own */
        /* a release leaves the row free for Spring services, even if others
         * wait, and a ticket before theirs */
        bool is_for_peers;
        const char *ticket; /* of such a release: its ticket's CLIENT_ID */
        const char *queue;  /* for a row that the claim inserts; or NULL */
        /* what it takes of a lock that others share, 1 for a reader; 0: it is
         * exclusive */
        uint32_t weight;
        uint32_t permits; /* of such a lock; LK_NO_LIMIT (sharer.h) */
        /* when the caller requested the statement, CLOCK_MONOTONIC; 0: now
         * (lk_run.asked_ns) */
        int64_t at_ns;
        /* when its acquisition began to wait, or one before whose ticket it
         * had, CLOCK_MONOTONIC; 0: unknown, perhaps long ago */
        int64_t began_ns;
    } asked;
    /* by the last claim; valid once that was answered */
    struct {
        bool is_reserved;  /* the row was reserved for the claim's ticket */
        bool is_contended; /* granted, and other processes wait */
        bool is_new_row;   /* the claim inserted the row */
        int64_t token;
        struct lk_place place;
    } answered;
    /* valid from one statement to the next, whether or not it was answered */
    struct {
        enum lk_claim_fate fate; /* of a claim with this CLIENT_ID */
        /* shortest TTL of the unanswered statements about the lease, which may
         * still arrive and shorten the row: no longer TTL is requested or
         * relied on; 0: none */
        uint32_t cap_ms;
        int64_t until_boot_ns; /* until when the holder may rely on it */
        /* it is exclusive, unless a downgrade that was not answered has made a
         * share of it */
        bool may_be_share;
        /* until when that may be carried out, CLOCK_BOOTTIME */
        int64_t late_share_ns;
        /* the row was there and had no tickets when it was seen last, or may be
         * so, for the first lock of a registry: the shorter statements are
         * tried first */
        bool is_unqueued;
        bool has_text; /* published: who observes is told of its release */
    } believed;
};

/* Return whether the row may have the lease among those who share the lock. */
bool lk_lease_may_be_shared(const struct lk_lease *lease);

/* Return until when the holder may rely on a lease whose statement was sent at
 * sent_boot_ns: that time plus the TTL, less the margin. */
int64_t lk_believe_until(const struct lk_store *store, int64_t sent_boot_ns,
                         uint32_t ttl_ms);

/* Return until when the holder may rely on a row that was read after
 * asked_boot_ns and has remaining_us left.  The margin is that of the whole
 * TTL. */
int64_t lk_believe_row_until(const struct lk_store *store,
                             int64_t asked_boot_ns, int64_t remaining_us,
                             uint32_t ttl_ms);

/* Return until when the holder may rely on the lease, CLOCK_MONOTONIC. */
int64_t lk_lease_until_ns(const struct lk_lease *lease);

/* Note that an unanswered statement with that TTL may still reach the row:
 * lower cap_ms, and ttl_ms with it. */
void lk_lease_cap(struct lk_lease *lease, uint32_t ttl_ms);

/* After a statement without an answer, sent at since_boot_ns or later, which
 * may have shortened the lease or may do so yet, rely on the earlier end and
 * the shorter TTL. */
void lk_lease_believe_less(const struct lk_store *store, struct lk_lease *lease,
                           int64_t since_boot_ns);

/* Return ttl_ms, or the lease's cap if that is less. */
uint32_t lk_capped_ms(const struct lk_lease *lease, uint32_t ttl_ms);

/* Hand the live lease `from` off to `to`, which has its key, name and TTL and
 * gets a fresh CLIENT_ID: a release and a claim in one statement.  Return 0;
 * ETIMEDOUT: handed off, but the new lease was already over and has been
 * released; EBUSY or, in an outage, EUNREACHABLE: nothing was changed, release
 * the old lease; EUNCERTAIN: release the old lease, and the resolver frees the
 * new one. */
int lk_lease_hand_off(struct lk_store *store, const struct lk_lease *from,
                      struct lk_lease *to);

#endif
