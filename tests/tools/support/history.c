/*
 * history.c - see history.h
 *
 * Parties that run side by side record their events a moment late, so events
 * are sorted by time first.
 */
#include "history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "check.h"

/* A stretch of time in which one party believed. */
struct belief {
    int who;
    int64_t from_ns;
    int64_t until_ns;
};

void history_init(struct history *history)
{
    memset(history, 0, sizeof *history);
    (void)pthread_mutex_init(&history->mutex, NULL);
}

void history_clear(struct history *history)
{
    (void)pthread_mutex_destroy(&history->mutex);
}

void history_add(struct history *history, const struct history_event *event)
{
    pthread_mutex_lock(&history->mutex);
    if (history->count == HISTORY_MAX)
        abort();
    history->events[history->count++] = *event;
    pthread_mutex_unlock(&history->mutex);
}

void history_granted(struct history *history, int who, int64_t asked_ns,
                     int64_t until_ns, int64_t token)
{
    struct history_event event = {.what = HISTORY_GRANTED,
                                  .who = who,
                                  .asked_ns = asked_ns,
                                  .at_ns = lk_boottime_ns(),
                                  .until_ns = until_ns,
                                  .token = token};

    history_add(history, &event);
}

void history_renewed(struct history *history, int who, int64_t asked_ns,
                     int64_t until_ns)
{
    struct history_event event = {.what = HISTORY_RENEWED,
                                  .who = who,
                                  .asked_ns = asked_ns,
                                  .at_ns = lk_boottime_ns(),
                                  .until_ns = until_ns};

    history_add(history, &event);
}

static void add_now(struct history *history, enum history_what what, int who)
{
    int64_t now = lk_boottime_ns();
    struct history_event event = {
        .what = what, .who = who, .asked_ns = now, .at_ns = now};

    history_add(history, &event);
}

void history_ended(struct history *history, int who)
{
    add_now(history, HISTORY_ENDED, who);
}

void history_told(struct history *history, int who)
{
    add_now(history, HISTORY_TOLD, who);
}

static int by_time(const void *a, const void *b)
{
    const struct history_event *left = a;
    const struct history_event *right = b;

    return (left->at_ns > right->at_ns) - (left->at_ns < right->at_ns);
}

/* Return the next event of event i's party that is not TOLD, or NULL. */
static const struct history_event *next_of(const struct history *history,
                                           size_t i)
{
    for (size_t k = i + 1; k < history->count; k++)
        if (history->events[k].who == history->events[i].who &&
            history->events[k].what != HISTORY_TOLD)
            return &history->events[k];
    return NULL;
}

static bool begins_belief(const struct history_event *event)
{
    return event->what == HISTORY_GRANTED || event->what == HISTORY_RENEWED;
}

/* Return the belief that event i, a grant or a renewal, began: until its
 * deadline, or until the party's next event if that is earlier (a renewal may
 * shorten the lease). */
static struct belief belief_of(const struct history *history, size_t i)
{
    const struct history_event *event = &history->events[i];
    const struct history_event *next = next_of(history, i);
    struct belief belief = {event->who, event->at_ns, event->until_ns};

    if (next != NULL && next->at_ns < belief.until_ns)
        belief.until_ns = next->at_ns;
    return belief;
}

static bool overlap(const struct belief *a, const struct belief *b)
{
    return a->who != b->who && a->from_ns < b->until_ns &&
           b->from_ns < a->until_ns;
}

static bool beliefs_are_apart(const struct history *history, char *why)
{
    for (size_t i = 0; i < history->count; i++) {
        struct belief one = belief_of(history, i);

        if (!begins_belief(&history->events[i]))
            continue;
        for (size_t k = i + 1; k < history->count; k++) {
            struct belief other = belief_of(history, k);

            if (!begins_belief(&history->events[k]) || !overlap(&one, &other))
                continue;
            (void)snprintf(why, HISTORY_TEXT,
                           "parties %d and %d believed at one time, for %lld "
                           "us (events %zu and %zu)",
                           one.who, other.who,
                           (long long)(lk_sooner(one.until_ns, other.until_ns) -
                                       other.from_ns) /
                               1000,
                           i, k);
            return false;
        }
    }
    return true;
}

/* Return whether tokens rise: a grant that was answered before another was
 * requested has the smaller token, and no token is used twice. */
static bool tokens_rise(const struct history *history, char *why)
{
    for (size_t i = 0; i < history->count; i++) {
        const struct history_event *one = &history->events[i];

        for (size_t k = i + 1; k < history->count; k++) {
            const struct history_event *other = &history->events[k];
            bool is_later = one->at_ns < other->asked_ns;

            if (one->what != HISTORY_GRANTED || other->what != HISTORY_GRANTED)
                continue;
            if (one->token != other->token &&
                (!is_later || one->token < other->token))
                continue;
            (void)snprintf(why, HISTORY_TEXT,
                           "token %lld (event %zu) after %lld (event %zu)",
                           (long long)other->token, k, (long long)one->token,
                           i);
            return false;
        }
    }
    return true;
}

/* Return the party's last grant before event i, or NULL. */
static const struct history_event *grant_before(const struct history *history,
                                                size_t i)
{
    for (size_t k = i; k-- > 0;)
        if (history->events[k].who == history->events[i].who &&
            history->events[k].what == HISTORY_GRANTED)
            return &history->events[k];
    return NULL;
}

static bool told_in_time(const struct history *history, char *why)
{
    for (size_t i = 0; i < history->count; i++) {
        const struct history_event *told = &history->events[i];
        const struct history_event *grant = grant_before(history, i);

        if (told->what != HISTORY_TOLD || grant == NULL)
            continue;
        for (size_t k = 0; k < i; k++) {
            const struct history_event *other = &history->events[k];

            if (other->what != HISTORY_GRANTED || other->who == told->who ||
                other->at_ns <= grant->at_ns)
                continue;
            (void)snprintf(why, HISTORY_TEXT,
                           "party %d was told %lld us after party %d had been "
                           "granted (events %zu and %zu)",
                           told->who,
                           (long long)(told->at_ns - other->at_ns) / 1000,
                           other->who, i, k);
            return false;
        }
    }
    return true;
}

/* Return whether event i's party has the lock just before that event, by the
 * earlier events of the party. */
static bool has_it(const struct history *history, size_t i)
{
    for (size_t k = i; k-- > 0;)
        if (history->events[k].who == history->events[i].who &&
            history->events[k].what != HISTORY_TOLD)
            return history->events[k].what != HISTORY_ENDED;
    return false;
}

static bool turns_are_taken(const struct history *history, char *why)
{
    static const char *const names[] = {"granted", "renewed", "ended", "told"};

    for (size_t i = 0; i < history->count; i++) {
        const struct history_event *event = &history->events[i];

        if (has_it(history, i) == (event->what != HISTORY_GRANTED))
            continue;
        (void)snprintf(why, HISTORY_TEXT,
                       "party %d was %s %s having the lock (event %zu)",
                       event->who, names[event->what],
                       event->what == HISTORY_GRANTED ? "while" : "without", i);
        return false;
    }
    return true;
}

static void sort(struct history *history)
{
    qsort(history->events, history->count, sizeof history->events[0], by_time);
}

bool history_is_good(struct history *history, char why[HISTORY_TEXT])
{
    bool good;

    pthread_mutex_lock(&history->mutex);
    sort(history);
    good = turns_are_taken(history, why) && beliefs_are_apart(history, why) &&
           tokens_rise(history, why) && told_in_time(history, why);
    pthread_mutex_unlock(&history->mutex);
    return good;
}

size_t history_handoffs(struct history *history)
{
    size_t handoffs = 0;
    int last = -1;

    pthread_mutex_lock(&history->mutex);
    sort(history);
    for (size_t i = 0; i < history->count; i++) {
        const struct history_event *event = &history->events[i];

        if (event->what != HISTORY_GRANTED)
            continue;
        handoffs += last >= 0 && last != event->who;
        last = event->who;
    }
    pthread_mutex_unlock(&history->mutex);
    return handoffs;
}

void history_check_at(struct history *history, const char *file, int line)
{
    static const char *const names[] = {"granted", "renewed", "ended", "told"};
    char why[HISTORY_TEXT];

    if (history_is_good(history, why))
        return;
    print_error("the history is wrong: %s\n", why);
    for (size_t i = 0; i < history->count; i++) {
        const struct history_event *event = &history->events[i];
        int64_t origin = history->events[0].asked_ns;

        print_error(
            "%3zu  %10.3f ms  party %d %s (asked at %.3f, until %.3f, "
            "token %lld)\n",
            i, (double)(event->at_ns - origin) / 1e6, event->who,
            names[event->what], (double)(event->asked_ns - origin) / 1e6,
            (double)(event->until_ns - origin) / 1e6, (long long)event->token);
    }
    _fail(file, line);
}
