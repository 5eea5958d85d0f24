/*
 * release.c - release one lock or many
 */
#include "lock/acquire.h"
#include "lock/care.h"
#include "sqlock/tx.h"

/* Report the release of a lease by an event, and before that the loss of the
 * lease if it was not known earlier. */
static void tell(sqlock_lock *lock, const struct lk_release_part *part)
{
    int64_t token = part->lease.token;

    if (part->lost == 0 &&
        (part->rc == SQLOCK_ELOST || part->rc == SQLOCK_EEXPIRED))
        lk_tell(lock, SQLOCK_EVENT_LOST, token, part->rc);
    lk_tell(lock, SQLOCK_EVENT_RELEASED, token, part->rc);
}

void lk_begin_give_back(struct lk_set *set, struct lk_release *release,
                        size_t i, const struct lk_undo *undo, sqlock_error *err)
{
    struct lk_member *member = &set->members[i];
    struct lk_release_part *part = &release->parts[i];

    lk_begin_release(part, member->lock->slot, undo, err);
    member->rc = part->rc;
    if (part->has_lease || part->is_owed)
        lk_end_care(member->lock, part->grant);
}

int lk_end_give_back(struct lk_set *set, struct lk_release *release,
                     sqlock_error *err)
{
    int rc = lk_release_run(release, err);

    for (size_t i = 0; i < set->count; i++) {
        const struct lk_release_part *part = &release->parts[i];
        struct lk_member *member = &set->members[i];

        member->rc = part->rc;
        if (part->has_lease)
            tell(member->lock, part);
    }
    lk_release_end(release);
    /* with several locks, each member has its own result */
    return set->count == 1 ? rc : 0;
}

/* Undo one acquire of each lock for the calling owner. */
static int give_back(struct lk_set *set, bool may_owe, sqlock_error *err)
{
    struct lk_release release;
    int rc = lk_release_begin(&release, &set->registry->store, set->count, err);

    if (rc < 0) {
        set->results = NULL; /* nothing was released: write no results */
        return rc;
    }
    for (size_t i = 0; i < set->count; i++)
        lk_begin_give_back(
            set, &release, i,
            &(struct lk_undo){.owner = lk_caller(set->members[i].lock),
                              .may_owe = may_owe},
            err);
    return lk_end_give_back(set, &release, err);
}

void lk_undo(sqlock_lock *lock, uint64_t grant)
{
    const struct lk_undo undo = {.grant = grant, .may_owe = true};
    struct lk_release release;
    struct lk_set set;

    lk_set_of_one(&set, lock);
    /* one lock needs no memory */
    (void)lk_release_begin(&release, &lock->registry->store, 1, NULL);
    lk_begin_give_back(&set, &release, 0, &undo, NULL);
    (void)lk_set_end(&set, lk_end_give_back(&set, &release, NULL), NULL);
}

static int release_all(sqlock_lock *const *locks, size_t count, bool may_owe,
                       int *results, sqlock_error *err)
{
    struct lk_set set;
    int rc = lk_set_begin(&set, locks, count, results, err);

    if (rc == 0)
        rc = give_back(&set, may_owe, err);
    return lk_set_end(&set, rc, err);
}

int sqlock_release_many(sqlock_lock *const *locks, size_t count, int *results,
                        sqlock_error *err)
{
    return release_all(locks, count, false, results, err);
}

int sqlock_abandon_many(sqlock_lock *const *locks, size_t count, int *results,
                        sqlock_error *err)
{
    return release_all(locks, count, true, results, err);
}

int sqlock_abandon(sqlock_lock *lock, sqlock_error *err)
{
    return sqlock_abandon_many(&lock, 1, NULL, err);
}

int sqlock_release(sqlock_lock *lock, sqlock_error *err)
{
    return release_all(&lock, 1, false, NULL, err);
}
