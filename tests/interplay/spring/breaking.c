/*
 * breaking.c - `sqlock break` ends the lease of a service, by its client id
 */

#include "spring.h"

struct broken {
    struct service *service;
    sqlock_registry *registry;
    sqlock_lock *lock;
    char client[SQLOCK_KEY_SIZE];
};

static void begin(struct fixture *f, struct broken *broken, unsigned number,
                  uint32_t ttl_ms)
{
    fixture_next(f);
    broken->service = stage_service(f, number);
    broken->registry = stage_registry(f, ttl_ms);
    broken->lock = lock_obtain(broken->registry, f->name);
    stage_open_peer(broken->service, f, "broken", ttl_ms, broken->client);
    service_expect("true", broken->service, "broken", "try broken %s 0",
                   f->name);
}

static void end(struct broken *broken)
{
    service_expect("ok", broken->service, "broken", "close broken");
    registry_end(broken->registry);
}

/* Check that the service cannot renew its lease, and that unlocking reports the
 * loss, except in Spring 5, which says nothing of it. */
static void check_it_is_lost(const struct fixture *f, struct broken *broken)
{
    bool tells = broken->service->version[0] != '5';

    service_expect("lost", broken->service, "broken", "renew broken %s",
                   f->name);
    service_expect(tells ? "lost" : "ok", broken->service, "broken",
                   "unlock broken %s", f->name);
}

static void break_it(struct fixture *f, const char *client, const char *how,
                     int expected)
{
    char out[1024];
    int status = stage_command(f, out, sizeof out,
                               "break '%s' --client-id %s --reason test %s",
                               f->name, client, how);

    if (status != expected)
        fail_msg("break gave %d: %s", status, out);
}

TEST(test_a_broken_service_has_lost_at_once)
{
    for (unsigned i = 0; i < CONTEST_SERVICES; i++) {
        struct broken broken;

        begin(f, &broken, i, STAYING_TTL_MS);
        break_it(f, "eeeeeeee-eeee-4eee-8eee-eeeeeeeeeeee", "--now", 1);
        service_expect("ok", broken.service, "broken", "renew broken %s",
                       f->name);
        break_it(f, broken.client, "--now", 0);
        lock_take(broken.lock, 0);
        check_it_is_lost(f, &broken);
        assert_ok(sqlock_renew(broken.lock, 0, &f->err));
        lock_give(broken.lock);
        end(&broken);
    }
}

/* Without --now the service may rely on its lease until the lease is over:
 * nobody gets the lock before. */
TEST(test_a_broken_lease_is_waited_for)
{
    for (unsigned i = 0; i < CONTEST_SERVICES; i++) {
        struct broken broken;
        int64_t expires_us;

        begin(f, &broken, i, PASSING_TTL_MS);
        expires_us = stage_expiry_us(f, PASSING_TTL_MS);
        break_it(f, broken.client, "", 0);
        assert_ok(lock_try(broken.lock, JVM_WAIT_MS, 0, &f->err));
        assert_less(expires_us, sql_now_us(&f->sql));
        check_it_is_lost(f, &broken);
        lock_give(broken.lock);
        end(&broken);
    }
}
