/*
 * member.c - one lock of a quorum: what is asked of its registry, and what that
 * has answered
 *
 * Each call to a registry is a request, so that none waits for another one.
 */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "quorum/quorum.h"

bool lk_quorum_is_held(const sqlock_quorum *quorum)
{
    return quorum->state == LK_QUORUM_WON || quorum->state == LK_QUORUM_HELD;
}

/* Return for how long enough of the members that count are held. */
static int64_t left_ms_of(const sqlock_quorum *quorum)
{
    int64_t left_ms[SQLOCK_QUORUM_MAX] = {0}; /* the longest first */

    for (size_t i = 0; i < quorum->count; i++) {
        const struct lk_member *member = &quorum->members[i];
        int64_t one_ms = member->state == LK_MEMBER_HELD
                             ? sqlock_remaining_ms(member->lock)
                             : 0;
        size_t at = i;

        for (; at > 0 && left_ms[at - 1] < one_ms; at--)
            left_ms[at] = left_ms[at - 1];
        left_ms[at] = one_ms;
    }
    return left_ms[quorum->need - 1];
}

/* Those that are late are looked at first: so they were granted before the time
 * at which the others are seen to be enough.  If one counted later, a quorum
 * that was lost for a moment, in which others had it, would look held again. */
int64_t lk_quorum_left_ms(sqlock_quorum *quorum)
{
    bool has_come[SQLOCK_QUORUM_MAX];
    int64_t left_ms;

    for (size_t i = 0; i < quorum->count; i++)
        has_come[i] = quorum->members[i].state == LK_MEMBER_LATE &&
                      sqlock_request_status(quorum->members[i].request) ==
                          SQLOCK_REQUEST_HELD;
    left_ms = left_ms_of(quorum);
    for (size_t i = 0; i < quorum->count && left_ms > 0; i++) {
        struct lk_member *member = &quorum->members[i];

        if (!has_come[i])
            continue;
        member->state = LK_MEMBER_HELD;
        member->rc = 0;
        member->counts = true;
        member->is_in_doubt = false;
    }
    return left_ms_of(quorum);
}

static void become(struct lk_member *member, enum lk_member_state state)
{
    pthread_mutex_lock(&member->quorum->mutex);
    member->state = state;
    pthread_mutex_unlock(&member->quorum->mutex);
}

/* --- what is asked --- */

/* Return whether this is the loss by which too few are left. */
static bool is_the_loss(sqlock_quorum *quorum)
{
    bool is_it;

    pthread_mutex_lock(&quorum->mutex);
    is_it = lk_quorum_is_held(quorum) && !quorum->is_told &&
            lk_quorum_left_ms(quorum) == 0;
    if (is_it) {
        quorum->is_told = true;
        quorum->is_telling = true;
        quorum->teller = pthread_self();
    }
    pthread_mutex_unlock(&quorum->mutex);
    return is_it;
}

static void lost(void *context, sqlock_lock *lock, int code)
{
    struct lk_member *member = context;
    sqlock_quorum *quorum = member->quorum;

    if (!is_the_loss(quorum))
        return;
    quorum->options.on_lost(quorum->options.lost_context, lock, code);
    pthread_mutex_lock(&quorum->mutex);
    quorum->is_telling = false;
    pthread_mutex_unlock(&quorum->mutex);
}

/* Return the options of a member's acquisition: on_lost is the quorum's. */
static sqlock_acquire_options options_of(struct lk_member *member)
{
    sqlock_acquire_options options = member->quorum->options;

    options.cancel_fd = 0; /* the quorum's wait looks at it */
    if (options.on_lost != NULL) {
        options.on_lost = lost;
        options.lost_context = member;
    }
    return options;
}

static void end_in(struct lk_member *member, enum lk_member_state state, int rc)
{
    member->rc = rc;
    become(member, state);
}

/* Return how long the caller waits yet, in ms. */
static int64_t wait_left_ms(const sqlock_quorum *quorum)
{
    int64_t left_ns = quorum->deadline_ns - sqlock_monotonic_ns();

    if (quorum->deadline_ns == LK_NEVER)
        return SQLOCK_FOREVER;
    return left_ns > 0 ? left_ns / LK_NS_PER_MS + 1 : 0;
}

void lk_member_ask(struct lk_member *member)
{
    sqlock_acquire_options options = options_of(member);
    int rc = lk_member_leave(member, &member->err);

    if (rc == 0)
        rc = sqlock_request_acquire(&member->request, member->lock,
                                    wait_left_ms(member->quorum), &options,
                                    member->quorum->ended_fd, &member->err);
    if (rc < 0)
        end_in(member, LK_MEMBER_FAILED, rc);
    else
        end_in(member, LK_MEMBER_ASKING, SQLOCK_ECANCELED); /* no answer yet */
}

static void note_released(struct lk_member *member, int rc)
{
    member->is_in_doubt = rc < 0 && rc != SQLOCK_ELOST && rc != SQLOCK_EEXPIRED;
    end_in(member, LK_MEMBER_IDLE, rc);
}

/* Take the result of a request that was granted late.  Return 0; ELOST or
 * EEXPIRED: there is nothing left to release; or EINUSE: the request is still
 * there, because its on_lost waits for the callback that runs in this
 * thread. */
static int take_late(struct lk_member *member)
{
    int rc = 0;

    if (member->request != NULL)
        rc = sqlock_request_finish(member->request, &member->err);
    if (rc != SQLOCK_EINUSE)
        member->request = NULL;
    return rc;
}

/* A call that blocks is better than a lock that is held for ever: where no
 * request can be had, of memory for example. */
static void release(struct lk_member *member)
{
    int rc = take_late(member);

    if (rc == 0) {
        rc = sqlock_request_release(&member->request, member->lock,
                                    member->quorum->ended_fd, &member->err);
        if (rc == 0) {
            become(member, LK_MEMBER_RELEASING);
            return;
        }
        if (rc != SQLOCK_EINUSE)
            rc = sqlock_release(member->lock, &member->err);
    }
    if (rc != SQLOCK_EINUSE)
        note_released(member, rc);
    else /* a transaction guards it, or on_lost runs: for the next release */
        end_in(member, LK_MEMBER_HELD, rc);
}

void lk_member_give_back(struct lk_member *member)
{
    if (member->state == LK_MEMBER_HELD) {
        release(member);
    } else if (member->state == LK_MEMBER_ASKING) {
        become(member, LK_MEMBER_GIVEN_UP);
        (void)sqlock_cancel(member->lock, NULL);
    } else if (member->state == LK_MEMBER_LATE) {
        (void)lk_member_leave(member, NULL);
    }
}

int lk_member_leave(struct lk_member *member, sqlock_error *err)
{
    sqlock_request *request = member->request;
    int rc;

    if (request == NULL && member->rc == 0) /* given back after a setback */
        member->rc = SQLOCK_ECANCELED;
    if (request == NULL)
        return 0;
    member->request = NULL;
    member->is_in_doubt = true;
    end_in(member, LK_MEMBER_IDLE, SQLOCK_EUNCERTAIN);
    rc = sqlock_request_abandon(request, err);
    if (rc < 0)
        member->request = request;
    return rc;
}

/* --- what is answered --- */

static void note_acquired(struct lk_member *member, int rc)
{
    bool is_given_up = member->state == LK_MEMBER_GIVEN_UP;

    if (rc == 0) /* so nothing earlier is left */
        member->is_in_doubt = false;
    else if (rc == SQLOCK_EUNCERTAIN)
        member->is_in_doubt = true;
    if (rc == 0 && is_given_up)
        release(member);
    else if (rc == 0)
        end_in(member, LK_MEMBER_HELD, 0);
    else if (is_given_up)
        end_in(member, LK_MEMBER_IDLE, rc);
    else if (rc == SQLOCK_ELOST || rc == SQLOCK_EEXPIRED)
        /* It took longer than its lease. */
        end_in(member, LK_MEMBER_FAILED, SQLOCK_ETIMEDOUT);
    else
        end_in(member, LK_MEMBER_FAILED, rc);
}

static void harvest(struct lk_member *member)
{
    sqlock_request_state state;
    int rc;

    if (member->state != LK_MEMBER_ASKING &&
        member->state != LK_MEMBER_GIVEN_UP &&
        member->state != LK_MEMBER_RELEASING)
        return;
    state = sqlock_request_status(member->request);
    if (state == SQLOCK_REQUEST_FETCHING || state == SQLOCK_REQUEST_RELEASING)
        return;
    rc = sqlock_request_finish(member->request, &member->err);
    if (rc != SQLOCK_EINUSE || state == SQLOCK_REQUEST_FREE)
        member->request = NULL; /* it was freed */
    if (member->state == LK_MEMBER_RELEASING)
        note_released(member, rc);
    else
        note_acquired(member, rc);
}

void lk_quorum_harvest(sqlock_quorum *quorum)
{
    uint64_t ended;

    (void)!read(quorum->ended_fd, &ended, sizeof ended);
    for (size_t i = 0; i < quorum->count; i++)
        harvest(&quorum->members[i]);
}

int lk_quorum_wait(sqlock_quorum *quorum, int64_t until_ns, int cancel_fd,
                   sqlock_error *err)
{
    struct pollfd heard[2] = {{.fd = quorum->ended_fd, .events = POLLIN},
                              {.fd = cancel_fd, .events = POLLIN}};
    int64_t left_ms = (until_ns - sqlock_monotonic_ns()) / LK_NS_PER_MS + 1;
    int timeout_ms = left_ms > 0 ? (int)left_ms : 0;

    if (left_ms > INT32_MAX) /* LK_NEVER, too */
        timeout_ms = -1;
    if (poll(heard, cancel_fd != 0 ? 2 : 1, timeout_ms) < 0 && errno != EINTR)
        return lk_error_limit(err, "poll", errno);
    return cancel_fd != 0 && heard[1].revents != 0
               ? lk_error(err, SQLOCK_ECANCELED, "the wait was cancelled")
               : 0;
}

size_t lk_quorum_count(const sqlock_quorum *quorum, enum lk_member_state state)
{
    size_t count = 0;

    for (size_t i = 0; i < quorum->count; i++)
        count += quorum->members[i].state == state;
    return count;
}

void lk_quorum_give_back(sqlock_quorum *quorum)
{
    for (size_t i = 0; i < quorum->count; i++)
        lk_member_give_back(&quorum->members[i]);
    while (lk_quorum_count(quorum, LK_MEMBER_RELEASING) > 0 ||
           lk_quorum_count(quorum, LK_MEMBER_GIVEN_UP) > 0) {
        (void)lk_quorum_wait(quorum, LK_NEVER, 0, NULL);
        lk_quorum_harvest(quorum);
    }
}
