/*
 * publish.c - publish the text of a leader
 */
#include "base/error.h"
#include "base/thread.h"
#include "lease/leader.h"
#include "lease/leader_text.h"
#include "lock/call.h"
#include "lock/guarded.h"

int sqlock_publish(sqlock_lock *lock, const char *text, sqlock_error *err)
{
    struct lk_store *store;
    struct lk_lease lease;
    struct lk_hold *hold;
    sqlock_error own = {0};
    int before;
    int rc = lk_guarded_store(lock, &store, err);

    if (rc == 0)
        rc = lk_leader_check(text, err);
    if (rc < 0)
        return rc;
    before = lk_cancel_defer();
    rc = lk_call_begin(lock, false, &hold, &lease, &own);
    if (rc == 0) {
        rc = lk_leader_publish(store, &lease, text, &own);
        rc = lk_call_end(lock, hold, rc, &own);
    }
    lk_cancel_allow(before);
    return lk_error_pass(err, &own, rc);
}
