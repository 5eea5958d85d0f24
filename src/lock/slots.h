/*
 * slots.h - the table of the locks that this process uses, and the services
 * that wake their waiters
 *
 * Order of mutexes: canceller, poller, deadlock, slots, slot, waiter.  None
 * is held during I/O.
 */
#ifndef LK_SLOTS_H
#define LK_SLOTS_H

#include <pthread.h>

#include "lease/store.h"
#include "lock/bell.h"
#include "lock/cancel.h"
#include "lock/poller.h"

struct lk_slot;

struct lk_slots {
    struct lk_store *store;
    /* Reports leases that are over (src/lock), and cancels waits by
     * descriptors.  Its thread does no I/O with the database, and waits only
     * for callbacks of the application. */
    struct lk_service events;
    struct lk_bell bell;
    struct lk_poller poller;
    struct lk_canceller canceller;
    pthread_mutex_t mutex; /* guards the following fields */
    struct lk_slot *by_key;
};

void lk_slots_init(struct lk_slots *all, struct lk_store *store);

/* Stop the poller, the canceller and the thread of `events`.  May be called
 * again.  No wait may begin afterwards. */
void lk_slots_stop(struct lk_slots *all);

/* Free the remaining slots.  There must be no references left. */
void lk_slots_clear(struct lk_slots *all);

/* Find or create the slot of a key, and add a reference.  `key` has
 * SQLOCK_KEY_SIZE bytes; a new slot copies key and name.  NULL: out of
 * memory. */
struct lk_slot *lk_slot_of(struct lk_slots *all, const char *key,
                           const char *name);

/* Drop a reference; the last one frees the slot. */
void lk_slot_drop(struct lk_slot *slot);

#endif
