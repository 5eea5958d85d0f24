/*
 * epoch.h - whose history of the data the connections have found, and whether
 * that changes: after a failover the new server may lack what the old one had
 * acknowledged (F57)
 */
#ifndef LK_EPOCH_H
#define LK_EPOCH_H

#include <pthread.h>

#include "sqlock/driver.h"

/* To be told of a change, by whoever opened the connection that found it. */
typedef void (*lk_epoch_fn)(void *context, const char *before, const char *now);

/* To be told of settings by which a crash of the server may lose commits. */
typedef void (*lk_forgets_fn)(void *context, const char *settings);

struct lk_epoch {
    lk_epoch_fn changed; /* NULL: nobody; not to be set any more once there are
                            connections; so is the next one */
    lk_forgets_fn forgets;
    void *context;
    pthread_mutex_t mutex; /* of what follows */
    char last[SQLOCK_EPOCH_SIZE];
    uint32_t changes;
    char settings[sizeof((sqlock_description *)0)->forgets]; /* told last */
};

void lk_epoch_init(struct lk_epoch *epoch);
void lk_epoch_clear(struct lk_epoch *epoch);

/* Note the epoch that a new connection has found; "" tells nothing. */
void lk_epoch_note(struct lk_epoch *epoch, const char *now);

/* Note the settings that a connection has found.  They are logged once, and
 * again when they change. */
void lk_epoch_note_settings(struct lk_epoch *epoch, const char *settings);

/* Copy the last epoch.  Return how often it has changed. */
uint32_t lk_epoch_last(struct lk_epoch *epoch, char last[SQLOCK_EPOCH_SIZE]);

#endif
