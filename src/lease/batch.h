/*
 * batch.h - N >= 1 leases that are claimed, renewed or released together
 *
 * A batch of one is sent as the statement about one lease, which is cheaper and
 * can do more: it waits for a row's lock, and goes to the session that has the
 * queue lock.  All that follows from the answer is the same for any number.
 *
 * All calls return 0 when the database answered, and then each item's rc says
 * what became of it; or why it did not answer.
 */
#ifndef LK_BATCH_H
#define LK_BATCH_H

#include "lease/lease.h"

/* The most in one statement; more are sent in several. */
#define LK_BATCH_MAX 10000

struct lk_transaction;

/* One lease of a batch, and what became of it. */
struct lk_item {
    struct lk_lease lease;
    int rc;
    bool is_passed_over; /* of a renewal that did not change its row: because
                            somebody has it locked, if it is still ours */
    void *owner;         /* the caller's */
};

struct lk_batch {
    struct lk_item *items; /* sorted by key, each key once */
    size_t count;
    int64_t deadline_ns;
    bool is_reserved; /* on the renewer's connection, and waits for no row */
    struct lk_transaction *transaction; /* in which it is sent; NULL: none */
    /* out: the database's clock, of a renewal; when it was sent last, and
     * when it was answered, CLOCK_BOOTTIME */
    int64_t now_us; /* 0: not said */
    int64_t sent_boot_ns, answered_boot_ns;
};

void lk_batch_sort(struct lk_batch *batch);

/* The batch of one lease; its result is the item's. */
void lk_batch_of_one(struct lk_batch *batch, struct lk_item *item,
                     const struct lk_lease *lease, int64_t deadline_ns);

/* The item of a cell's key; NULL: none. */
struct lk_item *lk_batch_find(const struct lk_batch *batch,
                              const sqlock_value *key);

/* Send a statement about the batch.  `run` has what is particular to it. */
int lk_batch_run(struct lk_store *store, sqlock_statement_kind kind,
                 struct lk_batch *batch, struct lk_run *run,
                 sqlock_result *result, sqlock_error *err);

/* Claim each lock, with a fresh CLIENT_ID or that of its claim in doubt.  Sent
 * again if the connection breaks.  EBUSY: held by another.  ETIMEDOUT: ours,
 * but over already.  After EUNCERTAIN, or an outage, those that are in doubt go
 * on with the next claim, or are given to the resolver by the caller.  */
int lk_batch_claim(struct lk_store *store, struct lk_batch *batch,
                   sqlock_error *err);

/* Begin the leases anew unless they are over, each with its TTL.  EBUSY (a row
 * that a transaction has locked: its deadline stays), EEXPIRED, ELOST. */
int lk_batch_renew(struct lk_store *store, struct lk_batch *batch,
                   sqlock_error *err);

/* Give them back, and their queue locks.  EEXPIRED, ELOST, EUNCERTAIN.  What
 * was not carried out the resolver tries again, until the lease is over. */
int lk_batch_release(struct lk_store *store, struct lk_batch *batch,
                     sqlock_error *err);

/* The results of an item as text; rc. */
int lk_renewal_error(int rc, sqlock_error *err);
int lk_release_error(int rc, sqlock_error *err);

#endif
