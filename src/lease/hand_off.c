/*
 * hand_off.c - give the lease of one holder to the next, in one statement
 */
#include "base/clock.h"
#include "lease/bell.h"
#include "lease/row.h"

/* Read the row to judge a hand-off that got no answer, and whose repetition
 * changed nothing or failed, or whose answer has no token.  Return 0 if `to`
 * has the lease, otherwise EUNCERTAIN. */
static int judge_by_row(struct lk_store *store, struct lk_lease *to,
                        int64_t first_sent_ns)
{
    struct lk_row row;

    if (lk_lease_read(store, to, &row, NULL) < 0)
        return SQLOCK_EUNCERTAIN;
    to->answered.token = lk_row_token(&row, to->asked.ttl_ms);
    to->believed.until_boot_ns =
        lk_believe_until(store, first_sent_ns, to->asked.ttl_ms);
    return 0;
}

static int send(struct lk_store *store, const struct lk_lease *from,
                struct lk_lease *to, struct lk_run *run, sqlock_result *result)
{
    struct lk_batch batch;
    struct lk_item item;

    lk_bell_client_id(store, to->owner, from->client_id, to->client_id);
    lk_batch_of_one(&batch, &item, to, lk_store_deadline(store));
    batch.old_client = from->client_id;
    run->is_repeatable = true;
    run->patient_until_ns = lk_lease_until_ns(from);
    return lk_batch_run(store, SQLOCK_SQL_HAND_OFF, &batch, run, result, NULL);
}

static void give_back(struct lk_store *store, const struct lk_lease *lease)
{
    struct lk_batch batch;
    struct lk_item item;

    lk_batch_of_one(&batch, &item, lease, lk_store_deadline(store));
    (void)lk_batch_release(store, &batch, NULL);
}

int lk_lease_hand_off(struct lk_store *store, const struct lk_lease *from,
                      struct lk_lease *to)
{
    int64_t first_sent_ns = lk_boottime_ns();
    struct lk_run run = {0};
    sqlock_result result = {0};
    struct lk_row row;
    bool is_done;
    int rc;

    if (store->statements[SQLOCK_SQL_HAND_OFF].text == NULL ||
        lk_lease_may_be_shared(from) || to->asked.weight > 0 ||
        (lk_row_may_be_copys(store, from) &&
         lk_lease_read(store, from, &row, NULL) < 0))
        return SQLOCK_EBUSY;
    rc = send(store, from, to, &run, &result);
    if (run.was_uncertain)
        lk_lease_cap(to, to->asked.ttl_ms);
    is_done = rc == 0 && result.rows > 0;
    if (is_done && result.cells[0].integer != 0) {
        to->answered.token = result.cells[0].integer;
        to->believed.until_boot_ns =
            lk_believe_until(store, run.sent_boot_ns, to->asked.ttl_ms);
    } else if (is_done || run.was_uncertain) {
        rc = judge_by_row(store, to, first_sent_ns);
    } else if (rc != SQLOCK_EUNREACHABLE) {
        rc = SQLOCK_EBUSY;
    }
    sqlock_result_clear(&result);
    if (rc == SQLOCK_EUNCERTAIN)
        lk_resolver_add_claim(store, to, lk_boottime_ns());
    if (rc == 0 && from->believed.fate != LK_CLAIM_ANSWERED)
        lk_resolver_add_claim(store, from, first_sent_ns);
    if (rc == 0)
        to->answered.place = from->answered.place;
    if (rc == 0 && from->believed.has_text)
        lk_bell_tell(store, from->key, 0);
    if (rc == 0 && to->believed.until_boot_ns <= lk_boottime_ns()) {
        give_back(store, to);
        rc = SQLOCK_ETIMEDOUT;
    }
    return rc;
}
