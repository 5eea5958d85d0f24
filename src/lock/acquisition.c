/*
 * acquisition.c - the state machine of an acquisition (README.md)
 *
 * An acquisition waits for one of its locks at a time.  Meanwhile it has
 * neither the turns nor the rows of the others; or after some setbacks (kept.h)
 * only those of locks before it in the order of the keys.  So two acquisitions
 * never deadlock.  With one lock the steps are the same.
 */
#include "lock/acquisition.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "lease/bell.h"
#include "lease/grace.h"
#include "lock/claim.h"
#include "lock/deadlock.h"
#include "lock/hold.h"
#include "lock/modes.h"
#include "lock/peers.h"
#include "lock/retreat.h"
#include "lock/seen.h"

/* Result of a step: run the next one at once. */
#define GO_ON 2

/* The states that may follow each state; README.md draws the usual ones. */
#define TO(state) (1U << (state))
static const unsigned followers[] = {
    [LK_ENTERING] = TO(LK_ENTERING) | TO(LK_QUEUED) | TO(LK_CLAIMING) |
                    TO(LK_ASKING) | TO(LK_LOOKING) | TO(LK_OVER),
    [LK_QUEUED] = TO(LK_ENTERING) | TO(LK_LOOKING) | TO(LK_OVER),
    [LK_CLAIMING] = TO(LK_ENTERING) | TO(LK_ASKING) | TO(LK_POLLING) |
                    TO(LK_PAUSED) | TO(LK_OVER),
    [LK_ASKING] = TO(LK_ENTERING) | TO(LK_ASKING) | TO(LK_WAITING) |
                  TO(LK_POLLING) | TO(LK_PAUSED) | TO(LK_OVER),
    [LK_WAITING] = TO(LK_ASKING) | TO(LK_WAITING) | TO(LK_POLLING) |
                   TO(LK_PAUSED) | TO(LK_OVER),
    [LK_POLLING] =
        TO(LK_ENTERING) | TO(LK_ASKING) | TO(LK_PAUSED) | TO(LK_OVER),
    [LK_LOOKING] = TO(LK_OVER),
    [LK_PAUSED] = TO(LK_ENTERING) | TO(LK_OVER),
};

static int go_to(struct lk_acquisition *a, enum lk_acquisition_state state)
{
    assert(followers[a->state] & TO(state));
    a->state = state;
    if (TO(state) & (TO(LK_QUEUED) | TO(LK_WAITING) | TO(LK_POLLING)))
        lk_deadlock_begin(a->first);
    else if (state != LK_ASKING) /* the same wait goes on */
        lk_deadlock_end(a->first);
    return GO_ON;
}

static int end(struct lk_acquisition *a, int rc)
{
    a->rc = rc;
    lk_claim_count(a);
    (void)go_to(a, LK_OVER);
    return rc;
}

static bool may_wait(const struct lk_acquisition *a)
{
    return a->self.wait_ms != 0;
}

/* --- between two attempts --- */

static struct lk_part *one_with_turn(struct lk_acquisition *a)
{
    if (a->first->state == LK_PART_TURN)
        return a->first;
    return a->batch.count > 0 ? a->batch.items[0].owner : a->first;
}

/* Handle a failed attempt: pause before the next one, or end the
 * acquisition. */
static int failed(struct lk_acquisition *a, int rc, sqlock_error *err)
{
    struct lk_part *part = one_with_turn(a);

    (void)lk_bell_forget(part);
    a->until_ns = lk_patience_pause(&a->patience, part, rc, err);
    if (a->until_ns == 0) {
        rc = lk_patience_result(part, rc, err);
        /* A statement about several that timed out is no one's. */
        if (rc != SQLOCK_ETIMEDOUT || a->batch.count <= 1)
            a->first->rc = rc;
        return end(a, rc);
    }
    lk_retreat_to(a, part, lk_is_outage(rc));
    a->hint = LK_HINT_NONE;
    lk_waiter_prepare(&a->self);
    return go_to(a, LK_PAUSED);
}

/* End the acquisition because the time is over. */
static int not_in_time(struct lk_acquisition *a, struct lk_part *part,
                       sqlock_error *err)
{
    int rc =
        lk_grace_error(a->store, lk_not_in_time(a->self.wait_ms, err), err);

    part->rc = rc;
    return end(a, rc);
}

static int poll_row(struct lk_acquisition *a, sqlock_error *err)
{
    int rc = lk_poller_begin(a->first, lk_row_wait_polls(a->first),
                             lk_row_wait_looks_at(&a->wait, a->first), err);

    return rc < 0 ? failed(a, rc, err) : go_to(a, LK_POLLING);
}

/* Handle a claim that was refused because the row of `part` is taken: wait for
 * that row, or end the acquisition. */
static int refused(struct lk_acquisition *a, struct lk_part *part,
                   sqlock_error *err)
{
    lk_patience_end(&a->patience, part);
    /* Look at the end of a wait, too: a row that a transaction keeps locked may
     * look free all the time. */
    if (sqlock_monotonic_ns() >= a->self.deadline_ns) {
        lk_row_wait_look(part, a->batch.deadline_ns);
        return not_in_time(a, part, err);
    }
    lk_retreat_to(a, part, false);
    lk_kept_set_back(a);
    part->rc = SQLOCK_EBUSY;
    part->slot->is_contended = true;
    return lk_store_has_tickets(a->store) ? go_to(a, LK_ASKING)
                                          : poll_row(a, err);
}

/* The part got its lease from another of this process. */
static int given(struct lk_acquisition *a)
{
    return a->first->asks ? go_to(a, LK_LOOKING) : end(a, 0);
}

static int look_row(struct lk_acquisition *a, sqlock_error *err)
{
    (void)err; /* the lock is had, whatever the answer */
    lk_claim_look(a, true);
    return end(a, 0);
}

/* --- turns --- */

/* Wait for the turn of that part.  First claim what is to be kept meanwhile. */
static int await_missing(struct lk_acquisition *a, struct lk_part *missing)
{
    if (lk_kept_has_more(a, missing)) {
        a->reach = (size_t)(missing - a->parts);
        lk_claim_collect(a);
        return go_to(a, LK_CLAIMING);
    }
    lk_kept_set_back(a);
    lk_retreat_to(a, missing, false);
    return go_to(a, LK_ENTERING);
}

/* Take the missing turns without waiting.  Return 0 if the acquisition has all,
 * GO_ON if one of them must be waited for, or the code that ended the
 * acquisition. */
static int enter_others(struct lk_acquisition *a, sqlock_error *err)
{
    for (size_t i = 0; i < a->count; i++) {
        struct lk_part *part = &a->parts[i];
        enum lk_part_state state;

        if (part->state != LK_PART_OUTSIDE)
            continue;
        part->rc = lk_enter(part, false, &state, err);
        if (part->rc < 0)
            return end(a, part->rc);
        if (state == LK_PART_OUTSIDE)
            return await_missing(a, part);
    }
    return 0;
}

/* Return whether to ask for a place at once, since others may wait. */
static bool must_ask(const struct lk_acquisition *a)
{
    return a->count == 1 && may_wait(a) && lk_store_has_tickets(a->store) &&
           (a->first->slot->is_contended || lk_claim_is_first(a));
}

/* Return whether to claim a lock for services first; then it is `first`.  Where
 * the thread may not block: whether to find that out in another. */
static bool is_for_services(struct lk_acquisition *a)
{
    for (size_t i = 0; i < a->count; i++) {
        struct lk_part *part = &a->parts[i];

        if (part->state != LK_PART_TURN)
            continue;
        if (!a->may_block && lk_peers_are_due(part->slot))
            return true;
        if (lk_peers_begin(part)) {
            lk_retreat_to(a, part, false);
            return true;
        }
    }
    return false;
}

static int enter(struct lk_acquisition *a, sqlock_error *err)
{
    struct lk_part *first = a->first;
    enum lk_part_state state;
    int rc;

    for (size_t i = 0; i < a->count; i++)
        a->parts[i].rc = 0;
    if (first->state == LK_PART_OUTSIDE) {
        first->rc = lk_enter(first, may_wait(a), &state, err);
        if (first->rc < 0)
            return end(a, first->rc);
        if (state == LK_PART_QUEUED)
            return go_to(a, LK_QUEUED);
        if (state == LK_PART_HELD)
            return given(a);
    }
    rc = enter_others(a, err);
    if (rc != 0)
        return rc;
    if (is_for_services(a))
        return go_to(a, a->may_block ? LK_ASKING : LK_ENTERING);
    a->reach = a->count;
    lk_claim_collect(a);
    if (a->batch.count == 0) /* all parts are nested */
        return end(a, 0);
    return go_to(a, must_ask(a) ? LK_ASKING : LK_CLAIMING);
}

static int await_turn(struct lk_acquisition *a, sqlock_error *err)
{
    struct lk_part *first = a->first;
    enum lk_part_state state;
    int rc = lk_await_turn(first, &state, err);

    if (rc > 0)
        return rc;
    if (rc < 0) {
        first->rc = rc;
        return end(a, rc);
    }
    return state == LK_PART_HELD ? given(a) : go_to(a, LK_ENTERING);
}

/* Sleep until a->until_ns as lk_waiter_park().  *stop: 0, or ECANCELED or
 * EDEADLOCK, by which the wait ends. */
static int park(struct lk_acquisition *a, int *stop, sqlock_error *err)
{
    int rc;

    *stop = 0;
    pthread_mutex_lock(&lk_mutex);
    rc = lk_waiter_park(&a->self, a->until_ns, true);
    if (a->self.is_cancelled)
        *stop = lk_canceled(err);
    else if (a->self.is_deadlocked)
        *stop = lk_deadlock(a->first, err);
    pthread_mutex_unlock(&lk_mutex);
    return rc;
}

/* Sleep in LK_PAUSED. */
static int pause_over(struct lk_acquisition *a, sqlock_error *err)
{
    int stop;
    int rc = park(a, &stop, err);

    if (rc != 0)
        return rc;
    return stop < 0 ? failed(a, stop, err) : go_to(a, LK_ENTERING);
}

/* --- the claim, and waiting for the row --- */

static int granted(struct lk_acquisition *a, sqlock_error *err)
{
    int rc;

    lk_claim_note_contention(a);
    if (lk_peers_go_first(a->first)) {
        rc = lk_peers_open(a->first, err);
        return rc < 0 && rc != SQLOCK_ELOST ? failed(a, rc, err)
                                            : poll_row(a, err);
    }
    if (!lk_claim_is_as_wanted(a)) {
        rc = lk_claim_undo(a, 0, err);
        return rc < 0 ? failed(a, rc, err) : go_to(a, LK_ENTERING);
    }
    if (a->state == LK_ASKING && a->count > 1) {
        a->hint = LK_HINT_NONE;
        lk_claim_keep(a);
        return go_to(a, LK_ENTERING);
    }
    if (a->reach < a->count) {
        lk_claim_keep(a);
        lk_retreat_to(a, &a->parts[a->reach], false);
        return go_to(a, LK_ENTERING);
    }
    lk_claim_hold(a);
    return end(a, 0);
}

static int claim(struct lk_acquisition *a, sqlock_error *err)
{
    struct lk_part *taken = NULL;
    int rc;

    if (may_wait(a) && lk_waiter_is_cancelled(&a->self))
        return failed(a, lk_canceled(err), err);
    lk_claim_clear_aside(a);
    rc = lk_claim_all(a, &taken, err);
    if (taken != NULL && rc == 0)
        return refused(a, taken, err);
    if (rc < 0)
        return failed(a, rc, err);
    return granted(a, err);
}

/* Claim the row of `first`, of which nothing is known now. */
static int ask_anew(struct lk_acquisition *a)
{
    a->hint = LK_HINT_NONE;
    lk_seen_look(a->first->slot);
    return go_to(a, LK_ASKING);
}

/* Wait for the row of `first` as a look at it has led to. */
static int wait_for_row(struct lk_acquisition *a, enum lk_row_wait_next next,
                        sqlock_error *err)
{
    if (next != LK_ROW_WAIT_POLL)
        return go_to(a, next == LK_ROW_WAIT_AGAIN ? LK_ASKING : LK_WAITING);
    (void)lk_bell_forget(a->first);
    return poll_row(a, err);
}

/* Claim the row of `first`, or get a ticket in it. */
static int ask(struct lk_acquisition *a, sqlock_error *err)
{
    const struct lk_row *row = &a->batch.items[0].row;
    struct lk_part *taken = NULL;
    int rc;

    if (lk_waiter_is_cancelled(&a->self))
        return failed(a, lk_canceled(err), err);
    (void)lk_peers_begin(a->first);
    if (lk_row_wait_ends(a->first))
        return go_to(a, LK_ENTERING);
    if (lk_seen_left_ns(a->first->slot) > 0) /* somebody has deleted the row */
        return sqlock_monotonic_ns() < a->self.deadline_ns
                   ? poll_row(a, err)
                   : not_in_time(a, a->first, err);
    lk_clear_aside(a->first->slot, false);
    lk_claim_collect_first(a);
    lk_bell_expect(a->first);
    rc = lk_claim_all(a, &taken, err);
    if (rc < 0 || taken == NULL)
        (void)lk_bell_forget(a->first);
    if (rc < 0)
        return failed(a, rc, err);
    if (taken == NULL)
        return granted(a, err);
    if (a->hint == LK_HINT_NONE) /* else the answer says no more */
        lk_patience_end(&a->patience, a->first);
    if (sqlock_monotonic_ns() >= a->self.deadline_ns) {
        /* those before it may be dead, and all who come wait too briefly */
        if (a->hint == LK_HINT_NONE && row->place > 0 &&
            (row->is_shared || !row->is_taken))
            lk_row_wait_look(a->first, a->batch.deadline_ns);
        return not_in_time(a, a->first, err);
    }
    if (a->hint != LK_HINT_NONE)
        return lk_peers_may_try(a->first->slot) ? poll_row(a, err)
                                                : ask_anew(a);
    if (lk_row_wait_pass_on(&a->wait, a->first, row))
        return go_to(a, LK_ASKING);
    return wait_for_row(
        a, lk_row_wait_begin(&a->wait, a->first, row, &a->until_ns), err);
}

static int await_ring(struct lk_acquisition *a, sqlock_error *err)
{
    bool is_rung;
    int stop;
    int rc = park(a, &stop, err);

    if (rc != 0)
        return rc;
    lk_poller_end(a->first);
    is_rung = lk_bell_forget(a->first);
    if (stop < 0)
        return failed(a, stop, err);
    if (is_rung) {
        a->hint = LK_HINT_RESERVED;
        return go_to(a, LK_ASKING);
    }
    return wait_for_row(
        a, lk_row_wait_look_on(&a->wait, a->first, &a->until_ns), err);
}

static int await_poll(struct lk_acquisition *a, sqlock_error *err)
{
    int rc = lk_poller_await(a->first, err);

    if (rc > 0)
        return rc;
    if (rc < 0)
        return failed(a, rc, err);
    if (!lk_store_has_tickets(a->store))
        return go_to(a, LK_ENTERING);
    if (sqlock_monotonic_ns() >= a->self.deadline_ns)
        return ask_anew(a);
    a->hint = lk_peers_may_try(a->first->slot) ? LK_HINT_FREE : LK_HINT_NONE;
    return go_to(a, LK_ASKING);
}

static int step(struct lk_acquisition *a, sqlock_error *err)
{
    static int (*const steps[])(struct lk_acquisition *, sqlock_error *) = {
        [LK_ENTERING] = enter,     [LK_QUEUED] = await_turn,
        [LK_CLAIMING] = claim,     [LK_ASKING] = ask,
        [LK_WAITING] = await_ring, [LK_POLLING] = await_poll,
        [LK_LOOKING] = look_row,   [LK_PAUSED] = pause_over,
    };

    return steps[a->state](a, err);
}

/* Note when look() is due. */
static void set_alarm(struct lk_acquisition *a)
{
    a->self.alarm_ns = lk_sooner(lk_kept_look_ns(a), lk_circle_look_ns(a));
}

/* Look whether the wait would never end, and at the kept rows.  Then go on to
 * wait for `first`. */
static void look(struct lk_acquisition *a)
{
    struct lk_part *first = a->first;

    if (lk_circle_look(a) && lk_kept_look(a))
        return;
    lk_kept_give_back(a, NULL, false);
    for (size_t i = 0; i < a->count; i++)
        if (&a->parts[i] != first)
            lk_step_back(&a->parts[i]);
}

int lk_acquisition_run(struct lk_acquisition *a, sqlock_error *err)
{
    int rc = GO_ON;

    a->may_block = true;
    while (rc == GO_ON && a->state != LK_OVER) {
        set_alarm(a);
        rc = step(a, err);
        if (rc == LK_ALARM) {
            look(a);
            rc = GO_ON;
        }
    }
    return a->state == LK_OVER ? a->rc : rc;
}

/* End a wait that is cancelled or out of time, where it is in another state
 * than LK_QUEUED. */
static void end_wait(struct lk_acquisition *a, sqlock_error *err)
{
    struct lk_part *first = a->first;
    bool is_cancelled = lk_waiter_is_cancelled(&a->self);

    if (!may_wait(a) ||
        (!is_cancelled && sqlock_monotonic_ns() < a->self.deadline_ns))
        return;
    if (a->state == LK_LOOKING) /* it has the lock, and waits for nothing */
        lk_claim_look(a, false);
    else
        first->rc = is_cancelled
                        ? lk_canceled(err)
                        : lk_patience_result(
                              first, lk_part_not_in_time(first, err), err);
    (void)end(a, first->rc);
    lk_poller_end(first);
}

int lk_acquisition_go_on(struct lk_acquisition *a, sqlock_error *err)
{
    a->may_block = false;
    if (a->state == LK_QUEUED && await_turn(a, err) == LK_SUSPENDED)
        return LK_SUSPENDED;
    if (a->state != LK_OVER && a->state != LK_QUEUED)
        end_wait(a, err);
    return a->state == LK_OVER ? a->rc : LK_BLOCKED;
}

/* --- begin and end --- */

static void free_parts(struct lk_acquisition *a)
{
    if (a->parts == &a->one)
        return;
    free(a->parts);
    free(a->batch.items);
}

static void add_parts(struct lk_acquisition *a, const struct lk_set *set,
                      uint64_t owner)
{
    for (size_t i = 0; i < set->count; i++) {
        sqlock_lock *lock = set->members[i].lock;
        bool is_share =
            lk_mode_of(&a->options, set->members[i].place) == SQLOCK_SHARED;
        uint64_t caller = owner != 0 ? owner : lk_caller(lock);

        a->parts[i] = (struct lk_part){
            .slot = lock->slot,
            .waiter = &a->self,
            .lock = lock,
            .owner = caller,
            .marked_as = caller,
            .weight = is_share ? a->options.weight : 0,
            .may_be_given = set->count == 1 && !is_share,
            .may_join = is_share && lk_may_join(set, &a->options)};
    }
    a->options.modes = NULL; /* the caller's, who may free it */
}

int lk_acquisition_begin(struct lk_acquisition *a, const struct lk_set *set,
                         int64_t wait_ms, const sqlock_acquire_options *options,
                         uint64_t owner, sqlock_error *err)
{
    int rc;

    memset(a, 0, sizeof *a);
    rc = lk_modes_read(set, wait_ms, options, &a->options, err);
    if (rc < 0)
        return rc;
    a->store = &set->registry->store;
    a->registry = set->registry;
    a->count = set->count;
    a->parts = &a->one;
    a->batch.items = &a->one_item;
    if (a->count > 1) {
        a->parts = calloc(a->count, sizeof *a->parts);
        a->batch.items = calloc(a->count, sizeof *a->batch.items);
    }
    if (a->parts == NULL || a->batch.items == NULL) {
        free_parts(a);
        return lk_error_nomem(err);
    }
    add_parts(a, set, owner);
    a->first = a->parts;
    a->reach = a->count;
    a->began_ns = sqlock_monotonic_ns();
    lk_waiter_init(&a->self, wait_ms, &a->options);
    lk_circle_begin(a);
    return 0;
}

bool lk_acquisition_enter(struct lk_acquisition *a, sqlock_error *err)
{
    int rc = lk_canceller_watch(&a->registry->canceller, &a->self,
                                a->options.cancel_fd, err);

    if (rc == 0)
        rc = lk_parts_begin(a->parts, a->count, err);
    (void)(rc < 0 ? end(a, rc) : step(a, err));
    if (a->state == LK_QUEUED && a->self.on_wake != NULL) {
        /* set self.until_ns, when to check the holder's lease, or to look */
        set_alarm(a);
        (void)step(a, err);
    }
    return a->state != LK_QUEUED;
}

void lk_acquisition_end(struct lk_acquisition *a)
{
    lk_canceller_forget(&a->registry->canceller, &a->self);
    lk_retreat(a);
    free_parts(a);
    lk_waiter_clear(&a->self);
}
