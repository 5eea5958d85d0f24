/*
 * renewal.c - a holder that renews keeps the other side out for longer than one
 * TTL
 *
 * On a busy machine a renewal may come too late.  Then the other side gets the
 * lock, but not before the lease is over, and the test is repeated with a
 * longer TTL.
 */
#include <string.h>

#include "spring.h"

#define ATTEMPTS 4

struct renewal {
    struct fixture *fixture;
    struct service *services[CONTEST_SERVICES];
    sqlock_registry *registry;
    sqlock_lock *lock;
    uint32_t ttl_ms;
};

static void begin(struct renewal *renewal, struct fixture *f, unsigned attempt)
{
    sqlock_options options;

    fixture_next(f);
    renewal->fixture = f;
    renewal->ttl_ms = PASSING_TTL_MS << attempt;
    options = stage_options(f, renewal->ttl_ms);
    options.statement_timeout_ms = renewal->ttl_ms / 2;
    renewal->registry = fixture_registry(f, &options);
    renewal->lock = lock_obtain(renewal->registry, f->name);
    for (unsigned i = 0; i < CONTEST_SERVICES; i++) {
        renewal->services[i] = stage_service(f, i);
        stage_open_peer(renewal->services[i], f, "renew", renewal->ttl_ms,
                        NULL);
    }
}

static void end(struct renewal *renewal)
{
    for (unsigned i = 0; i < CONTEST_SERVICES; i++)
        service_expect("ok", renewal->services[i], "renew", "close renew");
    registry_end(renewal->registry);
}

/* Return for how long the holder renews: for more than two TTLs. */
static int64_t renewed_ms(const struct renewal *renewal)
{
    return INT64_C(5) * renewal->ttl_ms / 2;
}

/* --- the service renews --- */

/* Let the service hold the lock and renew its lease.  Return whether we were
 * kept out; if not, check that the lease was over. */
static bool keeps_us_out(struct renewal *renewal, struct service *service)
{
    int64_t over = check_deadline_ns(renewed_ms(renewal));
    struct fixture *f = renewal->fixture;
    int64_t expires_us;
    int rc;

    service_expect("true", service, "renew", "try renew %s %d", f->name,
                   JVM_WAIT_MS);
    do {
        check_sleep(500);
        expires_us = stage_expiry_us(f, renewal->ttl_ms);
        rc = lock_try(renewal->lock, 0, 0, &f->err);
        if (rc == 0) {
            assert_less(expires_us, sql_now_us(&f->sql));
            lock_give(renewal->lock);
            return false;
        }
        assert_code(SQLOCK_EBUSY, rc, &f->err);
        service_expect("ok", service, "renew", "renew renew %s", f->name);
    } while (check_pause(over));
    service_expect("ok", service, "renew", "unlock renew %s", f->name);
    lock_take(renewal->lock, 0);
    lock_give(renewal->lock);
    return true;
}

TEST(test_a_service_that_renews_keeps_us_out)
{
    for (unsigned i = 0; i < CONTEST_SERVICES; i++) {
        bool is_kept_out = false;

        for (unsigned k = 0; k < ATTEMPTS && !is_kept_out; k++) {
            struct renewal renewal;

            begin(&renewal, f, k);
            is_kept_out = keeps_us_out(&renewal, renewal.services[i]);
            end(&renewal);
        }
        assert_true(is_kept_out);
    }
}

/* --- we renew --- */

/* Let every service wait for more than two TTLs; return whether none of them
 * got the lock. */
static bool are_kept_out(struct renewal *renewal)
{
    const struct fixture *f = renewal->fixture;
    bool is_kept_out = true;

    for (unsigned i = 0; i < CONTEST_SERVICES; i++)
        service_tell(renewal->services[i], "renew", "try renew %s %lld",
                     f->name, (long long)renewed_ms(renewal));
    for (unsigned i = 0; i < CONTEST_SERVICES; i++) {
        struct answer answer;

        service_hear(renewal->services[i], "renew", &answer);
        if (strcmp(answer.text, "true") != 0) {
            assert_string_equal(answer.text, "false");
            continue;
        }
        assert_false(sqlock_is_held(renewal->lock));
        is_kept_out = false;
    }
    return is_kept_out;
}

/* Check that each service gets the lock when we have released it. */
static void check_they_are_let_in(struct renewal *renewal)
{
    const char *name = renewal->fixture->name;

    for (unsigned i = 0; i < CONTEST_SERVICES; i++) {
        service_expect("true", renewal->services[i], "renew", "try renew %s %d",
                       name, JVM_WAIT_MS);
        service_expect("ok", renewal->services[i], "renew", "unlock renew %s",
                       name);
    }
}

static bool keep_them_out(struct renewal *renewal)
{
    sqlock_acquire_options keep = SQLOCK_ACQUIRE_INIT;
    sqlock_error *err = &renewal->fixture->err;

    keep.auto_renew = true;
    assert_lock_ok(sqlock_acquire(renewal->lock, 0, &keep, err), err);
    if (!are_kept_out(renewal)) {
        assert_code_of(SQLOCK_ELOST, SQLOCK_EEXPIRED,
                       sqlock_release(renewal->lock, err), err);
        return false;
    }
    assert_true(sqlock_is_held(renewal->lock));
    lock_give(renewal->lock);
    check_they_are_let_in(renewal);
    return true;
}

TEST(test_we_renew_and_keep_services_out)
{
    bool is_kept_out = false;

    for (unsigned k = 0; k < ATTEMPTS && !is_kept_out; k++) {
        struct renewal renewal;

        begin(&renewal, f, k);
        is_kept_out = keep_them_out(&renewal);
        end(&renewal);
    }
    assert_true(is_kept_out);
}
