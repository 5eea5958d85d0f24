/*
 * bell.c - hear rings, and wake the parts that they are for (bell.h)
 */
#include "lock/bell.h"

#include <string.h>
#include <sys/eventfd.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "base/thread.h"
#include "lease/bell.h"
#include "lease/ticket.h"
#include "lock/observer.h"
#include "lock/registry.h"
#include "lock/ticket.h"

/* How long a bell that is not to be had is not asked for again: each time costs
 * a session that is opened in vain. */
#define NONE_NS (60000 * LK_NS_PER_MS)

/* How often to read what a session has heard that nobody relies on: the server
 * keeps for all what one session has not read. */
#define DRAIN_NS (60000 * LK_NS_PER_MS)

static struct lk_pool *pool_of(const struct lk_bell *bell)
{
    return &bell->registry->store.db.pool;
}

/* --- waking; the caller holds the bell's mutex --- */

static void wake(struct lk_part *part)
{
    part->ear.look_ns = LK_NEVER;
    pthread_mutex_lock(&lk_mutex);
    lk_waiter_wake(part->waiter, LK_WAKE_ROW);
    pthread_mutex_unlock(&lk_mutex);
}

/* Wake those who observe the leader of that key; NULL: of any. */
static void wake_observers(const struct lk_bell *bell, const char *key)
{
    const struct lk_observer *observer;

    DL_FOREACH(bell->observers, observer)
    {
        if (key == NULL || strcmp(observer->key, key) == 0)
            (void)eventfd_write(observer->fd, 1);
    }
}

static void wake_all(struct lk_bell *bell)
{
    struct lk_part *part;

    wake_observers(bell, NULL);

    DL_FOREACH2(bell->listeners, part, ear.next)
    {
        if (part->ear.hearing == LK_HEARS_ALL)
            wake(part);
    }
}

/* A ring has the CLIENT_ID for which a row is reserved; or that CLIENT_ID, '?'
 * and a time in ms: look at the row then, whether the first has taken it, and
 * not before, since another release was later.  With 0 it is a call, and such a
 * release does not put off its sign of life.  Or a ring has '!' and a key: its
 * leader has changed. */
static void rung(void *context, const char *text)
{
    struct lk_bell *bell = context;
    size_t length = strcspn(text, "?");
    struct lk_part *part;
    int64_t ms;

    if (length == 0) /* rings may have been lost */
        wake_all(bell);
    if (text[0] == '!')
        wake_observers(bell, text + 1);
    DL_FOREACH2(bell->listeners, part, ear.next)
    {
        if (part->ear.hearing != LK_HEARS_ALL ||
            strlen(part->slot->ticket) != length ||
            strncmp(part->slot->ticket, text, length) != 0)
            continue;
        part->ear.is_rung = part->ear.is_rung || text[length] == '\0';
        text += length + (text[length] != '\0');
        ms = lk_text_digits(&text);
        part->ear.look_ns = lk_after_ms(lk_boottime_ns(), ms);
        if (ms == 0)
            wake(part);
        else
            lk_handler_wake_at(&bell->handler, part->ear.look_ns);
        return;
    }
}

/* The session is lost: let all that it heard for claim again, which opens
 * another one. */
static void lose_session(struct lk_bell *bell)
{
    lk_handler_unwatch(&bell->handler, bell->fd);
    bell->is_open = false;
    bell->is_watched = false;
    wake_all(bell);
}

/* Read the rings of the session, unless a statement is on it, at whose end the
 * handler is woken. */
static void hear_all(struct lk_bell *bell)
{
    static const struct lk_wish wish = {.is_open = true, .hears = true};
    const sqlock_bell *driver = lk_bell_of(&bell->registry->store);
    struct lk_connection *session;
    int rc;

    if (lk_pool_take_as(pool_of(bell), &wish, &session, NULL) < 0) {
        if (!lk_pool_has_hearer(pool_of(bell)))
            lose_session(bell);
        return;
    }
    rc = driver->hear(session->state, rung, bell);
    bell->fd = driver->descriptor(session->state);
    if ((rc == 0 || rc == SQLOCK_EBUSY) &&
        (!bell->is_watched ||
         lk_handler_watch(&bell->handler, bell->fd, NULL) == 0)) {
        lk_pool_give(session->pool, session);
        return;
    }
    lk_pool_discard(session->pool, session);
    lose_session(bell);
}

void lk_bell_use(struct lk_bell *bell)
{
    bool was_watched = bell->is_watched;
    bool is_alone = !lk_bell_of(&bell->registry->store)->keeps_rings;
    bool is_free = !is_alone && bell->sleepers == 0 && bell->observers == NULL;

    bell->is_watched = !is_free;
    lk_pool_use_hearer(pool_of(bell), is_alone  ? LK_HEARER_ALONE
                                      : is_free ? LK_HEARER_FREE
                                                : LK_HEARER_BRIEF);
    if (!bell->is_open || was_watched == bell->is_watched)
        return;
    if (!is_free) {
        hear_all(bell); /* what has come before */
        return;
    }
    lk_handler_unwatch(&bell->handler, bell->fd);
    bell->drain_ns = lk_after_ns(lk_boottime_ns(), DRAIN_NS);
    lk_handler_wake_at(&bell->handler, bell->drain_ns);
}

static void set_asleep(struct lk_bell *bell, struct lk_part *part,
                       bool is_asleep)
{
    if (part->ear.is_asleep == is_asleep)
        return;
    part->ear.is_asleep = is_asleep;
    if (is_asleep) {
        bell->sleepers++;
        return;
    }
    bell->sleepers--;
    lk_bell_use(bell);
}

static void note(void *context, const char *text)
{
    struct lk_part *part = context;

    part->ear.was_free = strcmp(text, "free") == 0;
    /* The one just before has had the lock: the row is reserved now. */
    part->ear.is_rung = part->ear.was_free && part->slot->place <= LK_CHAIN_MAX;
}

/* The one before has gone, or the time is over; a broken session is found out
 * by the claim on it. */
static void hear_one(struct lk_bell *bell, struct lk_part *part)
{
    const sqlock_bell *driver = lk_bell_of(&bell->registry->store);
    int rc = driver->hear(part->slot->session->state, note, part);

    if (rc == SQLOCK_EBUSY &&
        lk_handler_watch(&bell->handler, part->ear.fd, NULL) == 0)
        return;
    part->ear.hearing = LK_HEARS_NOTHING;
    wake(part);
}

static void ready(void *owner, int fd)
{
    struct lk_bell *bell = owner;
    struct lk_part *part;

    pthread_mutex_lock(&bell->mutex);
    if (bell->is_open && fd == bell->fd) {
        hear_all(bell);
    } else {
        DL_FOREACH2(bell->listeners, part, ear.next)
        {
            if (part->ear.hearing == LK_HEARS_BEFORE && part->ear.fd == fd)
                break;
        }
        if (part != NULL)
            hear_one(bell, part);
    }
    pthread_mutex_unlock(&bell->mutex);
}

/* Wake the parts that are to look now, and return when the next one is. */
static int64_t look(void *owner)
{
    struct lk_bell *bell = owner;
    int64_t now = lk_boottime_ns();
    int64_t next = LK_NEVER;
    struct lk_part *part;

    pthread_mutex_lock(&bell->mutex);
    if (bell->is_open && (bell->is_watched || bell->drain_ns <= now)) {
        hear_all(bell);
        bell->drain_ns = lk_after_ns(now, DRAIN_NS);
    }
    if (bell->is_open && !bell->is_watched)
        next = bell->drain_ns;
    DL_FOREACH2(bell->listeners, part, ear.next)
    {
        if (part->ear.look_ns <= now)
            wake(part);
        next = lk_sooner(next, part->ear.look_ns);
    }
    pthread_mutex_unlock(&bell->mutex);
    return next;
}

/* --- interface --- */

void lk_bell_init(struct lk_bell *bell, sqlock_registry *registry)
{
    memset(bell, 0, sizeof *bell);
    bell->registry = registry;
    (void)pthread_mutex_init(&bell->mutex, NULL);
    lk_condition_init(&bell->opened);
    lk_service_init(&bell->service);
    lk_handler_init(&bell->handler, &bell->service, look, ready, bell);
}

void lk_bell_stop(struct lk_bell *bell)
{
    lk_service_stop(&bell->service);
}

/* Let a session hear for all; without the mutex. */
static int open_for_all(struct lk_bell *bell, int64_t deadline_ns,
                        sqlock_error *err)
{
    const struct lk_wish wish = {
        .wait_until_ns = deadline_ns, .latest_ns = deadline_ns, .hears = true};
    struct lk_store *store = &bell->registry->store;
    struct lk_connection *session;
    char name[LK_BELL_SIZE];
    int rc = lk_pool_take_as(&store->db.pool, &wish, &session, err);

    if (rc < 0)
        return rc;
    lk_bell_name(store, name);
    rc = lk_bell_call_begin(store, session, name, LK_NEVER, deadline_ns, err);
    if (rc == 0)
        lk_pool_hear(&store->db.pool, session, &bell->handler);
    lk_pool_return(&store->db.pool, session);
    return rc;
}

/* Wait while another thread opens that session.  Return false if the time is
 * over.  The caller holds the mutex. */
static bool await_other(struct lk_bell *bell, int64_t deadline_ns)
{
    const struct timespec at = lk_timespec(deadline_ns);
    int rc = 0;

    while (bell->is_opening && rc == 0)
        rc = pthread_cond_timedwait(&bell->opened, &bell->mutex, &at);
    return !bell->is_opening;
}

/* Open that session, if no other thread does.  The caller holds the mutex. */
static int open_once(struct lk_bell *bell, sqlock_error *err)
{
    int64_t deadline_ns = lk_store_deadline(&bell->registry->store);
    int rc;

    if (!await_other(bell, deadline_ns))
        return lk_error(err, SQLOCK_ETIMEDOUT,
                        "another thread's session to wait is not open yet");
    if (bell->is_open)
        return 0;
    if (bell->none_until_ns > sqlock_monotonic_ns())
        return lk_error(err, SQLOCK_ENOTSUP,
                        "no session to wait is to be had here");
    bell->is_opening = true;
    pthread_mutex_unlock(&bell->mutex);
    rc = open_for_all(bell, deadline_ns, err);
    pthread_mutex_lock(&bell->mutex);
    bell->is_opening = false;
    (void)pthread_cond_broadcast(&bell->opened);
    if (rc < 0)
        return rc;
    bell->is_open = true;
    bell->number++;
    hear_all(bell); /* the descriptor does not show what came before */
    if (!bell->is_open)
        return lk_error(err, SQLOCK_EUNREACHABLE,
                        "the session to wait was lost when it was opened");
    return 0;
}

bool lk_bell_is_there(struct lk_bell *bell)
{
    bool is_there;

    pthread_mutex_lock(&bell->mutex);
    is_there = lk_bell_of(&bell->registry->store) != NULL &&
               bell->none_until_ns <= sqlock_monotonic_ns();
    pthread_mutex_unlock(&bell->mutex);
    return is_there;
}

/* Remember that there is none, if that is why it was refused. */
static void note_refusal(struct lk_bell *bell, int rc)
{
    if (rc != SQLOCK_ENOTSUP && rc != SQLOCK_EACCESS)
        return;
    pthread_mutex_lock(&bell->mutex);
    bell->none_until_ns = lk_after_ns(sqlock_monotonic_ns(), NONE_NS);
    pthread_mutex_unlock(&bell->mutex);
}

int lk_bell_hear_all(struct lk_bell *bell, unsigned heard, bool *is_late,
                     sqlock_error *err)
{
    int rc = lk_handler_start(&bell->handler, err);

    *is_late = false;
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&bell->mutex);
    lk_bell_use(bell);
    if (!bell->is_open)
        rc = open_once(bell, err);
    *is_late = heard != bell->number;
    pthread_mutex_unlock(&bell->mutex);
    if (rc < 0)
        note_refusal(bell, rc);
    return rc;
}

/* Send the wait for the one before on the session of the part's slot. */
static int begin_before(struct lk_bell *bell, struct lk_part *part,
                        const char *before, int64_t until_ns, sqlock_error *err)
{
    struct lk_store *store = &bell->registry->store;
    struct lk_connection *session = part->slot->session;
    char name[LK_BELL_SIZE];
    int rc;

    if (session == NULL)
        return lk_error(err, SQLOCK_ERESOURCE, "there is no session to wait");
    lk_bell_name_of(before, name);
    rc = lk_bell_call_begin(store, session, name, until_ns,
                            lk_store_deadline(store), err);
    if (rc == 0)
        part->ear.fd = lk_bell_of(store)->descriptor(session->state);
    return rc;
}

/* Put the part on the list; the caller holds the bell's mutex. */
static void list(struct lk_bell *bell, struct lk_part *part,
                 enum lk_hearing hearing)
{
    part->ear.look_ns = LK_NEVER;
    part->ear.was_free = false;
    part->ear.hearing = hearing;
    DL_APPEND2(bell->listeners, part, ear.previous, ear.next);
}

void lk_bell_expect(struct lk_part *part)
{
    struct lk_bell *bell = &part->slot->registry->bell;
    const sqlock_bell *driver = lk_bell_of(&bell->registry->store);

    lk_waiter_prepare(part->waiter);
    if (driver == NULL || driver->is_of_one)
        return;
    pthread_mutex_lock(&bell->mutex);
    part->ear.heard = bell->number;
    if (part->ear.hearing == LK_HEARS_NOTHING)
        list(bell, part, LK_HEARS_ALL);
    set_asleep(bell, part, false);
    pthread_mutex_unlock(&bell->mutex);
}

int lk_bell_hear(struct lk_part *part, const char *before, int64_t until_ns,
                 bool *is_late, sqlock_error *err)
{
    struct lk_bell *bell = &part->slot->registry->bell;
    int rc;

    if (!lk_bell_of(&bell->registry->store)->is_of_one) {
        pthread_mutex_lock(&bell->mutex);
        set_asleep(bell, part, true);
        pthread_mutex_unlock(&bell->mutex);
        return lk_bell_hear_all(bell, part->ear.heard, is_late, err);
    }
    *is_late = false;
    rc = lk_handler_start(&bell->handler, err);
    if (rc < 0)
        return rc;
    rc = begin_before(bell, part, before, until_ns, err);
    if (rc < 0) {
        note_refusal(bell, rc);
        return rc;
    }
    pthread_mutex_lock(&bell->mutex);
    list(bell, part, LK_HEARS_BEFORE);
    hear_one(bell, part);
    pthread_mutex_unlock(&bell->mutex);
    return 0;
}

bool lk_bell_forget(struct lk_part *part)
{
    struct lk_bell *bell = &part->slot->registry->bell;
    struct lk_slot *slot = part->slot;
    bool is_rung;

    pthread_mutex_lock(&bell->mutex);
    is_rung = part->ear.is_rung;
    part->ear.is_rung = false;
    if (part->ear.previous != NULL)
        DL_DELETE2(bell->listeners, part, ear.previous, ear.next);
    part->ear.previous = NULL;
    if (part->ear.hearing == LK_HEARS_BEFORE) {
        lk_handler_unwatch(&bell->handler, part->ear.fd);
        lk_ticket_drop_session(slot);
    }
    part->ear.hearing = LK_HEARS_NOTHING;
    set_asleep(bell, part, false);
    pthread_mutex_unlock(&bell->mutex);
    return is_rung;
}
