/*
 * set.c - sort the locks of one call by key (set.h)
 */
#include "lock/set.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static int by_key(const void *a, const void *b)
{
    const struct lk_member *left = a;
    const struct lk_member *right = b;

    return strcmp(left->lock->slot->key, right->lock->slot->key);
}

static int check(sqlock_lock *const *locks, size_t count, sqlock_error *err)
{
    if (locks == NULL || count == 0 || count > SQLOCK_MANY_MAX)
        return lk_error(err, SQLOCK_EINVAL, "give 1 to %d locks",
                        SQLOCK_MANY_MAX);
    for (size_t i = 0; i < count; i++) {
        int rc = lk_lock_check(locks[i], err);

        if (rc < 0)
            return rc;
        if (locks[i]->registry != locks[0]->registry)
            return lk_error(err, SQLOCK_EINVAL,
                            "the locks belong to different registries");
    }
    return 0;
}

static int sort(struct lk_set *set, sqlock_error *err)
{
    qsort(set->members, set->count, sizeof *set->members, by_key);
    for (size_t i = 1; i < set->count; i++)
        if (set->members[i].lock->slot == set->members[i - 1].lock->slot)
            return lk_error(err, SQLOCK_EINVAL, "a lock is given twice");
    return 0;
}

void lk_set_of_one(struct lk_set *set, sqlock_lock *lock)
{
    memset(set, 0, sizeof *set);
    set->registry = lock->registry;
    set->count = 1;
    set->members = &set->one;
    set->batch.items = &set->one_item;
    set->one.lock = lock;
}

int lk_set_begin(struct lk_set *set, sqlock_lock *const *locks, size_t count,
                 int *results, sqlock_error *err)
{
    int rc;

    memset(set, 0, sizeof *set);
    rc = check(locks, count, err);
    if (rc < 0)
        return rc;
    lk_set_of_one(set, locks[0]);
    if (count == 1) {
        set->results = results;
        return 0;
    }
    set->members = calloc(count, sizeof *set->members);
    set->batch.items = calloc(count, sizeof *set->batch.items);
    if (set->members == NULL || set->batch.items == NULL) {
        set->count = 0;
        return lk_error_nomem(err);
    }
    set->count = count;
    for (size_t i = 0; i < count; i++) {
        set->members[i].lock = locks[i];
        set->members[i].place = i;
    }
    rc = sort(set, err);
    if (rc == 0)
        set->results = results;
    return rc;
}

/* Say which member has failed, and why: as the call has told, or by its
 * code. */
static void name_member(const struct lk_member *member, sqlock_error *err)
{
    if (err == NULL)
        return;
    if (!member->is_told || err->code != member->rc)
        (void)lk_error(err, member->rc, "%s", sqlock_strerror(member->rc));
    else if (member->rc == SQLOCK_EDEADLOCK)
        return; /* lk_deadlock() names it for a call for one, too */
    lk_error_name(err, member->lock->slot);
}

/* Return whether a call on several locks may fail with that code because of one
 * of them. */
static bool is_of_a_lock(int rc)
{
    switch (rc) {
    case SQLOCK_EBUSY:
    case SQLOCK_ETIMEDOUT:
    case SQLOCK_ELOST:
    case SQLOCK_EEXPIRED:
    case SQLOCK_EINVAL:
    case SQLOCK_EINUSE:
    case SQLOCK_ECONFLICT:
    case SQLOCK_EDEADLOCK:
        return true;
    default:
        return false;
    }
}

int lk_set_end(struct lk_set *set, int rc, sqlock_error *err)
{
    const struct lk_member *first = NULL; /* in the caller's order */

    for (size_t i = 0; set->results != NULL && i < set->count; i++) {
        const struct lk_member *member = &set->members[i];

        set->results[member->place] =
            rc < 0 && member->rc == 0 ? rc : member->rc;
    }
    for (size_t i = 0; i < set->count; i++) {
        const struct lk_member *member = &set->members[i];

        if (member->rc < 0 && (rc == 0 || member->rc == rc) &&
            (first == NULL || member->place < first->place))
            first = member;
    }
    if (first != NULL && set->count > 1 && !set->is_refused &&
        (rc == 0 || is_of_a_lock(rc)))
        name_member(first, err);
    if (first != NULL)
        rc = first->rc;
    if (set->members != &set->one) {
        free(set->members);
        free(set->batch.items);
    }
    return rc;
}
