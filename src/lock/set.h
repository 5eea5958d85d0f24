/*
 * set.h - the N >= 1 locks of one call, sorted by key, which is the order in
 * which statements touch rows
 */
#ifndef LK_SET_H
#define LK_SET_H

#include "lease/batch.h"
#include "lock/registry.h"
#include "lock/renewal.h"
#include "sqlock/many.h"

struct lk_member {
    sqlock_lock *lock;
    size_t place; /* index in the array of the application */
    int rc;
    bool is_told; /* the error of the call says why */
    /* the lease that the call renews or releases; NULL: none.  It is pinned,
     * and used without the mutex. */
    struct lk_hold *hold;
    struct lk_renewal renewal;
    /* the release gave the lease to the next waiter; or the hand-off got no
     * answer */
    bool is_handed_off;
    bool is_handed_off_maybe;
};

struct lk_set {
    sqlock_registry *registry;
    struct lk_member *members; /* sorted by key */
    size_t count;
    bool is_refused; /* the statement about all failed, and err says why */
    int *results;    /* of the application, in its order; NULL */
    struct lk_batch batch; /* of leases that are renewed or released */
    /* used when count is 1 */
    struct lk_member one;
    struct lk_item one_item;
};

/* Make a sorted set of locks that the application has given.  Call lk_set_end()
 * even after a failure.  Return 0; or EINVAL, EFORK or ENOMEM, and then
 * `results` is not written. */
int lk_set_begin(struct lk_set *set, sqlock_lock *const *locks, size_t count,
                 int *results, sqlock_error *err);

/* Make a set of one lock that has been checked.  `results` is not set. */
void lk_set_of_one(struct lk_set *set, sqlock_lock *lock);

/* Write the results, and free the set.  rc < 0 is also the result of each
 * member without one of its own.  Return rc, or if it is 0 the first result of
 * a member, in order of the keys, that is not 0. */
int lk_set_end(struct lk_set *set, int rc, sqlock_error *err);

#endif
