/*
 * capabilities.c - sqlock_capabilities_of() finds out by trying what a database
 * supports
 */
#include "conformance.h"

#include <string.h>

#include "sqlock/once.h"
#include "sqlock/tx.h"
#include "support/around.h"
#include "support/tap.h"

/* Tell whether the server is a node of a Galera cluster: only there
 * sqlock_tx_lock() returns ENOTSUP. */
static bool is_galera(struct fixture *f)
{
    const char *name = f->name;
    sqlock_tx *tx = NULL;
    int rc;

    assert_ok(sqlock_tx_begin(&tx, f->a, &f->err));
    rc = sqlock_tx_lock(tx, &name, 1, 0, false, NULL, &f->err);
    (void)sqlock_tx_rollback(tx, NULL);
    return rc == SQLOCK_ENOTSUP;
}

TEST(test_F63_what_a_database_gives)
{
    sqlock_support row_locks =
        is_galera(f) ? SQLOCK_SUPPORT_REFUSED : SQLOCK_SUPPORT_FULL;
    sqlock_support wakeups =
        is_galera(f) ? SQLOCK_SUPPORT_WEAKER : SQLOCK_SUPPORT_FULL;
    sqlock_options options = fixture_options(f);
    sqlock_capabilities found = SQLOCK_CAPABILITIES_INIT;
    sqlock_registry *probed;
    sqlock_info *rows = NULL;
    size_t count = 1;

    assert_ok(sqlock_capabilities_of(f->url, &options, &found, &f->err));
    assert_int_equal(found.size, sizeof found);
    assert_int_equal(found.leases, f->layout == SQLOCK_LAYOUT_SQLOCK
                                       ? SQLOCK_SUPPORT_FULL
                                       : SQLOCK_SUPPORT_WEAKER);
    assert_int_equal(found.row_locks, row_locks);
    assert_int_equal(found.guards, row_locks);
    assert_int_equal(found.wakeups, f->layout == SQLOCK_LAYOUT_SQLOCK &&
                                            !database_is_polled(f->database) &&
                                            !database_is_pooled(f->database)
                                        ? wakeups
                                        : SQLOCK_SUPPORT_REFUSED);
    /* The call has left no row of its trials. */
    options.region = "sqlock-doctor";
    probed = fixture_registry(f, &options);
    assert_ok(list_all(probed, &rows, &count, &f->err));
    assert_int_equal(count, 0);
    sqlock_info_free(rows, count);
    registry_end(probed);
}

/* --- a database that only says that it locks --- */

/* The real driver, but without row locks. */
static struct around stub;

static void make_stub(struct fixture *f)
{
    static sqlock_transactions transactions;

    if (!around_make(&stub, f, "stub"))
        return;
    transactions = *stub.real->transactions;
    transactions.update_free = "";
    transactions.update_wait = "";
    stub.driver.transactions = &transactions;
    around_register(&stub);
}

TEST_ON(test_F66_locks_that_exclude_nobody_are_found_out, ON_SERVERS, IN_SQLOCK)
{
    sqlock_options options = fixture_options(f);
    sqlock_capabilities found = SQLOCK_CAPABILITIES_INIT;
    char url[1024];

    make_stub(f);
    assert_ok(sqlock_capabilities_of(around_url(url, &stub, f), &options,
                                     &found, &f->err));
    assert_int_equal(found.leases, SQLOCK_SUPPORT_FULL);
    assert_int_equal(found.row_locks, SQLOCK_SUPPORT_REFUSED);
}

/* Where no lease can be guarded (Galera), sqlock_once_check(), which is called
 * before the work, says so as sqlock_once_record() does. */
TEST_ON(test_nothing_is_recorded_where_nothing_is_guarded, ON_SERVERS,
        IN_SQLOCK)
{
    bool refused = fixture_gives(f).guards == SQLOCK_SUPPORT_REFUSED;
    sqlock_options options = fixture_options(f);
    sqlock_lock *lock = lock_obtain(f->a, f->name);

    assert_ok(sqlock_once_schema_create(f->url, &options, &f->err));
    lock_take(lock, 0);
    assert_fails(refused ? SQLOCK_ENOTSUP : SQLOCK_ENOTFOUND,
                 sqlock_once_check(f->b, f->name, &f->err));
    assert_code(refused ? SQLOCK_ENOTSUP : 0, sqlock_once_record(lock, &f->err),
                &f->err);
    assert_true(sql_integer(&f->sql, "SELECT COUNT(*) FROM %sDONE",
                            f->prefix) == (refused ? 0 : 1));
    lock_end(lock);
}

TEST_ON(test_what_is_no_place_for_them, ON_SQLITE, IN_SQLOCK)
{
    sqlock_capabilities found = {.size = 0};

    assert_fails(SQLOCK_EINVAL,
                 sqlock_capabilities_of(f->url, NULL, &found, &f->err));
    assert_fails(SQLOCK_EINVAL,
                 sqlock_capabilities_of(f->url, NULL, NULL, &f->err));
}

static int break_guard(void *context, const struct tap_event *event)
{
    unsigned *seen = context;

    return event->call == TAP_EXECUTE && event->text != NULL &&
                   strstr(event->text, " SHARE ") != NULL && (*seen)++ == 0
               ? SQLOCK_EUNREACHABLE
               : 0;
}

static void count_event(void *context, const sqlock_event *event)
{
    (void)event;
    ++*(unsigned *)context;
}

/* The connection breaks when the library tests whether a lease can be guarded.
 * The call returns EUNREACHABLE.  No event is sent: the transaction was the
 * library's own, and no lease of the caller was lost. */
TEST_OF_ROWS(test_a_lost_connection_is_unreachable, ON_SERVERS, IN_SQLOCK)
{
    sqlock_options options = fixture_options(f);
    sqlock_capabilities found = SQLOCK_CAPABILITIES_INIT;
    unsigned events = 0;
    unsigned seen = 0;
    char url[1024];
    int rc;

    tap_install();
    tap_reset();
    options.on_event = count_event;
    options.event_context = &events;
    tap_hooks(break_guard, NULL, &seen);
    rc =
        sqlock_capabilities_of(tap_url(url, f->url), &options, &found, &f->err);
    tap_hooks(NULL, NULL, NULL);
    assert_true(seen > 0);
    assert_fails(SQLOCK_EUNREACHABLE, rc);
    assert_int_equal(events, 0);
}
