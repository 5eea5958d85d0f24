/*
 * deadlock.c - find circles of threads and tasks that wait (deadlock.h)
 *
 * While the mutex is held, nobody ends or begins a wait that is in the table:
 * each actor that the search finds there is in its call, and holds what it held
 * when it began to wait.  lk_waits_are_closed() does the same with the
 * waits of all processes, but without turns that may be given up.
 */
#include "lock/deadlock.h"

#include <unistd.h>
#include <utlist.h>

#include "base/error.h"
#include "lease/sharer.h"
#include "lock/hold.h"

/* guarded by the mutex */
static struct lk_part *waits; /* hash table, by actor; of all registries */
static pid_t pid;             /* the process whose threads are in it */

/* In the child of a fork none of the threads waits any more.  The caller of the
 * static functions holds the mutex. */
static void forget_parent(void)
{
    if (pid != getpid())
        waits = NULL;
    pid = getpid();
}

/* Return the number of the thread or task that an owner is, or that uses it as
 * the options say; 0: not known. */
static uint64_t actor_of(const struct lk_slot *slot, uint64_t owner,
                         const sqlock_acquire_options *options)
{
    if (slot->store->options.ownership == SQLOCK_OWNED_BY_THREAD)
        return owner;
    return options->actor != 0 ? ~options->actor : 0; /* is no thread's */
}

static uint64_t holder_of(const struct lk_hold *hold)
{
    return actor_of(hold->slot, hold->owner, &hold->asked);
}

static uint64_t waiter_of(const struct lk_part *part)
{
    return actor_of(part->slot, part->owner, part->waiter->options);
}

static struct lk_part *wait_of(uint64_t actor)
{
    struct lk_part *part;

    HASH_FIND(waiting.hh, waits, &actor, sizeof actor, part);
    return part;
}

/* Return who holds the lock or has its turn; 0: nobody, or nobody waits for its
 * release, since it is over or under way. */
static uint64_t keeper_of(const struct lk_slot *slot, bool *has_turn)
{
    const struct lk_hold *hold = lk_present(slot);

    *has_turn = slot->turn != NULL;
    if (*has_turn)
        return waiter_of(slot->turn);
    if (hold == NULL || hold->state != LK_HOLD_HELD || hold->is_left_behind ||
        lk_is_overdue(slot))
        return 0;
    return holder_of(hold);
}

/* Return whether the part, which is in a FIFO, gets the turn although whoever
 * is stuck never goes on.  `by_giving_back`: also where that one has the turn
 * only, and waits for another lock, since it may give the turn up. */
static bool is_let_in_by_keeper(const struct lk_part *part, bool by_giving_back)
{
    bool has_turn;
    const struct lk_part *other = wait_of(keeper_of(part->slot, &has_turn));

    if (other == NULL || !other->waiting.is_stuck)
        return true;
    if (other->slot == part->slot) /* it waits for the row, or in the FIFO */
        return has_turn && other != part->slot->turn;
    return has_turn && by_giving_back;
}

/* Return whether the part, which waits for the row, has room there although
 * whoever shares the lock and is stuck never leaves.  Other processes may
 * share it, too: they leave no more room. */
static bool is_let_in_by_sharers(const struct lk_part *part)
{
    const struct lk_hold *hold;
    uint64_t taken = 0;

    DL_FOREACH(part->slot->holds, hold)
    {
        const struct lk_part *other = wait_of(holder_of(hold));

        if (lk_is_share(hold) && hold->state == LK_HOLD_HELD &&
            !hold->is_left_behind && !lk_hold_is_overdue(hold) &&
            other != NULL && other->waiting.is_stuck)
            taken += hold->lease.asked.weight;
    }
    return taken == 0 ||
           (part->weight > 0 && (part->permits == LK_NO_LIMIT ||
                                 taken + part->weight <= part->permits));
}

static bool is_let_in(const struct lk_part *part, bool by_giving_back)
{
    if (part->waiter->is_deadlocked || part->waiter->is_cancelled)
        return true; /* it is about to leave */
    if (part->state == LK_PART_TURN)
        return is_let_in_by_sharers(part);
    return part->state != LK_PART_QUEUED ||
           is_let_in_by_keeper(part, by_giving_back);
}

/* Of those that are noted as stuck, let go on who is let in, and whom those let
 * in, and so on. */
static void settle(bool by_giving_back)
{
    bool is_more = true;

    while (is_more) {
        is_more = false;
        for (struct lk_part *part = waits; part != NULL;
             part = part->waiting.hh.next) {
            if (!part->waiting.is_stuck || !is_let_in(part, by_giving_back))
                continue;
            part->waiting.is_stuck = false;
            is_more = true;
        }
    }
}

/* Find out who is stuck because the part waits, and return whether the part
 * itself is.  First let it go on: those that are stuck even so are in another
 * circle, or behind one, where somebody is being told. */
static bool is_circle(struct lk_part *self, bool by_giving_back)
{
    struct lk_part *part;

    for (part = waits; part != NULL; part = part->waiting.hh.next)
        part->waiting.is_stuck = part != self;
    settle(by_giving_back);
    for (part = waits; part != NULL; part = part->waiting.hh.next)
        part->waiting.is_stuck = !part->waiting.is_stuck;
    settle(by_giving_back);
    return self->waiting.is_stuck;
}

/* Have those who are stuck and have the turn of a lock for which others in the
 * circle wait give it up. */
static void give_back(void)
{
    for (struct lk_part *part = waits; part != NULL;
         part = part->waiting.hh.next)
        if (part->waiting.is_stuck && part->state == LK_PART_QUEUED &&
            is_let_in_by_keeper(part, true))
            lk_waiter_yield(part->slot->turn->waiter);
}

/* Look for a circle that the part has closed.  Between two searches all waits
 * are noted as stuck: so most parts are seen to be let in at once. */
static void look(struct lk_part *self)
{
    if (is_let_in(self, false))
        return;
    if (is_circle(self, true))
        self->waiter->is_deadlocked = true;
    else if (is_circle(self, false))
        give_back();
    for (struct lk_part *part = waits; part != NULL;
         part = part->waiting.hh.next)
        part->waiting.is_stuck = true;
}

/* Return whether it is known who waits, and does nothing else until the part
 * leaves the FIFO: by thread, a request leaves its thread free. */
static bool is_known(const struct lk_part *part)
{
    return waiter_of(part) != 0 &&
           (part->waiter->on_wake == NULL ||
            part->slot->store->options.ownership != SQLOCK_OWNED_BY_THREAD);
}

/* Return whether the part waits for somebody of this process: in the FIFO, or
 * beside those who share the lock. */
static bool waits_here(const struct lk_part *part)
{
    return part->state == LK_PART_QUEUED ||
           (part->state == LK_PART_TURN && part->slot->holds != NULL);
}

void lk_deadlock_begin(struct lk_part *part)
{
    if (!is_known(part) || part->waiting.is_noted)
        return;
    pthread_mutex_lock(&lk_mutex);
    forget_parent();
    part->waiter->is_deadlocked = false;
    if (waits_here(part)) {
        part->waiting.actor = waiter_of(part);
        HASH_ADD(waiting.hh, waits, waiting.actor, sizeof part->waiting.actor,
                 part);
        part->waiting.is_noted = part->waiting.hh.tbl != NULL;
        part->waiting.is_stuck = true;
    }
    if (part->waiting.is_noted)
        look(part);
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
                    "whoever holds the lock is this caller, or waits, directly "
                    "or through others, for a lock that this caller holds: "
                    "release that first, or take both in one call (%s)",
                    part->slot->name);
}
