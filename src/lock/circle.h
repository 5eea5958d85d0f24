/*
 * circle.h - find out that a wait would never end, because the holder waits for
 * a lock of the waiter, also in other processes
 *
 * deadlock.h refuses a circle of threads of this process at once.  Beyond that,
 * with the option detect_deadlocks, a waiting thread that holds a lock reads
 * now and then who waits for whom (lease/waits.h).  The table shows one
 * moment, and the waits of this process are added a moment later: so a
 * circle counts when it was seen twice.  The one that began to wait last is
 * refused.
 *
 * A call for many that keeps rows (kept.h) is in such a circle only until it
 * gives them back.  So it looks, too, without the option as well, and gives
 * them back before anybody has seen the circle twice.
 *
 * A lease that a request got has the request's mark in the table when a thread
 * has finished that.  So what the thread asks for has the mark of the lease
 * that it got first.  If it has leases with other marks, too, only its own
 * process knows whose they are: a circle through such a lease is told to that
 * thread, whenever it began to wait.
 *
 * A registry that owns locks does not wait, since each of its threads may
 * release them: its leases and tickets have marks of nobody (store.h).
 */
#ifndef LK_CIRCLE_H
#define LK_CIRCLE_H

#include <stdbool.h>
#include <stdint.h>

struct lk_acquisition;

struct lk_circle {
    int64_t look_ns; /* when at the soonest, CLOCK_MONOTONIC; LK_NEVER */
    bool was_seen;   /* at the last look */
};

/* Set when to look first. */
void lk_circle_begin(struct lk_acquisition *a);

/* Return when to call lk_circle_look(), CLOCK_MONOTONIC; LK_NEVER: never. */
int64_t lk_circle_look_ns(const struct lk_acquisition *a);

/* Look, if it is time.  A wait that would never end is marked by
 * self.is_deadlocked.  Return false if rows that are kept are in a circle, and
 * so are to be given back. */
bool lk_circle_look(struct lk_acquisition *a);

#endif
