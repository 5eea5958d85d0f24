/*
 * bell.h - hear that a row may be ours: the sessions at which other processes
 * ring
 *
 * A release reserves the row for the first ticket in its QUEUE, and rings the
 * bell of that waiter's process.  The bell's thread then wakes the waiter,
 * which claims: a bell only says "look", the row decides (F81).
 *
 * Where the database can call a session (PostgreSQL, and SQLite by a socket),
 * one session hears for all waiters of the process, the hearer of the pool.  On
 * PostgreSQL it runs all statements while nobody sleeps, and otherwise those
 * that only read, so that a process that waits has one session.  On MySQL and
 * MariaDB a session can only wait for another one: there each waiter has a
 * session of its own, which waits for the bell of one before it in the queue,
 * and keeps its own bell until it has released the lease.
 */
#ifndef LK_BELL_H
#define LK_BELL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/service.h"
#include "sqlock.h"

struct lk_connection;
struct lk_observer;
struct lk_part;

/* The rings that a part hears. */
enum lk_hearing {
    LK_HEARS_NOTHING, /* it does not wait, or there is no bell */
    LK_HEARS_ALL,     /* by the process's session, by its CLIENT_ID */
    LK_HEARS_BEFORE   /* its slot's session waits for the one before it */
};

/* A part's place at the bell; guarded by the bell's mutex. */
struct lk_ear {
    struct lk_part *next, *previous;
    enum lk_hearing hearing;
    int fd;          /* of LK_HEARS_BEFORE */
    bool is_asleep;  /* it waits for a ring of the session */
    unsigned heard;  /* bell.number when its claim was sent */
    bool is_rung;    /* the row was reserved for the part's ticket */
    bool was_free;   /* the bell of the one before was free */
    int64_t look_ns; /* when to wake it, CLOCK_BOOTTIME; LK_NEVER: at a ring */
};

struct lk_bell {
    struct sqlock_registry *registry;
    struct lk_service service;
    struct lk_handler handler;
    /* guards the following fields and parts' ears, also while the sessions are
     * read, which does not block, or one is closed; taken before the mutex of
     * slot.h, and that of the pool, which is taken before the service's */
    pthread_mutex_t mutex;
    struct lk_part *listeners;
    struct lk_observer *observers;
    size_t sleepers; /* how many parts are asleep */
    bool is_open;    /* a session hears for all, as far as is known */
    bool is_watched; /* its rings are read as they come */
    int fd;
    unsigned number;  /* how many have been opened */
    int64_t drain_ns; /* when to read what it has heard without being watched */
    /* some thread opens it: a second bell of that name would take the place of
     * the first */
    bool is_opening;
    pthread_cond_t opened; /* is_opening has become false */
    /* no bell is to be had here, as a pooler lends the sessions, or for want of
     * a right; not asked again before, CLOCK_MONOTONIC; 0: not known */
    int64_t none_until_ns;
};

void lk_bell_init(struct lk_bell *bell, struct sqlock_registry *registry);

/* Read the rings of the session that hears for all as they come while a part is
 * asleep or somebody observes, and let it run other statements as far as that
 * allows.  The caller holds the bell's mutex. */
void lk_bell_use(struct lk_bell *bell);

/* Stop the thread.  The parts have ended. */
void lk_bell_stop(struct lk_bell *bell);

/* Return whether there may be a bell, as far as is known. */
bool lk_bell_is_there(struct lk_bell *bell);

/* Expect rings for the ticket of the part's slot, before the claim is sent
 * that may put it into the row.  Nothing is sent, and a ring wakes the part. */
void lk_bell_expect(struct lk_part *part);

/* Have the session that hears for all.  *is_late: it was opened after `heard`
 * was read of bell.number, and did not hear what was rung before.  Return 0, or
 * a negative code as lk_bell_hear(). */
int lk_bell_hear_all(struct lk_bell *bell, unsigned heard, bool *is_late,
                     sqlock_error *err);

/* Begin to hear for a part whose ticket is in the row.  `before` is the
 * CLIENT_ID of the ticket before it, or of the holder.  *is_late: somebody may
 * have rung in vain since the claim was sent, so claim again at once.  Return
 * 0; or a negative code if there is no bell: then poll. */
int lk_bell_hear(struct lk_part *part, const char *before, int64_t until_ns,
                 bool *is_late, sqlock_error *err);

/* End hearing, and return whether the row was reserved for the part's ticket. A
 * session that still waits for the one before is closed. */
bool lk_bell_forget(struct lk_part *part);

#endif
