/*
 * turns.h - whose turn it was, of the clients of all processes
 *
 * A turn counts when the lock goes from one client to another, not when the
 * last one takes it again before anybody has woken.
 */
#ifndef BENCH_TURNS_H
#define BENCH_TURNS_H

#include <stdint.h>

struct bench_failure;

/* Of all since they were counted from 0. */
struct bench_turns {
    uint64_t changes;  /* turns of another client than the one before */
    unsigned in_a_row; /* the most of one client */
};

/** Make room for them; client processes that are begun later share it. */
int bench_turns_open(struct bench_failure *failure);

/** It is that client's turn; by whoever keeps out all others. */
void bench_turn(unsigned client);

/** Count from 0 again; what was counted. */
struct bench_turns bench_turns_take(void);

#endif /* BENCH_TURNS_H */
