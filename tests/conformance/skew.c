/*
 * skew.c - rows written by a clock that is ahead are reported by an event,
 * sqlock_show() and sqlock_diagnose(); rows of one that is behind, and a server
 * that may lose commits in a crash, by events (F61)
 */
#include "diagnosis.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "sqlock/event.h"

/* Mostly long enough for a waiter to read the row after it was refused. */
#define WAIT_MS (200 * SLOWNESS)
#define HOURS_MS (INT64_C(8) * 3600 * 1000)
#define TTL_MS INT64_C(10000) /* Spring's, and the default of peer_ttl_ms */

static struct {
    pthread_mutex_t mutex; /* guards the following fields */
    unsigned lines;        /* events whose text contains `part` */
    char last[512];        /* text of the last one */
    const char *part;
} heard = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void hear(void *context, const sqlock_event *event)
{
    (void)context;
    pthread_mutex_lock(&heard.mutex);
    if (strstr(event->text, heard.part) != NULL) {
        heard.lines++;
        (void)snprintf(heard.last, sizeof heard.last, "%s", event->text);
    }
    pthread_mutex_unlock(&heard.mutex);
}

static sqlock_options hearing(struct fixture *f, const char *part)
{
    sqlock_options options = fixture_options(f);

    options.on_event = hear;
    options.peer_ttl_ms = TTL_MS;
    heard.part = part;
    heard.lines = 0;
    return options;
}

static void wait_in_vain(struct fixture *f, sqlock_lock *lock)
{
    assert_fails(SQLOCK_ETIMEDOUT, lock_try(lock, WAIT_MS, 0, &f->err));
}

static bool has_heard(void)
{
    bool has;

    pthread_mutex_lock(&heard.mutex);
    has = heard.lines > 0;
    pthread_mutex_unlock(&heard.mutex);
    return has;
}

/* Wait in vain, and again until a waiter has read the row and an event is sent.
 * Then the next wait sends none. */
static void wait_until_told(struct fixture *f, sqlock_lock *lock)
{
    int64_t deadline_ns = check_deadline_ns(PATIENCE_MS);

    do
        wait_in_vain(f, lock);
    while (!has_heard() && sqlock_monotonic_ns() < deadline_ns);
}

/* Insert the row of a peer, as Spring writes it when its clock is that far
 * ahead. */
static void put_peer(struct fixture *f, const char *key, const char *region,
                     int64_t ahead_ms)
{
    fixture_put_row(f, key, region, "0f8fad5b-d9cb-469f-a165-70867728950e",
                    ahead_ms * 1000, (ahead_ms + TTL_MS) * 1000);
}

static int64_t ahead_of(struct fixture *f, sqlock_registry *registry,
                        const char *name)
{
    sqlock_info *row;
    int64_t ahead_ms;

    assert_ok(sqlock_show(registry, name, &row, &f->err));
    ahead_ms = row->ahead_ms;
    sqlock_info_free(row, 1);
    return ahead_ms;
}

static int clock_by(struct fixture *f, const sqlock_options *options)
{
    struct diagnosis found = diagnosis_make(f, f->url, options);
    int worst = diagnosis_worst(&found, "clock");

    diagnosis_clear(&found);
    return worst;
}

/* A peer whose clock is that far ahead holds a lock, and a registry of sqlock
 * waits for it twice in vain.  If is_told, one event is sent, sqlock_show()
 * gives how far that clock is ahead, and the check "clock" warns; otherwise
 * none of these happens. */
static void check_peer(struct fixture *f, int64_t ahead_ms, bool is_told)
{
    sqlock_options options = hearing(f, "at least");
    char region[32];
    sqlock_registry *registry;
    sqlock_lock *lock;
    int64_t found;

    fixture_next(f);
    (void)snprintf(region, sizeof region, "skew-%u", f->serial);
    options.region = region;
    registry = fixture_registry(f, &options);
    lock = lock_obtain(registry, f->name);
    put_peer(f, sqlock_key(lock), region, ahead_ms);
    if (is_told)
        wait_until_told(f, lock);
    else
        wait_in_vain(f, lock);
    wait_in_vain(f, lock);
    assert_int_equal(heard.lines, is_told ? 1 : 0);
    if (is_told) {
        assert_contains(heard.last, sqlock_key(lock));
        assert_contains(heard.last, "ahead");
        /* It is sure where the row was acquired in the future. */
        assert_null(strstr(heard.last, "peer_ttl_ms"));
        assert_true(check_one_line(heard.last));
    }
    found = ahead_of(f, registry, sqlock_key(lock));
    if (is_told)
        assert_true(found > ahead_ms / 2 && found <= ahead_ms + TTL_MS);
    else
        assert_int_equal(found, 0);
    assert_int_equal(clock_by(f, &options),
                     is_told ? SQLOCK_WARNING : SQLOCK_FINE);
    lock_drop(lock);
    registry_end(registry);
}

static void test_a_peer_in_another_zone_is_told(void **state)
{
    check_peer(*state, HOURS_MS, true);
}

/* A minute, which is more than the margin. */
static void test_a_peer_whose_clock_is_ahead_is_told(void **state)
{
    check_peer(*state, 60000, true);
}

static void test_a_peer_in_step_is_not(void **state)
{
    check_peer(*state, -1, false);
}

/* A peer's lease was acquired a second ago, and lasts for eight hours more,
 * which is longer than peer_ttl_ms: the check "clock" warns. */
static void test_a_peers_lease_that_is_too_long_is_told(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = hearing(f, "peer_ttl_ms");
    char region[32];

    (void)snprintf(region, sizeof region, "long-%u", f->serial);
    options.region = region;
    fixture_put_row(f, "too-long", region, "somebody", -1000000,
                    HOURS_MS * 1000);
    assert_int_equal(clock_by(f, &options), SQLOCK_WARNING);
    /* No warning if peer_ttl_ms says that a service has such a TTL. */
    options.peer_ttl_ms = (uint32_t)HOURS_MS + 1000;
    assert_int_equal(clock_by(f, &options), SQLOCK_FINE);
}

/* A new look at an older row does not take back what was seen: the figure does
 * not shrink, and the text says that the TTL may be longer. */
static void test_the_worst_that_was_seen_is_told(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = hearing(f, "at least");
    char region[32];
    sqlock_registry *registry;
    sqlock_lock *lock;
    char text[160];
    int64_t first;

    fixture_next(f);
    (void)snprintf(region, sizeof region, "worst-%u", f->serial);
    options.region = region;
    registry = fixture_registry(f, &options);
    lock = lock_obtain(registry, f->name);
    fixture_put_row(f, sqlock_key(lock), region, "somebody", -1000000,
                    (TTL_MS + 60000) * 1000);
    wait_until_told(f, lock);
    assert_int_equal(heard.lines, 1);
    assert_contains(heard.last, "ahead");
    assert_contains(heard.last, "its TTL is longer than peer_ttl_ms");
    first = ahead_of(f, registry, sqlock_key(lock));
    assert_less(50000, first);
    check_sleep(300);
    assert_false(ahead_of(f, registry, sqlock_key(lock)) < first);
    /* The lease goes on with an end that is in step. */
    assert_int_equal(sql_run(&f->sql,
                             "UPDATE %s SET EXPIRED_AFTER = %s "
                             "WHERE REGION = '%s'",
                             f->table, fixture_time(f, text, 5000000), region),
                     1);
    wait_in_vain(f, lock);
    assert_false(ahead_of(f, registry, sqlock_key(lock)) < first);
    lock_drop(lock);
    registry_end(registry);
}

/* A waiter looks at the row of one peer, and then at that of another, which was
 * written with a date before the first look. */
static void look_at_two(struct fixture *f, sqlock_lock *lock,
                        const char *region, int64_t behind_ms)
{
    (void)sql_run(&f->sql, "DELETE FROM %s WHERE REGION = '%s'", f->table,
                  region);
    put_peer(f, sqlock_key(lock), region, 0);
    wait_in_vain(f, lock);
    assert_int_equal(sql_run(&f->sql, "DELETE FROM %s WHERE REGION = '%s'",
                             f->table, region),
                     1);
    fixture_put_row(f, sqlock_key(lock), region,
                    "11111111-d9cb-469f-a165-70867728950e", -behind_ms * 1000,
                    (TTL_MS - behind_ms) * 1000);
    wait_in_vain(f, lock);
}

/* If is_told, one event is sent about the two peers. */
static void check_behind(struct fixture *f, int64_t behind_ms, bool is_told)
{
    int64_t deadline_ns = check_deadline_ns(PATIENCE_MS);
    sqlock_options options = hearing(f, "behind");
    char region[32];
    sqlock_registry *registry;
    sqlock_lock *lock;

    fixture_next(f);
    (void)snprintf(region, sizeof region, "behind-%u", f->serial);
    options.region = region;
    registry = fixture_registry(f, &options);
    lock = lock_obtain(registry, f->name);
    do
        look_at_two(f, lock, region, behind_ms);
    while (is_told && !has_heard() && sqlock_monotonic_ns() < deadline_ns);
    wait_in_vain(f, lock);
    assert_int_equal(heard.lines, is_told ? 1 : 0);
    if (is_told) {
        assert_contains(heard.last, "at least");
        assert_contains(heard.last, sqlock_key(lock));
        assert_true(check_one_line(heard.last));
    }
    lock_drop(lock);
    registry_end(registry);
}

static void test_a_peer_whose_clock_is_behind_is_told(void **state)
{
    check_behind(*state, 6000, true);
}

static void test_a_peer_that_is_not_behind_is_not(void **state)
{
    check_behind(*state, 0, false);
}

/* A lease of sqlock's may be longer than peer_ttl_ms, and is not reported. */
static void test_a_long_lease_of_ours_is_not(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = hearing(f, "peer_ttl_ms");
    sqlock_registry *registry = fixture_registry(f, &options);
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    sqlock_lock *other = lock_obtain(registry, f->name);

    lock_take(lock, 3600000);
    assert_fails(SQLOCK_ETIMEDOUT, lock_try(other, 50, 0, &f->err));
    assert_int_equal(heard.lines, 0);
    assert_int_equal(ahead_of(f, registry, f->name), 0);
    lock_give(lock);
    lock_drop(lock);
    lock_drop(other);
    registry_end(registry);
}

/* --- servers that forget (F61) --- */

/* Return what the server's settings say: 0 if a crash loses no commit. */
static int64_t may_forget(struct fixture *f)
{
    if (f->database->bit == ON_SQLITE)
        return 0;
    if (f->database->bit == ON_POSTGRES)
        return sql_integer(&f->sql,
                           "SELECT COUNT(*) FROM pg_settings WHERE name IN"
                           " ('fsync', 'full_page_writes') AND setting ="
                           " 'off'");
    return sql_integer(&f->sql, "SELECT @@innodb_flush_log_at_trx_commit <> 1"
                                " OR (@@log_bin AND @@sync_binlog <> 1)");
}

static void test_F61_a_server_that_forgets_is_told_at_open(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = hearing(f, "may lose granted");
    sqlock_registry *registry = fixture_registry(f, &options);
    sqlock_lock *lock = lock_obtain(registry, f->name);

    /* The event is sent once, however many connections are opened. */
    lock_take_and_give(lock);
    assert_int_equal(heard.lines, may_forget(f) != 0 ? 1 : 0);
    if (heard.lines > 0) {
        assert_contains(heard.last,
                        f->database->bit == ON_POSTGRES ? " = off" : " = ");
        assert_true(check_one_line(heard.last));
    }
    lock_drop(lock);
    registry_end(registry);
}

static const struct test tests[] = {
    TEST(test_a_peer_in_another_zone_is_told),
    TEST_ON(test_a_peer_whose_clock_is_ahead_is_told, ON_ALL, HAS_EXPIRY),
    TEST(test_a_peer_in_step_is_not),
    TEST_ON(test_a_peers_lease_that_is_too_long_is_told, ON_ALL, IN_SQLOCK),
    TEST_ON(test_the_worst_that_was_seen_is_told, ON_ALL, IN_SQLOCK),
    TEST(test_a_peer_whose_clock_is_behind_is_told),
    TEST(test_a_peer_that_is_not_behind_is_not),
    TEST_ON(test_a_long_lease_of_ours_is_not, ON_ALL, HAS_EXPIRY),
    TEST_ON(test_F61_a_server_that_forgets_is_told_at_open, ON_ALL, IN_SQLOCK),
};
const struct topic topic_skew = TOPIC(tests);
