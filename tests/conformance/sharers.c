/*
 * sharers.c - what an operator sees of locks that are shared, and breaks
 */
#include "diagnosis.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lease/row.h"
#include "lease/ticket.h"
#include "sqlock/lease.h"
#include "sqlock/shared.h"

/* Return a handle of that registry that has taken so many of five permits. */
static sqlock_lock *sharer(struct fixture *f, sqlock_registry *registry,
                           uint32_t weight, uint32_t ttl_ms)
{
    sqlock_lock *lock = lock_obtain(registry, f->name);
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    int rc;

    options.ttl_ms = ttl_ms;
    options.mode = SQLOCK_SHARED;
    options.permits = 5;
    options.weight = weight;
    do {
        rc = sqlock_acquire(lock, 0, &options, &f->err);
    } while (rc == SQLOCK_ETIMEDOUT); /* it outlasted its short lease */
    assert_ok(rc);
    return lock;
}

static sqlock_info *shown(struct fixture *f)
{
    sqlock_info *info = NULL;

    assert_ok(sqlock_show(f->b, f->name, &info, &f->err));
    return info;
}

static void end(sqlock_lock *lock)
{
    lock_give(lock);
    lock_drop(lock);
}

/* Write how the lock's token is told in the line of its sharer. */
static const char *token_of(sqlock_lock *lock, char out[64])
{
    (void)snprintf(out, 64, ", token %" PRId64 ", for ", sqlock_token(lock));
    return out;
}

/* --- what is told --- */

static void check_free(struct fixture *f)
{
    sqlock_info *info = shown(f);

    assert_int_equal(info->state, SQLOCK_FREE);
    assert_int_equal(info->mode, SQLOCK_EXCLUSIVE);
    assert_int_equal(info->permits, 5);
    assert_int_equal(info->taken, 0);
    assert_int_equal(info->sharers, 0);
    assert_null(info->sharer_names);
    assert_non_null(info->last_holder);
    sqlock_info_free(info, 1);
}

static void test_who_shares_a_lock_is_told(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = fixture_options(f);
    sqlock_registry *other;
    sqlock_lock *one, *two;
    sqlock_info *info;
    char token[64];
    char *second;
    int64_t since_us;

    options.holder_note = "the other";
    other = fixture_registry(f, &options);
    one = sharer(f, f->a, 2, 0);
    check_sleep(5);
    two = sharer(f, other, 1, 0);
    info = shown(f);
    assert_int_equal(info->state, SQLOCK_HELD);
    assert_int_equal(info->mode, SQLOCK_SHARED);
    assert_int_equal(info->permits, 5);
    assert_int_equal(info->taken, 3);
    assert_int_equal(info->sharers, 2);
    assert_string_equal(info->client_id, fixture_row(f, f->name).client);
    assert_true(info->token == sqlock_token(two));
    assert_lacks(info->holder, "the other");
    since_us = info->acquired_at_us;
    assert_true(info->held_ms >= 5);
    second = strchr(info->sharer_names, '\n');
    assert_non_null(second);
    *second++ = '\0';
    assert_contains(info->sharer_names, ", weight 2, token ");
    assert_contains(info->sharer_names, token_of(one, token));
    assert_contains(info->sharer_names, " s left");
    assert_contains(second, "(the other), token ");
    assert_contains(second, token_of(two, token));
    assert_true(check_one_line(second));
    sqlock_info_free(info, 1);
    end(one);
    info = shown(f);
    assert_int_equal(info->sharers, 1);
    assert_int_equal(info->taken, 1);
    assert_contains(info->holder, "(the other)");
    assert_less(since_us, info->acquired_at_us);
    sqlock_info_free(info, 1);
    end(two);
    check_free(f);
    registry_end(other);
}

/* The dead do not count beside the living; of a group that is over the row says
 * who has not released it. */
static void test_a_sharer_that_is_over_is_told(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *dead = sharer(f, f->a, 2, 150);
    sqlock_lock *alive = sharer(f, f->b, 1, 1500);
    sqlock_info *info;

    assert_becomes_true(!sqlock_is_held(dead), PATIENCE_MS);
    check_sleep(150);
    info = shown(f);
    if (info->state == SQLOCK_HELD) { /* on a slow machine it is over, too */
        assert_int_equal(info->sharers, 1);
        assert_int_equal(info->taken, 1);
        assert_null(strchr(info->sharer_names, '\n'));
    }
    sqlock_info_free(info, 1);
    fixture_await_expiry(f, f->name);
    info = shown(f);
    assert_int_equal(info->state, SQLOCK_EXPIRED);
    assert_int_equal(info->mode, SQLOCK_SHARED);
    assert_int_equal(info->sharers, 0);
    assert_int_equal(info->taken, 0);
    assert_contains(info->sharer_names, ", expired");
    assert_lacks(info->sharer_names, "left");
    assert_true(info->held_ms >= 1000);
    assert_string_not_equal(info->holder, "shared");
    sqlock_info_free(info, 1);
    assert_int_not_equal(sqlock_release(dead, &f->err), 0);
    assert_int_not_equal(sqlock_release(alive, &f->err), 0);
    lock_drop(dead);
    lock_drop(alive);
}

/* Leave a ticket of that weight. */
static void queue_up(struct fixture *f, uint32_t weight)
{
    struct lk_store *store = NULL;
    struct lk_batch batch;
    struct lk_item item;
    struct lk_lease lease = {
        .name = f->name,
        .ttl_ms = LONG_TTL_MS,
        .turn = -1,
        .weight = weight,
        .permits = weight > 0 ? 5 : 0,
        .may_wait = true,
    };
    char key[SQLOCK_KEY_SIZE];

    assert_int_equal(lk_store_of(f->a, &store, &f->err), 0);
    assert_int_equal(sqlock_key_of(key, f->name, SQLOCK_KEY_CURRENT, NULL), 0);
    lease.key = key;
    lk_batch_of_one(&batch, &item, &lease, lk_store_deadline(store));
    assert_ok(lk_batch_claim(store, &batch, &f->err));
    assert_int_equal(item.rc, SQLOCK_EBUSY);
}

static void test_waiters_say_whether_they_share(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = sharer(f, f->a, 5, 0);
    sqlock_info *info;
    char *line[3];

    queue_up(f, 1);
    queue_up(f, 0);
    queue_up(f, 3);
    info = shown(f);
    assert_int_equal(info->waiters, 3);
    line[0] = strtok(info->waiter_names, "\n");
    line[1] = strtok(NULL, "\n");
    line[2] = strtok(NULL, "\n");
    assert_contains(line[0], ", to share, for ");
    assert_lacks(line[1], "share");
    assert_contains(line[2], ", to share, weight 3, for ");
    sqlock_info_free(info, 1);
    end(lock);
}

/* The lock was shared before the other was taken, but by another. */
static void test_a_shared_lock_is_as_old_as_its_oldest_sharer(void **state)
{
    struct fixture *f = *state;
    sqlock_find_options options = SQLOCK_FIND_INIT;
    sqlock_options own = fixture_options(f);
    sqlock_registry *one, *two;
    sqlock_lock *first, *second, *other;
    char region[64];
    sqlock_info *rows;
    size_t count;

    (void)snprintf(region, sizeof region, "region-%u", f->serial);
    own.region = region;
    one = fixture_registry(f, &own);
    two = fixture_registry(f, &own);
    first = sharer(f, one, 1, 0);
    check_sleep(2);
    other = lock_obtain(one, "other");
    lock_take(other, 0);
    check_sleep(2);
    second = sharer(f, two, 1, 0);
    options.sort = SQLOCK_SORT_HELD;
    for (options.limit = 0; options.limit < 2; options.limit++) {
        assert_ok(sqlock_find(one, &options, &rows, &count, &f->err));
        assert_int_equal(count, options.limit == 1 ? 1 : 2);
        assert_string_equal(rows[0].name, f->name);
        sqlock_info_free(rows, count);
    }
    end(first);
    for (options.limit = 0; options.limit < 2; options.limit++) {
        assert_ok(sqlock_find(one, &options, &rows, &count, &f->err));
        assert_string_equal(rows[0].name, "other");
        sqlock_info_free(rows, count);
    }
    end(second);
    end(other);
    registry_end(one);
    registry_end(two);
}

/* --- breaking --- */

static int break_it(struct fixture *f, const char *client_id, int64_t token,
                    bool now)
{
    sqlock_break_options how = SQLOCK_BREAK_INIT;

    how.client_id = client_id;
    how.token = token;
    how.reason = "it has [\"hung\"]";
    how.who = "anna@desk";
    how.now = now;
    return sqlock_break(f->b, f->name, &how, &f->err);
}

static void test_F80_one_share_is_broken(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *one = sharer(f, f->a, 2, LONG_TTL_MS);
    sqlock_lock *two = sharer(f, f->b, 2, LONG_TTL_MS);
    char client_id[SQLOCK_KEY_SIZE];
    sqlock_info *info;

    /* the lock's token is that of the last share */
    assert_ok(break_it(f, NULL, sqlock_token(two), false));
    lock_renew(one, 0);
    assert_fails(SQLOCK_ELOST, sqlock_renew(two, 0, &f->err));
    assert_fails(SQLOCK_ELOST, sqlock_release(two, &f->err));
    info = shown(f);
    assert_int_equal(info->sharers, 2);
    assert_int_equal(info->taken, 4);
    assert_lacks(info->holder, "broken by");
    assert_contains(info->sharer_names,
                    "\nbroken by anna@desk: it has ('hung'), weight 2");
    sqlock_info_free(info, 1);
    sqlock_client_id(one, client_id);
    assert_fails(SQLOCK_ECONFLICT,
                 break_it(f, client_id, sqlock_token(one) + 1, false));
    assert_ok(break_it(f, client_id, sqlock_token(one), true));
    assert_fails(SQLOCK_ELOST, sqlock_release(one, &f->err));
    info = shown(f);
    assert_int_equal(info->sharers, 1);
    assert_int_equal(info->taken, 2);
    assert_contains(info->holder, "broken by anna@desk");
    sqlock_info_free(info, 1);
    assert_fails(SQLOCK_ECONFLICT, break_it(f, client_id, 0, false));
    lock_drop(one);
    lock_drop(two);
}

static void test_F80_all_shares_are_broken(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *one = sharer(f, f->a, 1, LONG_TTL_MS);
    sqlock_lock *two = sharer(f, f->b, 1, LONG_TTL_MS);
    char group[SQLOCK_KEY_SIZE];
    sqlock_lock *writer;
    sqlock_info *info;

    memcpy(group, fixture_row(f, f->name).client, sizeof group);
    assert_ok(break_it(f, group, 0, false));
    assert_fails(SQLOCK_ELOST, sqlock_renew(one, 0, &f->err));
    assert_fails(SQLOCK_ELOST, sqlock_release(two, &f->err));
    assert_int_not_equal(sqlock_release(one, &f->err), 0);
    info = shown(f);
    assert_int_equal(info->state, SQLOCK_HELD);
    assert_int_equal(info->mode, SQLOCK_EXCLUSIVE);
    assert_int_equal(info->sharers, 0);
    assert_int_equal(info->permits, 5);
    assert_contains(info->holder, "broken by anna@desk");
    assert_ok(break_it(f, info->client_id, 0, true));
    sqlock_info_free(info, 1);
    writer = lock_obtain(f->b, f->name);
    lock_drop(two);
    lock_take_and_give(writer);
    lock_drop(writer);
    lock_drop(one);
}

/* The token of a share that has left is nobody's, although the row has it. */
static void test_F80_no_share_is_broken_for_another(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *one = sharer(f, f->a, 1, LONG_TTL_MS);
    sqlock_lock *two = sharer(f, f->b, 1, LONG_TTL_MS);
    int64_t token = sqlock_token(two);

    end(two);
    assert_fails(SQLOCK_ECONFLICT, break_it(f, NULL, token, false));
    assert_contains(f->err.message, "shared");
    assert_fails(SQLOCK_ECONFLICT, break_it(f, NULL, token, true));
    lock_renew(one, 0);
    end(one);
    assert_fails(SQLOCK_ECONFLICT, break_it(f, NULL, token, false));
    assert_contains(f->err.message, "free");
}

/* --- reaping and looking --- */

/* Return how many rows the registry's region lost. */
static int64_t reap(struct fixture *f, sqlock_registry *registry,
                    int64_t retention_ms)
{
    int64_t removed = -1;

    assert_ok(sqlock_reap(registry, retention_ms, &removed, &f->err));
    return removed;
}

/* A shared row is old when its last sharer is over; then it is kept, with its
 * permits, until it is old enough. */
static void test_a_shared_lock_is_reaped_after_its_last_sharer(void **state)
{
    struct fixture *f = *state;
    sqlock_options own = fixture_options(f);
    sqlock_registry *one, *two;
    sqlock_lock *dead, *alive;
    char region[64];
    sqlock_info *info;

    (void)snprintf(region, sizeof region, "region-%u", f->serial);
    own.region = region;
    one = fixture_registry(f, &own);
    two = fixture_registry(f, &own);
    alive = sharer(f, one, 2, LONG_TTL_MS);
    dead = sharer(f, two, 2, 100);
    assert_becomes_true(!sqlock_is_held(dead), PATIENCE_MS);
    check_sleep(50);
    assert_true(reap(f, one, 0) == 0);
    lock_renew(alive, 0);
    assert_int_not_equal(sqlock_release(dead, &f->err), 0);
    end(alive);
    assert_true(reap(f, one, LONG_TTL_MS) == 0);
    assert_ok(sqlock_show(one, f->name, &info, &f->err));
    assert_int_equal(info->state, SQLOCK_FREE);
    assert_int_equal(info->permits, 5);
    sqlock_info_free(info, 1);
    check_sleep(5);
    assert_true(reap(f, one, 0) == 1);
    assert_fails(SQLOCK_ENOTFOUND, sqlock_show(one, f->name, &info, &f->err));
    lock_drop(dead);
    registry_end(one);
    registry_end(two);
}

/* Nobody who shares a lock is taken for a Spring service, nor for one whose
 * clock is off. */
static void test_the_doctor_knows_shared_locks(void **state)
{
    struct fixture *f = *state;
    sqlock_options own = fixture_options(f);
    struct diagnosis found;
    sqlock_registry *one, *two;
    sqlock_lock *first, *second;
    char region[64];

    (void)snprintf(region, sizeof region, "region-%u", f->serial);
    own.region = region;
    one = fixture_registry(f, &own);
    two = fixture_registry(f, &own);
    first = sharer(f, one, 2, 0);
    second = sharer(f, two, 2, 0);
    end(first);
    found = diagnosis_make(f, f->url, &own);
    assert_int_equal(diagnosis_worst(&found, "peers"), SQLOCK_FINE);
    assert_contains(diagnosis_find(&found, "peers")->found, "all 1 locks");
    diagnosis_clear(&found);
    end(second);
    registry_end(one);
    registry_end(two);
}

static const struct test tests[] = {
    TEST_ON(test_who_shares_a_lock_is_told, ON_ALL, IN_SQLOCK),
    TEST_ON(test_a_sharer_that_is_over_is_told, ON_ALL, IN_SQLOCK),
    TEST_ON(test_waiters_say_whether_they_share, ON_ALL, IN_SQLOCK),
    TEST_ON(test_a_shared_lock_is_as_old_as_its_oldest_sharer, ON_ALL,
            IN_SQLOCK),
    TEST_ON(test_F80_one_share_is_broken, ON_ALL, IN_SQLOCK),
    TEST_ON(test_F80_all_shares_are_broken, ON_ALL, IN_SQLOCK),
    TEST_ON(test_F80_no_share_is_broken_for_another, ON_ALL, IN_SQLOCK),
    TEST_ON(test_a_shared_lock_is_reaped_after_its_last_sharer, ON_ALL,
            IN_SQLOCK),
    TEST_ON(test_the_doctor_knows_shared_locks, ON_ALL, IN_SQLOCK),
};
const struct topic topic_sharers = TOPIC(tests);
