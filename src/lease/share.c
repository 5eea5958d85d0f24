/*
 * share.c - downgrade a lease, change the permits of a lock, break a share
 */
#include "lease/share.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "lease/arguments.h"
#include "lease/bell.h"
#include "lease/row.h"

int lk_share_check(const struct lk_store *store, uint32_t weight,
                   uint32_t permits, sqlock_error *err)
{
    if (store->statements[SQLOCK_SQL_SHARE].text == NULL)
        return lk_store_unshared(store, err);
    if (permits > LK_PERMITS_MAX)
        return lk_error(err, SQLOCK_EINVAL,
                        "a lock cannot have %u permits, at most %u", permits,
                        LK_PERMITS_MAX);
    if (weight > LK_PERMITS_MAX || (permits != LK_NO_LIMIT && weight > permits))
        return lk_error(err, SQLOCK_EINVAL, "%u permits cannot be had of %u",
                        weight,
                        permits != LK_NO_LIMIT ? permits : LK_PERMITS_MAX);
    return 0;
}

/* --- downgrade --- */

/* Judge a downgrade that changed nothing: an earlier copy may have done it. */
static int judge_downgrade(struct lk_store *store, struct lk_lease *lease,
                           int64_t sent_boot_ns, sqlock_error *err)
{
    struct lk_row row;
    int rc = lk_lease_read(store, lease, &row, err);

    if (rc == SQLOCK_ELOST || rc == SQLOCK_EEXPIRED)
        return rc;
    if (rc < 0)
        return lk_error(err, SQLOCK_EUNCERTAIN,
                        "it could not be read whether the lease is shared now");
    if (!row.is_shared)
        return lk_error(err, SQLOCK_ECONFLICT,
                        "the lock has %u permits, and is not one for readers",
                        row.permits);
    lease->believed.until_boot_ns = lk_believe_row_until(
        store, sent_boot_ns, row.remaining_us, lease->asked.ttl_ms);
    return 0;
}

/* Note a downgrade that may have been carried out, or be so yet, and of which a
 * copy was asked for first at that time. */
static void note_downgrade(const struct lk_store *store, struct lk_lease *lease,
                           int64_t asked_boot_ns)
{
    lease->believed.may_be_share = true;
    lease->believed.late_share_ns =
        lk_after_ms(lk_boottime_ns(), store->options.statement_timeout_ms);
    lk_lease_believe_less(store, lease, asked_boot_ns);
}

int lk_share_downgrade(struct lk_store *store, struct lk_lease *lease,
                       sqlock_error *err)
{
    struct lk_lease shared = *lease;
    struct lk_lease_arguments arguments;
    struct lk_run run = {.is_repeatable = true};
    int64_t asked_boot_ns = lk_boottime_ns();
    struct lk_row row;
    int rc = lk_share_check(store, 1, LK_NO_LIMIT, err);

    if (rc == 0 && lk_row_may_be_copys(store, lease))
        rc = lk_lease_read(store, lease, &row, err);
    if (rc < 0)
        return rc;
    shared.asked.weight = 1;
    shared.asked.permits = LK_NO_LIMIT;
    lk_arguments_of_one(&arguments, store, &shared, SQLOCK_SQL_DOWNGRADE);
    rc = lk_store_change(store, SQLOCK_SQL_DOWNGRADE, &arguments.values, &run,
                         err);
    shared.believed.until_boot_ns =
        lk_believe_until(store, run.sent_boot_ns, shared.asked.ttl_ms);
    if (rc == 0)
        rc = judge_downgrade(store, &shared, lk_boottime_ns(), err);
    if (rc == SQLOCK_EUNCERTAIN && run.was_uncertain)
        note_downgrade(store, lease, asked_boot_ns);
    if (rc < 0)
        return rc;
    if (lease->believed.has_text)
        lk_bell_tell(store, lease->key, 0);
    lease->believed.has_text = false;
    lease->asked.weight = shared.asked.weight;
    lease->asked.permits = shared.asked.permits;
    lease->believed.may_be_share = false;
    lease->believed.until_boot_ns = shared.believed.until_boot_ns;
    return 0;
}

/* --- permits --- */

int lk_share_set_permits(struct lk_store *store, const char *key,
                         uint32_t permits, sqlock_error *err)
{
    struct lk_arguments arguments;
    struct lk_row row;
    int rc = lk_share_check(store, 1, permits, err);

    if (rc < 0)
        return rc;
    lk_store_arguments(store, key, &arguments);
    lk_argument_integer(&arguments, SQLOCK_P_PERMITS, permits);
    rc = lk_store_change(store, SQLOCK_SQL_PERMITS, &arguments, NULL, err);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    rc = lk_row_read(store, key, lk_store_deadline(store), &row, err);
    if (rc == 0 && !row.exists)
        rc = lk_error(err, SQLOCK_ENOTFOUND,
                      "the table has no row of the lock: its permits are those "
                      "that are asked for first");
    else if (rc == 0 && lk_row_is_of_peer(store, &row))
        rc = lk_error(err, SQLOCK_ECONFLICT,
                      "a Spring service has the lock, and deletes its row when "
                      "it releases it: set the number then");
    else if (rc == 0 && row.permits != permits)
        rc = lk_error(err, SQLOCK_ECONFLICT,
                      "the lock has %u permits: others have changed them, too",
                      row.permits);
    return rc;
}

/* --- breaking --- */

/* Give the share to `breaker`.  A copy that got no answer may have done it. */
static int take_share(struct lk_store *store, const char *key,
                      const char *client_id, const char *breaker,
                      const char *shown, sqlock_error *err)
{
    const struct lk_lease taken = {.key = key, .asked.weight = 1};
    struct lk_arguments arguments;
    struct lk_lease lease = taken;
    struct lk_run run = {.is_repeatable = true};
    struct lk_row row;
    int rc;

    lk_store_arguments(store, key, &arguments);
    lk_argument_text(&arguments, SQLOCK_P_CLIENT, breaker);
    lk_argument_text(&arguments, SQLOCK_P_OLD_CLIENT, client_id);
    lk_argument_text(&arguments, SQLOCK_P_SHOWN, shown);
    rc = lk_store_change(store, SQLOCK_SQL_BREAK_SHARE, &arguments, &run, err);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    memcpy(lease.client_id, breaker, SQLOCK_KEY_SIZE);
    if (run.was_uncertain && lk_lease_read(store, &lease, &row, NULL) == 0)
        return 0;
    return lk_error(err, SQLOCK_ECONFLICT,
                    "%s does not share the lock, or its lease is over",
                    client_id);
}

int lk_share_break(struct lk_store *store, const char *key,
                   const char *client_id, const char *shown, bool now,
                   sqlock_error *err)
{
    char breaker[SQLOCK_KEY_SIZE];
    struct lk_arguments arguments;
    int rc = lk_share_check(store, 1, LK_NO_LIMIT, err);

    if (rc < 0)
        return rc;
    lk_store_client_id(store, 0, breaker);
    rc = take_share(store, key, client_id, breaker, shown, err);
    if (rc < 0 || !now)
        return rc;
    lk_store_arguments(store, key, &arguments);
    lk_argument_text(&arguments, SQLOCK_P_CLIENT, breaker);
    rc =
        lk_store_change(store, SQLOCK_SQL_RELEASE_SHARE, &arguments, NULL, err);
    /* none was there: an earlier attempt may have got no answer */
    if (rc >= 0 || rc == SQLOCK_EUNCERTAIN)
        lk_bell_ask_to_look(store, &key, 1, 0);
    return rc < 0 ? rc : 0;
}
