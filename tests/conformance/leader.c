/*
 * leader.c - the text of a leader: who may publish it, and for how long it
 * counts
 */
#include "conformance.h"

#include <stdio.h>
#include <string.h>

#include "sqlock/leader.h"
#include "sqlock/shared.h"
#include "sqlock/tx.h"
#include "support/workers.h"

/* --- what is published --- */

/* Assert that another registry tells this text of the lock; NULL: none. */
static void check_text(struct fixture *f, const char *expected)
{
    sqlock_info *info = NULL;

    assert_ok(sqlock_show(f->b, f->name, &info, &f->err));
    if (expected == NULL)
        assert_null(info->text);
    else if (info->text == NULL)
        fail_msg("no text is told, not %s", expected);
    else
        assert_string_equal(info->text, expected);
    sqlock_info_free(info, 1);
}

static void publish(struct fixture *f, sqlock_lock *lock, const char *text)
{
    assert_ok(sqlock_publish(lock, text, &f->err));
    check_text(f, text);
}

static sqlock_lock *leader(struct fixture *f)
{
    sqlock_lock *lock = lock_obtain(f->a, f->name);

    lock_take(lock, LONG_TTL_MS);
    return lock;
}

static void test_a_leader_publishes_a_text(void **state)
{
    static const char *const texts[] = {
        "10.0.0.7:8080",
        "10.0.0.8:8080",
        "10.0.0.8:8080",
        "",
        "\"quoted\" 'text' \\u0041 \\ { [\" \"],",
        "a\nb\tc\x01\x7f",
        "\xc3\xa4\xe2\x82\xac\xf0\x9f\x94\x92",
    };
    struct fixture *f = *state;
    char longest[SQLOCK_LEADER_TEXT_MAX + 1];
    sqlock_lock *lock = leader(f);
    int64_t token = sqlock_token(lock);

    check_text(f, NULL);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        check_row(texts[i]);
        publish(f, lock, texts[i]);
    }
    check_row(NULL);
    memset(longest, 0x1f, sizeof longest);
    longest[SQLOCK_LEADER_TEXT_MAX] = '\0';
    publish(f, lock, longest);
    lock_renew(lock, LONG_TTL_MS);
    check_text(f, longest);
    assert_int_equal(sqlock_token(lock), token);
    lock_give(lock);
    check_text(f, NULL);
    lock_take(lock, LONG_TTL_MS);
    check_text(f, NULL);
    publish(f, lock, "again");
    lock_end(lock);
}

/* A list tells it, too. */
static void test_a_list_tells_the_text(void **state)
{
    struct fixture *f = *state;
    sqlock_find_options options = SQLOCK_FIND_INIT;
    sqlock_lock *lock = leader(f);
    sqlock_info *rows = NULL;
    size_t count = 0;

    publish(f, lock, "listed");
    options.pattern = f->name;
    options.sort = SQLOCK_SORT_HELD;
    for (options.limit = 0; options.limit < 2; options.limit++) {
        assert_ok(sqlock_find(f->b, &options, &rows, &count, &f->err));
        assert_int_equal(count, 1);
        assert_string_equal(rows[0].text, "listed");
        assert_int_equal(rows[0].mode, SQLOCK_EXCLUSIVE);
        sqlock_info_free(rows, count);
    }
    lock_end(lock);
}

/* --- all that is done with a row, after its leader has published --- */

struct successor {
    struct fixture *fixture;
    sqlock_lock *lock;
};

/* Another thread waits for the lock, gets it by a hand-over, and leads without
 * a text. */
static int lead_next(struct worker *worker)
{
    const struct successor *s = worker->context;
    sqlock_info *info = NULL;
    bool has_text;

    worker_expect(worker, 0,
                  lock_try(s->lock, PATIENCE_MS, LONG_TTL_MS, &worker->err));
    worker_expect(
        worker, 0,
        sqlock_show(s->fixture->b, s->fixture->name, &info, &worker->err));
    has_text = info->state != SQLOCK_HELD || info->text != NULL;
    sqlock_info_free(info, 1);
    worker_expect(worker, 0, sqlock_release(s->lock, &worker->err));
    return has_text ? worker_fail(worker, "the text is still there") : 0;
}

static void hand_over(struct fixture *f, sqlock_registry *to)
{
    sqlock_lock *lock = leader(f);
    struct successor next = {f, lock_obtain(to, f->name)};
    struct worker worker;

    publish(f, lock, "handed over");
    worker_start(&worker, lead_next, &next);
    check_sleep(50);
    lock_give(lock);
    worker_join(&worker);
    lock_drop(next.lock);
    lock_drop(lock);
}

static void test_a_hand_over_ends_the_text(void **state)
{
    struct fixture *f = *state;

    hand_over(f, f->a);
    fixture_next(f);
    hand_over(f, f->b);
}

static sqlock_lock *sharer(struct fixture *f, uint32_t permits)
{
    sqlock_lock *lock = lock_obtain(f->b, f->name);
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;

    options.mode = SQLOCK_SHARED;
    options.permits = permits;
    assert_ok(sqlock_acquire(lock, 0, &options, &f->err));
    return lock;
}

static void test_sharers_follow_a_leader(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = leader(f);
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    sqlock_lock *one = lock_obtain(f->b, f->name);
    sqlock_info *info = NULL;

    publish(f, lock, "alone");
    options.mode = SQLOCK_SHARED;
    assert_fails(SQLOCK_EBUSY, sqlock_acquire(one, 0, &options, &f->err));
    check_text(f, "alone");
    lock_give(lock);
    assert_ok(sqlock_acquire(one, 0, &options, &f->err));
    check_text(f, NULL);
    assert_ok(sqlock_show(f->a, f->name, &info, &f->err));
    assert_int_equal(info->mode, SQLOCK_SHARED);
    assert_int_equal(info->sharers, 1);
    sqlock_info_free(info, 1);
    lock_give(one);
    lock_take(lock, LONG_TTL_MS);
    publish(f, lock, "alone again");
    fixture_expire(f, f->name);
    assert_ok(sqlock_acquire(one, 0, &options, &f->err));
    check_text(f, NULL);
    lock_end(one);
    assert_fails(SQLOCK_ELOST, sqlock_release(lock, &f->err));
    lock_drop(lock);
}

static void test_permits_replace_the_text(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = leader(f);
    sqlock_lock *one;
    sqlock_info *info = NULL;

    publish(f, lock, "alone");
    assert_ok(sqlock_set_permits(f->b, f->name, 3, &f->err));
    check_text(f, NULL);
    assert_fails(SQLOCK_ECONFLICT, sqlock_publish(lock, "more", &f->err));
    assert_contains(f->err.message, "3 permits");
    lock_give(lock);
    one = sharer(f, 3);
    assert_ok(sqlock_show(f->a, f->name, &info, &f->err));
    assert_int_equal(info->permits, 3);
    assert_int_equal(info->taken, 1);
    sqlock_info_free(info, 1);
    lock_end(one);
    lock_drop(lock);
}

static void test_a_downgrade_ends_the_text(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = leader(f);
    sqlock_lock *one;

    publish(f, lock, "alone");
    assert_ok(sqlock_downgrade(lock, &f->err));
    check_text(f, NULL);
    one = sharer(f, 0);
    assert_fails(SQLOCK_EINVAL, sqlock_publish(lock, "more", &f->err));
    lock_end(one);
    lock_end(lock);
    assert_true(fixture_is_free(f, f->name));
}

static void test_a_break_ends_the_text(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = leader(f);

    publish(f, lock, "unbroken");
    lock_break(f, lock, false);
    check_text(f, NULL);
    assert_fails(SQLOCK_ELOST, sqlock_publish(lock, "late", &f->err));
    check_text(f, NULL);
    assert_fails(SQLOCK_ELOST, sqlock_release(lock, &f->err));
    fixture_expire(f, f->name);
    lock_take(lock, LONG_TTL_MS);
    publish(f, lock, "unbroken");
    lock_break(f, lock, true);
    check_text(f, NULL);
    assert_true(fixture_is_free(f, f->name));
    assert_fails(SQLOCK_ELOST, sqlock_publish(lock, "late", &f->err));
    assert_fails(SQLOCK_ELOST, sqlock_release(lock, &f->err));
    lock_take_and_give(lock);
    lock_drop(lock);
}

static void test_a_row_with_a_text_is_reaped(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = leader(f);
    sqlock_info *info = NULL;
    int64_t removed = 0;

    publish(f, lock, "reaped");
    lock_give(lock);
    check_sleep(5);
    assert_ok(sqlock_reap(f->b, 1, &removed, &f->err));
    assert_true(removed > 0);
    assert_fails(SQLOCK_ENOTFOUND, sqlock_show(f->b, f->name, &info, &f->err));
    lock_take(lock, LONG_TTL_MS);
    check_text(f, NULL);
    lock_end(lock);
}

/* A Spring service does not know the column. */
static void test_a_peer_has_no_text(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = leader(f);
    char end[160];

    publish(f, lock, "ours");
    (void)sql_run(&f->sql,
                  "UPDATE %s SET CLIENT_ID = "
                  "'b0000000-0000-4000-8000-00000000000b', EXPIRED_AFTER = %s "
                  "WHERE LOCK_KEY = '%s'",
                  f->table, fixture_time(f, end, 60000000),
                  fixture_row(f, f->name).key);
    check_text(f, NULL);
    assert_fails(SQLOCK_ELOST, sqlock_publish(lock, "late", &f->err));
    check_text(f, NULL);
    assert_fails(SQLOCK_ELOST, sqlock_release(lock, &f->err));
    lock_drop(lock);
}

/* --- what is refused --- */

static void test_texts_are_checked(void **state)
{
    struct fixture *f = *state;
    char longer[SQLOCK_LEADER_TEXT_MAX + 2];
    sqlock_lock *lock = leader(f);

    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    publish(f, lock, "stays");
    assert_fails(SQLOCK_EINVAL, sqlock_publish(lock, longer, &f->err));
    assert_contains(f->err.message, "1024");
    assert_fails(SQLOCK_EINVAL, sqlock_publish(lock, "\xff", &f->err));
    assert_contains(f->err.message, "UTF-8");
    assert_fails(SQLOCK_EINVAL, sqlock_publish(lock, NULL, &f->err));
    assert_fails(SQLOCK_EINVAL, sqlock_publish(NULL, "x", &f->err));
    check_text(f, "stays");
    lock_end(lock);
}

static void test_only_the_leader_publishes(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = leader(f);
    sqlock_lock *other = lock_obtain(f->b, f->name);
    sqlock_lock *share;
    sqlock_tx *tx = NULL;

    publish(f, lock, "stays");
    assert_fails(SQLOCK_EOWNER, sqlock_publish(other, "no", &f->err));
    assert_ok(sqlock_tx_begin(&tx, f->a, &f->err));
    assert_ok(sqlock_tx_guard(tx, lock, &f->err));
    assert_fails(SQLOCK_EINUSE, sqlock_publish(lock, "no", &f->err));
    assert_ok(sqlock_tx_rollback(tx, &f->err));
    check_text(f, "stays");
    publish(f, lock, "goes");
    lock_give(lock);
    assert_fails(SQLOCK_EOWNER, sqlock_publish(lock, "no", &f->err));
    lock_drop(other);
    share = sharer(f, 0);
    assert_fails(SQLOCK_EINVAL, sqlock_publish(share, "no", &f->err));
    assert_contains(f->err.message, "SQLOCK_EXCLUSIVE");
    check_text(f, NULL);
    lock_end(share);
    lock_drop(lock);
}

/* The row decides, not what the former leader believes. */
static void test_a_lease_that_is_over_publishes_nothing(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = leader(f);
    sqlock_lock *next = lock_obtain(f->b, f->name);

    fixture_expire(f, f->name);
    assert_true(sqlock_remaining_ms(lock) > 0);
    assert_fails(SQLOCK_EEXPIRED, sqlock_publish(lock, "late", &f->err));
    assert_int_equal(sqlock_remaining_ms(lock), 0);
    assert_fails(SQLOCK_EEXPIRED, sqlock_release(lock, &f->err));
    lock_take(lock, LONG_TTL_MS);
    fixture_expire(f, f->name);
    lock_take(next, LONG_TTL_MS);
    publish(f, next, "new");
    assert_true(sqlock_remaining_ms(lock) > 0);
    assert_fails(SQLOCK_ELOST, sqlock_publish(lock, "late", &f->err));
    check_text(f, "new");
    assert_fails(SQLOCK_ELOST, sqlock_release(lock, &f->err));
    lock_drop(lock);
    lock_end(next);
}

static void test_springs_tables_have_no_text(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = leader(f);

    assert_fails(SQLOCK_ENOTSUP, sqlock_publish(lock, "no", &f->err));
    assert_contains(f->err.message, "layout of Spring's");
    check_text(f, NULL);
    lock_end(lock);
}

static const struct test tests[] = {
    TEST_ON(test_a_leader_publishes_a_text, ON_ALL, IN_SQLOCK),
    TEST_ON(test_a_list_tells_the_text, ON_ALL, IN_SQLOCK),
    TEST_ON(test_a_hand_over_ends_the_text, ON_ALL, IN_SQLOCK),
    TEST_ON(test_sharers_follow_a_leader, ON_ALL, IN_SQLOCK),
    TEST_ON(test_permits_replace_the_text, ON_ALL, IN_SQLOCK),
    TEST_ON(test_a_downgrade_ends_the_text, ON_ALL, IN_SQLOCK),
    TEST_ON(test_a_break_ends_the_text, ON_ALL, IN_SQLOCK),
    TEST_ON(test_a_row_with_a_text_is_reaped, ON_ALL, IN_SQLOCK),
    TEST_ON(test_a_peer_has_no_text, ON_ALL, IN_SQLOCK),
    TEST_ON(test_texts_are_checked, ON_ALL, IN_SQLOCK),
    TEST_OF_ROWS(test_only_the_leader_publishes, ON_ALL, IN_SQLOCK),
    TEST_ON(test_a_lease_that_is_over_publishes_nothing, ON_ALL, IN_SQLOCK),
    TEST_ON(test_springs_tables_have_no_text, ON_ALL, IN_SPRING7 | IN_SPRING6),
};
const struct topic topic_leader = TOPIC(tests);
