/*
 * together.c - send the claims and releases of several threads in one statement
 * (together.h)
 *
 * At most as many statements are under way as the pool has connections.  One
 * that has ended gives its place to the first thread that waits, the leader,
 * which sends for all that wait with a statement of the same kind.  In a crowd,
 * of more threads than connections or than LK_TOGETHER_CROWD, it gives the
 * place up, until one statement is left, which is then about many leases: about
 * ten it costs the server as much as two or three about one.  Where that takes
 * long, places are taken again.
 */
#include "lease/together.h"

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

/* A statement that waits, on the stack of its thread. */
struct lk_joined {
    struct lk_crew_member member; /* the first, which is cast to this */
    sqlock_statement_kind kind;
    const struct lk_batch *batch;
    int64_t asked_ns;
    int64_t patient_until_ns; /* as in struct lk_run */
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

static sqlock_statement_kind for_many(sqlock_statement_kind kind)
{
    return kind == SQLOCK_SQL_CLAIM_UNQUEUED ? SQLOCK_SQL_CLAIM_UNQUEUED_MANY
                                             : SQLOCK_SQL_RELEASE_UNQUEUED_MANY;
}

static bool is_of_kind(const struct lk_crew_member *leader,
                       const struct lk_crew_member *other)
{
    return ((const struct lk_joined *)leader)->kind ==
           ((const struct lk_joined *)other)->kind;
}

static struct lk_joined *next_of(const struct lk_joined *joined)
{
    return (struct lk_joined *)joined->member.next;
}

/* --- one statement for all --- */

/* Make the batch of all, sorted, each key once: a lease that is released late
 * may have the key of another one.  Those left out go on alone. */
static void fill(struct lk_batch *all, struct lk_joined *head)
{
    size_t kept = 0;

    for (struct lk_joined *at = head; at != NULL; at = next_of(at)) {
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

    for (; head != NULL && last_ns != 0; head = next_of(head))
        if (head->asked_ns == 0 || head->asked_ns > last_ns)
            last_ns = head->asked_ns;
    return last_ns;
}

/* Return until when the least patient of them waits for a connection; the
 * others go on alone then.  0: they are claims, which are not patient. */
static int64_t patient_until(const struct lk_joined *head)
{
    int64_t until_ns = head->patient_until_ns;

    for (; head != NULL; head = next_of(head))
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

/* Send the statement of a leader alone, unless it has waited for too long: one
 * that is patient may have used its time up before it came here. */
static int send_alone(struct lk_store *store, const struct lk_joined *self,
                      struct lk_batch *batch, struct lk_run *run,
                      sqlock_result *result, sqlock_error *err)
{
    if (self->patient_until_ns == 0 &&
        sqlock_monotonic_ns() >= batch->deadline_ns)
        return lk_error(err, SQLOCK_ERESOURCE,
                        "all connections were in use for the whole time of the "
                        "statement: raise pool_size");
    return lk_batch_run(store, self->kind, batch, run, result, err);
}

static int run_with_others(struct lk_store *store, struct lk_joined *self,
                           struct lk_batch *batch, struct lk_run *run,
                           sqlock_result *result, sqlock_error *err)
{
    struct lk_crew *crew = &store->together;
    int64_t begun_ns = sqlock_monotonic_ns();
    bool is_patient = run->patient_until_ns != 0;
    size_t count = 0;
    bool has_waited;
    enum lk_crew_state state =
        lk_crew_join(crew, &self->member,
                     lk_later(run->patient_until_ns, batch->deadline_ns),
                     PATIENCE_NS, &has_waited);
    int rc;

    if (has_waited) {
        lk_count_time(&store->db.stats.pool_wait,
                      sqlock_monotonic_ns() - begun_ns);
        if (state == LK_CREW_LEADS)
            count = lk_crew_gather(crew, &self->member, TOGETHER_MAX - 1,
                                   is_of_kind);
        if (is_patient) /* the wait extends its deadline */
            batch->deadline_ns = lk_store_deadline(store);
    }
    if (count > 0) {
        send_all(store, self, count + 1);
        if (is_patient)
            batch->deadline_ns = lk_store_deadline(store);
        lk_crew_pass_on(crew);
        lk_crew_dismiss(&self->member);
    }
    rc = count > 0 || state == LK_CREW_DONE
             ? take_result(self, batch, run, result, err)
             : send_alone(store, self, batch, run, result, err);
    if (count == 0 && state == LK_CREW_LEADS)
        lk_crew_pass_on(crew);
    lk_crew_leave(crew, &self->member);
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

    return can_be_sent_together(store, kind)
               ? run_with_others(store, &self, batch, run, result, err)
               : lk_batch_run(store, kind, batch, run, result, err);
}
