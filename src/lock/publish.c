/*
 * publish.c - publish the text of a leader: a call about a held lock
 */
#include "base/error.h"
#include "lease/leader.h"
#include "lock/guarded.h"
#include "lock/hold.h"

static int check_alone(const sqlock_lock *lock, sqlock_error *err)
{
    const struct lk_hold *hold;
    bool is_share;

    pthread_mutex_lock(&lk_mutex);
    hold = lk_hold_of(lock->slot, lk_caller(lock));
    is_share = hold != NULL && lk_is_share(hold);
    pthread_mutex_unlock(&lk_mutex);
    return is_share ? lk_error(err, SQLOCK_EINVAL,
                               "who shares a lock leads nobody: take it with "
                               "SQLOCK_EXCLUSIVE to publish a text")
                    : 0;
}

/* Have the release tell those who observe, whatever comes of the statement. */
static void note_text(const sqlock_lock *lock, const struct lk_lease *lease)
{
    pthread_mutex_lock(&lk_mutex);
    lk_guarded_hold(lock, lease->client_id)->lease.has_text = true;
    pthread_mutex_unlock(&lk_mutex);
}

int sqlock_publish(sqlock_lock *lock, const char *text, sqlock_error *err)
{
    struct lk_store *store;
    struct lk_lease lease;
    sqlock_error own = {0};
    int rc = lk_guarded_store(lock, &store, err);

    if (rc == 0)
        rc = lk_leader_check(text, err);
    if (rc == 0)
        rc = check_alone(lock, err);
    /* As a guard does, this keeps the lease from being released or set aside
     * meanwhile. */
    if (rc == 0)
        rc = lk_guard_begin_alone(lock, store, &lease, err);
    if (rc < 0)
        return rc;
    rc = lk_guard_settle(lock, &lease, &own);
    if (rc == 0)
        note_text(lock, &lease);
    if (rc == 0)
        rc = lk_leader_publish(store, &lease, text, &own);
    rc = lk_guard_end_statement(lock, lease.client_id, rc, &own);
    return lk_error_pass(err, &own, rc);
}
