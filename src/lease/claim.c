/*
 * claim.c - claim locks: send the claim, repeat it with the same CLIENT_IDs if
 * the connection breaks, and judge the answer
 *
 * A row that has the CLIENT_ID of a claim admits that claim again, so a
 * repetition finds out whether the first copy was carried out (F38 to F42).
 */
#include "base/clock.h"
#include "base/error.h"
#include "lease/grace.h"
#include "lease/row.h"
#include "lease/sharer.h"

/* --- sending --- */

static sqlock_statement_kind kind_of(const struct lk_batch *batch)
{
    if (batch->count > 1)
        return SQLOCK_SQL_CLAIM_MANY;
    if (batch->items[0].lease.asked.weight > 0)
        return SQLOCK_SQL_SHARE;
    if (batch->items[0].lease.believed.is_unqueued)
        return SQLOCK_SQL_CLAIM_UNQUEUED;
    if (batch->items[0].lease.asked.may_wait)
        return SQLOCK_SQL_ENQUEUE;
    return batch->items[0].lease.answered.is_reserved
               ? SQLOCK_SQL_CLAIM_RESERVED
               : SQLOCK_SQL_CLAIM;
}

/* Send the claim: first by the shorter statement, where that may do. */
static int send(struct lk_store *store, struct lk_batch *batch,
                struct lk_run *run, sqlock_result *result, sqlock_error *err)
{
    sqlock_statement_kind kind = kind_of(batch);
    int rc = kind == SQLOCK_SQL_CLAIM_UNQUEUED
                 ? lk_together_run(store, kind, batch, run, result, err)
                 : lk_batch_run(store, kind, batch, run, result, err);

    batch->items[0].lease.believed.is_unqueued =
        false; /* it is not known any more */
    if (rc != 0 || kind != SQLOCK_SQL_CLAIM_UNQUEUED || result->rows > 0)
        return rc;
    lk_batch_go_on(batch, run);
    return lk_batch_run(store, kind_of(batch), batch, run, result, err);
}

/* Leave the session of a waiter, which is broken.  Any other connection does
 * for the claim, but has no bell. */
static void leave_session(struct lk_batch *batch)
{
    batch->session = NULL;
    batch->items[0].lease.asked.takes_bell = false;
}

/* Send the claim, elsewhere if the server has ended the waiter's session
 * meanwhile, or refuses there what it may do on another: nothing was done. */
static int send_first(struct lk_store *store, struct lk_batch *batch,
                      struct lk_run *run, sqlock_result *result,
                      sqlock_error *err)
{
    int rc = send(store, batch, run, result, err);

    if (batch->session == NULL ||
        (rc != SQLOCK_EUNREACHABLE && !lk_db_is_unproven(batch->session, rc)))
        return rc;
    leave_session(batch);
    return send(store, batch, run, result, err);
}

/* Return ETIMEDOUT for a claim that timed out and was not carried out, which is
 * not known to have met another owner; the text says so already.  Others stay
 * as they are. */
static int timed_out(const struct lk_run *run, int rc, sqlock_error *err)
{
    if (rc != SQLOCK_EBUSY || !run->has_timed_out)
        return rc;
    if (err != NULL)
        err->code = SQLOCK_ETIMEDOUT;
    return SQLOCK_ETIMEDOUT;
}

/* Send the same claim again, on a fresh connection, after the first connection
 * broke.  Return 0, or EUNCERTAIN if this attempt fails as well. */
static int send_again(struct lk_store *store, struct lk_batch *batch,
                      struct lk_run *run, sqlock_result *result,
                      sqlock_error *err)
{
    int rc;

    batch->deadline_ns = lk_store_deadline(store);
    leave_session(batch);
    run->is_repeatable = true;
    rc = lk_batch_run(store, kind_of(batch), batch, run, result, err);
    if (rc < 0)
        rc = lk_error(
            err, SQLOCK_EUNCERTAIN,
            "the claim timed out, or its connection was lost, and the database "
            "did not confirm in time whether the lock was granted (if it is "
            "slow, raise statement_timeout_ms)");
    return rc;
}

/* --- judging --- */

static void grant(const struct lk_store *store, struct lk_item *item,
                  int64_t token, int64_t sent_boot_ns)
{
    item->rc = 0;
    item->lease.answered.token = token;
    item->lease.believed.until_boot_ns =
        lk_believe_until(store, sent_boot_ns, item->lease.asked.ttl_ms);
}

static bool says_so(const sqlock_result *result, size_t column)
{
    return result->columns > column &&
           result->cells[column].type == SQLOCK_INT64 &&
           result->cells[column].integer != 0;
}

/* Columns of the answer to ENQUEUE and SHARE behind those of CLAIM; ENQUEUE has
 * the last one where the first waiter does not poll a row that is shared. */
enum { LEFT_US = 3, RINGS, HAS_IT, WAIT, COLUMNS, SHARERS = COLUMNS };

/* Return why a claim was not granted: EBUSY, which waiting may cure, or
 * ECONFLICT. */
static int refusal(const struct lk_lease *lease, const struct lk_row *row)
{
    if (lease->asked.weight == 0)
        return SQLOCK_EBUSY;
    if (row->permits != LK_NO_LIMIT && lease->asked.weight > row->permits)
        return SQLOCK_ECONFLICT;
    return row->is_shared && row->sharers >= LK_SHARERS_MAX ? SQLOCK_ECONFLICT
                                                            : SQLOCK_EBUSY;
}

/* Fill in what the answer tells of the row of a claim that is not granted;
 * where it does not tell, read the row. */
static int look_at_row(struct lk_store *store, struct lk_batch *batch,
                       const sqlock_result *result, sqlock_error *err)
{
    struct lk_row *row = &batch->items[0].row;
    const char *sharers = result->columns > SHARERS
                              ? lk_cell_text(&result->cells[SHARERS])
                              : NULL;

    if (result->columns < COLUMNS) {
        batch->deadline_ns = lk_store_deadline(store);
        return lk_rows_read(store, batch, err);
    }
    *row = (struct lk_row){.exists = true};
    row->remaining_us = result->cells[LEFT_US].integer;
    row->is_taken = row->remaining_us >= 0;
    row->is_sqlocks = says_so(result, RINGS);
    lk_cell_id(row->client_id, &result->cells[HAS_IT]);
    row->place = lk_ticket_place(lk_cell_text(&result->cells[WAIT]),
                                 batch->items[0].lease.client_id, row->before);
    /* a row that is shared ends with its last sharer */
    row->expires_at_us = lk_sharers_end_us(sharers);
    lk_row_add_sharers(row, sharers, &batch->items[0].lease);
    return 0;
}

static int take_place(struct lk_store *store, struct lk_batch *batch,
                      const sqlock_result *result, sqlock_error *err)
{
    int rc = look_at_row(store, batch, result, err);

    if (rc == 0)
        batch->items[0].rc =
            refusal(&batch->items[0].lease, &batch->items[0].row);
    return rc;
}

/* Read the rows of the table to find out which locks a claim was granted, where
 * the answer to its statement does not say. */
static int read_grants(struct lk_store *store, struct lk_batch *batch,
                       sqlock_error *err)
{
    int64_t sent_boot_ns = batch->sent_boot_ns;
    int rc;

    batch->deadline_ns = lk_store_deadline(store);
    rc = lk_rows_read(store, batch, err);
    for (size_t i = 0; rc == 0 && i < batch->count; i++) {
        struct lk_item *item = &batch->items[i];
        struct lk_lease claimed = item->lease;
        enum lk_verdict verdict;

        claimed.answered.token =
            0; /* of a lease that is kept: it may have a new one */
        verdict = lk_row_judge(store, &item->row, &claimed, LK_NEVER, false);
        if (verdict == LK_VERDICT_HELD)
            grant(store, item,
                  lk_row_token(&item->row, item->lease.asked.ttl_ms),
                  sent_boot_ns);
        else if (verdict == LK_VERDICT_OVER)
            item->rc = SQLOCK_ETIMEDOUT;
    }
    return rc;
}

/* The code for a claim that was carried out and then looked for in the table,
 * which came to rc. */
static int unread_grant(int rc, sqlock_error *err)
{
    return rc == 0 ? 0
                   : lk_error(err, SQLOCK_EUNCERTAIN,
                              "the claim was carried out, but its result could "
                              "not be read");
}

/* Note how many permits the lock has of which the claim was granted some.
 * MySQL does not tell; if the row cannot be read, it may be any number. */
static void note_permits(struct lk_store *store, struct lk_batch *batch,
                         const sqlock_result *result)
{
    struct lk_lease *lease = &batch->items[0].lease;

    if (result->columns > SHARERS) {
        lease->asked.permits =
            lk_sharers_permits(lk_cell_text(&result->cells[SHARERS]));
        return;
    }
    if (lease->asked.permits == LK_NO_LIMIT)
        lease->asked.permits = LK_PERMITS_MAX;
    batch->deadline_ns = lk_store_deadline(store);
    if (lk_rows_read(store, batch, NULL) == 0 && batch->items[0].row.is_taken)
        lease->asked.permits = batch->items[0].row.permits;
}

/* Read the answer to a claim of one lock: record the grant, or the ticket that
 * it left.  Return 0, or ESCHEMA if the answer has several rows or no token. */
static int take_answer(struct lk_store *store, struct lk_batch *batch,
                       const sqlock_result *result, sqlock_error *err)
{
    struct lk_item *item = &batch->items[0];
    struct lk_lease *lease = &item->lease;
    bool is_granted = result->rows == 1 && result->columns >= 1 &&
                      result->cells[0].type == SQLOCK_INT64 &&
                      result->cells[0].integer != 0;

    if (!is_granted && (lease->asked.may_wait || lease->asked.weight > 0) &&
        result->rows <= 1 && result->columns != 1) /* else `claim unqueued` */
        return take_place(store, batch, result, err);
    if (result->rows == 0)
        return 0;
    if (result->rows > 1)
        return lk_error(err, SQLOCK_ESCHEMA,
                        "%s answered a claim with %zu rows: is its primary key "
                        "missing?",
                        store->table.plain, result->rows);
    if (!is_granted) /* MariaDB, with a trigger on a table with long texts */
        return unread_grant(read_grants(store, batch, err), err);
    grant(store, item, result->cells[0].integer, batch->sent_boot_ns);
    lease->answered.is_contended = says_so(result, 1);
    lease->answered.is_new_row = says_so(result, 2);
    if (lease->asked.weight > 0)
        note_permits(store, batch, result);
    return 0;
}

/* Record the grants of a claim of many locks.  The answer has the row of each,
 * and maybe those that others have; an answer without keys only says whether
 * there are grants, and the rows of the table are read.  Return 0 or
 * EUNCERTAIN. */
static int take_grants(struct lk_store *store, struct lk_batch *batch,
                       const sqlock_result *result, sqlock_error *err)
{
    if (result->columns < 2 && result->affected == 0)
        return 0;
    if (result->columns < 2)
        return unread_grant(read_grants(store, batch, err), err);
    for (size_t row = 0; row < result->rows; row++) {
        struct lk_item *item = lk_batch_find_owner(store, batch, result, row);

        if (item != NULL)
            grant(store, item, result->cells[row * result->columns + 1].integer,
                  batch->sent_boot_ns);
    }
    return 0;
}

/* Set the fate of a claim.  A claim without an answer may reach the table
 * later, even after its repetition was answered by "busy" (F39): then the
 * resolver frees the row.  Not that of a claim with a ticket: its CLIENT_ID
 * goes on to wait and may have been granted the lock by then.  A claim whose
 * outcome is unknown stays in doubt. */
static void settle(struct lk_store *store, struct lk_lease *lease, int rc,
                   bool got_no_answer)
{
    bool was_uncertain =
        lease->believed.fate == LK_CLAIM_IN_DOUBT || got_no_answer;
    bool is_answered =
        rc == SQLOCK_EBUSY || rc == SQLOCK_ETIMEDOUT || rc == SQLOCK_ECONFLICT;

    lease->believed.fate = !was_uncertain           ? LK_CLAIM_ANSWERED
                           : rc == 0 || is_answered ? LK_CLAIM_LATE
                                                    : LK_CLAIM_IN_DOUBT;
    if (was_uncertain && is_answered && !lease->asked.has_ticket)
        lk_resolver_add_claim(store, lease, lk_boottime_ns());
}

/* --- the claim --- */

/* Give each claim a fresh CLIENT_ID, except those that have one: of a ticket,
 * or of a claim in doubt.  A claim that may wait may leave a ticket. */
static void begin(struct lk_store *store, struct lk_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        struct lk_lease *lease = &batch->items[i].lease;

        /* until the answer grants it */
        batch->items[i].rc = SQLOCK_EBUSY;
        lease->asked.has_ticket =
            lease->asked.has_ticket || lease->asked.may_wait;
        if (lease->believed.fate == LK_CLAIM_IN_DOUBT)
            continue;
        if (lease->client_id[0] == '\0')
            lk_store_client_id(store, lease->owner, lease->client_id);
        if (lease->believed.fate == LK_CLAIM_ANSWERED)
            lease->believed.cap_ms = 0;
    }
}

int lk_batch_claim(struct lk_store *store, struct lk_batch *batch,
                   sqlock_error *err)
{
    struct lk_run run = {
        .asked_ns = batch->items[0].lease.asked.at_ns,
    };
    sqlock_result result = {0};
    bool got_no_answer;
    int rc;

    batch->is_all_or_none = true;
    if (lk_batch_has_parts(store, batch))
        return lk_batch_send_parts(store, batch, lk_batch_claim, 0, err);
    begin(store, batch);
    rc = timed_out(&run, send_first(store, batch, &run, &result, err), err);
    got_no_answer = rc == SQLOCK_EUNCERTAIN;
    if (rc == SQLOCK_EUNCERTAIN)
        rc = send_again(store, batch, &run, &result, err);
    if (lk_grace_refuses(store, batch, rc))
        rc = 0;
    else if (rc == 0)
        rc = batch->count == 1 ? take_answer(store, batch, &result, err)
                               : take_grants(store, batch, &result, err);
    sqlock_result_clear(&result);
    for (size_t i = 0; i < batch->count; i++)
        settle(store, &batch->items[i].lease, rc < 0 ? rc : batch->items[i].rc,
               got_no_answer || rc == SQLOCK_EUNCERTAIN);
    return rc;
}

int lk_claim_error(const struct lk_item *item, sqlock_error *err)
{
    const struct lk_row *row = &item->row;

    if (item->rc != SQLOCK_ECONFLICT)
        return item->rc;
    if (row->permits != LK_NO_LIMIT && item->lease.asked.weight > row->permits)
        return lk_error(err, SQLOCK_ECONFLICT,
                        "the lock has %u permits, and %u cannot be had of them",
                        row->permits, item->lease.asked.weight);
    return lk_error(err, SQLOCK_ECONFLICT,
                    "%u share the lock already, and more cannot",
                    LK_SHARERS_MAX);
}
