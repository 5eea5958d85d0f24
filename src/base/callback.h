/*
 * callback.h - which callbacks of the application run in this thread
 *
 * A call that waits for a callback to return, or frees what it works with,
 * would wait for itself when the callback makes it.  Garbage collectors and
 * destructors make such calls without the application's knowledge.
 */
#ifndef LK_CALLBACK_H
#define LK_CALLBACK_H

#include <stdbool.h>

/* One callback that is running, on the stack of the function that calls it. */
struct lk_callback {
    const void *store; /* whose callback it is */
    const void *lock;  /* the lock that it is told of; NULL: on_event */
    struct lk_callback *outer;
};

void lk_callback_begin(struct lk_callback *callback, const void *store,
                       const void *lock);
void lk_callback_end(const struct lk_callback *callback);

/* Return whether this thread runs any callback of the store; its on_event; or
 * the on_lost of that lock. */
bool lk_callback_of(const void *store);
bool lk_callback_of_event(const void *store);
bool lk_callback_of_lock(const void *lock);

#endif
