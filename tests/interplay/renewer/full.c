/*
 * full.c - new connections are refused while leases are held: the server is
 * full, the login has a limit or another password, or nothing comes through.
 * The connections that are open suffice.
 */
#include "renewer.h"

#include <string.h>

#include "sqlock/many.h"
#include "sqlock/tx.h"
#include "support/login.h"
#include "support/tap.h"

/* A tap_before_fn: refuse each new connection with the code *context, and
 * break the one that is used next if `breaks` is set. */
struct refusing {
    int code;
    atomic_int breaks;
};

static int refuse_to_open(void *context, const struct tap_event *event)
{
    struct refusing *refusing = context;

    if (event->call == TAP_OPEN)
        return refusing->code;
    if (event->call == TAP_EXECUTE &&
        atomic_exchange(&refusing->breaks, 0) != 0)
        return SQLOCK_EUNREACHABLE;
    return 0;
}

/* The renewer has had no connection of its own yet. */
static void check_renewals(struct fixture *f, int code)
{
    struct refusing refusing = {.code = code};
    struct told told = {0};
    sqlock_registry *registry = renewer_tapped(f);
    sqlock_lock *lock = nth_lock(f, registry, 0);

    lock_take_and_give(lock); /* opens a connection */
    tap_hooks(refuse_to_open, NULL, &refusing);
    take_renewed(lock, RENEWED_MS, &told);
    for (int i = 0; i < 4; i++)
        renew_now(lock);
    lock_renew(lock, 0);
    assert_int_equal(atomic_load(&told.times), 0);
    lock_end(lock);
    tap_hooks(NULL, NULL, NULL);
    registry_end(registry);
}

static void test_no_new_connection_is_needed_to_renew(void **state)
{
    static const int codes[] = {SQLOCK_ERESOURCE, SQLOCK_EACCESS,
                                SQLOCK_EUNREACHABLE};

    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        check_row(i == 0 ? "full" : i == 1 ? "refused" : "unreachable");
        check_renewals(*state, codes[i]);
        fixture_next(*state);
    }
    check_row(NULL);
}

/* The connection of the acquire breaks, and no other can be opened: the one of
 * the renewer is used for the release. */
static void test_no_new_connection_is_needed_to_release(void **state)
{
    struct refusing refusing = {.code = SQLOCK_ERESOURCE};
    struct fixture *f = *state;
    struct told told = {0};
    sqlock_registry *registry = renewer_tapped(f);
    sqlock_lock *lock = nth_lock(f, registry, 0);
    sqlock_lock *other = nth_lock(f, f->b, 0);

    take_renewed(lock, RENEWED_MS, &told);
    renew_now(lock);
    tap_hooks(refuse_to_open, NULL, &refusing);
    atomic_store(&refusing.breaks, 1);
    lock_renew(lock, 0);
    assert_int_equal(atomic_load(&refusing.breaks), 0);
    lock_give(lock);
    lock_take_and_give(other);
    lock_take_and_give(lock);
    tap_hooks(NULL, NULL, NULL);
    assert_int_equal(atomic_load(&told.times), 0);
    lock_drop(other);
    lock_drop(lock);
    registry_end(registry);
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
    for (int i = 0; i < 3; i++)
        renew_now(locks[0]);
    assert_ok(sqlock_acquire_many(locks + 1, 2, 0, NULL, NULL, &f->err));
    assert_ok(sqlock_renew_many(locks, 3, NULL, &f->err));
    assert_ok(sqlock_tx_begin(&tx, registry, &f->err));
    assert_ok(sqlock_tx_guard(tx, locks[0], &f->err));
    assert_ok(sqlock_tx_commit(tx, &f->err));
    renew_now(locks[0]);
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
    TEST(test_no_new_connection_is_needed_to_renew),
    TEST_ON(test_no_new_connection_is_needed_to_release, ON_SERVERS, 0),
    TEST_ON(test_a_login_with_one_connection_suffices, ON_SERVERS, 0),
};
const struct topic topic_full = TOPIC(tests);
