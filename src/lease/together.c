/*
 * together.c - send the claims and releases of several threads in one statement
 * (together.h)
 *
 * At most as many statements are under way as the pool has connections.  One
 * that has ended gives its place to the first thread that waits, the leader,
 * which sends for all that wait with a statement of the same kind.  In a crowd,
 * of more threads than connections, it gives the place up, until one statement
 * is left, which is then about many leases: about ten it costs the server as
 * much as two or three about one.  Where that takes long, places are taken
 * again.
 */
#include "lease/together.h"

#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "lease/batch.h"

/* The most leases that a leader sends together. */
#define TOGETHER_MAX 64

/* A thread that has waited for so long takes a place that was given up: the
 * commits are slow, and can be made side by side; or a statement hangs. */
#define PATIENCE_NS (2 * LK_NS_PER_MS)
#define PATIENCE_MAX_NS (64 * LK_NS_PER_MS) /* while all places are taken */

enum state {
    WAITING, /* in the queue; or has left it, because its time was over */
    LEADS,   /* has a place */
    DONE     /* a leader has sent it */
};

/* A statement that waits, on the stack of its thread. */
struct lk_joined {
    struct lk_joined *next;
    sqlock_statement_kind kind;
    const struct lk_batch *batch;
    int64_t asked_ns;
    int64_t patient_until_ns; /* as in struct lk_run */
    sem_t called;             /* posted when one of the following has changed */
    /* set after the following, which are its thread's again from then on */
    _Atomic(enum state) state;
    /* the result */
    int rc;
    sqlock_error err;
    bool is_changed; /* the row */
    bool was_uncertain;
    bool has_timed_out;
    int64_t token;
    int64_t sent_boot_ns; /* 0: it was not sent */
    int64_t deadline_ns;  /* the statement's */
};

void lk_together_init(struct lk_together *together)
{
    memset(together, 0, sizeof *together);
    (void)pthread_mutex_init(&together->mutex, NULL);
}

void lk_together_clear(struct lk_together *together)
{
    (void)pthread_mutex_destroy(&together->mutex);
}

static sqlock_statement_kind for_many(sqlock_statement_kind kind)
{
    return kind == SQLOCK_SQL_CLAIM_UNQUEUED ? SQLOCK_SQL_CLAIM_UNQUEUED_MANY
                                             : SQLOCK_SQL_RELEASE_UNQUEUED_MANY;
}

/* --- places --- */

/* The caller holds the mutex. */
static bool is_crowd(const struct lk_together *together)
{
    return together->threads > together->places;
}

/* Take a place, or enter the queue, in which somebody waits only while there is
 * a statement under way.  Return whether it has a place. */
static bool enter(struct lk_together *together, struct lk_joined *self)
{
    bool is_free;

    pthread_mutex_lock(&together->mutex);
    together->threads++;
    is_free = together->running == 0 ||
              (together->running < together->places &&
               together->first == NULL && !is_crowd(together));
    if (is_free) {
        together->running++;
        self->state = LEADS;
    } else {
        if (together->last != NULL)
            together->last->next = self;
        else
            together->first = self;
        together->last = self;
    }
    pthread_mutex_unlock(&together->mutex);
    return is_free;
}

/* Take `at` out of the queue.  The caller holds the mutex. */
static void take_out(struct lk_together *together, struct lk_joined **at,
                     struct lk_joined *before)
{
    if (together->last == *at)
        together->last = before;
    *at = (*at)->next;
}

/* A thread that has waited for a while, */
enum sight {
    STAYS,   /* and waits on: all places are taken */
    CALLED,  /* and waits for its leader, which posts `called` */
    HAS_LEFT /* and goes on: it has a place, or its time is over */
};

/* Leave the queue if a place is free, or the time is over. */
static enum sight look(struct lk_together *together, struct lk_joined *self,
                       bool is_over)
{
    struct lk_joined **at = &together->first;
    struct lk_joined *before = NULL;
    enum sight sight = CALLED;

    pthread_mutex_lock(&together->mutex);
    while (*at != NULL && *at != self) {
        before = *at;
        at = &before->next;
    }
    if (*at != NULL)
        sight =
            is_over || together->running < together->places ? HAS_LEFT : STAYS;
    if (sight == HAS_LEFT)
        take_out(together, at, before);
    if (sight == HAS_LEFT && !is_over) {
        together->running++;
        self->state = LEADS;
    }
    pthread_mutex_unlock(&together->mutex);
    return sight;
}

/* Wait until the statement was sent, or its thread has a place, or its time is
 * over.  Once a leader has it, wait for the leader. */
static void await_call(struct lk_together *together, struct lk_joined *self)
{
    int64_t until_ns = self->patient_until_ns > self->batch->deadline_ns
                           ? self->patient_until_ns
                           : self->batch->deadline_ns;
    int64_t patience_ns = PATIENCE_NS;
    enum sight sight = STAYS;

    while (sight != HAS_LEFT) {
        int64_t now_ns = sqlock_monotonic_ns();
        struct timespec at = lk_timespec(
            sight == CALLED ? LK_NEVER
                            : lk_sooner(now_ns + patience_ns, until_ns));

        if (sem_clockwait(&self->called, CLOCK_MONOTONIC, &at) == 0)
            return;
        if (errno == EINTR || sight == CALLED)
            continue;
        sight = look(together, self, sqlock_monotonic_ns() >= until_ns);
        patience_ns = lk_sooner(2 * patience_ns, PATIENCE_MAX_NS);
    }
}

static void leave(struct lk_together *together)
{
    pthread_mutex_lock(&together->mutex);
    together->threads--;
    pthread_mutex_unlock(&together->mutex);
}

/* Give the place to the first that waits; or give it up, if nobody waits, or in
 * a crowd, for which others have places. */
static void pass_on(struct lk_together *together)
{
    struct lk_joined *next;

    pthread_mutex_lock(&together->mutex);
    next = together->first;
    if (together->running > 1 && is_crowd(together))
        next = NULL;
    if (next != NULL) {
        take_out(together, &together->first, NULL);
        next->state = LEADS;
    } else {
        together->running--;
    }
    pthread_mutex_unlock(&together->mutex);
    if (next != NULL)
        (void)sem_post(&next->called);
}

/* Take those out of the queue that wait with a statement of the leader's kind,
 * and return their list, which begins with the leader, and its length. */
static size_t gather(struct lk_together *together, struct lk_joined *leader)
{
    struct lk_joined **at = &together->first;
    struct lk_joined *before = NULL;
    struct lk_joined *last = leader;
    size_t count = 1;

    leader->next = NULL;
    pthread_mutex_lock(&together->mutex);
    while (*at != NULL && count < TOGETHER_MAX) {
        struct lk_joined *joined = *at;

        if (joined->kind != leader->kind) {
            before = joined;
            at = &joined->next;
            continue;
        }
        take_out(together, at, before);
        joined->next = NULL;
        last->next = joined;
        last = joined;
        count++;
    }
    pthread_mutex_unlock(&together->mutex);
    return count;
}

/* --- one statement for all --- */

/* Make the batch of all, sorted, each key once: a lease that is released late
 * may have the key of another one.  Those left out go on alone. */
static void fill(struct lk_batch *all, struct lk_joined *head)
{
    size_t kept = 0;

    for (struct lk_joined *at = head; at != NULL; at = at->next) {
        all->items[all->count++] =
            (struct lk_item){.lease = at->batch->items[0].lease, .owner = at};
        if (at->batch->deadline_ns > all->deadline_ns)
            all->deadline_ns = at->batch->deadline_ns;
    }
    lk_batch_sort(all);
    for (size_t i = 0; i < all->count; i++)
        if (kept == 0 || strcmp(all->items[i].lease.key,
                                all->items[kept - 1].lease.key) != 0)
            all->items[kept++] = all->items[i];
    all->count = kept;
}

/* Return when the last of them was asked for; 0: one was asked for just now. */
static int64_t asked_last(const struct lk_joined *head)
{
    int64_t last_ns = head->asked_ns;

    for (; head != NULL && last_ns != 0; head = head->next)
        if (head->asked_ns == 0 || head->asked_ns > last_ns)
            last_ns = head->asked_ns;
    return last_ns;
}

/* Return until when the least patient of them waits for a connection; the
 * others go on alone then.  0: they are claims, which are not patient. */
static int64_t patient_until(const struct lk_joined *head)
{
    int64_t until_ns = head->patient_until_ns;

    for (; head != NULL; head = head->next)
        until_ns = lk_sooner(until_ns, head->patient_until_ns);
    return until_ns;
}

/* Return whether the refusal of the statement for all refuses this one, too.
 * Others may be due to one of them, and where the least patient waited in vain
 * for a connection, one that is more patient waits on. */
static bool is_refused(const struct lk_joined *joined, const struct lk_run *run,
                       int rc)
{
    int64_t now_ns = sqlock_monotonic_ns();

    if (rc == SQLOCK_ERESOURCE)
        return now_ns < run->patient_until_ns ||
               now_ns >= joined->patient_until_ns;
    /* Rows that are locked are passed over, so it is the table that is. */
    return lk_is_outage(rc) || rc == SQLOCK_EBUSY;
}

/* Note the outcome of the statement for each.  Those that are not refused, and
 * whose rows are not changed, go on alone. */
static void note(const struct lk_batch *all, const struct lk_run *run, int rc,
                 const sqlock_error *why, const sqlock_result *result)
{
    for (size_t i = 0; i < all->count; i++) {
        struct lk_joined *joined = all->items[i].owner;

        joined->rc = is_refused(joined, run, rc) ? rc : 0;
        joined->err = *why;
        joined->was_uncertain = run->was_uncertain;
        joined->has_timed_out = run->has_timed_out;
        joined->sent_boot_ns = all->sent_boot_ns;
        joined->deadline_ns = run->deadline_ns;
    }
    for (size_t row = 0; rc == 0 && row < result->rows; row++) {
        const sqlock_value *cells = &result->cells[row * result->columns];
        struct lk_item *item = lk_batch_find(all, &cells[0]);
        struct lk_joined *joined = item != NULL ? item->owner : NULL;

        if (joined == NULL)
            continue;
        joined->is_changed = true;
        joined->token = result->columns > 1 ? cells[1].integer : 0;
    }
}

/* Send the statement for all in the list.  Without memory nothing is sent. */
static void send_all(struct lk_store *store, struct lk_joined *head,
                     size_t count)
{
    struct lk_batch all = {.items = calloc(count, sizeof *all.items)};
    struct lk_run run = {.waits_for_row =
                             head->kind == SQLOCK_SQL_RELEASE_UNQUEUED,
                         .asked_ns = asked_last(head),
                         .patient_until_ns = patient_until(head)};
    sqlock_result result = {0};
    sqlock_error why = {0};
    int rc;

    if (all.items == NULL)
        return;
    fill(&all, head);
    rc = lk_batch_run(store, for_many(head->kind), &all, &run, &result, &why);
    note(&all, &run, rc, &why, &result);
    sqlock_result_clear(&result);
    free(all.items);
}

/* Wake the threads of all but the leader, whose memory is theirs from then
 * on. */
static void call_others(const struct lk_joined *leader)
{
    struct lk_joined *at = leader->next;

    while (at != NULL) {
        struct lk_joined *next = at->next;

        at->state = DONE;
        (void)sem_post(&at->called);
        at = next;
    }
}

/* Return the result of a statement that was sent for several as that of the
 * statement about one. */
static int take_result(const struct lk_joined *self, struct lk_batch *batch,
                       struct lk_run *run, sqlock_result *result,
                       sqlock_error *err)
{
    const sqlock_value token = {.type = SQLOCK_INT64, .integer = self->token};
    int rc = self->rc;

    run->is_write = true;
    run->was_uncertain = run->was_uncertain || self->was_uncertain;
    run->has_timed_out = self->has_timed_out;
    run->sent_boot_ns = self->sent_boot_ns;
    run->deadline_ns = self->deadline_ns;
    lk_batch_note_times(batch, run);
    if (rc < 0) {
        if (err != NULL)
            *err = self->err;
        return rc;
    }
    if (!self->is_changed)
        return 0;
    if (self->kind == SQLOCK_SQL_CLAIM_UNQUEUED &&
        (sqlock_result_start(result, 1) < 0 ||
         sqlock_result_push(result, &token) < 0))
        return lk_error(err, SQLOCK_EUNCERTAIN, "out of memory for the answer");
    result->affected = 1;
    return 0;
}

/* Return whether the database has the statement for many.  Keys that differ
 * may be one row where the application chooses them, and the column compares
 * loosely: a statement for both would give it to both. */
static bool can_be_sent_together(struct lk_store *store,
                                 sqlock_statement_kind kind)
{
    return store->statements[for_many(kind)].text != NULL &&
           store->options.key_rule != SQLOCK_KEY_RAW &&
           !atomic_load(&store->db.pool.returns_no_rows);
}

/* Return whether a statement that has waited is too late to be sent alone.  One
 * that is patient may have used its time up before it came here. */
static bool is_too_late(const struct lk_joined *self)
{
    return self->patient_until_ns == 0 && self->state != DONE &&
           sqlock_monotonic_ns() >= self->batch->deadline_ns;
}

static int run_with_others(struct lk_store *store, struct lk_joined *self,
                           struct lk_batch *batch, struct lk_run *run,
                           sqlock_result *result, sqlock_error *err)
{
    struct lk_together *together = &store->together;
    int64_t begun_ns = sqlock_monotonic_ns();
    size_t count = 1;
    int rc;

    if (!enter(together, self)) {
        await_call(together, self);
        lk_count_time(&store->db.stats.pool_wait,
                      sqlock_monotonic_ns() - begun_ns);
        if (self->state == LEADS)
            count = gather(together, self);
        if (run->patient_until_ns != 0) /* the wait extends its deadline */
            batch->deadline_ns = lk_store_deadline(store);
    }
    if (count > 1) {
        send_all(store, self, count);
        if (run->patient_until_ns != 0)
            batch->deadline_ns = lk_store_deadline(store);
        pass_on(together);
        call_others(self);
    }
    if (count > 1 || self->state == DONE)
        rc = take_result(self, batch, run, result, err);
    else if (is_too_late(self))
        rc = lk_error(err, SQLOCK_ERESOURCE,
                      "all connections were in use for the whole time of the "
                      "statement: raise pool_size");
    else
        rc = lk_batch_run(store, self->kind, batch, run, result, err);
    if (count == 1 && self->state == LEADS)
        pass_on(together);
    leave(together);
    return rc;
}

int lk_together_run(struct lk_store *store, sqlock_statement_kind kind,
                    struct lk_batch *batch, struct lk_run *run,
                    sqlock_result *result, sqlock_error *err)
{
    struct lk_joined self = {.kind = kind,
                             .batch = batch,
                             .asked_ns = run->asked_ns,
                             .patient_until_ns = run->patient_until_ns};
    int rc;

    if (!can_be_sent_together(store, kind))
        return lk_batch_run(store, kind, batch, run, result, err);
    (void)sem_init(&self.called, 0, 0);
    rc = run_with_others(store, &self, batch, run, result, err);
    (void)sem_destroy(&self.called);
    return rc;
}
