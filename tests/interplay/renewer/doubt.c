/*
 * doubt.c - claims in doubt: their rows are freed in the background, long
 * before their leases are over (F39); and requests that share an outage
 */
#include "renewer.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "locks/registry.h"
#include "sqlock/async.h"
#include "sqlock/many.h"
#include "support/tap.h"
#include "support/workers.h"

/* Statement timeout: how late a claim may arrive. */
#define STATEMENT_MS (300 * SLOWNESS)

/* ------------------------------------------------------ claims in doubt -- */

#define PARAMETERS_MAX 40

/* Context of hang(), which does not send the first claim but keeps its
 * parameters and answers EUNCERTAIN; let_arrive() sends that claim later. */
struct hanging {
    const char *claim; /* text of the statement */
    pthread_t asker;   /* the thread that claims */
    sqlock_value values[PARAMETERS_MAX];
    size_t count;
    const char *release;  /* text of the statement */
    atomic_uint released; /* number of releases sent by the asker */
    atomic_uint claims;   /* number of claims, also of the first */
    atomic_int refused;   /* how many more releases are refused */
    const char *hand_off; /* text of the statement */
    atomic_uint handed_off;
};

static int hang(void *context, const struct tap_event *event)
{
    struct hanging *hanging = context;

    if (event->call != TAP_EXECUTE)
        return 0;
    if (event->text == hanging->release &&
        pthread_equal(pthread_self(), hanging->asker))
        (void)atomic_fetch_add(&hanging->released, 1);
    if (event->text == hanging->release && atomic_load(&hanging->refused) > 0) {
        (void)atomic_fetch_sub(&hanging->refused, 1);
        return SQLOCK_EREADONLY;
    }
    if (event->text == hanging->hand_off)
        (void)atomic_fetch_add(&hanging->handed_off, 1);
    if (event->text != hanging->claim ||
        atomic_fetch_add(&hanging->claims, 1) > 0)
        return 0;
    assert_true(event->count <= PARAMETERS_MAX);
    hanging->count = event->count;
    for (size_t i = 0; i < event->count; i++) {
        hanging->values[i] = event->parameters[i];
        if (event->parameters[i].type == SQLOCK_TEXT)
            hanging->values[i].text = strdup(event->parameters[i].text);
    }
    return SQLOCK_EUNCERTAIN;
}

/* Send the first claim, which takes the row although nobody holds the lock, and
 * free the copies of its parameters. */
static void let_arrive(struct fixture *f, struct hanging *hanging)
{
    const sqlock_statement statement = {.text = hanging->claim};
    sqlock_result result = {0};

    assert_ok(f->sql.driver->execute(
        f->sql.connection, &statement, hanging->values, hanging->count,
        check_deadline_ns(PATIENCE_MS), &result, &f->err));
    assert_true(result.affected > 0 || result.rows > 0);
    sqlock_result_clear(&result);
    for (size_t i = 0; i < hanging->count; i++)
        if (hanging->values[i].type == SQLOCK_TEXT) {
            union {
                const char *text;
                void *memory;
            } copy = {.text = hanging->values[i].text};

            free(copy.memory);
        }
}

static void test_F39_a_claim_that_arrives_after_it_was_told_busy(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = fixture_options(f);
    sqlock_registry *registry;
    struct hanging hanging = {.asker = pthread_self()};
    sqlock_lock *lock;
    sqlock_lock *theirs = lock_obtain(f->b, f->name);

    options.ttl_ms = LONG_TTL_MS;
    registry = fixture_tapped(f, &options);
    lock = lock_obtain(registry, f->name);
    hanging.claim = census_text(registry, SQLOCK_SQL_CLAIM);
    lock_take(theirs, LONG_TTL_MS);
    tap_hooks(hang, NULL, &hanging);
    assert_fails(SQLOCK_EBUSY, lock_try(lock, 0, 0, &f->err));
    assert_true(atomic_load(&hanging.claims) >= 2); /* it was sent again */
    lock_give(theirs);
    let_arrive(f, &hanging);
    assert_false(sqlock_is_held(lock));
    expect_freed(f, f->name);
    lock_take(theirs, LONG_TTL_MS);
    assert_false(sqlock_is_held(lock));
    lock_end(theirs);
    registry_end(registry);
}

/* Open a registry, and acquire a lock whose first claim hangs; the second claim
 * succeeds.  The caller releases and drops the lock, and ends the registry. */
static sqlock_lock *take_late(struct fixture *f, sqlock_registry **registry,
                              struct hanging *hanging)
{
    sqlock_options options = fixture_options(f);
    sqlock_lock *lock;

    options.ttl_ms = LONG_TTL_MS;
    *registry = fixture_tapped(f, &options);
    lock = lock_obtain(*registry, f->name);
    memset(hanging, 0, sizeof *hanging);
    hanging->claim = census_text(*registry, SQLOCK_SQL_CLAIM);
    hanging->release = census_text(*registry, SQLOCK_SQL_RELEASE);
    hanging->hand_off = census_text(*registry, SQLOCK_SQL_HAND_OFF);
    tap_hooks(hang, NULL, hanging);
    lock_take(lock, LONG_TTL_MS);
    assert_int_equal(atomic_load(&hanging->claims), 2);
    return lock;
}

/* Wait until the row is free, let the first claim arrive, and wait until the
 * background has freed the row again. */
static void expect_late_freed(struct fixture *f, struct hanging *hanging)
{
    expect_freed(f, f->name);
    let_arrive(f, hanging);
    expect_freed(f, f->name);
}

static void test_F39_a_claim_that_arrives_after_the_release(void **state)
{
    struct fixture *f = *state;
    struct hanging hanging;
    sqlock_registry *registry;
    sqlock_lock *lock = take_late(f, &registry, &hanging);

    lock_give(lock);
    expect_late_freed(f, &hanging);
    lock_drop(lock);
    registry_end(registry);
}

static void test_F39_a_claim_that_arrives_after_a_failed_release(void **state)
{
    struct fixture *f = *state;
    struct hanging hanging;
    sqlock_registry *registry;
    sqlock_lock *lock = take_late(f, &registry, &hanging);

    atomic_store(&hanging.refused, 1);
    assert_fails(SQLOCK_EREADONLY, sqlock_release(lock, &f->err));
    expect_late_freed(f, &hanging);
    lock_drop(lock);
    registry_end(registry);
}

static void test_F39_a_claim_that_arrives_after_a_hand_off(void **state)
{
    struct fixture *f = *state;
    struct hanging hanging;
    sqlock_registry *registry;
    sqlock_lock *lock = take_late(f, &registry, &hanging);
    sqlock_lock *same = lock_obtain(registry, f->name);
    struct worker worker;

    worker_start(&worker, take_and_give, same);
    assert_becomes_true(worker_is_parked(&worker), PATIENCE_MS);
    lock_give(lock);
    worker_join(&worker);
    assert_int_equal(atomic_load(&hanging.handed_off), 1);
    expect_late_freed(f, &hanging);
    lock_drop(same);
    lock_drop(lock);
    registry_end(registry);
}

/* Acquisitions of another lock send no release for a claim in doubt: that is
 * left to the background.  On SQLite the leader of a group commit runs the
 * statements of other threads, too, so some of these acquisitions may run the
 * background's release, but not all. */
static void test_a_claim_in_doubt_costs_no_other_acquire(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = fixture_options(f);
    sqlock_registry *registry;
    struct hanging hanging = {.asker = pthread_self()};
    sqlock_lock *other;
    sqlock_lock *lock;
    sqlock_lock *theirs = lock_obtain(f->b, f->name);
    unsigned before;
    int paid = 0;

    options.ttl_ms = LONG_TTL_MS;
    registry = fixture_tapped(f, &options);
    lock = lock_obtain(registry, f->name);
    other = nth_lock(f, registry, 1);
    hanging.claim = census_text(registry, SQLOCK_SQL_CLAIM);
    hanging.release = census_text(registry, SQLOCK_SQL_RELEASE);
    lock_take(theirs, LONG_TTL_MS);
    lock_take(other, LONG_TTL_MS); /* creates the row */
    lock_give(other);
    tap_hooks(hang, NULL, &hanging);
    assert_fails(SQLOCK_EBUSY, lock_try(lock, 0, 0, &f->err));
    for (int i = 0; i < 10; i++) {
        before = atomic_load(&hanging.released);
        lock_take(other, LONG_TTL_MS);
        paid += atomic_load(&hanging.released) != before;
        lock_give(other);
    }
    assert_true(paid <= (f->database->bit == ON_SQLITE ? 8 : 0));
    lock_give(theirs);
    let_arrive(f, &hanging);
    expect_freed(f, f->name);
    lock_drop(theirs);
    registry_end(registry);
}

/* A claim in doubt never arrives, so the background's releases find no row.
 * Once the lease would be over, no release is sent any more, not even by
 * sqlock_registry_close(). */
static void test_a_claim_in_doubt_is_forgotten_when_it_is_over(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = registry_within(f, STATEMENT_MS);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    struct lk_lease lease = {.key = lock->entry->key, .ttl_ms = TTL_MS};
    int64_t until = check_deadline_ns(2 * STATEMENT_MS + TTL_MS);
    struct spy spy;

    memset(lease.client_id, '0', sizeof lease.client_id - 1);
    spy_begin(&spy, registry, SQLOCK_SQL_RELEASE);
    lk_resolver_add_claim(&registry->store, &lease, lk_boottime_ns());
    while (check_pause(until))
        ;
    assert_true(atomic_exchange(&spy.times, 0) > 0);
    lock_drop(lock);
    registry_end(registry);
    assert_int_equal(atomic_load(&spy.times), 0);
}

/* ---------------------------------------------------- one outage for all -- */

#define REQUESTS 60
/* How long each call to the database hangs, and the statement timeout: enough
 * time for each request to get a connection, even on a busy machine. */
#define DARK_MS (2000 * SLOWNESS)
#define THREADS_MAX 6 /* of a registry with the default pool */

struct darkness {
    atomic_bool is_dark;
    atomic_uint tries;
};

/* Let each call hang for DARK_MS and fail, like a host that does not answer. */
static int stay_dark(void *context, const struct tap_event *event)
{
    struct darkness *darkness = context;
    int64_t until = check_deadline_ns(DARK_MS);

    if (!atomic_load(&darkness->is_dark) ||
        (event->call != TAP_EXECUTE && event->call != TAP_OPEN &&
         event->call != TAP_BEGIN))
        return 0;
    (void)atomic_fetch_add(&darkness->tries, 1);
    while (check_pause(until))
        ;
    return SQLOCK_EUNREACHABLE;
}

static bool are_over(sqlock_request *const *requests)
{
    for (size_t i = 0; i < REQUESTS; i++)
        if (sqlock_request_status(requests[i]) == SQLOCK_REQUEST_FETCHING)
            return false;
    return true;
}

static void begin_requests(struct fixture *f, sqlock_registry *registry,
                           sqlock_request **requests)
{
    for (size_t i = 0; i < REQUESTS; i++) {
        sqlock_lock *lock = nth_lock(f, registry, i);

        assert_ok(
            sqlock_request_acquire(&requests[i], lock, 0, NULL, 0, &f->err));
    }
}

/* A few threads run the requests.  Each thread tries the database once or
 * twice; the requests after that fail without a try of their own. */
static void test_requests_share_an_outage(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = registry_within(f, DARK_MS);
    struct darkness darkness = {0};
    static sqlock_request *requests[REQUESTS];

    tap_hooks(stay_dark, NULL, &darkness);
    atomic_store(&darkness.is_dark, true);
    begin_requests(f, registry, requests);
    assert_becomes_true(are_over(requests), 3 * PATIENCE_MS);
    assert_true(atomic_load(&darkness.tries) <= 3 * THREADS_MAX);
    for (size_t i = 0; i < REQUESTS; i++)
        assert_true(sqlock_request_finish(requests[i], &f->err) < 0);
    atomic_store(&darkness.is_dark, false);
    begin_requests(f, registry, requests); /* succeed after the outage */
    assert_becomes_true(are_over(requests), 3 * PATIENCE_MS);
    for (size_t i = 0; i < REQUESTS; i++)
        assert_ok(sqlock_request_finish(requests[i], &f->err));
    registry_end(registry);
}

static void test_closing_shares_an_outage(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry = registry_within(f, DARK_MS);
    struct darkness darkness = {0};
    static sqlock_request *requests[REQUESTS];
    sqlock_lock *held = lock_obtain(registry, f->name);
    unsigned before;
    int rc;

    take_renewed(held, LONG_TTL_MS, NULL);
    tap_hooks(stay_dark, NULL, &darkness);
    atomic_store(&darkness.is_dark, true);
    begin_requests(f, registry, requests);
    before = atomic_load(&darkness.tries);
    rc = sqlock_registry_close(registry, &f->err);
    assert_code_of(SQLOCK_EUNREACHABLE, SQLOCK_EUNCERTAIN, rc, &f->err);
    /* Each thread ends its try under way, and then tries once more. */
    assert_true(atomic_load(&darkness.tries) - before <= 3 * THREADS_MAX);
    tap_hooks(NULL, NULL, NULL);
}

static const struct test tests[] = {
    TEST_ON(test_F39_a_claim_that_arrives_after_it_was_told_busy, ON_ALL,
            IN_ALL),
    TEST_ON(test_F39_a_claim_that_arrives_after_the_release, ON_ALL, IN_ALL),
    TEST_ON(test_F39_a_claim_that_arrives_after_a_failed_release, ON_ALL,
            IN_ALL),
    TEST_ON(test_F39_a_claim_that_arrives_after_a_hand_off, ON_ALL, IN_ALL),
    TEST_ON(test_a_claim_in_doubt_costs_no_other_acquire, ON_ALL, IN_ALL),
    TEST_ON(test_a_claim_in_doubt_is_forgotten_when_it_is_over, ON_ALL, IN_ALL),
    TEST(test_requests_share_an_outage),
    TEST(test_closing_shares_an_outage),
};
const struct topic topic_doubt = TOPIC(tests);
