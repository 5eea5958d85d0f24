/*
 * batch.h - N >= 1 leases that are claimed, renewed or released together
 *
 * A batch of one is sent as the statement about one lease, which is cheaper and
 * can do more: it waits for a row's lock, and goes to the session that has the
 * queue lock.  The answer is handled in the same way for any number.
 *
 * All calls return 0 when the database answered; each item's rc is then the
 * result for that lease.  Any other code says why there was no answer.
 */
#ifndef LK_BATCH_H
#define LK_BATCH_H

#include "lease/lease.h"

/* The most leases in one statement; more are sent in several. */
#define LK_BATCH_MAX 10000

struct lk_transaction;

/* The row of a key. */
struct lk_row {
    bool exists;
    bool is_taken; /* CLIENT_ID is set and the lease is not over */
    /* HOLDER belongs to CLIENT_ID: its release will notify */
    bool is_sqlocks;
    char client_id[SQLOCK_KEY_SIZE];
    int64_t token;        /* 0: the layout has none */
    int64_t remaining_us; /* negative: the lease is over */
    int64_t acquired_at_us;
    int64_t expires_at_us;
};

/* One lease of a batch, its row where that was read, and its result. */
struct lk_item {
    struct lk_lease lease;
    struct lk_row row;
    int rc;
    /* a renewal did not change the row: if the lease is still ours, another
     * session has the row locked */
    bool is_passed_over;
    void *owner; /* the caller's own pointer */
};

struct lk_batch {
    struct lk_item *items; /* sorted by key, each key once */
    size_t count;
    int64_t deadline_ns;
    /* use the renewer's connection, and wait for no locked row */
    bool is_reserved;
    /* send it in this transaction; NULL: in none */
    struct lk_transaction *transaction;
    /* out: the database's clock, from a renewal; when the batch was sent last
     * and when it was answered, CLOCK_BOOTTIME */
    int64_t now_us; /* 0: unknown */
    int64_t sent_boot_ns, answered_boot_ns;
};

void lk_batch_sort(struct lk_batch *batch);

/* Make a batch of one lease; the result is in the item. */
void lk_batch_of_one(struct lk_batch *batch, struct lk_item *item,
                     const struct lk_lease *lease, int64_t deadline_ns);

/* Return the item with the key in this cell; NULL: none. */
struct lk_item *lk_batch_find(const struct lk_batch *batch,
                              const sqlock_value *key);

/* Send a statement about the batch.  `run` holds the settings of this call. */
int lk_batch_run(struct lk_store *store, sqlock_statement_kind kind,
                 struct lk_batch *batch, struct lk_run *run,
                 sqlock_result *result, sqlock_error *err);

/* Claim each lock, with a fresh CLIENT_ID or that of its claim in doubt.  The
 * claim is sent again if the connection breaks.  EBUSY: held by another owner.
 * ETIMEDOUT: granted, but already over.  After EUNCERTAIN or an outage, the
 * caller repeats claims in doubt, or gives them to the resolver. */
int lk_batch_claim(struct lk_store *store, struct lk_batch *batch,
                   sqlock_error *err);

/* Renew each lease, unless it is over, for its TTL.  EBUSY: a transaction has
 * locked the row, and the deadline stays; EEXPIRED, ELOST. */
int lk_batch_renew(struct lk_store *store, struct lk_batch *batch,
                   sqlock_error *err);

/* Release the leases and their queue locks.  EEXPIRED, ELOST, EUNCERTAIN.  The
 * resolver repeats a release that was not carried out, until the lease is
 * over. */
int lk_batch_release(struct lk_store *store, struct lk_batch *batch,
                     sqlock_error *err);

/* Describe the result of an item in err, and return rc. */
int lk_renewal_error(int rc, sqlock_error *err);
int lk_release_error(int rc, sqlock_error *err);

#endif
