/*
 * observer.h - be woken when a leader changes: the interface between admin/ and
 * the bell
 */
#ifndef LK_OBSERVER_H
#define LK_OBSERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "sqlock.h"

struct lk_bell;

struct lk_observer {
    struct lk_observer *next, *previous; /* guarded by the bell's mutex */
    struct lk_bell *bell;
    const char *key;
    int fd;         /* readable: look now; -1: nobody tells, so poll */
    unsigned heard; /* as of struct lk_ear */
    /* the bell could not be had; not tried before, CLOCK_MONOTONIC */
    int64_t none_until_ns;
};

/* Observe the leader of that key, until lk_observer_end(). */
void lk_observer_begin(struct lk_observer *out, sqlock_registry *registry,
                       const char *key);
void lk_observer_end(struct lk_observer *observer);

/* Expect to be told of changes after now, before the row is read. */
void lk_observer_expect(struct lk_observer *observer);

/* Return whether it is told of changes, for which the bell is opened where that
 * is not yet so; then the descriptor is readable at once. */
bool lk_observer_hears(struct lk_observer *observer);

#endif
