/*
 * batch.c - many leases in one statement.  The leases go in as one JSON array,
 * sorted by key, so that two batches never wait for each other crosswise; what
 * comes back is matched by key, and whatever a statement did not say is read
 * from the rows afterwards.
 */
#include "lease/batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "db/transaction.h"
#include "lease/skew.h"

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

struct lk_item *lk_batch_find(const struct lk_batch *batch,
                              const sqlock_value *key)
{
    struct lk_item wanted = {.lease = {.key = key->text}};

    if (key->type != SQLOCK_TEXT)
        return NULL;
    return bsearch(&wanted, batch->items, batch->count, sizeof wanted, by_key);
}

/* --- running --- */

/* The arguments of a statement about all; *array is to be freed. */
static int many_arguments(const struct lk_store *store,
                          sqlock_statement_kind kind,
                          const struct lk_batch *batch, char **array,
                          struct lk_arguments *arguments, sqlock_error *err)
{
    *array = NULL;
    if (store->statements[kind].text == NULL)
        return lk_error(err, SQLOCK_ENOTSUP,
                        "the driver has no statement for many leases");
    *array = lk_batch_array(store, batch, kind);
    if (*array == NULL)
        return lk_error_nomem(err);
    lk_store_arguments(store, *array, arguments);
    return 0;
}

int lk_batch_run(struct lk_store *store, sqlock_statement_kind kind,
                 struct lk_batch *batch, bool is_repeatable,
                 sqlock_result *result, sqlock_error *err)
{
    struct lk_arguments arguments;
    struct lk_run run = {
        .arguments = &arguments,
        .deadline_ns = batch->deadline_ns,
        .is_repeatable = is_repeatable,
        .is_reserved = batch->is_reserved,
        .waits_for_row = kind == SQLOCK_SQL_RELEASE_MANY,
    };
    char *array;
    int rc;

    rc = many_arguments(store, kind, batch, &array, &arguments, err);
    if (rc == 0)
        rc = lk_store_run(store, kind, &run, result, err);
    /* One that could not be sent leaves the time of the one before it: that
     * may still go through, and nothing of it must be taken for old. */
    if (run.sent_boot_ns != 0)
        batch->sent_boot_ns = run.sent_boot_ns;
    for (size_t i = 0; run.was_uncertain && i < batch->count; i++)
        lk_lease_cap(&batch->items[i].lease, batch->items[i].lease.ttl_ms);
    batch->answered_boot_ns = lk_boottime_ns();
    free(array);
    return rc;
}

static int run_many_in(struct lk_store *store, sqlock_statement_kind kind,
                       struct lk_transaction *transaction,
                       struct lk_batch *batch, sqlock_result *result,
                       sqlock_error *err)
{
    struct lk_arguments arguments;
    struct lk_run run = {
        .statement = &store->statements[kind],
        .arguments = &arguments,
        .deadline_ns = batch->deadline_ns,
    };
    char *array;
    int rc;

    rc = many_arguments(store, kind, batch, &array, &arguments, err);
    if (rc == 0)
        rc = lk_transaction_run(transaction, &run, result, err);
    batch->sent_boot_ns = run.sent_boot_ns;
    batch->answered_boot_ns = lk_boottime_ns();
    free(array);
    return rc;
}

/* Rows that name a key, or only one that does not (the insert id). */
static bool names_keys(const sqlock_result *result)
{
    return result->columns > 1;
}

/* --- reading --- */

static int read_each(struct lk_store *store, struct lk_batch *batch,
                     struct lk_row *rows, sqlock_error *err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < batch->count; i++)
        rc = lk_lease_read(store, batch->items[i].lease.key,
                           lk_store_deadline(store), &rows[i], err);
    return rc;
}

int lk_batch_read(struct lk_store *store, struct lk_batch *batch,
                  struct lk_row *rows, sqlock_error *err)
{
    sqlock_result result = {0};
    int rc;

    if (batch->count == 1 ||
        store->statements[SQLOCK_SQL_READ_MANY].text == NULL)
        return read_each(store, batch, rows, err);
    rc = lk_batch_run(store, SQLOCK_SQL_READ_MANY, batch, true, &result, err);
    for (size_t row = 0; rc == 0 && row < result.rows; row++) {
        const sqlock_value *cells = &result.cells[row * result.columns];
        const struct lk_item *item = lk_batch_find(batch, &cells[0]);

        if (item != NULL)
            lk_row_from_cells(&rows[item - batch->items], cells);
        lk_skew_tell(store, cells);
    }
    sqlock_result_clear(&result);
    return rc;
}

const struct lk_row *lk_batch_row(const struct lk_batch *batch,
                                  const struct lk_row *rows, const char *key)
{
    const sqlock_value value = {.type = SQLOCK_TEXT, .text = key};
    const struct lk_item *item = lk_batch_find(batch, &value);

    return item != NULL ? &rows[item - batch->items] : NULL;
}

/* --- claiming --- */

static void grant(const struct lk_store *store, struct lk_item *item,
                  int64_t token, int64_t sent_boot_ns)
{
    item->rc = 0;
    item->lease.token = token;
    item->lease.deadline_boot_ns =
        lk_believe_until(store, sent_boot_ns, item->lease.ttl_ms);
}

/* The four-column layout keeps no token: there it is when the lease began. */
static int64_t token_of(const struct lk_lease *lease, const sqlock_value *cells)
{
    if (cells[2].type == SQLOCK_INT64)
        return cells[2].integer;
    return cells[5].integer - (int64_t)lease->ttl_ms * 1000;
}

/* Read what the statement did not say: whose the rows are now. */
static int read_claims(struct lk_store *store, struct lk_batch *batch,
                       int64_t sent_boot_ns, sqlock_error *err)
{
    sqlock_result result = {0};
    int rc;

    rc = lk_batch_run(store, SQLOCK_SQL_READ_MANY, batch, true, &result, err);
    for (size_t row = 0; rc == 0 && row < result.rows; row++) {
        const sqlock_value *cells = &result.cells[row * result.columns];
        struct lk_item *item = lk_batch_find(batch, &cells[0]);

        if (item == NULL || cells[1].type != SQLOCK_TEXT ||
            strcmp(cells[1].text, item->lease.client_id) != 0)
            continue;
        if (cells[3].integer >= 0)
            grant(store, item, token_of(&item->lease, cells), sent_boot_ns);
        else
            item->rc = SQLOCK_ETIMEDOUT;
    }
    sqlock_result_clear(&result);
    return rc;
}

/* A third column says whose the row is now. */
static bool is_of(const struct lk_item *item, const sqlock_result *result,
                  const sqlock_value *cells)
{
    return result->columns < 3 ||
           (cells[2].type == SQLOCK_TEXT &&
            strcmp(cells[2].text, item->lease.client_id) == 0);
}

static int take_grants(struct lk_store *store, struct lk_batch *batch,
                       const sqlock_result *result, sqlock_error *err)
{
    int64_t sent_boot_ns = batch->sent_boot_ns;

    for (size_t i = 0; i < batch->count; i++)
        batch->items[i].rc = SQLOCK_EBUSY;
    if (!names_keys(result))
        return result->affected == 0
                   ? 0
                   : read_claims(store, batch, sent_boot_ns, err);
    for (size_t row = 0; row < result->rows; row++) {
        const sqlock_value *cells = &result->cells[row * result->columns];
        struct lk_item *item = lk_batch_find(batch, &cells[0]);

        if (item != NULL && is_of(item, result, cells))
            grant(store, item, cells[1].integer, sent_boot_ns);
    }
    return 0;
}

/* What was observed is compared one by one. */
static int claim_each(struct lk_store *store, struct lk_batch *batch,
                      sqlock_error *err)
{
    int rc = 0;
    size_t i;

    for (i = 0; rc == 0 && i < batch->count; i++) {
        struct lk_item *item = &batch->items[i];

        rc = lk_lease_claim(store, &item->lease, err);
        if (item->lease.is_in_doubt)
            lk_resolver_add_claim(store, &item->lease, lk_boottime_ns());
        item->lease.is_in_doubt = false;
        item->rc = rc;
        if (rc == SQLOCK_EBUSY || rc == SQLOCK_ETIMEDOUT)
            rc = 0;
    }
    while (rc < 0 && i-- > 0)
        if (batch->items[i].rc == 0)
            (void)lk_lease_release(store, &batch->items[i].lease, NULL);
    return rc;
}

/* By the statement of one key, which is cheaper, and whose claim in doubt goes
 * on with the next call. */
static int claim_one(struct lk_store *store, struct lk_item *item,
                     sqlock_error *err)
{
    int rc = lk_lease_claim(store, &item->lease, err);

    item->rc = rc == SQLOCK_EBUSY ? SQLOCK_EBUSY : 0;
    return rc == SQLOCK_EBUSY ? 0 : rc;
}

/* A claim of one that is in doubt does not go on in one of many: it is freed
 * in the background. */
static void begin_anew(struct lk_store *store, struct lk_lease *lease)
{
    if (lease->is_in_doubt)
        lk_resolver_add_claim(store, lease, lk_boottime_ns());
    lease->is_in_doubt = false;
    lease->cap_ms = 0;
    lk_random_uuid(lease->client_id);
}

int lk_batch_claim(struct lk_store *store, struct lk_batch *batch,
                   sqlock_error *err)
{
    sqlock_result result = {0};
    bool was_uncertain;
    int rc;

    if (batch->count == 1)
        return claim_one(store, &batch->items[0], err);
    if (batch->count > 0 && batch->items[0].lease.observed != NULL)
        return claim_each(store, batch, err);
    for (size_t i = 0; i < batch->count; i++)
        begin_anew(store, &batch->items[i].lease);
    rc = lk_batch_run(store, SQLOCK_SQL_CLAIM_MANY, batch, false, &result, err);
    was_uncertain = rc == SQLOCK_EUNCERTAIN;
    if (was_uncertain) {
        batch->deadline_ns = lk_store_deadline(store);
        rc = lk_batch_run(store, SQLOCK_SQL_CLAIM_MANY, batch, true, &result,
                          err);
        if (rc < 0)
            rc = lk_error(err, SQLOCK_EUNCERTAIN,
                          "the connection broke under the claim, and the "
                          "database did not say in time what became of it");
    }
    if (rc == 0 && take_grants(store, batch, &result, err) < 0)
        rc = lk_error(err, SQLOCK_EUNCERTAIN,
                      "the claim was carried out, but could not be read");
    /* Also after "busy": the first one may yet reach the table (F39). */
    for (size_t i = 0; i < batch->count; i++) {
        batch->items[i].lease.is_claim_late = was_uncertain;
        if (rc < 0 ? rc == SQLOCK_EUNCERTAIN
                   : was_uncertain && batch->items[i].rc != 0)
            lk_resolver_add_claim(store, &batch->items[i].lease,
                                  batch->sent_boot_ns);
    }
    sqlock_result_clear(&result);
    return rc;
}

/* --- renewing --- */

static void renewed(const struct lk_store *store, struct lk_item *item,
                    int64_t sent_boot_ns)
{
    item->rc = 0;
    item->lease.deadline_boot_ns =
        lk_believe_until(store, sent_boot_ns, item->lease.ttl_ms);
}

static void take_renewals(const struct lk_store *store, struct lk_batch *batch,
                          const sqlock_result *result)
{
    if (result->rows > 0)
        batch->now_us = result->cells[names_keys(result) ? 1 : 0].integer;
    if (!names_keys(result)) {
        if (result->affected != (int64_t)batch->count)
            return;
        for (size_t i = 0; i < batch->count; i++)
            renewed(store, &batch->items[i], batch->sent_boot_ns);
        return;
    }
    for (size_t i = 0; i < batch->count; i++)
        batch->items[i].is_passed_over = true;
    for (size_t row = 0; row < result->rows; row++) {
        struct lk_item *item =
            lk_batch_find(batch, &result->cells[row * result->columns]);

        if (item != NULL)
            renewed(store, item, batch->sent_boot_ns);
    }
}

/* An item whose row the renewal did not change, or did not name.  Passed over,
 * it keeps its deadline: nobody has renewed it. */
static void judge(const struct lk_store *store, struct lk_item *item,
                  const sqlock_value *cells, int64_t asked_boot_ns)
{
    int64_t remaining_us = cells[3].integer;

    if (cells[1].type != SQLOCK_TEXT ||
        strcmp(cells[1].text, item->lease.client_id) != 0) {
        item->rc = SQLOCK_ELOST;
    } else if (remaining_us < 0) {
        item->rc = SQLOCK_EEXPIRED;
    } else if (item->is_passed_over) {
        item->rc = SQLOCK_EBUSY;
    } else {
        item->rc = 0;
        item->lease.deadline_boot_ns = lk_believe_row_until(
            store, asked_boot_ns, remaining_us, item->lease.ttl_ms);
    }
}

static int read_unrenewed(struct lk_store *store, struct lk_batch *batch,
                          sqlock_error *err)
{
    struct lk_batch rest = *batch;
    sqlock_result result = {0};
    int rc;

    rest.count = 0;
    rest.items = calloc(batch->count, sizeof *rest.items);
    if (rest.items == NULL)
        return lk_error_nomem(err);
    for (size_t i = 0; i < batch->count; i++)
        if (batch->items[i].rc != 0)
            rest.items[rest.count++] = batch->items[i];
    rc = lk_batch_run(store, SQLOCK_SQL_READ_MANY, &rest, true, &result, err);
    for (size_t i = 0; rc == 0 && i < rest.count; i++) {
        sqlock_value key = {.type = SQLOCK_TEXT,
                            .text = rest.items[i].lease.key};

        lk_batch_find(batch, &key)->rc =
            SQLOCK_ELOST; /* where there is no row */
    }
    for (size_t row = 0; rc == 0 && row < result.rows; row++) {
        const sqlock_value *cells = &result.cells[row * result.columns];
        struct lk_item *item = lk_batch_find(batch, &cells[0]);

        if (item != NULL)
            judge(store, item, cells, rest.sent_boot_ns);
    }
    sqlock_result_clear(&result);
    free(rest.items);
    return rc;
}

/* Lock what nobody has locked and keep only those; two statements, in the
 * transaction of the renewal. */
static int lock_unlocked(struct lk_store *store,
                         struct lk_transaction *transaction,
                         struct lk_batch *batch, struct lk_batch *free_rows,
                         sqlock_error *err)
{
    sqlock_result result = {0};
    int rc;

    rc = run_many_in(store, SQLOCK_SQL_LOCK_MANY, transaction, batch, &result,
                     err);
    for (size_t row = 0; rc == 0 && row < result.rows; row++) {
        struct lk_item *item =
            lk_batch_find(batch, &result.cells[row * result.columns]);

        if (item == NULL)
            continue;
        item->is_passed_over = false;
        free_rows->items[free_rows->count++] = *item;
    }
    sqlock_result_clear(&result);
    lk_batch_sort(free_rows);
    return rc;
}

/* A row of the batch is locked by somebody's transaction, and the database can
 * pass over it only when reading (InnoDB). */
static int renew_unlocked(struct lk_store *store, struct lk_batch *batch,
                          sqlock_error *err)
{
    struct lk_transaction transaction = {0};
    struct lk_batch free_rows = *batch;
    sqlock_result result = {0};
    int rc;

    free_rows.count = 0;
    free_rows.items = calloc(batch->count, sizeof *free_rows.items);
    if (free_rows.items == NULL)
        return lk_error_nomem(err);
    for (size_t i = 0; i < batch->count; i++)
        batch->items[i].is_passed_over = true;
    rc = lk_transaction_begin(&transaction, &store->db, batch->is_reserved,
                              batch->deadline_ns, err);
    if (rc == 0)
        rc = lock_unlocked(store, &transaction, batch, &free_rows, err);
    if (rc == 0 && free_rows.count > 0)
        rc = run_many_in(store, SQLOCK_SQL_RENEW_MANY, &transaction, &free_rows,
                         &result, err);
    if (rc == 0)
        rc = lk_transaction_commit(&transaction, batch->deadline_ns, err);
    else
        lk_transaction_rollback(&transaction, batch->deadline_ns);
    if (rc == 0)
        take_renewals(store, &free_rows, &result);
    for (size_t i = 0; rc == 0 && i < free_rows.count; i++) {
        const struct lk_item *item = &free_rows.items[i];
        sqlock_value key = {.type = SQLOCK_TEXT, .text = item->lease.key};

        if (item->rc == 0)
            *lk_batch_find(batch, &key) = *item;
    }
    sqlock_result_clear(&result);
    free(free_rows.items);
    return rc;
}

int lk_batch_renew(struct lk_store *store, struct lk_batch *batch,
                   sqlock_error *err)
{
    sqlock_result result = {0};
    bool is_complete = true;
    int rc;

    if (batch->count == 0)
        return 0;
    for (size_t i = 0; i < batch->count; i++) {
        batch->items[i].rc = SQLOCK_EBUSY; /* not known yet */
        batch->items[i].is_passed_over = false;
    }
    rc = lk_batch_run(store, SQLOCK_SQL_RENEW_MANY, batch, true, &result, err);
    if (rc == 0)
        take_renewals(store, batch, &result);
    else if (rc == SQLOCK_EBUSY &&
             store->statements[SQLOCK_SQL_LOCK_MANY].text != NULL)
        rc = renew_unlocked(store, batch, err);
    sqlock_result_clear(&result);
    for (size_t i = 0; i < batch->count; i++)
        is_complete = is_complete && batch->items[i].rc == 0;
    if (rc == 0 && !is_complete)
        rc = read_unrenewed(store, batch, err);
    return rc;
}
