/*
 * capabilities.c - what a database gives is found out by trying
 */
#include "conformance.h"

#include <stdio.h>
#include <string.h>

#include "db/driver.h"
#include "sqlock/tx.h"

/* A cluster that takes writes on several nodes. */
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

static void test_F63_what_a_database_gives(void **state)
{
    struct fixture *f = *state;
    sqlock_support row_locks =
        is_galera(f) ? SQLOCK_SUPPORT_REFUSED : SQLOCK_SUPPORT_FULL;
    sqlock_support wait_queue =
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
                                            !database_is_polled(f->database)
                                        ? wait_queue
                                        : SQLOCK_SUPPORT_REFUSED);
    /* Nothing is left of it. */
    options.region = "sqlock-doctor";
    probed = fixture_registry(f, &options);
    assert_ok(sqlock_list(probed, &rows, &count, &f->err));
    assert_int_equal(count, 0);
    sqlock_info_free(rows, count);
    registry_end(probed);
}

/* --- a database that only says that it locks --- */

/* The real one with functions that exclude nobody, as CockroachDB's advisory
 * locks once did (F66), and without row locks. */
static struct {
    const sqlock_driver *real;
    sqlock_driver driver;
    sqlock_wait_queue wait_queue;
    sqlock_transactions transactions;
    char schemes[64];
} stub;

static const char *without_prefix(const char *url)
{
    return url + strlen("stub+");
}

static int stub_check_url(const char *url, sqlock_error *err)
{
    return stub.real->check_url(without_prefix(url), err);
}

static int stub_open(void *connection, const char *url,
                     const sqlock_connect *how, sqlock_error *err)
{
    return stub.real->open(connection, without_prefix(url), how, err);
}

static int stub_queue(void *connection, int64_t queue, int64_t until_ns,
                      sqlock_error *err)
{
    (void)connection;
    (void)queue;
    (void)until_ns;
    (void)err;
    return 0;
}

static int stub_leave(void *connection, int64_t queue, int64_t deadline_ns,
                      sqlock_error *err)
{
    return stub_queue(connection, queue, deadline_ns, err);
}

static void make_stub(struct fixture *f)
{
    if (stub.real != NULL)
        return;
    assert_int_equal(lk_driver_find(&stub.real, f->url, &f->err), 0);
    (void)snprintf(stub.schemes, sizeof stub.schemes, "stub+%.*s",
                   (int)strcspn(f->url, ":"), f->url);
    stub.wait_queue = *stub.real->wait_queue;
    stub.wait_queue.enqueue = stub_queue;
    stub.wait_queue.leave = stub_leave;
    stub.transactions = *stub.real->transactions;
    stub.transactions.update_free = "";
    stub.transactions.update_wait = "";
    stub.driver = *stub.real;
    stub.driver.name = "stub";
    stub.driver.schemes = stub.schemes;
    stub.driver.check_url = stub_check_url;
    stub.driver.open = stub_open;
    stub.driver.resolve_url = NULL;
    stub.driver.wait_queue = &stub.wait_queue;
    stub.driver.transactions = &stub.transactions;
    assert_int_equal(sqlock_driver_register(&stub.driver, &f->err), 0);
}

static void test_F66_locks_that_exclude_nobody_are_found_out(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = fixture_options(f);
    sqlock_capabilities found = SQLOCK_CAPABILITIES_INIT;
    char url[1024];

    if (database_is_polled(f->database))
        skip_or_fail("there is no wait queue that could be hollow");
    make_stub(f);
    (void)snprintf(url, sizeof url, "stub+%s", f->url);
    assert_ok(sqlock_capabilities_of(url, &options, &found, &f->err));
    assert_int_equal(found.leases, SQLOCK_SUPPORT_FULL);
    assert_int_equal(found.row_locks, SQLOCK_SUPPORT_REFUSED);
    assert_int_equal(found.wakeups, SQLOCK_SUPPORT_REFUSED);
}

static void test_what_is_no_place_for_them(void **state)
{
    struct fixture *f = *state;
    sqlock_capabilities found = {.size = 0};

    assert_fails(SQLOCK_EINVAL,
                 sqlock_capabilities_of(f->url, NULL, &found, &f->err));
    assert_fails(SQLOCK_EINVAL,
                 sqlock_capabilities_of(f->url, NULL, NULL, &f->err));
}

static const struct test tests[] = {
    TEST(test_F63_what_a_database_gives),
    TEST_ON(test_F66_locks_that_exclude_nobody_are_found_out, ON_SERVERS,
            IN_SQLOCK),
    TEST_ON(test_what_is_no_place_for_them, ON_SQLITE, IN_SQLOCK),
};
const struct topic topic_capabilities = TOPIC(tests);
