/*
 * lock.c - the life of a lock, from obtain to drop: whatever fails, the library
 * reports truly whether the lock is held, and the lock can be acquired again,
 * at once unless a failed call may have left its row held
 */
#include "exhaust.h"
#include "sqlock/async.h"
#include "sqlock/lease.h"

struct life {
    sqlock_registry *registry;
    sqlock_lock *lock;
    sqlock_lock *other; /* of another registry */
    bool may_remain;    /* a failed call may have left the row held */
    bool is_ghost;      /* that call was a claim in doubt */
};

/* Check that the lock is held so many times, and that the row has the handle's
 * CLIENT_ID. */
static void check_held(struct fixture *f, const struct life *life,
                       uint32_t times)
{
    char client[SQLOCK_KEY_SIZE];

    exhaust_pause();
    assert_true(sqlock_is_held(life->lock));
    assert_int_equal(sqlock_hold_count(life->lock), times);
    sqlock_client_id(life->lock, client);
    assert_string_equal(fixture_row(f, f->name).client, client);
    assert_true(sqlock_token(life->lock) > 0);
    exhaust_go_on();
}

/* Check that the lock is not held, and that its row is free; with may_remain,
 * note that the row may not be. */
static void check_not_held(struct fixture *f, struct life *life,
                           bool may_remain)
{
    exhaust_pause();
    assert_false(sqlock_is_held(life->lock));
    assert_int_equal(sqlock_hold_count(life->lock), 0);
    if (may_remain)
        life->may_remain = true;
    else
        assert_true(fixture_is_free(f, f->name));
    exhaust_go_on();
}

static void look(struct fixture *f, const struct life *life)
{
    sqlock_error err = {0};
    sqlock_info *row = (sqlock_info *)&err; /* not NULL */
    sqlock_info *rows = row;
    size_t count = 1;
    int rc;

    rc = sqlock_show(life->registry, f->name, &row, &err);
    if (exhaust_expect(rc, &err))
        assert_int_equal(row->state, SQLOCK_HELD);
    else
        assert_null(row);
    sqlock_info_free(row, 1);
    rc = list_all(life->registry, &rows, &count, &err);
    if (exhaust_expect(rc, &err))
        assert_true(count > 0);
    else
        assert_null(rows);
    sqlock_info_free(rows, count);
}

static void live(struct fixture *f, struct life *life,
                 const sqlock_acquire_options *options)
{
    sqlock_error err = {0};
    int rc = sqlock_acquire(life->lock, 0, options, &err);

    if (!exhaust_expect(rc, &err)) {
        life->is_ghost = rc == SQLOCK_EUNCERTAIN;
        check_not_held(f, life, life->is_ghost);
        return;
    }
    check_held(f, life, 1);
    rc = sqlock_acquire(life->lock, 0, NULL, &err);
    assert_true(exhaust_expect(rc, &err));
    (void)exhaust_expect(sqlock_renew(life->lock, 0, &err), &err);
    check_held(f, life, 2);
    look(f, life);
    assert_true(exhaust_expect(sqlock_release(life->lock, &err), &err));
    check_held(f, life, 1);
    rc = sqlock_release(life->lock, &err);
    check_not_held(f, life, !exhaust_expect(rc, &err));
}

static void act_life(struct fixture *f, void *state)
{
    struct life *life = state;
    sqlock_error err = {0};
    int rc;

    life->registry = f->a;
    life->lock = (sqlock_lock *)state; /* not NULL */
    rc = sqlock_obtain(&life->lock, f->a, f->name, &err);
    if (!exhaust_expect(rc, &err)) {
        assert_null(life->lock);
        return;
    }
    live(f, life, NULL);
    assert_true(exhaust_expect(sqlock_drop(life->lock, &err), &err));
}

/* Check that the lock can be acquired again. */
static void check_life(struct fixture *f, void *state)
{
    struct life *life = state;
    sqlock_lock *next;

    /* A claim in doubt is resolved by the registry that made it, unless there
     * was no memory to record the claim.  A release that failed may leave the
     * row until its lease ends. */
    next = lock_obtain(life->may_remain ? f->a : f->b, f->name);
    if (life->may_remain && (exhaust_is_lasting() || !life->is_ghost))
        (void)sql_run(&f->sql, "DELETE FROM %s", f->table);
    lock_take(next, 0);
    lock_end(next);
    /* Otherwise the list of act_life() would be longer in each run. */
    (void)sql_run(&f->sql, "DELETE FROM %s", f->table);
}

TEST(test_the_life_of_a_lock)
{
    static const struct experiment experiment = {
        .act = act_life,
        .check = check_life,
        .state_bytes = sizeof(struct life),
    };

    exhaust_all(f, &experiment);
}

/* ----------------------------------------------------------- a renewed lock */

static void told(void *context, sqlock_lock *lock, int code)
{
    (void)context;
    (void)lock;
    (void)code;
}

static void prepare_renewed(struct fixture *f, void *state)
{
    struct life *life = state;
    sqlock_options options = exhaust_options(f);

    life->registry = fixture_registry(f, &options);
    life->lock = lock_obtain(life->registry, f->name);
}

static void act_renewed(struct fixture *f, void *state)
{
    struct life *life = state;
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    sqlock_error err = {0};
    int fd = -1;
    int rc;

    options.auto_renew = true;
    options.on_lost = told;
    rc = sqlock_lost_fd(&fd, life->lock, &err);
    assert_true(exhaust_expect(rc, &err) == (fd >= 0));
    live(f, life, &options);
}

static void check_renewed(struct fixture *f, void *state)
{
    struct life *life = state;

    registry_end(life->registry);
    check_life(f, state);
}

TEST(test_the_life_of_a_renewed_lock)
{
    static const struct experiment experiment = {
        .prepare = prepare_renewed,
        .act = act_renewed,
        .check = check_renewed,
        .state_bytes = sizeof(struct life),
    };

    exhaust_all(f, &experiment);
}

/* -------------------------------------------------- another registry's lock */

static void prepare_taken(struct fixture *f, void *state)
{
    struct life *life = state;

    life->lock = lock_obtain(f->a, f->name);
    life->other = lock_obtain(f->b, f->name);
    lock_take(life->other, 0);
}

static void act_taken(struct fixture *f, void *state)
{
    struct life *life = state;
    sqlock_error err = {0};
    int rc;

    (void)f;
    rc = sqlock_acquire(life->lock, 0, NULL, &err);
    assert_false(exhaust_expect(rc, &err));
    assert_false(sqlock_is_held(life->lock));
    rc = sqlock_acquire(life->lock, 20, NULL, &err);
    assert_false(exhaust_expect(rc, &err));
    assert_false(sqlock_is_held(life->lock));
}

static void check_taken(struct fixture *f, void *state)
{
    struct life *life = state;
    char client[SQLOCK_KEY_SIZE];

    assert_true(sqlock_is_held(life->other));
    sqlock_client_id(life->other, client);
    assert_string_equal(fixture_row(f, f->name).client, client);
    lock_give(life->other);
    exhaust_take(life->lock);
    lock_end(life->lock);
    lock_drop(life->other);
}

TEST(test_somebodys_lock)
{
    static const struct experiment experiment = {
        .prepare = prepare_taken,
        .act = act_taken,
        .check = check_taken,
        .state_bytes = sizeof(struct life),
    };

    exhaust_all(f, &experiment);
}
