/*
 * release.c - release leases and give up their bells
 *
 * A release is judged by the number of rows it changed, or, where that is
 * unknown, by the row it left (F38 to F42).  A single release is sent to the
 * session that has the lease's bell, so that it rings it.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/retry.h"
#include "lease/arguments.h"
#include "lease/bell.h"
#include "lease/pass_on.h"
#include "lease/row.h"

/* --- sending --- */

/* Results at the session with the lease's bell after which another session may
 * succeed. */
#define ELSEWHERE                                                              \
    (LK_RETRY_CONFLICT | LK_RETRY_FULL | LK_RETRY_UNREACHABLE | LK_RETRY_BUSY)

static int send_anywhere(struct lk_store *store, struct lk_batch *batch,
                         struct lk_run *run, sqlock_result *result,
                         sqlock_error *err)
{
    sqlock_statement_kind kind = SQLOCK_SQL_RELEASE;

    if (batch->count > 1)
        kind = SQLOCK_SQL_RELEASE_MANY;
    else if (batch->items[0].lease.asked.weight > 0)
        kind = SQLOCK_SQL_RELEASE_SHARE;
    else if (batch->items[0].lease.asked.is_for_peers &&
             store->statements[SQLOCK_SQL_RELEASE_TO_PEERS].text != NULL)
        kind = SQLOCK_SQL_RELEASE_TO_PEERS;
    return lk_batch_run(store, kind, batch, run, result, err);
}

/* Send the release on the session that has the lease's bell. */
static int send_at_bell(struct lk_store *store, const struct lk_lease *lease,
                        struct lk_run *run, int64_t deadline_ns,
                        sqlock_result *result, sqlock_error *err)
{
    struct lk_lease_arguments arguments;
    int rc;

    lk_arguments_of_one(&arguments, store, lease, SQLOCK_SQL_RELEASE_WITH_BELL);
    run->statement = &store->statements[SQLOCK_SQL_RELEASE_WITH_BELL];
    run->arguments = &arguments.values;
    run->deadline_ns = deadline_ns;
    rc = lk_place_run(store, &lease->answered.place, run, result, err);
    run->arguments = NULL;
    return rc;
}

/* Send the release by the shorter statement, where that may do; then the other
 * one, unless it has changed the row.  Neither a claim nor a release of several
 * tells whether others wait. */
static int send_short(struct lk_store *store, struct lk_batch *batch,
                      struct lk_run *run, sqlock_result *result,
                      sqlock_error *err)
{
    int rc;

    for (size_t i = 0; batch->count > 1 && i < batch->count; i++)
        batch->items[i].lease.believed.is_unqueued = false;
    if (!batch->items[0].lease.believed.is_unqueued)
        return send_anywhere(store, batch, run, result, err);
    rc = lk_together_run(store, SQLOCK_SQL_RELEASE_UNQUEUED, batch, run, result,
                         err);
    if (rc != 0 || result->affected > 0)
        return rc;
    batch->items[0].lease.believed.is_unqueued = false;
    lk_batch_go_on(batch, run);
    return send_anywhere(store, batch, run, result, err);
}

/* Send the release to the session that has the lease's bell, if there is one;
 * if that fails, to another session before the same deadline.  *has_rung:
 * whether the release has given the bell up. */
static int send(struct lk_store *store, struct lk_batch *batch,
                struct lk_run *run, bool *has_rung, sqlock_result *result,
                sqlock_error *err)
{
    const struct lk_lease *lease = &batch->items[0].lease;

    if (batch->count == 1 && lease->answered.place.connection != NULL &&
        !lease->asked.is_for_peers && lease->asked.weight == 0) {
        int rc =
            send_at_bell(store, lease, run, batch->deadline_ns, result, err);

        *has_rung = rc == 0 && result->affected > 0;
        if (!lk_retry_admits(ELSEWHERE, rc))
            return rc;
    }
    return send_short(store, batch, run, result, err);
}

static int unknown(sqlock_error *err)
{
    return lk_error(
        err, SQLOCK_EUNCERTAIN,
        "the release timed out, or its connection was lost; if it was not "
        "carried out, it is repeated in the background until the lease is "
        "over");
}

static int send_again(struct lk_store *store, struct lk_batch *batch,
                      struct lk_run *run, sqlock_result *result,
                      sqlock_error *err)
{
    run->is_repeatable = true;
    batch->deadline_ns = lk_store_deadline(store);
    batch->items[0].lease.believed.is_unqueued = false; /* it is not known */
    if (send_anywhere(store, batch, run, result, err) < 0)
        return unknown(err);
    return 0;
}

/* --- judging --- */

static struct lk_item *named_by(struct lk_batch *batch,
                                const sqlock_result *result, size_t row)
{
    return lk_batch_find(batch, &result->cells[row * result->columns]);
}

/* Set each item's rc from the answer: 0 or ELOST, or EBUSY if the answer does
 * not say which, as one that names a key in another spelling. */
static void take_releases(struct lk_batch *batch, const sqlock_result *result,
                          bool was_uncertain)
{
    bool is_all = result->affected == (int64_t)batch->count;
    bool names_keys = batch->count > 1 && result->columns > 0;
    /* A release that was sent only once has freed no rows but those that the
     * answer names or counts. */
    bool is_known = !was_uncertain && (names_keys || result->affected == 0);

    for (size_t row = 0; names_keys && is_known && row < result->rows; row++)
        is_known = named_by(batch, result, row) != NULL;
    for (size_t i = 0; i < batch->count; i++)
        batch->items[i].rc = is_all     ? 0
                             : is_known ? SQLOCK_ELOST
                                        : SQLOCK_EBUSY;
    for (size_t row = 0; names_keys && row < result->rows; row++) {
        struct lk_item *item = named_by(batch, result, row);

        if (item != NULL)
            item->rc = 0;
    }
}

/* Return the result of a release, by its row.  One that has the lease yet may
 * be freed by a copy that is under way. */
static int result_of(enum lk_verdict verdict, bool was_uncertain)
{
    if (verdict == LK_VERDICT_FREED)
        return 0;
    return was_uncertain && verdict != LK_VERDICT_LOST ? SQLOCK_EUNCERTAIN
                                                       : SQLOCK_ELOST;
}

/* Return whether the row does not show if the release has freed it: it has
 * changed since, and whoever was next may have it. */
static bool is_ambiguous(const struct lk_store *store,
                         const struct lk_item *item, int64_t first_sent_ns)
{
    enum lk_verdict verdict =
        lk_row_judge(store, &item->row, &item->lease, first_sent_ns, true);

    return item->rc == SQLOCK_ELOST && !item->row.is_broken &&
           !item->is_passed_over &&
           (verdict == LK_VERDICT_UNKNOWN || verdict == LK_VERDICT_FREED);
}

/* Compare the number of rows that were freed with those that show it, and set
 * the results that follow: those that do not show it were freed, too, if there
 * were as many.  Otherwise, or if more are gone, it is not known which. */
static void count_freed(const struct lk_store *store, struct lk_batch *batch,
                        int64_t freed, int64_t first_sent_ns)
{
    int64_t ambiguous = 0;

    for (size_t i = 0; i < batch->count; i++) {
        freed -= batch->items[i].rc == 0;
        ambiguous += is_ambiguous(store, &batch->items[i], first_sent_ns);
    }
    for (size_t i = 0; i < batch->count; i++) {
        struct lk_item *item = &batch->items[i];

        if (freed < 0 && item->rc == 0)
            item->rc = SQLOCK_EUNCERTAIN;
        else if (freed > 0 && is_ambiguous(store, item, first_sent_ns))
            item->rc = freed >= ambiguous ? 0 : SQLOCK_EUNCERTAIN;
    }
}

/* Set the result of each item whose row was read. */
static int read_unreleased(struct lk_store *store, struct lk_batch *batch,
                           int64_t freed, int64_t first_sent_ns,
                           bool was_uncertain, sqlock_error *err)
{
    int rc;

    batch->deadline_ns = lk_store_deadline(store);
    rc = lk_rows_read(store, batch, err);
    for (size_t i = 0; rc == 0 && i < batch->count; i++) {
        struct lk_item *item = &batch->items[i];

        if (item->rc == SQLOCK_EBUSY)
            item->rc = result_of(lk_row_judge(store, &item->row, &item->lease,
                                              first_sent_ns, was_uncertain),
                                 was_uncertain);
    }
    if (rc == 0 && !was_uncertain)
        count_freed(store, batch, freed, first_sent_ns);
    return rc;
}

/* Set the result of each item. */
static int judge_all(struct lk_store *store, struct lk_batch *batch,
                     const sqlock_result *result, int64_t first_sent_ns,
                     bool was_uncertain, sqlock_error *err)
{
    bool is_complete = true;
    int rc = 0;

    take_releases(batch, result, was_uncertain);
    for (size_t i = 0; i < batch->count; i++)
        is_complete = is_complete && batch->items[i].rc != SQLOCK_EBUSY;
    if (!is_complete)
        rc = read_unreleased(store, batch, result->affected, first_sent_ns,
                             was_uncertain, err);
    for (size_t i = 0; rc == 0 && i < batch->count; i++) {
        struct lk_item *item = &batch->items[i];

        if (item->rc == 0 &&
            first_sent_ns >= item->lease.believed.until_boot_ns)
            item->rc = SQLOCK_EEXPIRED;
    }
    return rc < 0 ? unknown(err) : 0;
}

/* Let the resolver repeat the releases that failed, one lease at a time: a
 * single locked row would keep all from being freed together.  A late claim may
 * be carried out after its release, so the resolver frees its row as that of a
 * claim in doubt. */
static void go_on(struct lk_store *store, const struct lk_batch *batch, int rc,
                  int64_t first_sent_ns)
{
    for (size_t i = 0; i < batch->count; i++) {
        const struct lk_lease *lease = &batch->items[i].lease;

        if (rc < 0)
            lk_resolver_add_release(store, lease, first_sent_ns);
        else if (lease->believed.fate != LK_CLAIM_ANSWERED)
            lk_resolver_add_claim(store, lease, first_sent_ns);
    }
}

/* Send the releases in parts.  Do the same for the leases that were not sent,
 * and give up their bells. */
static int release_parts(struct lk_store *store, struct lk_batch *batch, int rc,
                         sqlock_error *err)
{
    rc = lk_batch_send_parts(store, batch, lk_batch_release, rc, err);
    for (size_t i = 0; i < batch->count; i++) {
        struct lk_batch one = {.items = &batch->items[i], .count = 1};

        if (!one.items->is_left_out)
            continue;
        one.items->is_left_out = false;
        lk_batch_end_bells(store, &one, false, true);
        go_on(store, &one, one.items->rc, lk_boottime_ns());
    }
    return rc;
}

/* Tell those who observe the leaders whose leases may be released now. */
static void tell(struct lk_store *store, const struct lk_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        if (batch->items[i].lease.believed.has_text)
            lk_bell_tell(store, batch->items[i].lease.key, 0);
}

/* Read the rows that may be a copy's.  The resolver frees those that are, and
 * the lease gets a CLIENT_ID that no row has.  If they cannot be read, they are
 * released all the same: nobody relies on a copy's. */
static void pass_over_copies(struct lk_store *store, struct lk_batch *batch)
{
    bool is_needed = false;
    int rc;

    for (size_t i = 0; i < batch->count; i++)
        is_needed |= lk_row_may_be_copys(store, &batch->items[i].lease);
    if (!is_needed)
        return;
    rc = lk_rows_read(store, batch, NULL);
    batch->deadline_ns = lk_store_deadline(store); /* of the release */
    for (size_t i = 0; rc == 0 && i < batch->count; i++) {
        struct lk_lease *lease = &batch->items[i].lease;

        if (!lk_row_may_be_copys(store, lease) ||
            lk_row_judge(store, &batch->items[i].row, lease, LK_NEVER, false) !=
                LK_VERDICT_LOST)
            continue;
        lk_resolver_add_claim(store, lease, lk_boottime_ns());
        batch->items[i].is_passed_over = true;
        lease->believed.fate = LK_CLAIM_ANSWERED;
        lk_store_client_id(store, 0, lease->client_id);
    }
}

static int release(struct lk_store *store, struct lk_batch *batch,
                   sqlock_error *err)
{
    int64_t first_sent_ns = lk_boottime_ns();
    struct lk_run run = {
        .waits_for_row = true,
        .asked_ns = batch->items[0].lease.asked.at_ns,
        .patient_until_ns = lk_lease_until_ns(&batch->items[0].lease),
    };
    sqlock_result result = {0};
    bool has_rung = false;
    bool was_uncertain;
    int rc;

    pass_over_copies(store, batch);
    rc = send(store, batch, &run, &has_rung, &result, err);
    if (lk_batch_is_divisible(batch, rc)) {
        sqlock_result_clear(&result);
        return release_parts(store, batch, rc, err);
    }
    was_uncertain = rc == SQLOCK_EUNCERTAIN;
    lk_batch_end_bells(store, batch, has_rung, lk_is_outage(rc));
    if (was_uncertain)
        rc = send_again(store, batch, &run, &result, err);
    go_on(store, batch, rc, first_sent_ns);
    if (rc == 0) {
        tell(store, batch);
        lk_rows_ask_to_look(store, batch);
    }
    if (rc == 0)
        rc =
            judge_all(store, batch, &result, first_sent_ns, was_uncertain, err);
    sqlock_result_clear(&result);
    return rc;
}

/* Return whether the lease is to be released as a share, since the row does not
 * have it as an exclusive one. */
static bool is_share_now(const struct lk_item *item)
{
    return item->lease.believed.may_be_share && item->lease.asked.weight == 0 &&
           (item->rc == SQLOCK_ELOST || item->rc == SQLOCK_EUNCERTAIN);
}

int lk_batch_release(struct lk_store *store, struct lk_batch *batch,
                     sqlock_error *err)
{
    int rc;

    if (lk_batch_has_parts(store, batch)) {
        lk_batch_sort_parts(batch);
        return release_parts(store, batch, 0, err);
    }
    rc = release(store, batch, err);
    if (rc == 0 && is_share_now(&batch->items[0])) {
        batch->items[0].lease.asked.weight = 1;
        batch->deadline_ns = lk_store_deadline(store);
        rc = release(store, batch, err);
    }
    return rc;
}

int lk_release_error(int rc, sqlock_error *err)
{
    switch (rc) {
    case SQLOCK_ELOST:
        return lk_error(err, SQLOCK_ELOST,
                        "the lease was lost before the release: what the lock "
                        "protects may be compromised");
    case SQLOCK_EEXPIRED:
        return lk_error(err, SQLOCK_EEXPIRED,
                        "the lease had expired before the release; nobody else "
                        "has had the lock");
    case SQLOCK_EUNCERTAIN:
        return lk_error(
            err, SQLOCK_EUNCERTAIN,
            "neither the answer to the release nor the row shows whether the "
            "lease had been lost before");
    default:
        return rc;
    }
}
