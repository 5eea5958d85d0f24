/*
 * arguments.h - what a statement about leases is sent with: about one, its
 * values; about many, one JSON array
 */
#ifndef LK_LEASE_ARGUMENTS_H
#define LK_LEASE_ARGUMENTS_H

#include "lease/batch.h"

#define LK_NAME_BYTES 255 /* LOCK_NAME VARCHAR(255) */

struct lk_lease_arguments {
    struct lk_arguments values;
    /* what they point to */
    char *array;
    char name[LK_NAME_BYTES + 1];
    char holder[LK_HOLDER_SIZE];
};

/* Fill in the arguments of a statement about one lease; nothing is to be
 * cleared. */
void lk_arguments_of_one(struct lk_lease_arguments *out,
                         const struct lk_store *store,
                         const struct lk_lease *lease,
                         sqlock_statement_kind kind);

/* Fill in the arguments of a statement about a batch: those of its only lease,
 * or of all where the kind is about many.  0, ENOMEM; to be cleared.  */
int lk_arguments_of(struct lk_lease_arguments *out,
                    const struct lk_store *store, const struct lk_batch *batch,
                    sqlock_statement_kind kind, sqlock_error *err);
void lk_arguments_clear(struct lk_lease_arguments *arguments);

#endif
