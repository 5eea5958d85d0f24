/*
 * turns.h - count how often a lock goes from one client to another, over the
 * clients of all processes
 *
 * In the benchmark a turn is one acquisition by a client.  It counts if another
 * client had the lock before, and not if the same client acquires the lock
 * again before a waiter has woken.
 */
#ifndef BENCH_TURNS_H
#define BENCH_TURNS_H

#include <stdint.h>

struct bench_failure;

/* Counts since the last bench_turns_take(). */
struct bench_turns {
    uint64_t changes;  /* turns of another client than the turn before */
    unsigned in_a_row; /* the most turns of one client in a row */
};

/** Set up the counts, which are shared with client processes that are started
 *  later.  Further calls do nothing.  @return 0; -1 with the reason */
int bench_turns_open(struct bench_failure *failure);

/** Count a turn of a client.  The caller holds the lock that excludes the other
 *  clients. */
void bench_turn(unsigned client);

/** Return the counts, and count from 0 again. */
struct bench_turns bench_turns_take(void);

#endif /* BENCH_TURNS_H */
