/*
 * waiters.h - tell who waits for a lock, from the QUEUE of its row
 */
#ifndef LK_WAITERS_H
#define LK_WAITERS_H

#include <stdint.h>
#include <stdio.h>

/* Those who wait for a lock. */
struct lk_waiters {
    int32_t count;
    int32_t place; /* of the registry that asks, from 1; 0: none */
    char *text;    /* see lk_waiters_read(); the caller frees it */
};

/* Read a queue, for a registry of that number, at now_us by the database's
 * clock.  The text has a line for each waiter, in order: who it is, whether it
 * waits to share the lock, and for how long it has waited; NULL: there are
 * none.  Return 0 or ENOMEM. */
int lk_waiters_read(const char *queue, const char *number, int64_t now_us,
                    struct lk_waiters *out);

/* Write what a share takes, ", weight 2", unless it is 1. */
void lk_write_weight(FILE *out, uint32_t weight);

#endif
