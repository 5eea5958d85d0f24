/*
 * clocks.c - services whose clock or time zone is off
 *
 * Spring judges leases by the clock of its own machine.  Here libfaketime gives
 * a JVM another clock, and changes nothing else of it.
 */
#include <stdlib.h>

#include "spring.h"
#include "support/workers.h"

/* Start a service of the newest Spring that may share the layout, with that
 * clock and time zone (struct service_kind). */
static void start_off(struct service *service, const struct fixture *f,
                      const char *clock, const char *zone)
{
    struct service_kind kind = *stage_kind(f, 1);

    kind.clock = clock;
    kind.zone = zone;
    service_start(service, f, &kind);
}

static void need_clocks(void)
{
    if (getenv("SQLOCK_TEST_SPRING_FAKETIME") == NULL)
        skip_or_fail("libfaketime is not installed");
}

/* Check that the service's clock is behind the database's by at least -off_ms,
 * less 2 s of tolerance. */
static void check_clock(struct service *service, struct fixture *f,
                        int64_t off_ms)
{
    struct answer answer;
    int64_t now_ms;

    service_tell(service, "clock", "clock");
    service_hear(service, "clock", &answer);
    now_ms = sql_now_us(&f->sql) / 1000;
    assert_less(strtoll(answer.text, NULL, 10) - now_ms, off_ms + 2000);
}

TEST(test_services_5_s_off_take_turns)
{
    struct service behind;
    struct service ahead;
    struct contest contest;

    need_clocks();
    start_off(&behind, f, "-5s", NULL);
    start_off(&ahead, f, "+5s", NULL);
    check_clock(&behind, f, -5000);
    contest_start(&contest, f, &behind, &ahead, check_scale(15, 500),
                  &contest_pace);
    contest_end(&contest, false);
    service_end(&behind);
    service_end(&ahead);
}

/* A service whose clock is 5 s behind gets the lock at once when we have
 * released it, not 5 s later. */
TEST(test_a_release_is_seen_5_s_behind)
{
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    struct service service;

    need_clocks();
    start_off(&service, f, "-5s", NULL);
    stage_open_peer(&service, f, "behind", STAYING_TTL_MS, NULL);
    lock_take(lock, 0);
    service_expect("false", &service, "behind", "try behind %s 0", f->name);
    lock_give(lock);
    service_expect("true", &service, "behind", "try behind %s 0", f->name);
    service_expect("ok", &service, "behind", "unlock behind %s", f->name);
    service_expect("ok", &service, "behind", "close behind");
    service_end(&service);
    lock_drop(lock);
}

/* --- 8 h ahead: leases last for 8 h --- */

/* Check that `break` ends a lease that ends hours too late. */
static void check_it_can_be_broken(struct fixture *f, const char *client)
{
    sqlock_registry *registry = stage_registry(f, STAYING_TTL_MS);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    char out[8192];

    assert_fails(SQLOCK_EBUSY, lock_try(lock, 0, 0, &f->err));
    if (stage_command(f, out, sizeof out,
                      "break '%s' --client-id %s --reason ahead --now", f->name,
                      client) != 0)
        fail_msg("%s", out);
    lock_take(lock, 0);
    lock_give(lock);
    registry_end(registry);
}

/* For the service every lease of ours is over: it cannot be kept out, but our
 * holder notices that the lease is lost. */
static void check_theft_is_noticed(struct fixture *f, struct service *thief)
{
    sqlock_options options = stage_options(f, PASSING_TTL_MS);
    sqlock_acquire_options keep = SQLOCK_ACQUIRE_INIT;
    sqlock_registry *registry;
    sqlock_lock *lock;

    options.statement_timeout_ms = PASSING_TTL_MS / 2;
    registry = fixture_registry(f, &options);
    lock = lock_obtain(registry, f->name);
    keep.auto_renew = true;
    assert_ok(sqlock_acquire(lock, 0, &keep, &f->err));
    service_expect("true", thief, "ahead", "try ahead %s 0", f->name);
    assert_becomes_true(!sqlock_is_held(lock), JVM_WAIT_MS);
    assert_fails(SQLOCK_ELOST, sqlock_release(lock, &f->err));
    service_expect("ok", thief, "ahead", "unlock ahead %s", f->name);
    registry_end(registry);
}

TEST(test_a_holder_8_h_ahead_can_be_broken)
{
    char client[SQLOCK_KEY_SIZE];
    struct service service;

    need_clocks();
    start_off(&service, f, "+8h", NULL);
    stage_open_peer(&service, f, "ahead", STAYING_TTL_MS, client);
    service_expect("true", &service, "ahead", "try ahead %s 0", f->name);
    check_it_can_be_broken(f, client);
    fixture_next(f);
    check_theft_is_noticed(f, &service);
    service_expect("ok", &service, "ahead", "close ahead");
    service_end(&service);
}

/* --- time zones --- */

/* Spring 5 writes its local time, which is 8 h ahead of the database's here. */
TEST_ON(test_spring_5_in_another_zone_can_be_broken, ON_SERVERS, IN_SPRING6)
{
    const struct service_kind kind = {.line = "spring5",
                                      .zone = "Asia/Shanghai"};
    char client[SQLOCK_KEY_SIZE];
    struct service service;

    service_start(&service, f, &kind);
    stage_open_peer(&service, f, "zone", STAYING_TTL_MS, client);
    service_expect("true", &service, "zone", "try zone %s 0", f->name);
    check_it_can_be_broken(f, client);
    service_expect("ok", &service, "zone", "close zone");
    service_end(&service);
}

TEST(test_later_lines_write_utc_in_any_zone)
{
    sqlock_registry *registry = stage_registry(f, STAYING_TTL_MS);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    sqlock_info *info = NULL;
    struct service service;

    start_off(&service, f, NULL, "Asia/Shanghai");
    stage_open_peer(&service, f, "zone", STAYING_TTL_MS, NULL);
    service_expect("true", &service, "zone", "try zone %s 0", f->name);
    assert_fails(SQLOCK_EBUSY, lock_try(lock, 0, 0, &f->err));
    assert_ok(sqlock_show(registry, f->name, &info, &f->err));
    assert_int_equal(info->state, SQLOCK_HELD);
    sqlock_info_free(info, 1);
    service_expect("ok", &service, "zone", "unlock zone %s", f->name);
    lock_take(lock, 0);
    service_expect("false", &service, "zone", "try zone %s 0", f->name);
    lock_give(lock);
    service_expect("ok", &service, "zone", "close zone");
    service_end(&service);
    registry_end(registry);
}
