/*
 * share.c - the calls of sqlock/shared.h: make a lease a share, and change a
 * lock's permits
 */
#include "sqlock/shared.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "lease/bell.h"
#include "lease/share.h"
#include "lease/ticket.h"
#include "lock/call.h"
#include "lock/guarded.h"

/* Note what became of the lease.  Where it is a share now, others of this
 * process may ask for theirs; a renewal that has found that out has let them
 * already. */
static void note(struct lk_hold *hold, const struct lk_lease *lease)
{
    bool was_share;

    pthread_mutex_lock(&lk_mutex);
    was_share = lk_is_share(hold);
    hold->lease = *lease;
    if (!was_share && lk_is_share(hold))
        lk_pass_turn(hold->slot);
    pthread_mutex_unlock(&lk_mutex);
}

static int downgrade(struct lk_store *store, struct lk_hold *hold,
                     struct lk_lease *lease, sqlock_error *err)
{
    int rc = lk_share_downgrade(store, lease, err);

    if (rc == SQLOCK_EUNCERTAIN)
        note(hold, lease);
    if (rc < 0)
        return rc;
    (void)lk_place_end(store, &lease->answered.place, false, false);
    note(hold, lease);
    return 0;
}

/* Ask those who wait to share the lock to look whether one is before them that
 * has died, if they may have waited for long.  Without an answer the lease may
 * be a share, too. */
static void ask_to_look(struct lk_store *store, const struct lk_lease *lease,
                        int rc)
{
    if ((rc == 0 || rc == SQLOCK_EUNCERTAIN) &&
        sqlock_monotonic_ns() >=
            lk_after_ms(lease->asked.began_ns, LK_RESERVED_MS))
        lk_bell_ask_to_look(store, &lease->key, 1, 0);
}

int sqlock_downgrade(sqlock_lock *lock, sqlock_error *err)
{
    struct lk_store *store;
    struct lk_lease lease;
    struct lk_hold *hold;
    sqlock_error own = {0};
    int before;
    int rc = lk_guarded_store(lock, &store, err);

    if (rc == 0)
        rc = lk_share_check(store, 1, LK_NO_LIMIT, err);
    if (rc < 0)
        return rc;
    before = lk_cancel_defer();
    rc = lk_call_begin(lock, true, &hold, &lease, &own);
    if (rc == 0) {
        rc = downgrade(store, hold, &lease, &own);
        rc = lk_call_end(lock, hold, rc, &own);
        ask_to_look(store, &lease, rc);
    }
    lk_cancel_allow(before);
    if (rc == LK_CALL_SHARED) /* perhaps one that is over by now */
        return sqlock_renew(lock, 0, err);
    return lk_error_pass(err, &own, rc);
}

int sqlock_set_permits(sqlock_registry *registry, const char *name,
                       uint32_t permits, sqlock_error *err)
{
    char key[SQLOCK_KEY_SIZE] = "";
    struct lk_store *store;
    int rc = lk_store_key(registry, name, &store, key, err);

    return rc < 0 ? rc : lk_share_set_permits(store, key, permits, err);
}
