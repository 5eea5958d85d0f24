/*
 * set.h - the locks of one call, N >= 1, sorted by key, the order in which
 * statements touch rows
 */
#ifndef LK_SET_H
#define LK_SET_H

#include "locks/registry.h"
#include "sqlock/many.h"

struct lk_member {
    sqlock_lock *lock;
    size_t place; /* index in the caller's array */
    int rc;
};

struct lk_set {
    sqlock_registry *registry;
    struct lk_member *members; /* sorted by key */
    size_t count;
    int *results;         /* the caller's, in its order; NULL */
    struct lk_member one; /* used when count is 1 */
};

/* Make a sorted set of the caller's locks.  Call lk_set_end() in any case.  0;
 * EINVAL, EFORK, ENOMEM: the results are not written. */
int lk_set_begin(struct lk_set *set, sqlock_lock *const *locks, size_t count,
                 int *results, sqlock_error *err);

/* Make a set of one lock that has been checked. */
void lk_set_of_one(struct lk_set *set, sqlock_lock *lock);

/* Write the results.  Return rc, or if it is 0 the result of the first member
 * that failed. */
int lk_set_end(struct lk_set *set, int rc, sqlock_error *err);

#endif
