/*
 * bell.h - waiting at a doorbell for another process, and ringing it
 *
 * Where there is none, or none is left for this wait, the row is looked at
 * (wait.h).  The lease's row decides in any case.
 */
#ifndef LK_BELL_H
#define LK_BELL_H

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

/* The acquisition is over.  *bell, of a lease that was granted, or NULL. */
void lk_bell_finish(struct lk_bell_wait *wait, struct lk_bell *bell);

/* Whether the session of a claim is the one its lease is to be released on. */
bool lk_bell_is_of_claim(const sqlock_registry *registry);

/* A claim was granted on that session of the pool. */
void lk_bell_of_claim(const sqlock_registry *registry, struct lk_bell *bell,
                      uint64_t session);

/* The release of a lease that has a connection, on it.  As lk_db_run_on();
 * EUNREACHABLE: it is not to be sent there. */
int lk_bell_release(sqlock_registry *registry, const struct lk_bell *bell,
                    struct lk_run *run, sqlock_result *result,
                    sqlock_error *err);

/* The lease is over; `rang`: its release has given up the doorbell already. */
void lk_bell_end(sqlock_registry *registry, const char *key,
                 struct lk_bell *bell, bool rang);

#endif
