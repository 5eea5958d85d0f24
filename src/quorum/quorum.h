/*
 * quorum.h - a quorum and its members: one lock in each of several registries
 */
#ifndef LK_QUORUM_H
#define LK_QUORUM_H

#include <pthread.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/service.h"
#include "sqlock/admin.h"
#include "sqlock/async.h"
#include "sqlock/quorum.h"

enum lk_member_state {
    LK_MEMBER_IDLE,   /* not held, and nothing is under way */
    LK_MEMBER_ASKING, /* a request acquires it */
    LK_MEMBER_HELD,   /* it counts */
    /* A request acquires it, or has: the quorum is held without it.  It counts
     * once it is seen to be granted while the others are enough. */
    LK_MEMBER_LATE,
    LK_MEMBER_GIVEN_UP,  /* a request acquires it, and was cancelled */
    LK_MEMBER_RELEASING, /* a request releases it */
    LK_MEMBER_FAILED     /* not held, and not to be asked again: `rc` */
};

struct lk_member {
    sqlock_quorum *quorum;
    sqlock_registry *registry;
    sqlock_lock *lock; /* a handle, and so an owner, of its own */
    enum lk_member_state state;
    /* what is under way, was granted late, or could not be left behind */
    sqlock_request *request;
    int rc;           /* of the last request that has ended */
    bool counts;      /* it was held while the quorum was */
    bool is_in_doubt; /* whether its row is free is not known */
    bool is_first;    /* asked while nothing is held: others have had it */
    sqlock_error err; /* why rc is not 0 */
};

enum lk_quorum_state {
    LK_QUORUM_FREE,
    LK_QUORUM_CHANGING, /* a call acquires or releases it */
    LK_QUORUM_WON,      /* held, but the call that has acquired it goes on */
    LK_QUORUM_HELD
};

struct sqlock_quorum {
    /* constant */
    pid_t pid; /* of the process that obtained it */
    size_t count;
    size_t need;
    int ended_fd; /* an eventfd: a request has ended */
    /* has those count that are late, while no call changes the quorum */
    struct lk_service service;
    struct lk_handler late;

    /* used by the call that changes it */
    sqlock_acquire_options options;
    int64_t deadline_ns;
    int cancel_before; /* thread.h: the thread is not cancelled meanwhile */

    pthread_mutex_t mutex; /* guards the following fields */
    enum lk_quorum_state state;
    bool is_told;    /* on_lost was called */
    bool is_telling; /* `teller` runs on_lost */
    pthread_t teller;
    /* states are changed with the mutex, and read without it by the call that
     * changes the quorum */
    struct lk_member members[SQLOCK_QUORUM_MAX];
};

/* --- member.c --- */

/* Begin to acquire a member that is idle. */
void lk_member_ask(struct lk_member *member);

/* Begin to release a member that is held; cancel one that is asked; leave one
 * that is late. */
void lk_member_give_back(struct lk_member *member);

/* Leave a member behind that is not held: let its registry carry on with what
 * is under way, and free what that gets.  Return 0; or EINUSE, if an on_lost of
 * it waits for the callback that runs in this thread: it is still to be left
 * behind. */
int lk_member_leave(struct lk_member *member, sqlock_error *err);

/* Note what has ended. */
void lk_quorum_harvest(sqlock_quorum *quorum);

/* Wait until a request has ended, or that time.  Return 0, or ECANCELED if the
 * descriptor, unless it is 0, is readable. */
int lk_quorum_wait(sqlock_quorum *quorum, int64_t until_ns, int cancel_fd,
                   sqlock_error *err);

/* Return how many members are in that state. */
size_t lk_quorum_count(const sqlock_quorum *quorum, enum lk_member_state state);

/* Give all members back, and wait until nothing is under way. */
void lk_quorum_give_back(sqlock_quorum *quorum);

/* --- quorum.c --- */

/* Begin a call that changes the quorum, which is in that state; the call ends
 * by lk_quorum_settle().  Return 0, EINVAL, EFORK in a child
 * process, or EINUSE, also in on_event of a registry. */
int lk_quorum_begin(sqlock_quorum *quorum, enum lk_quorum_state from,
                    sqlock_error *err);
void lk_quorum_settle(sqlock_quorum *quorum, enum lk_quorum_state state);

/* Return whether the quorum is held, if enough members still are.  The caller
 * holds the mutex. */
bool lk_quorum_is_held(const sqlock_quorum *quorum);

/* Return for how long so many members as are needed are held.  Members that
 * are late, and were granted before that was over, count from here on.  The
 * caller holds the mutex, unless it changes the quorum. */
int64_t lk_quorum_left_ms(sqlock_quorum *quorum);

/* Let the service have members count when they are granted.  If there is no
 * thread to be had, they count when somebody asks. */
void lk_quorum_await_late(sqlock_quorum *quorum);

/* Refuse two registries that lead to one server. */
int lk_quorum_compare(const sqlock_quorum *quorum, sqlock_error *err);

#endif
