/*
 * renew.c - renew leases
 *
 * A renewal may be carried out twice, so it is repeated until it is answered.
 * A single renewal waits for a locked row.  A renewal of many, or on the
 * renewer's connection, passes over locked rows: they are neither renewed nor
 * lost, and do not delay the others.
 */
#include "base/clock.h"
#include "base/error.h"
#include "lease/bell.h"
#include "lease/row.h"

static sqlock_statement_kind kind_of(const struct lk_batch *batch)
{
    if (batch->count == 1 && batch->items[0].lease.asked.weight > 0)
        return SQLOCK_SQL_RENEW_SHARE;
    return batch->count == 1 && !batch->is_reserved ? SQLOCK_SQL_RENEW
                                                    : SQLOCK_SQL_RENEW_MANY;
}

/* Note that a lease is renewed, unless its row has to tell that. */
static void renewed(const struct lk_store *store, struct lk_item *item,
                    int64_t sent_boot_ns)
{
    if (lk_row_may_be_copys(store, &item->lease))
        return;
    item->rc = 0;
    item->lease.believed.until_boot_ns =
        lk_believe_until(store, sent_boot_ns, item->lease.asked.ttl_ms);
}

/* Record the renewed leases: either rows name their keys, or `affected` counts
 * them. */
static void take_renewals(const struct lk_store *store, struct lk_batch *batch,
                          const sqlock_result *result)
{
    bool names_keys = result->columns > 1;

    if (result->rows > 0)
        batch->now_us = result->cells[names_keys ? 1 : 0].integer;
    for (size_t i = 0; i < batch->count; i++) {
        if (!names_keys && result->affected == (int64_t)batch->count)
            renewed(store, &batch->items[i], batch->sent_boot_ns);
    }
    for (size_t row = 0; names_keys && row < result->rows; row++) {
        struct lk_item *item = lk_batch_find_owner(store, batch, result, row);

        if (item != NULL)
            renewed(store, item, batch->sent_boot_ns);
    }
}

/* --- rows that were not renewed --- */

/* Return as what a column keeps times of which this is one, in us: 1,000,000
 * if it may keep seconds. */
static int64_t unit_of(int64_t time_us)
{
    int64_t unit = 1;

    while (unit < 1000000 && time_us % (unit * 10) == 0)
        unit *= 10;
    return unit;
}

/* Return whether the row has, as exactly as its column keeps times, the end
 * that the renewal gives: so it was renewed, or had that end already (F19).  In
 * Spring's older layouts the column has the time that comes the TTL before it.
 * Without the time of the statement, that of the reading passed_us later tells
 * it. */
static bool has_end(const struct lk_row *row, uint32_t ttl_ms, int64_t now_us,
                    int64_t passed_us)
{
    int64_t began_us = row->expires_at_us - (int64_t)ttl_ms * 1000;
    int64_t unit = lk_later(unit_of(row->expires_at_us), unit_of(began_us));

    if (now_us == 0)
        now_us = row->expires_at_us - row->remaining_us - passed_us;
    return began_us - now_us > -unit && began_us - now_us < unit;
}

/* Set the result of a lease that was not renewed: ELOST, EEXPIRED, EBUSY if the
 * row was passed over, or 0 if it has the end of the renewal, or nothing tells
 * whether it was passed over.  In the last cases the deadline follows from the
 * row. */
static void judge(const struct lk_store *store, const struct lk_batch *batch,
                  struct lk_item *item, bool tells_passed,
                  int64_t asked_boot_ns)
{
    const struct lk_row *row = &item->row;
    struct lk_lease *lease = &item->lease;
    int64_t remaining_us = row->remaining_us;
    int64_t cap_us = (int64_t)lease->believed.cap_ms * 1000;

    item->rc = lk_row_judge(store, row, lease, LK_NEVER, false);
    if (item->rc == 0 && tells_passed && !lk_row_may_be_copys(store, lease) &&
        !has_end(row, lease->asked.ttl_ms, batch->now_us,
                 (asked_boot_ns - batch->sent_boot_ns) / 1000))
        item->rc = SQLOCK_EBUSY;
    if (item->rc < 0)
        return;
    if (cap_us != 0 && remaining_us > cap_us)
        remaining_us = cap_us;
    lease->believed.until_boot_ns = lk_believe_row_until(
        store, asked_boot_ns, remaining_us, lease->asked.ttl_ms);
}

/* Judge by the rows what was not renewed, or may be a copy's. */
static int read_unrenewed(struct lk_store *store, struct lk_batch *batch,
                          bool tells_passed, sqlock_error *err)
{
    int64_t asked_boot_ns = lk_boottime_ns();
    /* The times of the batch stay those of the renewal, with its now_us. */
    struct lk_batch reading = *batch;
    int rc = lk_rows_read(store, &reading, err);

    for (size_t i = 0; rc == 0 && i < batch->count; i++)
        if (batch->items[i].rc != 0)
            judge(store, batch, &batch->items[i], tells_passed, asked_boot_ns);
    return rc;
}

static int renew(struct lk_store *store, struct lk_batch *batch,
                 sqlock_error *err)
{
    int64_t since_boot_ns = lk_boottime_ns();
    struct lk_run run = {.is_repeatable = true};
    sqlock_result result = {0};
    bool is_complete = true;
    bool tells_passed;
    int rc;

    for (size_t i = 0; i < batch->count; i++)
        batch->items[i].rc = SQLOCK_EBUSY; /* until the answer says otherwise */
    batch->now_us = 0;
    rc = lk_batch_run(store, kind_of(batch), batch, &run, &result, err);
    if (rc == 0)
        take_renewals(store, batch, &result);
    /* MariaDB may give no insert id: then the time is not known */
    tells_passed = kind_of(batch) == SQLOCK_SQL_RENEW_MANY &&
                   (batch->now_us != 0 || result.affected == 0);
    for (size_t i = 0; rc == SQLOCK_EUNCERTAIN && i < batch->count; i++)
        lk_lease_believe_less(store, &batch->items[i].lease, since_boot_ns);
    sqlock_result_clear(&result);
    if (lk_batch_is_divisible(batch, rc))
        return lk_batch_send_parts(store, batch, lk_batch_renew, rc, err);
    for (size_t i = 0; i < batch->count; i++)
        is_complete = is_complete && batch->items[i].rc == 0;
    if (rc == 0 && !is_complete)
        rc = read_unrenewed(store, batch, tells_passed, err);
    return rc;
}

/* Return whether the row was read, and has the lease as a share. */
static bool is_share_now(const struct lk_item *item)
{
    return item->lease.believed.may_be_share && item->lease.asked.weight == 0 &&
           item->row.weight > 0;
}

/* Renew the lease as the share that it has become by a downgrade without an
 * answer, and tell those who observe the leader that it was. */
static int renew_as_share(struct lk_store *store, struct lk_batch *batch,
                          sqlock_error *err)
{
    struct lk_item *item = &batch->items[0];
    int rc;

    item->lease.asked.weight = item->row.weight;
    item->lease.believed.may_be_share = false;
    rc = renew(store, batch, err);
    if (item->lease.believed.has_text)
        lk_bell_tell(store, item->lease.key, batch->deadline_ns);
    return rc;
}

/* Return whether the lease, which was renewed, is known to have the lock alone:
 * the downgrade without an answer was not carried out, and will not be. */
static bool is_alone_now(const struct lk_batch *batch)
{
    const struct lk_item *item = &batch->items[0];

    return item->rc == 0 && item->lease.asked.weight == 0 &&
           batch->sent_boot_ns > item->lease.believed.late_share_ns;
}

int lk_batch_renew(struct lk_store *store, struct lk_batch *batch,
                   sqlock_error *err)
{
    int rc;

    if (batch->count == 0)
        return 0;
    if (lk_batch_has_parts(store, batch)) {
        lk_batch_sort_parts(batch);
        return lk_batch_send_parts(store, batch, lk_batch_renew, 0, err);
    }
    rc = renew(store, batch, err);
    if (rc == 0 && is_share_now(&batch->items[0]))
        rc = renew_as_share(store, batch, err);
    if (rc == 0 && batch->items[0].lease.believed.may_be_share &&
        is_alone_now(batch))
        batch->items[0].lease.believed.may_be_share = false;
    return rc;
}

int lk_renewal_error(int rc, sqlock_error *err)
{
    switch (rc) {
    case SQLOCK_ELOST:
        return lk_error(err, SQLOCK_ELOST,
                        "the lease is lost: another owner has had the lock");
    case SQLOCK_EEXPIRED:
        return lk_error(err, SQLOCK_EEXPIRED,
                        "the lease expired before it was renewed");
    case SQLOCK_EBUSY:
        return lk_error(err, SQLOCK_EBUSY,
                        "a transaction has locked the row of the lock");
    default:
        return rc;
    }
}

int lk_lease_read(struct lk_store *store, const struct lk_lease *lease,
                  struct lk_row *row, sqlock_error *err)
{
    int rc = lk_row_read_as(store, lease, lk_store_deadline(store), row, err);

    return rc < 0 ? rc
                  : lk_renewal_error(
                        lk_row_judge(store, row, lease, LK_NEVER, false), err);
}
