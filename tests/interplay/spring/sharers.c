/*
 * sharers.c - a Spring service beside those who share a lock on one table
 */
#include "spring.h"

#include "sqlock/shared.h"

static int share(sqlock_lock *lock, uint32_t permits, int64_t wait_ms,
                 sqlock_error *err)
{
    sqlock_acquire_options how = SQLOCK_ACQUIRE_INIT;

    how.mode = SQLOCK_SHARED;
    how.permits = permits;
    return sqlock_acquire(lock, wait_ms, &how, err);
}

static void service_tries(const char *expected, struct service *service,
                          const struct fixture *f)
{
    service_expect(expected, service, "share", "try share %s 0", f->name);
}

/* Readers, or holders of one of five permits, of two processes of ours. */
static void check_sharers(struct fixture *f, unsigned number, uint32_t permits)
{
    struct service *service = stage_service(f, number);
    sqlock_registry *ours[2];
    sqlock_lock *locks[2];

    stage_open_peer(service, f, "share", STAYING_TTL_MS, NULL);
    for (unsigned i = 0; i < 2; i++) {
        ours[i] = stage_registry(f, STAYING_TTL_MS);
        locks[i] = lock_obtain(ours[i], f->name);
        assert_ok(share(locks[i], permits, 0, &f->err));
    }
    service_tries("false", service, f);
    lock_give(locks[0]);
    service_tries("false", service, f);
    assert_ok(share(locks[0], permits, 0, &f->err));
    lock_give(locks[1]);
    service_tries("false", service, f);
    lock_give(locks[0]);
    service_tries("true", service, f);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(share(locks[i], permits, 0, &f->err), SQLOCK_EBUSY);
    service_expect("ok", service, "share", "renew share %s", f->name);
    service_expect("ok", service, "share", "unlock share %s", f->name);
    for (unsigned i = 0; i < 2; i++)
        assert_ok(share(locks[i], permits, JVM_WAIT_MS, &f->err));
    service_tries("false", service, f);
    for (unsigned i = 0; i < 2; i++) {
        lock_give(locks[i]);
        registry_end(ours[i]);
    }
    service_expect("ok", service, "share", "close share");
}

static void check_readers(struct fixture *f, unsigned number)
{
    check_sharers(f, number, 0);
}

static void check_permits(struct fixture *f, unsigned number)
{
    check_sharers(f, number, 5);
}

TEST_ON(test_a_service_waits_for_the_last_reader, ON_ALL, IN_SQLOCK)
{
    stage_each_service(f, check_readers);
}

TEST_ON(test_a_service_waits_for_the_last_permit, ON_ALL, IN_SQLOCK)
{
    stage_each_service(f, check_permits);
}

static void check_the_dead(struct fixture *f, unsigned number)
{
    struct service *service = stage_service(f, number);
    sqlock_registry *ours = stage_registry(f, PASSING_TTL_MS);
    sqlock_lock *lock = lock_obtain(ours, f->name);
    struct answer answer;
    int64_t over_us;

    stage_open_peer(service, f, "share", PASSING_TTL_MS, NULL);
    assert_ok(share(lock, 0, 0, &f->err));
    over_us = stage_expiry_us(f, PASSING_TTL_MS);
    service_tell(service, "share", "try share %s %d", f->name, JVM_WAIT_MS);
    check_sleep(PASSING_TTL_MS / 4);
    assert_true(sqlock_is_held(lock));
    service_hear(service, "share", &answer);
    assert_string_equal(answer.text, "true");
    assert_less(over_us, sql_now_us(&f->sql));
    assert_int_not_equal(sqlock_release(lock, &f->err), 0);
    service_expect("ok", service, "share", "unlock share %s", f->name);
    service_expect("ok", service, "share", "close share");
    registry_end(ours);
}

TEST_ON(test_a_service_comes_after_a_reader_that_died, ON_ALL, IN_SQLOCK)
{
    stage_each_service(f, check_the_dead);
}
