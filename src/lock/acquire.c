/*
 * acquire.c - acquire one lock or many
 */
#include "lock/acquire.h"

#include "base/error.h"
#include "base/thread.h"
#include "lock/care.h"
#include "lock/release.h"

/* Begin to renew and watch each lock that was granted.  Each member's rc is its
 * own result; return the first that is not 0. */
static int begin_care(struct lk_set *set, const struct lk_acquisition *a,
                      sqlock_error *err)
{
    int result = 0;

    for (size_t i = 0; i < set->count; i++) {
        struct lk_member *member = &set->members[i];

        if (a->parts[i].state != LK_PART_HELD)
            continue;
        member->rc = lk_care_begin(member->lock, a->parts[i].grant,
                                   result == 0 ? err : NULL);
        if (result == 0)
            result = member->rc;
    }
    return result;
}

/* Release the acquired locks, because at least one cannot be renewed or watched
 * as requested.  They are released one at a time, which needs no memory. */
static void undo(struct lk_set *set, const struct lk_acquisition *a)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct lk_part *part = &a->parts[i];

        if (part->state == LK_PART_HELD || part->state == LK_PART_NESTED)
            lk_undo(set->members[i].lock, part->grant);
    }
}

int lk_take(struct lk_set *set, struct lk_acquisition *a, bool may_block,
            sqlock_error *err)
{
    int rc =
        may_block ? lk_acquisition_run(a, err) : lk_acquisition_go_on(a, err);

    if (rc == LK_SUSPENDED || rc == LK_BLOCKED)
        return rc;
    for (size_t i = 0; i < set->count; i++) {
        set->members[i].rc = a->parts[i].rc;
        set->members[i].is_told = true;
    }
    if (rc == 0)
        rc = begin_care(set, a, err);
    if (rc < 0 && a->rc == 0)
        undo(set, a);
    return rc;
}

/* Acquire the locks of a set.  Return a result of lk_take(), or EINVAL or
 * ENOMEM if the acquisition cannot begin. */
static int acquire(struct lk_set *set, int64_t wait_ms,
                   const sqlock_acquire_options *options, sqlock_error *err)
{
    struct lk_acquisition a;
    int before;
    int rc = lk_acquisition_begin(&a, set, wait_ms, options, 0, err);

    if (rc < 0)
        return rc;
    before = lk_cancel_defer();
    (void)lk_acquisition_enter(&a, err);
    rc = lk_take(set, &a, true, err);
    lk_acquisition_end(&a);
    lk_cancel_allow(before);
    return rc;
}

int sqlock_acquire(sqlock_lock *lock, int64_t wait_ms,
                   const sqlock_acquire_options *options, sqlock_error *err)
{
    struct lk_set set;
    sqlock_error own = {0};
    int rc = lk_lock_check(lock, err);

    if (rc < 0)
        return rc;
    lk_set_of_one(&set, lock);
    rc = acquire(&set, wait_ms, options, &own);
    return lk_error_pass(err, &own, lk_set_end(&set, rc, &own));
}

int sqlock_acquire_many(sqlock_lock *const *locks, size_t count,
                        int64_t wait_ms, const sqlock_acquire_options *options,
                        int *results, sqlock_error *err)
{
    struct lk_set set;
    sqlock_error own = {0};
    int rc = lk_set_begin(&set, locks, count, results, &own);

    if (rc == 0)
        rc = acquire(&set, wait_ms, options, &own);
    return lk_error_pass(err, &own, lk_set_end(&set, rc, &own));
}

int sqlock_cancel(sqlock_lock *lock, sqlock_error *err)
{
    int rc = lk_lock_ours(lock, err);

    if (rc == 0)
        lk_slot_cancel(lock->slot,
                       lk_is_shared(lock->registry) ? 0 : lock->owner);
    return rc;
}
