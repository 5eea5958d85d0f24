/*
 * peer_ttl.c - on the layout of Spring 6, registries with different peer_ttl_ms
 * agree about when a lease of sqlock ends: as its holder asked for
 */
#include "conformance.h"

#include <string.h>

#include "sqlock/admin.h"
#include "sqlock/lease.h"
#include "sqlock/many.h"

#define LONG_PEER_MS 60000
#define SHORT_PEER_MS 200

static sqlock_registry *with_peer_ttl(struct fixture *f, uint32_t peer_ttl_ms)
{
    sqlock_options options = fixture_options(f);

    options.peer_ttl_ms = peer_ttl_ms;
    return fixture_registry(f, &options);
}

/* By the shorter setting, each lease here is over already. */
static void check_held(struct fixture *f, sqlock_registry *other)
{
    sqlock_lock *lock = lock_obtain(other, f->name);
    sqlock_lock *locks[2] = {lock, lock_obtain(other, "peer-ttl-free")};
    sqlock_info *info;

    assert_busy(lock);
    assert_fails(SQLOCK_EBUSY,
                 sqlock_acquire_many(locks, 2, 0, NULL, NULL, &f->err));
    assert_ok(sqlock_show(other, f->name, &info, &f->err));
    assert_int_equal(info->state, SQLOCK_HELD);
    sqlock_info_free(info, 1);
    lock_drop(locks[1]);
    lock_drop(lock);
}

static void test_a_shorter_peer_ttl_takes_no_live_lease(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *longer = with_peer_ttl(f, LONG_PEER_MS);
    sqlock_registry *shorter = with_peer_ttl(f, SHORT_PEER_MS);
    sqlock_lock *lock = lock_obtain(longer, f->name);
    char id[SQLOCK_LEASE_ID_SIZE];

    lock_take(lock, LONG_PEER_MS);
    check_sleep(2 * SHORT_PEER_MS);
    check_held(f, shorter);
    lock_renew(lock, LONG_PEER_MS / 2);
    check_held(f, shorter);
    /* Renewed by its id in another process, with another setting. */
    assert_ok(sqlock_lease_id(id, lock, LONG_PEER_MS, &f->err));
    assert_ok(sqlock_lease_renew(shorter, id, 0, NULL, &f->err));
    check_sleep(2 * SHORT_PEER_MS);
    check_held(f, shorter);
    lock_renew(lock, 0);
    lock_end(lock);
    registry_end(shorter);
    registry_end(longer);
}

static void test_a_longer_peer_ttl_waits_for_no_dead_lease(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *longer = with_peer_ttl(f, LONG_PEER_MS);
    sqlock_registry *shorter = with_peer_ttl(f, SHORT_PEER_MS);
    sqlock_lock *dead = lock_obtain(shorter, f->name);
    sqlock_lock *next = lock_obtain(longer, f->name);

    lock_take(dead, SHORT_PEER_MS);
    check_sleep(2 * SHORT_PEER_MS);
    lock_take(next, 0);
    lock_end(next);
    assert_fails(SQLOCK_ELOST, sqlock_release(dead, &f->err));
    lock_drop(dead);
    registry_end(shorter);
    registry_end(longer);
}

/* A renewal by its id keeps the setting of the holder. */
static void test_a_renewal_elsewhere_shortens_no_lease(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *longer = with_peer_ttl(f, LONG_PEER_MS);
    sqlock_registry *shorter = with_peer_ttl(f, SHORT_PEER_MS);
    sqlock_lock *lock = lock_obtain(shorter, f->name);
    char id[SQLOCK_LEASE_ID_SIZE];

    lock_take(lock, LONG_PEER_MS);
    assert_ok(sqlock_lease_id(id, lock, LONG_PEER_MS, &f->err));
    assert_ok(sqlock_lease_renew(longer, id, 0, NULL, &f->err));
    check_sleep(2 * SHORT_PEER_MS);
    check_held(f, longer);
    lock_end(lock);
    registry_end(shorter);
    registry_end(longer);
}

/* Nobody gets the lock of a broken holder before its lease would have ended. */
static void test_a_broken_lease_ends_when_its_holder_believes(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *longer = with_peer_ttl(f, LONG_PEER_MS);
    sqlock_registry *shorter = with_peer_ttl(f, SHORT_PEER_MS);
    sqlock_lock *lock = lock_obtain(longer, f->name);
    char client_id[SQLOCK_KEY_SIZE];
    sqlock_break_options expected = SQLOCK_BREAK_INIT;

    lock_take(lock, LONG_PEER_MS);
    check_sleep(2 * SHORT_PEER_MS);
    sqlock_client_id(lock, client_id);
    expected.client_id = client_id;
    assert_ok(sqlock_break(shorter, f->name, &expected, &f->err));
    check_held(f, shorter);
    assert_fails(SQLOCK_ELOST, sqlock_release(lock, &f->err));
    lock_drop(lock);
    registry_end(shorter);
    registry_end(longer);
}

static const struct test tests[] = {
    TEST_ON(test_a_shorter_peer_ttl_takes_no_live_lease, ON_ALL, IN_SPRING6),
    TEST_ON(test_a_longer_peer_ttl_waits_for_no_dead_lease, ON_ALL, IN_SPRING6),
    TEST_ON(test_a_renewal_elsewhere_shortens_no_lease, ON_ALL, IN_SPRING6),
    TEST_ON(test_a_broken_lease_ends_when_its_holder_believes, ON_ALL,
            IN_SPRING6),
};
const struct topic topic_peer_ttl = TOPIC(tests);
