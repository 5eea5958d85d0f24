/*
 * crew.h - threads that want the same kind of thing done: one of them, a
 * leader, does it for all that wait
 *
 * A thread that finds a place free leads at once.  Otherwise it waits, until a
 * leader has done its work, too, or leaves it the place.  A member stands on
 * the stack of its thread, and is the thread's own again once it is DONE.
 */
#ifndef LK_CREW_H
#define LK_CREW_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum lk_crew_state {
    LK_CREW_WAITS, /* in the queue, or a leader has taken it */
    LK_CREW_LEADS, /* has a place */
    LK_CREW_DONE,  /* a leader has done its work */
    LK_CREW_LEFT   /* its time was over */
};

struct lk_crew_member {
    struct lk_crew_member *next;
    sem_t called;     /* posted when it is done, or is to lead */
    uint64_t came_in; /* number of the last round that was over when it came */
    /* atomic because sanitizers do not know that sem_clockwait() orders
     * memory */
    _Atomic(enum lk_crew_state) state;
};

struct lk_crew {
    pthread_mutex_t mutex;
    struct lk_crew_member *first, *last; /* those that wait */
    uint32_t places;                     /* leaders at most */
    uint32_t leaders;
    uint64_t rounds; /* how often a member has begun to lead */
    /* of a crowd, which is more members than this or than places, one leads,
     * until the patience of another is over.  0: there is no crowd; each place
     * goes to the next that waits, and members are not counted. */
    uint32_t crowd;
    uint32_t members; /* those that wait, lead, or are worked for */
};

void lk_crew_init(struct lk_crew *crew, uint32_t places, uint32_t crowd);
void lk_crew_clear(struct lk_crew *crew);

/* Join, and wait until a leader has done the work, or the member leads, or
 * until_ns (CLOCK_MONOTONIC).  After patience_ns, and twice that, and so on, it
 * takes a place that is free.  Return LEADS, DONE or LEFT.  *has_waited: it did
 * not lead at once.  Afterwards call lk_crew_leave(). */
enum lk_crew_state lk_crew_join(struct lk_crew *crew,
                                struct lk_crew_member *self, int64_t until_ns,
                                int64_t patience_ns, bool *has_waited);

/* Take out of the queue those whose work goes with the leader's (goes_with is
 * NULL: all), so many at most, and append them to `head`.  Return how many. */
size_t lk_crew_gather(struct lk_crew *crew, struct lk_crew_member *head,
                      size_t most,
                      bool (*goes_with)(const struct lk_crew_member *leader,
                                        const struct lk_crew_member *other));

bool lk_crew_is_waited_for(struct lk_crew *crew);

/* Leave the leader's place to the first that waits, or give it up. */
void lk_crew_pass_on(struct lk_crew *crew);

/* Wake the members behind `head` in its list, whose work is done. */
void lk_crew_dismiss(struct lk_crew_member *head);

void lk_crew_leave(struct lk_crew *crew, struct lk_crew_member *self);

#endif
