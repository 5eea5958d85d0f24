/*
 * limits.c - what calls refuse, how long statements of the background wait, and
 * how few connections suffice
 */
#include "renewer.h"

#include "lock/registry.h"
#include "sqlock/async.h"
#include "sqlock/many.h"
#include "sqlock/tx.h"
#include "support/login.h"
#include "support/tap.h"

#define CONNECT_MS 8000
#define STATEMENT_MS 2500

/* Assert that the renewer waits that long for a connection, and other callers
 * CONNECT_MS. */
static void expect_connect_ms(struct fixture *f, uint32_t ttl_ms,
                              uint32_t expected_ms)
{
    sqlock_options options = fixture_options(f);
    sqlock_registry *registry;

    options.ttl_ms = ttl_ms;
    options.connect_timeout_ms = CONNECT_MS;
    options.statement_timeout_ms = STATEMENT_MS;
    registry = fixture_registry(f, &options);
    assert_int_equal(registry->store.db.reserved.options.connect_timeout_ms,
                     expected_ms);
    assert_int_equal(registry->store.db.pool.options.connect_timeout_ms,
                     CONNECT_MS);
    assert_int_equal(registry->store.db.waiting.options.connect_timeout_ms,
                     CONNECT_MS);
    registry_end(registry);
}

static void test_a_renewal_waits_for_a_connection_by_the_ttl(void **state)
{
    struct fixture *f = *state;

    expect_connect_ms(f, 4 * STATEMENT_MS - 400, STATEMENT_MS);
    expect_connect_ms(f, 4 * STATEMENT_MS + 400, STATEMENT_MS + 100);
    expect_connect_ms(f, 4 * CONNECT_MS - 400, CONNECT_MS - 100);
    expect_connect_ms(f, 4 * CONNECT_MS + 400, CONNECT_MS);
}

static void expect_lock_ms(struct fixture *f, uint32_t statement_ms,
                           uint32_t expected_ms)
{
    sqlock_options options = fixture_options(f);
    sqlock_registry *registry;
    const struct lk_db *db;

    options.statement_timeout_ms = statement_ms;
    registry = fixture_registry(f, &options);
    db = &registry->store.db;
    assert_int_equal(db->pool.options.lock_timeout_ms, expected_ms);
    assert_int_equal(db->reserved.options.lock_timeout_ms, expected_ms);
    registry_end(registry);
}

/* A statement waits for a row for half of its timeout, but for no more than a
 * second; the rest is for reading which holder has the row. */
static void test_a_statement_waits_for_a_row_for_a_second_at_most(void **state)
{
    struct fixture *f = *state;

    expect_lock_ms(f, 1500, 750);
    expect_lock_ms(f, 2000, 1000);
    expect_lock_ms(f, 10000, 1000);
}

/* ------------------------------------------------------ what is refused -- */

static void expect_refused(struct fixture *f, sqlock_lock *const *locks,
                           size_t count)
{
    int rc = sqlock_acquire_many(locks, count, 0, NULL, NULL, &f->err);

    assert_code(SQLOCK_EINVAL, rc, &f->err);
    assert_fails(SQLOCK_EINVAL, sqlock_renew_many(locks, count, NULL, &f->err));
    rc = sqlock_release_many(locks, count, NULL, &f->err);
    assert_code(SQLOCK_EINVAL, rc, &f->err);
}

static void test_what_is_refused(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *tapped = fixture_tapped(f, NULL);
    static sqlock_lock *crowd[SQLOCK_MANY_MAX + 1];
    sqlock_lock *odd[3];
    int rc;

    tap_reset();
    odd[0] = nth_lock(f, tapped, 0);
    odd[1] = nth_lock(f, tapped, 1);
    odd[2] = nth_lock(f, tapped, 0); /* the handle odd[0] again */
    expect_refused(f, odd, 3);
    lock_drop(odd[2]);
    odd[2] = nth_lock(f, f->a, 2);
    expect_refused(f, odd, 3);
    lock_drop(odd[2]);
    odd[2] = NULL;
    expect_refused(f, odd, 3);
    expect_refused(f, odd, 0);
    expect_refused(f, NULL, 2);
    for (size_t i = 0; i <= SQLOCK_MANY_MAX; i++)
        crowd[i] = odd[0];
    expect_refused(f, crowd, SQLOCK_MANY_MAX + 1);
    rc = sqlock_acquire_many(odd, 2, -2, NULL, NULL, &f->err);
    assert_code(SQLOCK_EINVAL, rc, &f->err);
    assert_int_equal(tap_sent(), 0);
    assert_int_equal(sqlock_hold_count(odd[0]), 0);
    lock_drop(odd[0]);
    lock_drop(odd[1]);
    registry_end(tapped);
}

static void test_descriptors_that_cannot_be_had(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    int fd = -1;

    assert_fails(SQLOCK_EINVAL, sqlock_lost_fd(NULL, lock, &f->err));
    assert_fails(SQLOCK_EINVAL, sqlock_lost_fd(&fd, NULL, &f->err));
    assert_int_equal(fd, -1);
    lock_drop(lock);
}

/* Everything about one lock and several, by a login that may have one
 * connection. */
static void use_one_connection(struct fixture *f, sqlock_registry *registry)
{
    struct told told = {0};
    sqlock_lock *locks[3];
    sqlock_tx *tx = NULL;

    for (size_t i = 0; i < 3; i++)
        locks[i] = nth_lock(f, registry, i);
    take_renewed(locks[0], RENEWED_MS, &told);
    await_renewals(locks[0], 3);
    assert_ok(sqlock_acquire_many(locks + 1, 2, 0, NULL, NULL, &f->err));
    assert_ok(sqlock_renew_many(locks, 3, NULL, &f->err));
    assert_ok(sqlock_tx_begin(&tx, registry, &f->err));
    assert_ok(sqlock_tx_guard(tx, locks[0], &f->err));
    assert_ok(sqlock_tx_commit(tx, &f->err));
    await_renewals(locks[0], 1);
    assert_int_equal(atomic_load(&told.times), 0);
    assert_ok(sqlock_release_many(locks, 3, NULL, &f->err));
    for (size_t i = 0; i < 3; i++)
        lock_drop(locks[i]);
}

static void test_a_login_with_one_connection_suffices(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = renewer_options(f);
    sqlock_registry *registry;
    struct login login;

    /* A call waits so long for the connection, which a renewal may have. */
    options.statement_timeout_ms = 5000 * SLOWNESS;
    login_make(&login, f, "one");
    login_grant(&login, "SELECT, INSERT, UPDATE, DELETE", f->table);
    if (f->database->bit == ON_POSTGRES)
        (void)sql_run(&login.admin, "ALTER ROLE %s CONNECTION LIMIT 1",
                      login.parts.user);
    else
        (void)sql_run(&login.admin, "ALTER USER %s WITH MAX_USER_CONNECTIONS 1",
                      login.parts.user);
    registry = fixture_registry_at(f, login.url, &options);
    use_one_connection(f, registry);
    registry_end(registry);
    login_drop(&login, f);
}

static const struct test tests[] = {
    TEST(test_a_renewal_waits_for_a_connection_by_the_ttl),
    TEST(test_a_statement_waits_for_a_row_for_a_second_at_most),
    TEST(test_what_is_refused),
    TEST(test_descriptors_that_cannot_be_had),
    TEST_ON(test_a_login_with_one_connection_suffices, ON_SERVERS, 0),
};
const struct topic topic_limits = TOPIC(tests);
