/*
 * capabilities.c - find out what the database behind a URL supports (F63-F68)
 *
 * Two sessions conflict on purpose, and the outcome is checked.  A version
 * number would not suffice: some servers claim to be what they are not.  The
 * sessions use a lock in a region of their own, for which other processes that
 * probe the same table wait; its row is removed afterwards.
 */
#include <stdio.h>

#include "base/check.h"
#include "base/error.h"
#include "db/db.h"
#include "lease/bell.h"
#include "sqlock.h"
#include "sqlock/operator.h"
#include "sqlock/tx.h"

#define REGION "sqlock-doctor"
#define NAME "capabilities"
#define TTL_MS 20000
#define WAIT_MS 5000 /* for another caller of this function */

struct probe {
    sqlock_registry *one, *other;
    struct lk_store *one_store; /* of `one` */
    sqlock_lock *ours, *theirs;
    sqlock_capabilities found;
};

/* Set *support by rc, the result of an attempt that must fail with EBUSY
 * because another session is in the way.  Return 0, or rc if it is another
 * error. */
static int judge(int rc, sqlock_support *support)
{
    if (rc == SQLOCK_EBUSY)
        *support = SQLOCK_SUPPORT_FULL;
    else if (rc == 0 || rc == SQLOCK_ENOTSUP)
        *support = SQLOCK_SUPPORT_REFUSED;
    else
        return rc;
    return 0;
}

/* --- leases --- */

static int probe_leases(struct probe *probe, sqlock_error *err)
{
    int rc = sqlock_acquire(probe->theirs, 0, NULL, err);

    if (rc == 0)
        (void)!sqlock_release(probe->theirs, NULL);
    rc = judge(rc, &probe->found.leases);
    /* Spring's layouts take tokens from the clock alone. */
    if (rc == 0 && probe->found.leases == SQLOCK_SUPPORT_FULL &&
        probe->one_store->layout != SQLOCK_LAYOUT_SQLOCK)
        probe->found.leases = SQLOCK_SUPPORT_WEAKER;
    return rc;
}

/* --- rows --- */

/* Find out whether another session can lock a row that this transaction has
 * locked. */
static int probe_row(struct probe *probe, sqlock_tx *tx, sqlock_error *err)
{
    const struct lk_table *locks = &probe->one_store->table;
    sqlock_table table = SQLOCK_TABLE_INIT;
    sqlock_value key = sqlock_text(sqlock_key(probe->ours));
    char name[sizeof locks->schema + sizeof locks->name];
    sqlock_tx *second = NULL;
    int rc;

    (void)snprintf(name, sizeof name, "%s%s%s", locks->schema,
                   locks->schema[0] != '\0' ? "." : "", locks->name);
    table.name = name;
    table.key_column = probe->one_store->db.driver->dialect->folds_to_lower
                           ? "lock_key"
                           : "LOCK_KEY";
    rc = sqlock_tx_lock_row(tx, &table, &key, false, 0, err);
    if (rc < 0)
        return judge(rc, &probe->found.row_locks);
    rc = sqlock_tx_begin(&second, probe->other, err);
    if (rc == 0)
        rc = sqlock_tx_lock_row(second, &table, &key, false, 0, err);
    (void)sqlock_tx_rollback(second, NULL);
    /* On InnoDB with innodb_rollback_on_timeout a busy row ends the
     * transaction, which is ERETRY. */
    if (rc == SQLOCK_ERETRY)
        rc = SQLOCK_EBUSY;
    return judge(rc, &probe->found.row_locks);
}

static int probe_rows(struct probe *probe, sqlock_error *err)
{
    sqlock_tx *tx = NULL;
    int rc;

    rc = sqlock_tx_begin(&tx, probe->one, err);
    if (rc == 0)
        rc = probe_row(probe, tx, err);
    (void)sqlock_tx_rollback(tx, NULL);
    return rc == SQLOCK_ENOTSUP ? 0 : rc;
}

static int probe_guards(struct probe *probe, sqlock_error *err)
{
    sqlock_tx *tx = NULL;
    int rc;

    rc = sqlock_tx_begin(&tx, probe->one, err);
    if (rc == 0)
        rc = sqlock_tx_guard(tx, probe->ours, err);
    (void)sqlock_tx_rollback(tx, NULL);
    if (rc == 0)
        probe->found.guards = SQLOCK_SUPPORT_FULL;
    return rc == SQLOCK_ENOTSUP ? 0 : rc;
}

/* --- bells --- */

/* Find out whether a session can be rung: one that a pooler may lend to others
 * cannot. */
static int probe_wakeups(struct probe *probe, sqlock_error *err)
{
    struct lk_store *store = probe->one_store;
    int64_t deadline_ns = lk_store_deadline(store);
    struct lk_connection *session;
    char name[LK_BELL_SIZE];
    int rc;

    if (lk_bell_of(store) == NULL)
        return 0;
    rc = lk_pool_take(&store->db.waiting, deadline_ns, &session, err);
    if (rc < 0)
        return rc;
    lk_bell_name(store, name);
    rc =
        lk_bell_call_begin(store, session, name, deadline_ns, deadline_ns, err);
    lk_pool_discard(&store->db.waiting, session);
    if (rc == SQLOCK_ENOTSUP)
        probe->found.wakeups = SQLOCK_SUPPORT_REFUSED;
    else if (rc < 0)
        return rc;
    else if (store->row_locks == LK_ROW_LOCKS_OF_NODE)
        probe->found.wakeups = SQLOCK_SUPPORT_WEAKER;
    else
        probe->found.wakeups = SQLOCK_SUPPORT_FULL;
    return 0;
}

/* --- all of it --- */

static int probe_all(struct probe *probe, sqlock_error *err)
{
    int rc;

    rc = sqlock_obtain(&probe->ours, probe->one, NAME, err);
    if (rc == 0)
        rc = sqlock_obtain(&probe->theirs, probe->other, NAME, err);
    if (rc == 0)
        rc = sqlock_acquire(probe->ours, WAIT_MS, NULL, err);
    if (rc < 0)
        return rc;
    rc = probe_leases(probe, err);
    if (rc == 0)
        rc = probe_rows(probe, err);
    if (rc == 0)
        rc = probe_guards(probe, err);
    if (rc == 0)
        rc = probe_wakeups(probe, err);
    (void)!sqlock_release(probe->ours, NULL);
    /* If this login may not delete rows, `sqlock reap` will. */
    (void)!sqlock_reap(probe->one, 0, NULL, NULL);
    return rc;
}

/* Translate a result about the probe's own transactions and leases, which the
 * application does not know, into one about the database. */
static int of_probing(int rc, sqlock_error *err)
{
    if (rc == SQLOCK_ELOST)
        return lk_error(err, SQLOCK_EUNREACHABLE,
                        "the connection was lost before the database said what "
                        "it supports");
    if (rc == SQLOCK_EEXPIRED)
        return lk_error(err, SQLOCK_EBUSY,
                        "the database was too slow to say what it supports: a "
                        "lease expired meanwhile");
    return lk_db_not_applied(rc, err);
}

int sqlock_capabilities_of(const char *url, const sqlock_options *options,
                           sqlock_capabilities *found, sqlock_error *err)
{
    static const struct lk_sized sized = {
        "sqlock_capabilities", "SQLOCK_CAPABILITIES_INIT", sizeof *found};
    struct probe probe = {.one = NULL};
    sqlock_error why = {0};
    sqlock_options own;
    int rc;

    rc = lk_sized_check(&sized, found, err);
    if (rc < 0)
        return rc;
    rc = lk_options_complete(&own, options, err);
    if (rc < 0)
        return rc;
    own.region = REGION;
    own.pool_size = 2;
    own.key_rule = SQLOCK_KEY_CURRENT;
    own.ttl_ms = TTL_MS;
    own.margin_ms = 0;
    own.renew_period_ms = 0;
    own.on_event = NULL; /* the registries are not the application's */
    rc = sqlock_registry_open(&probe.one, url, &own, &why);
    if (rc == 0)
        rc = sqlock_registry_open(&probe.other, url, &own, &why);
    if (rc == 0)
        rc = lk_store_of(probe.one, &probe.one_store, &why);
    if (rc == 0)
        rc = probe_all(&probe, &why);
    (void)sqlock_drop(probe.ours, NULL);
    (void)sqlock_drop(probe.theirs, NULL);
    (void)sqlock_registry_close(probe.other, NULL);
    (void)sqlock_registry_close(probe.one, NULL);
    if (rc < 0)
        return lk_error_pass(err, &why, of_probing(rc, &why));
    lk_sized_write(found, &probe.found);
    return 0;
}
