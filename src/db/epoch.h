/*
 * epoch.h - detect a change of the server's history (its epoch): after a
 * failover the new server may lack what the old one had acknowledged (F57)
 */
#ifndef LK_EPOCH_H
#define LK_EPOCH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "db/driver.h"

/* Called when the epoch changes, by the thread that opened the connection.
 * The texts are valid during the call only. */
typedef void (*lk_epoch_fn)(void *context, const char *before, const char *now);

/* Called, as lk_epoch_fn, with settings of the server by which a crash of the
 * server may lose commits: "fsync = off". */
typedef void (*lk_forgets_fn)(void *context, const char *settings);

struct lk_connection;

/* Called before a statement that may grant a lease is sent on a connection: on
 * which none was sent since the epoch changed, or while the server grants
 * nothing.  Find out
 * whether the server may have forgotten leases, and set lk_epoch_hold_back().
 * Return 0, or why nothing may be sent. */
typedef int (*lk_epoch_check_fn)(void *context,
                                 struct lk_connection *connection,
                                 int64_t deadline_ns, sqlock_error *err);

struct lk_epoch {
    /* callbacks, or NULL, and their first argument; to be set before other
     * threads open connections */
    lk_epoch_fn changed;
    lk_forgets_fn forgets;
    lk_epoch_check_fn check;
    void *context;
    /* until when the server grants nothing, CLOCK_BOOTTIME; 0: it grants */
    _Atomic int64_t held_until_ns;
    pthread_mutex_t mutex; /* guards the following fields */
    /* "" until an epoch is known */
    char last[SQLOCK_EPOCH_SIZE];
    _Atomic uint32_t changes; /* of `last`, since lk_epoch_init() */
    /* found by the last connection */
    char settings[sizeof((sqlock_description *)0)->forgets];
};

void lk_epoch_init(struct lk_epoch *epoch);
void lk_epoch_clear(struct lk_epoch *epoch);

/* Note the epoch of a new connection ("": unknown), and call `changed` if it is
 * another one than the last.  *changes is how often it had changed when the
 * connection began to be opened, and becomes how often it has.  Return false,
 * and note nothing, if that connection leads to a server that was left for
 * another one meanwhile. */
bool lk_epoch_note(struct lk_epoch *epoch, const char *now, uint32_t *changes);

/* Note the settings that a new connection has found, and call `forgets` unless
 * there are none ("") or the connection before had found the same. */
void lk_epoch_note_settings(struct lk_epoch *epoch, const char *settings);

/* Copy the last known epoch.  Return how often it has changed since
 * lk_epoch_init(). */
uint32_t lk_epoch_last(struct lk_epoch *epoch, char last[SQLOCK_EPOCH_SIZE]);

/* Let nothing be granted until then, CLOCK_BOOTTIME; 0: let it be. */
void lk_epoch_hold_back(struct lk_epoch *epoch, int64_t until_ns);

/* Return for how many ns the server grants nothing; 0: it grants. */
int64_t lk_epoch_held_ns(const struct lk_epoch *epoch);

/* Return rc, with for how long the server grants nothing as its message, if it
 * does not. */
int lk_epoch_error(const struct lk_epoch *epoch, int rc, sqlock_error *err);

#endif
