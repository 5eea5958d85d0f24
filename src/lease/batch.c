/*
 * batch.c - send the statements about batches, and match the rows of a result
 * with the leases
 *
 * The leases of a statement are sorted by key, so that two of them never
 * deadlock; a row is matched by its key.
 */
#include "lease/batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "lease/arguments.h"
#include "lease/bell.h"
#include "lease/longest.h"

static int by_key(const void *a, const void *b)
{
    const struct lk_item *left = a;
    const struct lk_item *right = b;

    return strcmp(left->lease.key, right->lease.key);
}

void lk_batch_sort(struct lk_batch *batch)
{
    qsort(batch->items, batch->count, sizeof *batch->items, by_key);
}

void lk_batch_sort_parts(struct lk_batch *batch)
{
    size_t end = batch->count;

    for (size_t i = end; i-- > 0;) {
        struct lk_item item = batch->items[i];

        if (!lk_lease_may_be_shared(&item.lease))
            continue;
        batch->items[i] = batch->items[--end];
        batch->items[end] = item;
    }
    qsort(batch->items, end, sizeof *batch->items, by_key);
}

void lk_batch_of_one(struct lk_batch *batch, struct lk_item *item,
                     const struct lk_lease *lease, int64_t deadline_ns)
{
    *item = (struct lk_item){.lease = *lease};
    *batch = (struct lk_batch){
        .items = item,
        .count = 1,
        .deadline_ns = deadline_ns,
    };
}

struct lk_item *lk_batch_find(const struct lk_batch *batch,
                              const sqlock_value *key)
{
    struct lk_item wanted = {.lease = {.key = key->text}};

    if (key->type != SQLOCK_TEXT)
        return NULL;
    return bsearch(&wanted, batch->items, batch->count, sizeof wanted, by_key);
}

static bool has_client(const struct lk_item *item, const sqlock_value *client)
{
    return client->type == SQLOCK_TEXT &&
           strcmp(client->text, item->lease.client_id) == 0;
}

struct lk_item *lk_batch_find_owner(const struct lk_store *store,
                                    const struct lk_batch *batch,
                                    const sqlock_result *result, size_t row)
{
    const sqlock_value *cells = &result->cells[row * result->columns];
    struct lk_item *item = lk_batch_find(batch, &cells[0]);

    if (result->columns < 3 || (item != NULL && has_client(item, &cells[2])))
        return item;
    if (store->options.key_rule != SQLOCK_KEY_RAW)
        return NULL;
    for (size_t i = 0; i < batch->count; i++)
        if (has_client(&batch->items[i], &cells[2]))
            return &batch->items[i];
    return NULL;
}

bool lk_batch_is_divisible(const struct lk_batch *batch, int rc)
{
    return batch->count > 1 && (rc == SQLOCK_EDATABASE || rc == SQLOCK_EINVAL ||
                                (rc == SQLOCK_EBUSY && batch->has_timed_out));
}

/* Send one part, and note the times of its answer.  sent_boot_ns stays the
 * earliest. */
static int send_part(struct lk_store *store, struct lk_batch *batch,
                     struct lk_batch *part, lk_batch_fn send, sqlock_error *err)
{
    int rc;

    for (size_t i = 0; i < part->count; i++) {
        part->items[i].is_left_out = false;
        part->items[i].is_told = false;
    }
    rc = send(store, part, err);
    for (size_t i = 0; rc < 0 && i < part->count; i++) {
        part->items[i].rc = rc;
        part->items[i].is_told = true;
    }
    if (batch->sent_boot_ns == 0)
        batch->sent_boot_ns = part->sent_boot_ns;
    batch->answered_boot_ns = part->answered_boot_ns;
    batch->now_us = part->now_us != 0 ? part->now_us : batch->now_us;
    return rc;
}

/* Give the items of a part that result instead of sending them. */
static void leave_out(struct lk_batch *batch, int rc)
{
    for (size_t i = 0; i < batch->count; i++) {
        batch->items[i].rc = rc;
        batch->items[i].is_left_out = true;
        batch->items[i].is_told = true;
    }
}

/* Return whether a statement about many leases does for this one. */
static bool goes_with_others(const struct lk_item *item)
{
    return !lk_lease_may_be_shared(&item->lease);
}

/* Return how many leases have time in one statement. */
static size_t most_of(const struct lk_store *store)
{
    int64_t most =
        (int64_t)store->options.statement_timeout_ms * 1000 / LK_LEASE_US;

    return most < LK_BATCH_MAX ? (size_t)most : LK_BATCH_MAX;
}

/* Return for how long the statements about so many leases may take. */
static int64_t time_of_ms(const struct lk_store *store, size_t count)
{
    size_t most = most_of(store);
    size_t parts = count / most + (count % most > 0);

    return (int64_t)parts * store->options.statement_timeout_ms;
}

int64_t lk_batch_deadline(const struct lk_store *store, size_t count)
{
    return lk_after_ms(sqlock_monotonic_ns(), time_of_ms(store, count));
}

static size_t count_alone(const struct lk_batch *batch)
{
    size_t count = 0;

    for (size_t i = 0; i < batch->count; i++)
        count += !goes_with_others(&batch->items[i]);
    return count;
}

int64_t lk_batch_latest(const struct lk_store *store,
                        const struct lk_batch *batch, int64_t from_ns)
{
    size_t alone = count_alone(batch);

    return lk_after_ms(from_ns, time_of_ms(store, batch->count - alone) +
                                    time_of_ms(store, alone > 0));
}

bool lk_batch_has_parts(const struct lk_store *store,
                        const struct lk_batch *batch)
{
    return (batch->count > 1 && count_alone(batch) > 0) ||
           batch->count > most_of(store);
}

/* Return how many items from `at` on are sent together. */
static size_t length_of_part(const struct lk_batch *batch, size_t at,
                             size_t most)
{
    size_t end = at + 1;

    while (goes_with_others(&batch->items[at]) && end < batch->count &&
           end - at < most && goes_with_others(&batch->items[end]))
        end++;
    return end - at;
}

static bool has_refused(const struct lk_batch *part)
{
    for (size_t i = 0; i < part->count; i++)
        if (part->items[i].rc == SQLOCK_EBUSY)
            return true;
    return false;
}

/* Return why no part is sent behind this one, which came to rc; 0: the others
 * are sent. */
static int stops_at(const struct lk_batch *part, int rc)
{
    if (lk_is_outage(rc) || (part->is_all_or_none && rc < 0))
        return rc;
    return part->is_all_or_none && has_refused(part) ? SQLOCK_EBUSY : 0;
}

/* Return whether the claim of a part, which came to rc, has changed nothing. */
static bool is_refused(const struct lk_batch *part, int rc)
{
    return part->is_all_or_none &&
           (rc == SQLOCK_EBUSY || rc == SQLOCK_ETIMEDOUT);
}

/* How often the parts of a claim are halved. */
#define CUTS_MAX 3

/* How a batch is sent in parts. */
struct parts {
    size_t most; /* leases of a part */
    /* and of one before that item: of a shorter part, which is cut */
    size_t most_of_short, short_end;
    unsigned cuts;
    int64_t time_ns;   /* for a part */
    int64_t until_ns;  /* no part is cut after that */
    int64_t latest_ns; /* no part has a later deadline */
    /* when the first lease ends that a claim got, CLOCK_BOOTTIME */
    int64_t first_end_ns;
};

/* Begin to send a batch in parts, or in halves after the whole has failed with
 * rc.  It may have used its time up, and each half gets another. */
static void begin_parts(struct parts *parts, const struct lk_store *store,
                        const struct lk_batch *batch, int rc)
{
    int64_t timeout_ms = store->options.statement_timeout_ms;

    *parts = (struct parts){
        .most = rc == 0 ? most_of(store) : (batch->count + 1) / 2,
        .time_ns = rc == 0 ? batch->deadline_ns - sqlock_monotonic_ns()
                           : timeout_ms * LK_NS_PER_MS,
        .until_ns = lk_batch_deadline(store, batch->count),
        .latest_ns = batch->latest_ns,
        .first_end_ns = LK_NEVER,
    };
    if (parts->latest_ns == 0)
        parts->latest_ns =
            rc != 0 ? lk_after_ms(batch->deadline_ns, timeout_ms)
                    : lk_batch_latest(store, batch, sqlock_monotonic_ns());
}

/* Make the part of a batch that begins at that item. */
static void take_part(const struct parts *parts, const struct lk_batch *batch,
                      size_t at, struct lk_batch *part)
{
    *part = *batch;
    part->items += at;
    part->count = length_of_part(
        batch, at, at < parts->short_end ? parts->most_of_short : parts->most);
    part->latest_ns = parts->latest_ns;
    part->deadline_ns = lk_sooner(
        lk_after_ns(sqlock_monotonic_ns(), parts->time_ns), parts->latest_ns);
}

/* Return whether each copy of the claims was answered.  Otherwise the resolver
 * frees the rows, and they need other CLIENT_IDs. */
static bool is_answered(const struct lk_batch *part)
{
    for (size_t i = 0; i < part->count; i++)
        if (part->items[i].lease.believed.fate != LK_CLAIM_ANSWERED)
            return false;
    return true;
}

/* Send no more than half of the part at a time: up to its end, and if it had as
 * many leases as any, also behind that. */
static void halve(struct parts *parts, size_t at, size_t count)
{
    parts->cuts++;
    if (count == parts->most) {
        parts->most = count / 2;
        return;
    }
    parts->most_of_short = count / 2;
    if (parts->short_end < at + count)
        parts->short_end = at + count;
}

/* Return whether the claim of a part, which begins at that item and came to rc,
 * is sent again in halves: it timed out, and was not carried out. */
static bool is_cut(struct parts *parts, const struct lk_batch *part, size_t at,
                   int rc)
{
    if (rc != SQLOCK_ETIMEDOUT || part->count == 1 || parts->cuts == CUTS_MAX ||
        !is_answered(part) || sqlock_monotonic_ns() >= parts->until_ns)
        return false;
    halve(parts, at, part->count);
    return true;
}

/* Note when the leases end that the claim of a part got. */
static void note_ends(struct parts *parts, const struct lk_batch *part)
{
    for (size_t i = 0; part->is_all_or_none && i < part->count; i++)
        if (part->items[i].rc == 0)
            parts->first_end_ns =
                lk_sooner(parts->first_end_ns,
                          part->items[i].lease.believed.until_boot_ns);
}

static int out_of_time(const struct lk_batch *batch, sqlock_error *err)
{
    return batch->is_all_or_none
               ? lk_error(err, SQLOCK_ETIMEDOUT,
                          "the claims, of which locks that are shared need one "
                          "each, took longer than the wait and "
                          "statement_timeout_ms: raise one of them")
               : lk_error(err, SQLOCK_EBUSY,
                          "there was no time for all of the leases, of which "
                          "shares go one by one: raise statement_timeout_ms");
}

/* Return why no more parts are sent behind the first, though none has failed;
 * 0: they are sent. */
static int ends_here(const struct parts *parts, const struct lk_batch *batch,
                     sqlock_error *err)
{
    if (parts->first_end_ns <= lk_boottime_ns())
        return lk_error(err, SQLOCK_ETIMEDOUT,
                        "the claims took longer than the TTL of the first "
                        "lease: raise ttl_ms");
    if (sqlock_monotonic_ns() >= parts->latest_ns)
        return out_of_time(batch, err);
    return batch->stops != NULL ? batch->stops(batch->caller, err) : 0;
}

/* Return whether a half of the part has told why it failed. */
static bool is_told(const struct lk_batch *part)
{
    for (size_t i = 0; i < part->count; i++)
        if (part->items[i].is_told)
            return true;
    return false;
}

int lk_batch_send_parts(struct lk_store *store, struct lk_batch *batch,
                        lk_batch_fn send, int rc, sqlock_error *err)
{
    int whole = rc;
    int stop = 0;
    struct lk_batch part;
    struct parts parts;

    begin_parts(&parts, store, batch, whole);
    if (whole == 0)
        batch->sent_boot_ns = 0;
    for (size_t at = 0; at < batch->count; at += part.count) {
        take_part(&parts, batch, at, &part);
        if (stop == 0 && whole != 0 && sqlock_monotonic_ns() >= parts.latest_ns)
            stop = whole;
        else if (stop == 0 && whole == 0 && at > 0)
            stop = ends_here(&parts, batch, err);
        if (stop != 0) {
            leave_out(&part, stop);
            continue;
        }
        rc = send_part(store, batch, &part, send, err);
        if (is_cut(&parts, &part, at, rc)) {
            part.count = 0;
            continue;
        }
        stop = stops_at(&part, rc);
        note_ends(&parts, &part);
        if (is_refused(&part, rc))
            leave_out(&part, rc);
        if (rc < 0 || is_told(&part))
            err = NULL; /* it tells of the first part that fails */
    }
    return 0;
}

void lk_batch_note_times(struct lk_batch *batch, const struct lk_run *run)
{
    if (run->sent_boot_ns != 0)
        batch->sent_boot_ns = run->sent_boot_ns;
    batch->answered_boot_ns = lk_boottime_ns();
    if (!run->was_uncertain || !run->is_write)
        return;
    for (size_t i = 0; i < batch->count; i++)
        lk_lease_cap(&batch->items[i].lease,
                     batch->items[i].lease.asked.ttl_ms);
}

static bool is_claim(sqlock_statement_kind kind)
{
    return kind == SQLOCK_SQL_CLAIM || kind == SQLOCK_SQL_ENQUEUE ||
           kind == SQLOCK_SQL_SHARE || kind == SQLOCK_SQL_CLAIM_UNQUEUED ||
           kind == SQLOCK_SQL_CLAIM_RESERVED ||
           kind == SQLOCK_SQL_CLAIM_UNQUEUED_MANY ||
           kind == SQLOCK_SQL_CLAIM_MANY;
}

/* Return whether such a statement gives leases the TTLs of the batch. */
static bool sets_ends(sqlock_statement_kind kind)
{
    return is_claim(kind) || kind == SQLOCK_SQL_HAND_OFF ||
           kind == SQLOCK_SQL_RENEW || kind == SQLOCK_SQL_RENEW_MANY ||
           kind == SQLOCK_SQL_RENEW_SHARE;
}

/* Let leases be as long as those of the batch before such a statement is
 * sent. */
static int lengthen(struct lk_store *store, const struct lk_batch *batch,
                    sqlock_statement_kind kind, sqlock_error *err)
{
    int64_t longest_ms = 0;

    for (size_t i = 0; i < batch->count; i++)
        if (batch->items[i].lease.asked.ttl_ms > longest_ms)
            longest_ms = batch->items[i].lease.asked.ttl_ms;
    if (is_claim(kind))
        return lk_longest_raise(store, longest_ms, batch->deadline_ns,
                                batch->is_reserved, err);
    return lk_longest_keep(store, longest_ms, batch->deadline_ns,
                           batch->is_reserved, err);
}

int lk_batch_run(struct lk_store *store, sqlock_statement_kind kind,
                 struct lk_batch *batch, struct lk_run *run,
                 sqlock_result *result, sqlock_error *err)
{
    struct lk_lease_arguments arguments;
    int rc;

    if (store->statements[kind].text == NULL)
        return batch->items[0].lease.asked.weight > 0
                   ? lk_store_unshared(store, err)
                   : lk_error(err, SQLOCK_ENOTSUP,
                              "the driver has no statement for many leases");
    batch->has_timed_out = false;
    rc = sets_ends(kind) ? lengthen(store, batch, kind, err) : 0;
    if (rc == 0)
        rc = lk_arguments_of(&arguments, store, batch, kind, err);
    if (rc < 0)
        return rc;
    if (batch->old_client != NULL)
        lk_argument_text(&arguments.values, SQLOCK_P_OLD_CLIENT,
                         batch->old_client);
    run->statement = &store->statements[kind];
    run->grants = is_claim(kind);
    run->arguments = &arguments.values;
    run->deadline_ns = batch->deadline_ns;
    run->is_reserved = batch->is_reserved;
    run->is_write = !run->statement->is_read;
    if (batch->session != NULL)
        rc = lk_db_run_on(&store->db, batch->session, run, result, err);
    else
        rc = lk_store_run(store, kind, run, result, err);
    run->arguments = NULL;
    batch->has_timed_out = rc == SQLOCK_EBUSY && run->has_timed_out;
    lk_batch_note_times(batch, run);
    free(arguments.array);
    return rc;
}

void lk_batch_end_bells(struct lk_store *store, struct lk_batch *batch,
                        bool has_rung, bool is_outage)
{
    for (size_t i = 0; i < batch->count; i++)
        is_outage = lk_place_end(store, &batch->items[i].lease.answered.place,
                                 has_rung, is_outage);
}
