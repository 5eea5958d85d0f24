/*
 * upgrade.c - a table of Spring's layout becomes one of ours while locks are
 * held and taken
 *
 * These are the last tests of a layout: after them the table has another one.
 */
#include <stdio.h>
#include <stdlib.h>

#include "spring.h"

static void upgrade(struct fixture *f, uint32_t ttl_ms)
{
    char command[256];

    (void)setenv("SQLOCK_URL", f->url, 1);
    (void)snprintf(command, sizeof command,
                   "bash tests/tools/support/upgrade.sh %s %s %s %u",
                   f->database->name, layout_name(f->layout), f->prefix,
                   ttl_ms);
    assert_int_equal(system(command), 0); /* NOLINT: of our own making */
}

/* Return the fixture's lock name with "/held" behind it, in a static buffer. */
static const char *held_name(const struct fixture *f)
{
    static char name[96];

    (void)snprintf(name, sizeof name, "%s/held", f->name);
    return name;
}

static void check_tokens_are_kept(struct fixture *f, sqlock_lock *lock)
{
    lock_take(lock, 0);
    assert_int_equal(
        sql_integer(&f->sql, "SELECT MAX(FENCE) FROM %s", f->table),
        sqlock_token(lock));
    lock_give(lock);
}

/* Before the upgrade a service and we hold a lock each. */
struct before {
    struct service *service;
    sqlock_registry *registry;
    sqlock_lock *ours;
};

static void begin(struct before *before, struct fixture *f, unsigned number)
{
    before->registry = stage_registry(f, STAYING_TTL_MS);
    before->ours = lock_obtain(before->registry, "ours");
    before->service = stage_service(f, number);
    stage_open_peer(before->service, f, "held", STAYING_TTL_MS, NULL);
    service_expect("true", before->service, "held", "try held %s 0",
                   held_name(f));
    lock_take(before->ours, 0);
}

static void check_both_are_held(struct fixture *f, sqlock_registry *after)
{
    assert_fails(SQLOCK_EBUSY,
                 lock_try(lock_obtain(after, held_name(f)), 0, 0, &f->err));
    assert_fails(SQLOCK_EBUSY,
                 lock_try(lock_obtain(after, "ours"), 0, 0, &f->err));
}

static void end(struct before *before, sqlock_registry *after)
{
    service_expect("ok", before->service, "held", "close held");
    registry_end(before->registry);
    registry_end(after);
}

/* Spring 7 and we go on through the upgrade: those that had the table open
 * before, and a registry that opens it afterwards. */
TEST_ON(test_spring_7_goes_on_through_the_upgrade, ON_SERVERS, IN_SPRING7)
{
    sqlock_registry *after;
    struct contest contest;
    struct before before;

    begin(&before, f, 0);
    contest_start(&contest, f, before.service, stage_service(f, 1), 1000000,
                  &contest_pace);
    check_sleep(1000);
    upgrade(f, STAYING_TTL_MS);
    after = stage_registry(f, STAYING_TTL_MS);
    for (unsigned i = 0; i < 10; i++)
        contest_visit(&contest, lock_obtain(after, f->name));
    contest_end(&contest, true);
    check_both_are_held(f, after);
    service_expect("ok", before.service, "held", "renew held %s", held_name(f));
    service_expect("ok", before.service, "held", "unlock held %s",
                   held_name(f));
    assert_ok(sqlock_renew(before.ours, 0, &f->err));
    lock_give(before.ours);
    check_tokens_are_kept(f, lock_obtain(after, "ours"));
    end(&before, after);
}

/* Check that a service of Spring 6 that goes on can unlock, and nothing
 * else. */
static void check_spring_6_is_refused(struct fixture *f, struct service *old)
{
    struct answer answer;

    service_tell(old, "held", "renew held %s", held_name(f));
    service_hear(old, "held", &answer);
    assert_string_not_equal(answer.text, "ok");
    service_tell(old, "held", "try held %s/new 0", f->name);
    service_hear(old, "held", &answer);
    assert_string_not_equal(answer.text, "true");
    service_expect("ok", old, "held", "unlock held %s", held_name(f));
}

static void check_spring_7_may_share_it(struct fixture *f, sqlock_lock *lock)
{
    const struct service_kind kind = {.line = "spring7"};
    struct service service;

    service_start(&service, f, &kind);
    stage_open_peer(&service, f, "new", STAYING_TTL_MS, NULL);
    lock_take(lock, 0);
    service_expect("false", &service, "new", "try new %s 0", f->name);
    lock_give(lock);
    service_expect("true", &service, "new", "try new %s %d", f->name,
                   JVM_WAIT_MS);
    assert_fails(SQLOCK_EBUSY, lock_try(lock, 0, 0, &f->err));
    service_expect("ok", &service, "new", "unlock new %s", f->name);
    service_expect("ok", &service, "new", "close new");
    service_end(&service);
}

TEST_ON(test_spring_6_is_kept_out_after_the_upgrade, ON_SERVERS, IN_SPRING6)
{
    struct before before;
    sqlock_registry *after;
    sqlock_lock *lock;

    begin(&before, f, 1);
    upgrade(f, STAYING_TTL_MS);
    after = stage_registry(f, STAYING_TTL_MS);
    check_both_are_held(f, after);
    check_spring_6_is_refused(f, before.service);
    lock = lock_obtain(after, held_name(f));
    lock_take(lock, 0);
    lock_give(lock);
    assert_true(lock_try(lock_obtain(before.registry, f->name), 0, 0, &f->err) <
                0);
    lock_give(before.ours);
    check_spring_7_may_share_it(f, lock_obtain(after, f->name));
    end(&before, after);
}
