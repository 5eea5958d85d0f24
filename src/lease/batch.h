/*
 * batch.h - many leases in one statement
 */
#ifndef LK_BATCH_H
#define LK_BATCH_H

#include "lease/lease.h"

/* The most in one statement; more are sent in several. */
#define LK_BATCH_MAX 10000

/* One lease of a batch, and what became of it. */
struct lk_item {
    struct lk_lease lease;
    int rc;
    bool is_settled;     /* rc is known for certain */
    bool is_passed_over; /* of a renewal that did not change its row: because
                            somebody has it locked, if it is still ours */
    void *owner;         /* whoever made the batch */
};

struct lk_batch {
    struct lk_item *items; /* sorted by key, each key once */
    size_t count;
    int64_t deadline_ns;
    bool is_reserved; /* on the renewer's connection */
    /* out, of a renewal: the database's clock and when it was read */
    int64_t now_us; /* 0: not said */
    int64_t sent_boot_ns, answered_boot_ns;
};

void lk_batch_sort(struct lk_batch *batch);

/* What a statement about many gets as its {1}: to be freed; NULL when out of
 * memory. */
char *lk_batch_array(const struct lk_store *store, const struct lk_batch *batch,
                     sqlock_statement_kind kind);

/* For the files of the batch: the item of a cell's key (NULL: none), and one
 * statement about all. */
struct lk_item *lk_batch_find(const struct lk_batch *batch,
                              const sqlock_value *key);
int lk_batch_run(struct lk_store *store, sqlock_statement_kind kind,
                 struct lk_batch *batch, bool is_repeatable,
                 sqlock_result *result, sqlock_error *err);

/* The rows of all, in the order of the items, without locking anything.  0, or
 * as lk_lease_read(). */
int lk_batch_read(struct lk_store *store, struct lk_batch *batch,
                  struct lk_row *rows, sqlock_error *err);

/* The row of a key; NULL when it is none of the batch's. */
const struct lk_row *lk_batch_row(const struct lk_batch *batch,
                                  const struct lk_row *rows, const char *key);

/*
 * All that follow return 0 when the database answered, and then each item's rc
 * says what became of it, as in lease.h; or why it did not answer.
 *
 * Claim: fresh CLIENT_IDs.  EBUSY; ETIMEDOUT: ours, but over already.  After
 * EUNCERTAIN, and after a release that failed, the resolver goes on; not so of
 * a single one, which is in doubt then as lk_lease_claim() leaves it, and which
 * gives ETIMEDOUT itself, given back.
 * Renew: with each lease's own TTL.  EBUSY (a row that a transaction has locked
 * is passed over: its deadline stays), EEXPIRED, ELOST.
 * Release: EEXPIRED, ELOST.
 */
int lk_batch_claim(struct lk_store *store, struct lk_batch *batch,
                   sqlock_error *err);
int lk_batch_renew(struct lk_store *store, struct lk_batch *batch,
                   sqlock_error *err);
int lk_batch_release(struct lk_store *store, struct lk_batch *batch,
                     sqlock_error *err);

#endif
