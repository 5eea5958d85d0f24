/*
 * batch.c - send the statements about batches, and match the rows of a result
 * with the leases
 *
 * The leases of a batch are sorted by key, so that two batches never deadlock;
 * a row is matched by its key.
 */
#include "lease/batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "db/transaction.h"
#include "lease/arguments.h"
#include "lease/share.h"

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

bool lk_batch_is_divisible(const struct lk_batch *batch, int rc)
{
    return batch->count > 1 && batch->transaction == NULL &&
           (rc == SQLOCK_EDATABASE || rc == SQLOCK_EINVAL);
}

/* Send one half, and note the times of its answer.  sent_boot_ns stays that of
 * the whole batch, the earliest. */
static int send_half(struct lk_store *store, struct lk_batch *batch,
                     struct lk_batch *half, lk_batch_fn send, sqlock_error *err)
{
    int rc;

    for (size_t i = 0; i < half->count; i++)
        half->items[i].is_left_out = false;
    rc = send(store, half, err);
    for (size_t i = 0; rc < 0 && i < half->count; i++)
        half->items[i].rc = rc;
    batch->answered_boot_ns = half->answered_boot_ns;
    batch->now_us = half->now_us != 0 ? half->now_us : batch->now_us;
    return rc;
}

/* The items have that result unless they are sent. */
static void leave_out(struct lk_batch *batch, int rc)
{
    for (size_t i = 0; i < batch->count; i++) {
        batch->items[i].rc = rc;
        batch->items[i].is_left_out = true;
    }
}

int lk_batch_divide(struct lk_store *store, struct lk_batch *batch,
                    lk_batch_fn send, int rc, sqlock_error *err)
{
    struct lk_batch halves[2] = {*batch, *batch};

    halves[0].count = batch->count / 2;
    halves[1].count -= halves[0].count;
    halves[1].items += halves[0].count;
    leave_out(batch, rc);
    rc = 0;
    for (size_t i = 0; i < 2 && !lk_is_outage(rc); i++) {
        if (sqlock_monotonic_ns() >= batch->deadline_ns)
            break;
        rc = send_half(store, batch, &halves[i], send, err);
    }
    return 0;
}

/* Return whether a statement about many leases does for this one. */
static bool goes_with_others(const struct lk_item *item)
{
    return !lk_lease_may_be_shared(&item->lease);
}

bool lk_batch_is_mixed(const struct lk_batch *batch)
{
    bool is_shared = false;

    for (size_t i = 0; i < batch->count; i++)
        is_shared = is_shared || !goes_with_others(&batch->items[i]);
    return is_shared && batch->count > 1;
}

/* Return how many items from `at` on can be sent together. */
static size_t length_of_part(const struct lk_batch *batch, size_t at)
{
    size_t end = at + 1;

    while (goes_with_others(&batch->items[at]) && end < batch->count &&
           goes_with_others(&batch->items[end]))
        end++;
    return end - at;
}

int lk_batch_apart(struct lk_store *store, struct lk_batch *batch,
                   lk_batch_fn send, sqlock_error *err)
{
    int64_t sent_boot_ns = 0;
    int rc = 0;

    for (size_t at = 0; at < batch->count;) {
        struct lk_batch part = *batch;

        part.items += at;
        part.count = length_of_part(batch, at);
        at += part.count;
        if (!lk_is_outage(rc))
            rc = send_half(store, batch, &part, send, err);
        else
            leave_out(&part, rc);
        if (sent_boot_ns == 0)
            sent_boot_ns = part.sent_boot_ns;
    }
    batch->sent_boot_ns = sent_boot_ns;
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
        lk_lease_cap(&batch->items[i].lease, batch->items[i].lease.ttl_ms);
}

int lk_batch_run(struct lk_store *store, sqlock_statement_kind kind,
                 struct lk_batch *batch, struct lk_run *run,
                 sqlock_result *result, sqlock_error *err)
{
    struct lk_lease_arguments arguments;
    int rc;

    if (store->statements[kind].text == NULL)
        return batch->items[0].lease.weight > 0
                   ? lk_share_unsupported(store, err)
                   : lk_error(err, SQLOCK_ENOTSUP,
                              "the driver has no statement for many leases");
    rc = lk_arguments_of(&arguments, store, batch, kind, err);
    if (rc < 0)
        return rc;
    run->statement = &store->statements[kind];
    run->arguments = &arguments.values;
    run->deadline_ns = batch->deadline_ns;
    run->is_reserved = batch->is_reserved;
    run->is_write = lk_store_is_write(kind);
    if (batch->transaction != NULL)
        rc = lk_transaction_run(batch->transaction, run, result, err);
    else if (batch->session != NULL)
        rc = lk_db_run_on(&store->db, batch->session, run, result, err);
    else
        rc = lk_store_run(store, kind, run, result, err);
    run->arguments = NULL;
    lk_batch_note_times(batch, run);
    free(arguments.array);
    return rc;
}
