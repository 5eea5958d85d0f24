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

TEST(test_a_renewal_waits_for_a_connection_by_the_ttl)
{
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
TEST(test_a_statement_waits_for_a_row_for_a_second_at_most)
{
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

TEST(test_what_is_refused)
{
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

TEST(test_descriptors_that_cannot_be_had)
{
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

TEST_ON(test_a_login_with_one_connection_suffices, ON_SERVERS, 0)
{
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

/* --- new sessions that can do less than those that are open --- */

/* Statements of an administrator while programs run; the login's name stands
 * between the two texts. */
static const struct {
    const char *begin, *end;
    unsigned databases;
    bool is_of_mariadb;
} lessened[] = {
    {"ALTER USER", "PASSWORD EXPIRE", ON_MYSQL, false},
    {"ALTER USER", "IDENTIFIED BY 'An0ther'", ON_MYSQL, false},
    {"ALTER USER", "ACCOUNT LOCK", ON_MYSQL, false},
    {"ALTER USER", "REQUIRE SUBJECT '/CN=nobody'", ON_MYSQL, false},
    {"SET DEFAULT ROLE NONE FOR", "", ON_MYSQL, true},
    {"ALTER ROLE", "PASSWORD 'An0ther'", ON_POSTGRES, false},
    {"ALTER ROLE", "NOLOGIN", ON_POSTGRES, false},
    {"ALTER ROLE", "VALID UNTIL '2000-01-01'", ON_POSTGRES, false},
    {"ALTER ROLE", "CONNECTION LIMIT 0", ON_POSTGRES, false},
    {"ALTER ROLE", "SET search_path = pg_catalog", ON_POSTGRES, false},
    {"ALTER ROLE", "SET default_transaction_read_only = on", ON_POSTGRES,
     false},
    {"ALTER ROLE", "SET role = pg_read_all_stats", ON_POSTGRES, false},
};

static bool is_mariadb(struct fixture *f)
{
    return f->database->bit == ON_MYSQL && !fixture_is_oracles(f);
}

/* Give the rights to the login: on MariaDB by a role, which a new session may
 * lack. */
static void grant_rights(struct login *login, struct fixture *f)
{
    static const char rights[] = "SELECT, INSERT, UPDATE, DELETE";
    const char *user = login->parts.user;

    if (!is_mariadb(f)) {
        login_grant(login, rights, f->table);
        if (f->database->bit == ON_POSTGRES)
            (void)sql_run(&login->admin, "GRANT pg_read_all_stats TO %s", user);
        return;
    }
    (void)sql_run(&login->admin, "CREATE ROLE %s_role", user);
    (void)sql_run(&login->admin, "GRANT %s ON %s TO %s_role", rights, f->table,
                  user);
    (void)sql_run(&login->admin, "GRANT %s_role TO %s", user, user);
    (void)sql_run(&login->admin, "SET DEFAULT ROLE %s_role FOR %s", user, user);
}

/* Wait for a lock that the other registry has. */
static void wait_in_vain(struct fixture *f, sqlock_registry *registry)
{
    sqlock_lock *theirs = nth_lock(f, f->a, 1);
    sqlock_lock *lock = nth_lock(f, registry, 1);

    assert_ok(sqlock_acquire(theirs, 0, NULL, &f->err));
    assert_fails(SQLOCK_ETIMEDOUT, sqlock_acquire(lock, 1500, NULL, &f->err));
    lock_give(theirs);
    assert_ok(sqlock_acquire(lock, 0, NULL, &f->err));
    lock_give(lock);
    lock_drop(lock);
    lock_drop(theirs);
}

static void be_lessened(struct fixture *f, const char *begin, const char *end)
{
    sqlock_options options = renewer_options(f);
    sqlock_registry *registry;
    struct told told = {0};
    struct login login;
    sqlock_lock *lock;

    /* A statement that takes too long on a busy machine ends its session, and
     * the login may get no other.  So statements have much time, and no poll is
     * under way when a wait ends. */
    options.statement_timeout_ms = 5000 * SLOWNESS;
    options.poll_ms = PATIENCE_MS;
    login_make(&login, f, "less");
    grant_rights(&login, f);
    registry = fixture_registry_at(f, login.url, &options);
    lock = nth_lock(f, registry, 0);
    take_renewed(lock, 10 * RENEWED_MS, &told);
    lock_give(lock);
    (void)sql_run(&login.admin, "%s %s %s", begin, login.parts.user, end);
    take_renewed(lock, 10 * RENEWED_MS, &told);
    await_renewals(lock, 4);
    wait_in_vain(f, registry);
    assert_int_equal(atomic_load(&told.times), 0);
    assert_ok(sqlock_release(lock, &f->err));
    lock_drop(lock);
    registry_end(registry);
    if (is_mariadb(f))
        (void)sql_run(&login.admin, "DROP ROLE %s_role", login.parts.user);
    login_drop(&login, f);
}

TEST_ON(test_a_lessened_login_loses_no_lease, ON_SERVERS, 0)
{
    for (size_t i = 0; i < sizeof lessened / sizeof *lessened; i++) {
        if ((lessened[i].databases & f->database->bit) == 0 ||
            (lessened[i].is_of_mariadb && !is_mariadb(f)))
            continue;
        check_row(lessened[i].end);
        be_lessened(f, lessened[i].begin, lessened[i].end);
    }
    check_row(NULL);
}

/* A lease that is no longer than leases might be when that was read last is
 * renewed, although it cannot be read again; but none is granted. */
TEST_ON(test_F57_renewals_need_no_row_of_the_server, ON_SERVERS, IN_SQLOCK)
{
    sqlock_registry *registry = renewer_registry(f);
    struct lk_grace *grace = &registry->store.grace;
    sqlock_lock *lock = lock_obtain(registry, f->name);
    int renewed;
    int longer;
    int taken;

    lock_take(lock, 0);
    (void)sql_run(&f->sql, "DELETE FROM %s_SERVER", f->table);
    atomic_store(&grace->allowed_at_ns, 1);
    renewed = sqlock_renew(lock, 0, &f->err);
    longer = sqlock_renew(lock, 700000, NULL);
    lock_give(lock);
    taken = sqlock_acquire(lock, 0, NULL, NULL);
    (void)sql_run(&f->sql,
                  "INSERT INTO %s_SERVER (SINCE, GRANTS_FROM) "
                  "VALUES ('2000-01-01', '2000-01-01')",
                  f->table);
    assert_code(0, renewed, &f->err);
    assert_int_equal(longer, SQLOCK_ESCHEMA);
    assert_int_equal(taken, SQLOCK_ESCHEMA);
    lock_drop(lock);
    registry_end(registry);
}

/* How long leases may be is read again after a minute. */
TEST_ON(test_F57_what_the_server_allows_counts_for_a_minute, ON_SERVERS,
        IN_SQLOCK)
{
    sqlock_registry *registry = renewer_registry(f);
    struct lk_grace *grace = &registry->store.grace;
    sqlock_lock *lock = lock_obtain(registry, f->name);
    static const struct {
        int64_t ago_ms;
        int64_t longest_ms;
    } looks[] = {{30000, 5}, {61000, 20000}};

    lock_take(lock, 20000);
    lock_give(lock);
    for (size_t i = 0; i < 2; i++) {
        (void)sql_run(&f->sql,
                      "UPDATE %s_SERVER SET LONGEST_MS = 5, ALLOWED_MS = 5",
                      f->table);
        atomic_store(&grace->allowed_at_ns,
                     lk_boottime_ns() - looks[i].ago_ms * LK_NS_PER_MS);
        lock_take(lock, 20000);
        lock_give(lock);
        assert_int_equal(
            sql_integer(&f->sql, "SELECT LONGEST_MS FROM %s_SERVER", f->table),
            looks[i].longest_ms);
    }
    lock_drop(lock);
    registry_end(registry);
}

/* Leases that are longer than leases may be now are renewed for what they may,
 * also where the row that says so is locked; and a claim that cannot raise it
 * does not say that another owner has the lock. */
TEST_ON(test_F57_a_locked_row_of_the_server_shortens_leases, ON_SERVERS,
        IN_SQLOCK)
{
    sqlock_registry *registry = renewer_registry(f);
    struct lk_grace *grace = &registry->store.grace;
    sqlock_acquire_options longer = told_options(600000, NULL);
    sqlock_lock *locks[2];
    sqlock_lock *third = nth_lock(f, registry, 2);
    struct told told = {0};
    struct sql sql;

    for (size_t i = 0; i < 2; i++) {
        locks[i] = nth_lock(f, registry, i);
        take_renewed(locks[i], 40000, &told);
    }
    (void)sql_run(&f->sql,
                  "UPDATE %s_SERVER SET LONGEST_MS = 15000, ALLOWED_MS = 15000",
                  f->table);
    fixture_lock_row(f, &sql, NULL);
    (void)sql_run(&sql, "SELECT 1 FROM %s_SERVER FOR UPDATE", f->table);
    atomic_store(&grace->allowed_at_ns, 1);
    for (size_t i = 0; i < 2; i++)
        assert_becomes_true(sqlock_remaining_ms(locks[i]) <= 15000,
                            PATIENCE_MS);
    for (size_t i = 0; i < 2; i++)
        await_renewals(locks[i], 2);
    assert_int_equal(atomic_load(&told.times), 0);
    assert_fails(SQLOCK_ETIMEDOUT, sqlock_acquire(third, 0, &longer, &f->err));
    fixture_unlock_row(&sql);
    assert_ok(sqlock_acquire(third, 0, &longer, &f->err));
    lock_end(third);
    for (size_t i = 0; i < 2; i++)
        lock_end(locks[i]);
    registry_end(registry);
}
