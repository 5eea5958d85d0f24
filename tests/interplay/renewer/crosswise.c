/*
 * crosswise.c - acquire several locks together while one of them has another
 * holder: a row that could not be given back is reported as EUNCERTAIN
 */
#include "renewer.h"

#include <string.h>

#include "sqlock/many.h"
#include "support/tap.h"

/* Obtain two locks, in the order in which they are claimed: by key. */
static void obtain_two(struct fixture *f, sqlock_registry *registry,
                       sqlock_lock **locks)
{
    locks[0] = nth_lock(f, registry, 0);
    locks[1] = nth_lock(f, registry, 1);
    if (strcmp(sqlock_key(locks[0]), sqlock_key(locks[1])) > 0) {
        sqlock_lock *second = locks[0];

        locks[0] = locks[1];
        locks[1] = second;
    }
}

/* ---------------------------------------- a row that is not given back -- */

struct refusal {
    const char *text;
    atomic_bool is_over;
};

static int refuse(void *context, const struct tap_event *event)
{
    struct refusal *refusal = context;

    return event->text == refusal->text && !atomic_load(&refusal->is_over)
               ? SQLOCK_EUNREACHABLE
               : 0;
}

static void test_what_could_not_be_given_back_is_told(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = fixture_options(f);
    struct refusal refusal = {0};
    sqlock_registry *registry;
    sqlock_lock *theirs[2];
    sqlock_lock *locks[2];
    int results[2];
    int rc;

    options.ttl_ms = LONG_TTL_MS;
    options.statement_timeout_ms = 300 * SLOWNESS;
    registry = fixture_tapped(f, &options);
    obtain_two(f, registry, locks);
    obtain_two(f, f->b, theirs);
    lock_take(theirs[1], LONG_TTL_MS);
    refusal.text = census_text(registry, SQLOCK_SQL_RELEASE);
    tap_hooks(refuse, NULL, &refusal);
    rc = sqlock_acquire_many(locks, 2, 0, NULL, results, &f->err);
    assert_code(SQLOCK_EUNCERTAIN, rc, &f->err);
    assert_int_equal(results[0], SQLOCK_EUNCERTAIN);
    assert_int_equal(results[1], SQLOCK_EBUSY);
    assert_int_equal(sqlock_hold_count(locks[0]), 0);
    assert_false(fixture_is_free(f, sqlock_name(locks[0])));
    atomic_store(&refusal.is_over, true); /* for the background */
    assert_becomes_true(fixture_is_free(f, sqlock_name(locks[0])), PATIENCE_MS);
    lock_give(theirs[1]);
    registry_end(registry);
}

static const struct test tests[] = {
    TEST_ON(test_what_could_not_be_given_back_is_told, ON_ALL, IN_ALL),
};
const struct topic topic_crosswise = TOPIC(tests);
