/*
 * test_form.c - the form of a driver for waiting=poll, which rings no bell and
 * takes no advisory lock
 */
#include "support/suite_main.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "db/drivers.h"
#include "sqlock/many.h"
#include "sqlock/shared.h"
#include "sqlock/tx.h"
#include "support/tap.h"
#include "support/workers.h"

/* --- what is sent --- */

static const char *const words[] = {"advisory", "notify", "listen", "get_lock",
                                    "release_lock"};

struct heard {
    atomic_uint statements;
    atomic_bool has_found;
    char found[2048];
};

static int look_at(void *context, const struct tap_event *event)
{
    struct heard *heard = context;

    if (event->text == NULL)
        return 0;
    (void)atomic_fetch_add(&heard->statements, 1);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasestr(event->text, words[i]) != NULL &&
            !atomic_exchange(&heard->has_found, true))
            (void)snprintf(heard->found, sizeof heard->found, "%s",
                           event->text);
    return 0;
}

static void use_one(struct fixture *f, sqlock_lock *lock, sqlock_lock *other)
{
    lock_take(other, 300);
    /* This waits until the lease of `other` is over. */
    assert_ok(sqlock_acquire(lock, 60000, NULL, &f->err));
    assert_int_not_equal(sqlock_release(other, NULL), 0);
    lock_renew(lock, 0);
    assert_fails(SQLOCK_EBUSY, sqlock_acquire(other, 0, NULL, &f->err));
    lock_give(lock);
}

static void use_many(struct fixture *f, sqlock_lock *one, sqlock_lock *two)
{
    sqlock_lock *locks[] = {one, two};
    int results[2];

    assert_ok(sqlock_acquire_many(locks, 2, 0, NULL, results, &f->err));
    assert_ok(sqlock_renew_many(locks, 2, results, &f->err));
    assert_ok(sqlock_release_many(locks, 2, results, &f->err));
}

static void use_in_transaction(struct fixture *f, sqlock_registry *registry,
                               sqlock_lock *lock)
{
    sqlock_tx *tx = NULL;

    lock_take(lock, 0);
    assert_ok(sqlock_tx_begin(&tx, registry, &f->err));
    assert_ok(sqlock_tx_guard(tx, lock, &f->err));
    assert_ok(sqlock_tx_commit(tx, &f->err));
    lock_give(lock);
}

static void end_by_hand(struct fixture *f, sqlock_registry *registry,
                        sqlock_lock *lock)
{
    sqlock_break_options expected = SQLOCK_BREAK_INIT;
    struct row row;

    lock_take(lock, 0);
    row = fixture_row(f, f->name);
    expected.token = sqlock_token(lock);
    expected.client_id = row.client;
    expected.now = true;
    assert_ok(sqlock_break(registry, f->name, &expected, &f->err));
    assert_fails(SQLOCK_ELOST, sqlock_release(lock, &f->err));
    assert_ok(sqlock_reap(registry, 0, NULL, &f->err));
}

TEST_ON(test_nothing_that_rings_is_sent, ON_SERVERS, IN_ALL)
{
    sqlock_registry *registry = fixture_tapped(f, NULL);
    sqlock_lock *lock = lock_obtain(registry, f->name);
    sqlock_lock *second = lock_obtain(registry, "polling: a second one");
    sqlock_lock *other = lock_obtain(f->b, f->name);
    struct heard heard = {0};

    tap_hooks(look_at, NULL, &heard);
    use_one(f, lock, other);
    use_many(f, lock, second);
    use_in_transaction(f, registry, lock);
    end_by_hand(f, registry, lock);
    tap_reset();
    if (atomic_load(&heard.has_found))
        fail_msg("a statement with a function of waiting was sent: %s",
                 heard.found);
    assert_true(atomic_load(&heard.statements) >= 12);
    lock_drop(other);
    lock_drop(second);
    lock_drop(lock);
    registry_end(registry);
}

/* with.sh has revoked PostgreSQL's functions of waiting, so the tests above
 * would have failed if they had called them. */
TEST_ON(test_functions_of_waiting_are_out_of_reach, ON_POSTGRES, IN_SQLOCK)
{
    struct sql sql;

    assert_int_equal(sql_open(&sql, f->database, f->url), 0);
    assert_int_equal(sql_try(&sql, NULL, "SELECT pg_advisory_xact_lock(%d)", 1),
                     SQLOCK_EACCESS);
    sql_close(&sql);
}

/* --- tokens --- */

#define TAKERS 4
#define TURNS 15

struct turns {
    struct fixture *fixture;
    int64_t last; /* guarded by the lock under test */
};

static int take_turns(struct worker *worker)
{
    struct turns *turns = worker->context;
    struct fixture *f = turns->fixture;
    sqlock_options options = fixture_options(f);
    sqlock_registry *registry;
    sqlock_lock *lock = NULL;
    int rc;

    options.poll_ms = 10;
    rc = sqlock_registry_open(&registry, f->url, &options, &worker->err);
    if (rc == 0)
        rc = sqlock_obtain(&lock, registry, f->name, &worker->err);
    for (int i = 0; rc == 0 && i < TURNS; i++) {
        rc = sqlock_acquire(lock, 120000, NULL, &worker->err);
        if (rc < 0)
            break;
        if (sqlock_token(lock) <= turns->last)
            return worker_fail(worker, "token %lld behind %lld",
                               (long long)sqlock_token(lock),
                               (long long)turns->last);
        turns->last = sqlock_token(lock);
        rc = sqlock_release(lock, &worker->err);
    }
    (void)sqlock_drop(lock, NULL);
    (void)sqlock_registry_close(registry, NULL);
    return rc < 0 ? worker_fail(worker, "%s", worker->err.message) : 0;
}

TEST_ON(test_tokens_rise_from_holder_to_holder, ON_SERVERS, IN_SQLOCK)
{
    struct turns turns = {.fixture = f};
    static struct workers workers;

    workers_start(&workers, TAKERS, take_turns, &turns);
    workers_join(&workers);
    assert_true(turns.last > 0);
}

/* --- which form --- */

TEST_ON(test_the_url_chooses_the_form, ON_SERVERS, IN_SQLOCK)
{
    const sqlock_driver *queueing;
    const sqlock_driver *found;
    sqlock_capabilities gives;
    char url[256];

    (void)snprintf(url, sizeof url, "%s://h/d", f->database->name);
    assert_int_equal(lk_driver_find(&queueing, url, NULL), 0);
    assert_non_null(queueing->bell);
    (void)snprintf(url, sizeof url, "%s://h/d?waiting=queue",
                   f->database->name);
    assert_int_equal(lk_driver_find(&found, url, NULL), 0);
    assert_ptr_equal(found, queueing);
    assert_int_equal(lk_driver_find(&found, f->url, NULL), 0);
    assert_ptr_not_equal(found, queueing);
    assert_null(found->bell);
    (void)snprintf(url, sizeof url, "%s://h/d?waiting=perhaps",
                   f->database->name);
    assert_int_equal(lk_driver_find(&found, url, NULL), SQLOCK_EINVAL);
    assert_null(found);
    (void)snprintf(url, sizeof url, "%s://h/d?waiting=poll&waiting=poll",
                   f->database->name);
    assert_int_equal(lk_driver_find(&found, url, NULL), SQLOCK_EINVAL);
    gives = fixture_gives(f);
    assert_int_equal(gives.wakeups, SQLOCK_SUPPORT_REFUSED);
    assert_int_equal(gives.leases, SQLOCK_SUPPORT_FULL);
}

/* --- turns --- */

#define HOT 3

struct hot {
    sqlock_lock *lock;
    atomic_uint grants;
    atomic_bool is_over;
};

static int hold_again_and_again(struct worker *worker)
{
    struct hot *hot = worker->context;

    while (!atomic_load(&hot->is_over)) {
        worker_expect(worker, 0,
                      sqlock_acquire(hot->lock, 60000, NULL, &worker->err));
        atomic_fetch_add(&hot->grants, 1);
        worker_expect(worker, 0, sqlock_release(hot->lock, &worker->err));
    }
    return 0;
}

static void await_grants(struct hot *hot, unsigned grants)
{
    int64_t until = check_deadline_ns(60000);

    while (atomic_load(&hot->grants) < grants)
        assert_true(check_pause(until));
}

/* Threads of one registry hand a lock to each other, 16 times in a row.
 * Another registry, which stands for another process and polls the row,
 * gets the lock too, each of three times. */
TEST_ON(test_another_process_has_its_turn, ON_SERVERS, IN_SQLOCK)
{
    sqlock_options options = fixture_options(f);
    sqlock_lock *other = lock_obtain(f->b, f->name);
    sqlock_registry *registry;
    struct workers workers;
    struct hot hot = {.is_over = false};

    registry = fixture_registry(f, &options);
    hot.lock = lock_obtain(registry, f->name);
    workers_start(&workers, HOT, hold_again_and_again, &hot);
    for (int i = 0; i < 3; i++) {
        int rc;

        await_grants(&hot, atomic_load(&hot.grants) + 50);
        rc = sqlock_acquire(other, 30000, NULL, &f->err);
        if (rc == 0)
            lock_give(other);
        if (rc < 0)
            atomic_store(&hot.is_over, true);
        assert_ok(rc);
    }
    atomic_store(&hot.is_over, true);
    workers_join(&workers);
    lock_drop(other);
    lock_drop(hot.lock);
    registry_end(registry);
}

/* --- permits --- */

/* Open a registry whose URL says waiting=poll, as with.sh lets those of the
 * servers do. */
static sqlock_registry *open_polling(struct fixture *f)
{
    sqlock_options options = fixture_options(f);
    sqlock_registry *registry;
    char url[512];

    (void)snprintf(url, sizeof url, "%s%s", f->url,
                   strstr(f->url, "waiting=poll") != NULL ? ""
                   : strchr(f->url, '?') != NULL          ? "&waiting=poll"
                                                          : "?waiting=poll");
    assert_ok(sqlock_registry_open(&registry, url, &options, &f->err));
    return registry;
}

/* Lower the permits below those that are taken: the row stays sqlock's, and is
 * not taken for that of a Spring service, whose permits cannot be set. */
TEST_ON(test_permits_below_those_taken_can_be_raised_again, ON_ALL, IN_SQLOCK)
{
    sqlock_registry *registry = open_polling(f);
    sqlock_acquire_options how = SQLOCK_ACQUIRE_INIT;
    sqlock_lock *lock = lock_obtain(registry, f->name);
    sqlock_lock *other = lock_obtain(f->b, f->name);

    how.mode = SQLOCK_SHARED;
    how.permits = 3;
    assert_ok(sqlock_acquire(lock, 0, &how, &f->err));
    assert_ok(sqlock_acquire(other, 0, &how, &f->err));
    assert_ok(sqlock_set_permits(registry, f->name, 1, &f->err));
    assert_ok(sqlock_set_permits(registry, f->name, 3, &f->err));
    lock_give(other);
    lock_give(lock);
    lock_drop(other);
    lock_drop(lock);
    registry_end(registry);
}
