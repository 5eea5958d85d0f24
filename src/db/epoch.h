/*
 * epoch.h - whose history of the data the connections have found, and whether
 * that changes: after a failover the new server may lack what the old one had
 * acknowledged (F57)
 */
#ifndef LK_EPOCH_H
#define LK_EPOCH_H

#include <pthread.h>

#include "sqlock.h"

/* To be told of a change, by whoever opened the connection that found it. */
typedef void (*lk_epoch_fn)(void *context, const char *before, const char *now);

struct lk_epoch {
    lk_epoch_fn changed; /* NULL: nobody; not to be set any more once there are
                            connections */
    void *context;
    pthread_mutex_t mutex; /* of what follows */
    char last[SQLOCK_EPOCH_SIZE];
    uint32_t changes;
};

void lk_epoch_init(struct lk_epoch *epoch);
void lk_epoch_clear(struct lk_epoch *epoch);

/* What a new connection has found; "" tells nothing. */
void lk_epoch_note(struct lk_epoch *epoch, const char *now);

/* The last one, and how often it was another than before. */
uint32_t lk_epoch_last(struct lk_epoch *epoch, char last[SQLOCK_EPOCH_SIZE]);

#endif
