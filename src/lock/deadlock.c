/*
 * deadlock.c - find circles of threads that wait for each other (deadlock.h)
 *
 * While the mutex is held, nobody ends or begins a wait that is in the table:
 * each thread that the search finds there is in its call, and holds what it
 * held when it began to wait.
 */
#include "lock/deadlock.h"

#include <unistd.h>

#include "base/error.h"
#include "lock/hold.h"

/* guarded by the mutex */
static struct lk_part *waits; /* hash table, by owner; of all registries */
static pid_t pid;             /* the process whose threads are in it */

/* In the child of a fork none of the threads waits any more.  The caller of the
 * static functions holds the mutex. */
static void forget_parent(void)
{
    if (pid != getpid())
        waits = NULL;
    pid = getpid();
}

static struct lk_part *wait_of(uint64_t owner)
{
    struct lk_part *part;

    HASH_FIND(waiting.hh, waits, &owner, sizeof owner, part);
    return part;
}

/* Return the owner that holds the lock or has its turn; 0: none, or nobody
 * waits for its release, since it is over or under way. */
static uint64_t keeper_of(const struct lk_slot *slot, bool *has_turn)
{
    const struct lk_hold *hold = lk_present(slot);

    *has_turn = slot->turn != NULL;
    if (*has_turn)
        return slot->turn->owner;
    if (hold == NULL || hold->state != LK_HOLD_HELD || hold->is_left_behind ||
        lk_is_overdue(slot))
        return 0;
    return hold->owner;
}

/* Return the wait of whoever has the lock that this one waits for; NULL: it
 * does not wait in a FIFO, or for this row itself.  *keeps: it has the turn
 * only, while it waits for another lock. */
static struct lk_part *next_of(const struct lk_part *part, bool *keeps)
{
    struct lk_part *next = wait_of(keeper_of(part->slot, keeps));

    return next != NULL && next->slot != part->slot ? next : NULL;
}

/* Return whether the thread waits for itself.  *yields: the wait of an
 * acquisition that keeps a row in the circle, if there is one. */
static bool is_circle(const struct lk_part *self, struct lk_part **yields)
{
    const struct lk_part *part = self;

    /* There may be a circle without this thread, that is being left. */
    for (size_t most = HASH_CNT(waiting.hh, waits); most > 0; most--) {
        bool keeps;
        struct lk_part *next = next_of(part, &keeps);

        if (next == NULL)
            return false;
        if (keeps)
            *yields = next;
        if (next == self)
            return true;
        part = next;
    }
    return false;
}

/* Return whether the owner is a thread, which waits until the part leaves the
 * FIFO. */
static bool is_thread(const struct lk_part *part)
{
    return part->waiter->on_wake == NULL &&
           part->slot->store->options.ownership == SQLOCK_OWNED_BY_THREAD;
}

void lk_deadlock_begin(struct lk_part *part)
{
    struct lk_part *yields = NULL;

    if (!is_thread(part))
        return;
    pthread_mutex_lock(&lk_mutex);
    forget_parent();
    part->waiter->is_deadlocked = false;
    HASH_ADD(waiting.hh, waits, owner, sizeof part->owner, part);
    part->waiting.is_noted = part->waiting.hh.tbl != NULL;
    if (part->waiting.is_noted && is_circle(part, &yields)) {
        if (yields != NULL)
            lk_waiter_yield(yields->waiter);
        else
            part->waiter->is_deadlocked = true;
    }
    pthread_mutex_unlock(&lk_mutex);
}

void lk_deadlock_end(struct lk_part *part)
{
    if (!part->waiting.is_noted)
        return;
    pthread_mutex_lock(&lk_mutex);
    HASH_DELETE(waiting.hh, waits, part);
    part->waiting.is_noted = false;
    part->waiter->is_deadlocked = false;
    pthread_mutex_unlock(&lk_mutex);
}

int lk_deadlock(const struct lk_part *part, sqlock_error *err)
{
    return lk_error(err, SQLOCK_EDEADLOCK,
                    "whoever holds the lock waits, directly or through others, "
                    "for a lock that this caller holds: release that first, or "
                    "take both in one call (%s)",
                    part->slot->name);
}
