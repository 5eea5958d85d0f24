/*
 * set.h - the locks of one call, N >= 1, in the order of their keys: that in
 * which statements touch rows
 */
#ifndef LK_SET_H
#define LK_SET_H

#include "locks/registry.h"
#include "sqlock/many.h"

struct lk_member {
    sqlock_lock *lock;
    size_t place; /* in the caller's array */
    int rc;
};

struct lk_set {
    sqlock_registry *registry;
    struct lk_member *members; /* by key */
    size_t count;
    int *results;         /* the caller's, in its order; NULL */
    struct lk_member one; /* of a single lock */
};

/* 0; or EINVAL, EFORK, ENOMEM: the results are not written.  To be ended in any
 * case. */
int lk_set_begin(struct lk_set *set, sqlock_lock *const *locks, size_t count,
                 int *results, sqlock_error *err);

/* The set of one lock that has been checked. */
void lk_set_of_one(struct lk_set *set, sqlock_lock *lock);

/* Fill in the results.  rc, or where it is 0 that of the first member that
 * failed. */
int lk_set_end(struct lk_set *set, int rc, sqlock_error *err);

#endif
