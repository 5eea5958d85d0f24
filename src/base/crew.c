/*
 * crew.c - leaders that do the work of all who wait (crew.h)
 *
 * A member that was taken out of the queue is used by its leader until the
 * leader posts `called`; so it waits for that, even when it sees its state
 * before.
 */
#include "base/crew.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"

#define PATIENCE_MAX_NS (64 * LK_NS_PER_MS)

void lk_crew_init(struct lk_crew *crew, uint32_t places, uint32_t crowd)
{
    memset(crew, 0, sizeof *crew);
    (void)pthread_mutex_init(&crew->mutex, NULL);
    crew->places = places;
    crew->crowd = crowd;
}

void lk_crew_clear(struct lk_crew *crew)
{
    (void)pthread_mutex_destroy(&crew->mutex);
}

/* --- the caller of these holds the mutex --- */

static bool is_crowd(const struct lk_crew *crew)
{
    return crew->crowd > 0 &&
           (crew->members > crew->crowd || crew->members > crew->places);
}

/* Take a member out of the queue, whose link is *at, behind `before`. */
static struct lk_crew_member *take_out(struct lk_crew *crew,
                                       struct lk_crew_member **at,
                                       struct lk_crew_member *before)
{
    struct lk_crew_member *out = *at;

    if (crew->last == out)
        crew->last = before;
    *at = out->next;
    out->next = NULL;
    return out;
}

static void begin_to_lead(struct lk_crew *crew, struct lk_crew_member *self)
{
    crew->leaders++;
    crew->rounds++;
    self->state = LK_CREW_LEADS;
}

/* --- joining --- */

/* Take a place; or enter the queue, in which nobody waits without a leader.
 * Return whether it has a place: in the queue it may get one at any time. */
static bool enter(struct lk_crew *crew, struct lk_crew_member *self)
{
    bool is_free;

    pthread_mutex_lock(&crew->mutex);
    crew->members += crew->crowd > 0;
    self->came_in = crew->rounds - crew->leaders;
    is_free = crew->leaders == 0 || (crew->leaders < crew->places &&
                                     crew->first == NULL && !is_crowd(crew));
    if (is_free) {
        begin_to_lead(crew, self);
    } else {
        if (crew->last != NULL)
            crew->last->next = self;
        else
            crew->first = self;
        crew->last = self;
    }
    pthread_mutex_unlock(&crew->mutex);
    return is_free;
}

/* A member that has waited for a while finds one of these. */
enum sight {
    STAYS,   /* it waits on: all places are taken */
    TAKEN,   /* a leader has it, or leaves it the place, and posts `called` */
    HAS_LEFT /* the queue: it has a place, or its time is over */
};

static enum sight look(struct lk_crew *crew, struct lk_crew_member *self,
                       bool is_over)
{
    struct lk_crew_member **at = &crew->first;
    struct lk_crew_member *before = NULL;
    enum sight sight = TAKEN;

    pthread_mutex_lock(&crew->mutex);
    while (*at != NULL && *at != self) {
        before = *at;
        at = &before->next;
    }
    if (*at != NULL)
        sight = is_over || crew->leaders < crew->places ? HAS_LEFT : STAYS;
    if (sight == HAS_LEFT) {
        (void)take_out(crew, at, before);
        if (is_over)
            self->state = LK_CREW_LEFT;
        else
            begin_to_lead(crew, self);
    }
    pthread_mutex_unlock(&crew->mutex);
    return sight;
}

static void await_call(struct lk_crew *crew, struct lk_crew_member *self,
                       int64_t until_ns, int64_t patience_ns)
{
    enum sight sight = STAYS;

    while (sight != HAS_LEFT) {
        int64_t look_ns = lk_after_ns(sqlock_monotonic_ns(), patience_ns);
        struct timespec at = lk_timespec(
            sight == TAKEN ? LK_NEVER : lk_sooner(look_ns, until_ns));

        if (sem_clockwait(&self->called, CLOCK_MONOTONIC, &at) == 0)
            return;
        if (errno == EINTR || sight == TAKEN)
            continue;
        sight = look(crew, self, sqlock_monotonic_ns() >= until_ns);
        patience_ns = 2 * lk_sooner(patience_ns, PATIENCE_MAX_NS / 2);
    }
}

enum lk_crew_state lk_crew_join(struct lk_crew *crew,
                                struct lk_crew_member *self, int64_t until_ns,
                                int64_t patience_ns, bool *has_waited)
{
    self->next = NULL;
    self->state = LK_CREW_WAITS;
    (void)sem_init(&self->called, 0, 0);
    *has_waited = !enter(crew, self);
    if (*has_waited)
        await_call(crew, self, until_ns, patience_ns);
    return self->state;
}

/* --- leading --- */

size_t lk_crew_gather(struct lk_crew *crew, struct lk_crew_member *head,
                      size_t most,
                      bool (*goes_with)(const struct lk_crew_member *leader,
                                        const struct lk_crew_member *other))
{
    struct lk_crew_member **at = &crew->first;
    struct lk_crew_member *before = NULL;
    struct lk_crew_member *last = head;
    size_t count = 0;

    pthread_mutex_lock(&crew->mutex);
    while (*at != NULL && count < most) {
        if (goes_with != NULL && !goes_with(head, *at)) {
            before = *at;
            at = &before->next;
            continue;
        }
        last->next = take_out(crew, at, before);
        last = last->next;
        count++;
    }
    pthread_mutex_unlock(&crew->mutex);
    return count;
}

bool lk_crew_is_waited_for(struct lk_crew *crew)
{
    bool is_waited_for;

    pthread_mutex_lock(&crew->mutex);
    is_waited_for = crew->first != NULL;
    pthread_mutex_unlock(&crew->mutex);
    return is_waited_for;
}

void lk_crew_pass_on(struct lk_crew *crew)
{
    struct lk_crew_member *next = NULL;

    pthread_mutex_lock(&crew->mutex);
    if (crew->first != NULL && !(crew->leaders > 1 && is_crowd(crew))) {
        next = take_out(crew, &crew->first, NULL);
        begin_to_lead(crew, next);
    }
    crew->leaders--;
    pthread_mutex_unlock(&crew->mutex);
    if (next != NULL)
        (void)sem_post(&next->called);
}

void lk_crew_dismiss(struct lk_crew_member *head)
{
    struct lk_crew_member *next;

    for (struct lk_crew_member *at = head->next; at != NULL; at = next) {
        next = at->next; /* after the post it may be gone */
        at->state = LK_CREW_DONE;
        (void)sem_post(&at->called);
    }
}

void lk_crew_leave(struct lk_crew *crew, struct lk_crew_member *self)
{
    if (crew->crowd > 0) {
        pthread_mutex_lock(&crew->mutex);
        crew->members--;
        pthread_mutex_unlock(&crew->mutex);
    }
    (void)sem_destroy(&self->called);
}
