/*
 * arguments.h - fill in the arguments of statements about leases: plain values
 * for one lease, a JSON array for many
 */
#ifndef LK_LEASE_ARGUMENTS_H
#define LK_LEASE_ARGUMENTS_H

#include "lease/batch.h"
#include "lease/bell.h"

#define LK_NAME_BYTES 255 /* as LOCK_NAME VARCHAR(255) */

struct lk_lease_arguments {
    struct lk_arguments values;
    /* memory that `values` points to */
    char *array; /* freed by the caller; NULL: none */
    char name[LK_NAME_BYTES + 1];
    char holder[LK_HOLDER_SIZE];
    char shown[LK_IDENTITY_SIZE];
    char bell[LK_BELL_SIZE + 8];
};

/* Fill in the arguments of a statement about one lease.  They point into the
 * lease, the store and *out.  out->array is NULL. */
void lk_arguments_of_one(struct lk_lease_arguments *out,
                         const struct lk_store *store,
                         const struct lk_lease *lease,
                         sqlock_statement_kind kind);

/* Fill in the arguments of a statement about the batch: about all leases if
 * this kind is one for many, otherwise about its only lease.  Return 0 or
 * ENOMEM.  Free out->array after the statement. */
int lk_arguments_of(struct lk_lease_arguments *out,
                    const struct lk_store *store, const struct lk_batch *batch,
                    sqlock_statement_kind kind, sqlock_error *err);

#endif
