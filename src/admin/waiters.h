/*
 * waiters.h - tell who waits for a lock, from the QUEUE of its row
 */
#ifndef LK_WAITERS_H
#define LK_WAITERS_H

#include <stdint.h>
#include <stdio.h>

/* Count the waiters of a queue at now_us, by the database's clock, and set
 * *text to a line for each, in order: who it is, whether it waits to share the
 * lock, and for how long it has waited; NULL: there are none.  The caller frees
 * the text.  Return 0 or ENOMEM. */
int lk_waiters_read(const char *queue, int64_t now_us, int32_t *count,
                    char **text);

/* Write what a share takes, ", weight 2", unless it is 1. */
void lk_write_weight(FILE *out, uint32_t weight);

#endif
