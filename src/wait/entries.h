/*
 * entries.h - the table of the locks that this process uses, and the services
 * that wake their waiters
 *
 * Order of mutexes: canceller, poller, deadlock, entries, entry, waiter.  None
 * is held during I/O.
 */
#ifndef LK_ENTRIES_H
#define LK_ENTRIES_H

#include <pthread.h>

#include "lease/store.h"
#include "wait/bell.h"
#include "wait/cancel.h"
#include "wait/poller.h"

struct lk_entry;

struct lk_entries {
    struct lk_store *store;
    /* Reports leases that are over (src/locks), and cancels waits by
     * descriptors.  Its thread does no I/O with the database, and waits only
     * for callbacks of the application. */
    struct lk_service events;
    struct lk_bell bell;
    struct lk_poller poller;
    struct lk_canceller canceller;
    pthread_mutex_t mutex; /* guards the following fields */
    struct lk_entry *by_key;
};

void lk_entries_init(struct lk_entries *all, struct lk_store *store);

/* Stop the poller, the canceller and the thread of `events`.  May be called
 * again.  No wait may begin afterwards. */
void lk_entries_stop(struct lk_entries *all);

/* Free the remaining entries.  There must be no references left. */
void lk_entries_clear(struct lk_entries *all);

/* Find or create the entry of a key, and add a reference.  `key` has
 * SQLOCK_KEY_SIZE bytes; a new entry copies key and name.  NULL: out of
 * memory. */
struct lk_entry *lk_entry_of(struct lk_entries *all, const char *key,
                             const char *name);

/* Drop a reference; the last one frees the entry. */
void lk_entry_drop(struct lk_entry *entry);

#endif
