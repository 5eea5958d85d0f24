/*
 * epoch.h - detect a change of the server's history (its epoch): after a
 * failover the new server may lack what the old one had acknowledged (F57)
 */
#ifndef LK_EPOCH_H
#define LK_EPOCH_H

#include <pthread.h>

#include "sqlock/driver.h"

/* Called when the epoch changes, by the thread that opened the connection. */
typedef void (*lk_epoch_fn)(void *context, const char *before, const char *now);

/* Called with settings by which a crash of the server may lose commits. */
typedef void (*lk_forgets_fn)(void *context, const char *settings);

struct lk_epoch {
    /* NULL: none; set it, and the next one, before there are connections */
    lk_epoch_fn changed;
    lk_forgets_fn forgets;
    void *context;
    pthread_mutex_t mutex; /* guards the following fields */
    char last[SQLOCK_EPOCH_SIZE];
    uint32_t changes;
    /* reported last */
    char settings[sizeof((sqlock_description *)0)->forgets];
};

void lk_epoch_init(struct lk_epoch *epoch);
void lk_epoch_clear(struct lk_epoch *epoch);

/* Note the epoch of a new connection; "": unknown. */
void lk_epoch_note(struct lk_epoch *epoch, const char *now);

/* Note the settings that a connection has found.  They are logged once, and
 * again when they change. */
void lk_epoch_note_settings(struct lk_epoch *epoch, const char *settings);

/* Copy the last epoch.  Return how often it has changed. */
uint32_t lk_epoch_last(struct lk_epoch *epoch, char last[SQLOCK_EPOCH_SIZE]);

#endif
