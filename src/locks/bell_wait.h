/*
 * bell_wait.h - waiting at a doorbell for another process
 *
 * Where there is none, or none is left for this wait, the row is looked at
 * (wait.h).  The lease's row decides in any case.
 */
#ifndef LK_BELL_WAIT_H
#define LK_BELL_WAIT_H

#include "lease/bell.h"
#include "locks/registry.h"

/* One acquisition that waits. */
struct lk_bell_wait {
    sqlock_lock *lock;
    struct lk_waiter *self;
    int64_t number;
    struct lk_connection *connection; /* NULL: none was needed yet */
    bool has_turn;                    /* the doorbell is this session's */
    bool is_listening;
    bool is_slow;   /* the lock is held for long */
    bool is_off;    /* there is no doorbell for this wait */
    bool may_look;  /* who has the lock has no doorbell: once */
    unsigned looks; /* with the turn, at a row that is taken all the same */
};

void lk_bell_begin(struct lk_bell_wait *wait, sqlock_lock *lock,
                   struct lk_waiter *self);

/* Whether there is a doorbell to wait at, with a connection for it. */
bool lk_bell_is_there(struct lk_bell_wait *wait);

/* Until it makes sense to claim: 0; or as lk_wait_for_row(), which is called
 * again after LK_PARKED. */
int lk_bell_await(struct lk_bell_wait *wait, sqlock_error *err);

/* That claim was refused. */
void lk_bell_refused(struct lk_bell_wait *wait);

/* The acquisition is over, with that result: 0 grants a lease, whose doorbell
 * is *bell. */
void lk_bell_finish(struct lk_bell_wait *wait, struct lk_bell *bell, int rc);

#endif
