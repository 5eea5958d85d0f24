/*
 * upkeep.c - rows that a service or we remove, and rows that stay
 */
#include <stdio.h>

#include "spring.h"

#define DEAD 3
#define DEAD_CLIENT "dddddddd-dddd-4ddd-8ddd-dddddddddddd"

/* Insert rows of holders that died long ago. */
static void leave_dead_rows(struct fixture *f)
{
    int64_t ended_us = INT64_C(-1000) * STAYING_TTL_MS;

    for (unsigned i = 0; i < DEAD; i++) {
        char key[SQLOCK_KEY_SIZE];
        char name[96];

        (void)snprintf(name, sizeof name, "%s/dead/%u", f->name, i);
        assert_ok(sqlock_key_of(key, name, SQLOCK_KEY_CURRENT, &f->err));
        fixture_put_row(f, key, "DEFAULT", DEAD_CLIENT, 3 * ended_us,
                        2 * ended_us);
    }
}

static int64_t count_dead_rows(struct fixture *f)
{
    return sql_integer(&f->sql,
                       "SELECT COUNT(*) FROM %s WHERE CLIENT_ID = '%s'",
                       f->table, DEAD_CLIENT);
}

struct upkeep {
    struct service *service;
    sqlock_registry *registry;
    sqlock_lock *lock; /* held by us; the service holds the test's name */
    char ours[96];
};

static void begin(struct fixture *f, struct upkeep *upkeep, unsigned number)
{
    upkeep->service = stage_service(f, number);
    upkeep->registry = stage_registry(f, STAYING_TTL_MS);
    fixture_next(f);
    (void)snprintf(upkeep->ours, sizeof upkeep->ours, "%s/ours", f->name);
    upkeep->lock = lock_obtain(upkeep->registry, upkeep->ours);
    stage_open_peer(upkeep->service, f, "keep", STAYING_TTL_MS, NULL);
    service_expect("true", upkeep->service, "keep", "try keep %s 0", f->name);
    lock_take(upkeep->lock, 0);
}

/* Check that both locks are still held: the test's name by the service, the
 * other one by us. */
static void check_holders(struct fixture *f, struct upkeep *upkeep)
{
    sqlock_lock *theirs = lock_obtain(upkeep->registry, f->name);

    service_expect("ok", upkeep->service, "keep", "renew keep %s", f->name);
    service_expect("false", upkeep->service, "other", "try keep %s 0",
                   upkeep->ours);
    assert_ok(sqlock_renew(upkeep->lock, 0, &f->err));
    assert_fails(SQLOCK_EBUSY, lock_try(theirs, 0, 0, &f->err));
    lock_drop(theirs);
}

static void end(struct fixture *f, struct upkeep *upkeep)
{
    service_expect("ok", upkeep->service, "keep", "unlock keep %s", f->name);
    service_expect("ok", upkeep->service, "keep", "close keep");
    lock_give(upkeep->lock);
    registry_end(upkeep->registry);
}

static void check_expire(struct fixture *f, unsigned number)
{
    struct upkeep upkeep;
    sqlock_lock *freed;
    int64_t token;

    begin(f, &upkeep, number);
    freed = lock_obtain(upkeep.registry, "freed");
    lock_take(freed, 0);
    token = sqlock_token(freed);
    lock_give(freed);
    leave_dead_rows(f);
    service_expect("ok", upkeep.service, "keep", "expire keep");
    assert_int_equal(count_dead_rows(f), 0);
    check_holders(f, &upkeep);
    /* the row that kept the token may be deleted, too */
    lock_take(freed, 0);
    assert_less(token, sqlock_token(freed));
    lock_give(freed);
    end(f, &upkeep);
}

TEST(test_a_service_expires_rows_and_no_lease_of_ours)
{
    stage_each_service(f, check_expire);
}

static void check_reap(struct fixture *f, unsigned number)
{
    struct upkeep upkeep;
    char out[1024];

    begin(f, &upkeep, number);
    leave_dead_rows(f);
    if (stage_command(f, out, sizeof out, "--peer-ttl %ds reap --older-than 1s",
                      STAYING_TTL_MS / 1000) != 0)
        fail_msg("%s", out);
    assert_int_equal(count_dead_rows(f), 0);
    check_holders(f, &upkeep);
    end(f, &upkeep);
}

TEST(test_we_reap_rows_and_no_lease_of_a_service)
{
    stage_each_service(f, check_reap);
}

/* A service's registry forgets locks that were not used for a while, and
 * deletes no row. */
TEST(test_a_service_forgets_unused_locks)
{
    struct upkeep upkeep;

    for (unsigned i = 0; i < CONTEST_SERVICES; i++) {
        begin(f, &upkeep, i);
        service_expect("ok", upkeep.service, "keep", "forget keep -10000");
        check_holders(f, &upkeep);
        end(f, &upkeep);
    }
}

/* A service that closes its Spring context deletes the rows that its client
 * holds. */
TEST(test_a_service_that_closes_frees_its_own_locks)
{
    for (unsigned i = 0; i < CONTEST_SERVICES; i++) {
        struct upkeep upkeep;
        sqlock_lock *theirs;

        begin(f, &upkeep, i);
        theirs = lock_obtain(upkeep.registry, f->name);
        service_expect("ok", upkeep.service, "keep", "close keep");
        lock_take(theirs, 0);
        assert_ok(sqlock_renew(upkeep.lock, 0, &f->err));
        lock_give(theirs);
        lock_give(upkeep.lock);
        registry_end(upkeep.registry);
    }
}
