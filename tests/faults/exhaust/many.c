/*
 * many.c - several locks in one call; reaping, and breaking another registry's
 * lock
 */
#include "exhaust.h"
#include "sqlock/many.h"
#include "sqlock/lease.h"

#include <stdio.h>

#define SOME 4

struct some {
    sqlock_lock *locks[SOME];
    char names[SOME][96];
    int results[SOME];
    bool may_remain;
};

static void prepare_some(struct fixture *f, void *state)
{
    struct some *some = state;

    for (size_t i = 0; i < SOME; i++) {
        (void)snprintf(some->names[i], sizeof some->names[i], "%s/%zu", f->name,
                       i);
        some->locks[i] = lock_obtain(f->a, some->names[i]);
    }
}

/* Check that all locks are held, or none, by the handles and by the table. */
static void check_all(struct fixture *f, const struct some *some, bool held)
{
    exhaust_pause();
    for (size_t i = 0; i < SOME; i++) {
        struct row row = fixture_row(f, some->names[i]);
        char client[SQLOCK_KEY_SIZE] = "";

        assert_true(sqlock_is_held(some->locks[i]) == held);
        assert_int_equal(sqlock_hold_count(some->locks[i]), held ? 1 : 0);
        if (held)
            sqlock_client_id(some->locks[i], client);
        if (held || !some->may_remain)
            assert_string_equal(row.client, client);
    }
    exhaust_go_on();
}

static void act_some(struct fixture *f, void *state)
{
    struct some *some = state;
    sqlock_error err = {0};
    int rc;

    rc = sqlock_acquire_many(some->locks, SOME, 0, NULL, some->results, &err);
    if (!exhaust_expect(rc, &err)) {
        some->may_remain = rc == SQLOCK_EUNCERTAIN;
        check_all(f, some, false);
        return;
    }
    check_all(f, some, true);
    rc = sqlock_renew_many(some->locks, SOME, some->results, &err);
    (void)exhaust_expect(rc, &err);
    check_all(f, some, true);
    some->results[0] = 1;
    rc = sqlock_release_many(some->locks, SOME, some->results, &err);
    some->may_remain = !exhaust_expect(rc, &err);
    if (rc == 0)
        assert_int_equal(some->results[0], 0);
    /* A call that was refused writes no results, and all are held as before. */
    check_all(f, some, some->results[0] == 1);
}

static void check_some(struct fixture *f, void *state)
{
    struct some *some = state;

    if (sqlock_is_held(some->locks[0]))
        assert_int_equal(
            sqlock_release_many(some->locks, SOME, some->results, &f->err), 0);
    for (size_t i = 0; i < SOME; i++) {
        if (some->may_remain)
            (void)sql_run(&f->sql,
                          "UPDATE %s SET CLIENT_ID = NULL WHERE LOCK_KEY = "
                          "'%s'",
                          f->table, sqlock_key(some->locks[i]));
        lock_take(some->locks[i], 0);
        lock_end(some->locks[i]);
    }
}

TEST(test_several_locks_in_one_call)
{
    static const struct experiment experiment = {
        .prepare = prepare_some,
        .act = act_some,
        .check = check_some,
        .state_bytes = sizeof(struct some),
    };

    exhaust_all(f, &experiment);
}

/* ----------------------------------------------- another registry's lock -- */

struct broken {
    sqlock_lock *lock;
    bool is_broken;
};

static void prepare_broken(struct fixture *f, void *state)
{
    struct broken *broken = state;

    broken->lock = lock_obtain(f->b, f->name);
    lock_take(broken->lock, 0);
}

static void act_broken(struct fixture *f, void *state)
{
    struct broken *broken = state;
    sqlock_break_options options = SQLOCK_BREAK_INIT;
    sqlock_error err = {0};
    int64_t removed = 0;
    int rc;

    options.token = sqlock_token(broken->lock);
    options.reason = "no memory";
    (void)exhaust_expect(sqlock_reap(f->a, 0, &removed, &err), &err);
    rc = sqlock_break(f->a, f->name, &options, &err);
    broken->is_broken = exhaust_expect(rc, &err);
}

/* A break that has reported success has taken effect. */
static void check_broken(struct fixture *f, void *state)
{
    struct broken *broken = state;
    int rc = sqlock_release(broken->lock, &f->err);

    if (broken->is_broken)
        assert_code(SQLOCK_ELOST, rc, &f->err);
    else
        assert_code_of(0, SQLOCK_ELOST, rc, &f->err);
    lock_drop(broken->lock);
}

TEST(test_breaking_and_reaping)
{
    static const struct experiment experiment = {
        .prepare = prepare_broken,
        .act = act_broken,
        .check = check_broken,
        .state_bytes = sizeof(struct broken),
    };

    exhaust_all(f, &experiment);
}
