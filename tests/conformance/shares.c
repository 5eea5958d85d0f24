/*
 * shares.c - shared locks beyond what a scene can say: a lock that is full, its
 * age in a list, and what the doctor makes of it
 */
#include "diagnosis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lease/share.h"
#include "sqlock/lease.h"
#include "sqlock/shared.h"
#include "sqlock/tx.h"

static int share(struct fixture *f, sqlock_lock *lock, uint32_t ttl_ms)
{
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;

    options.ttl_ms = ttl_ms;
    options.mode = SQLOCK_SHARED;
    return sqlock_acquire(lock, 0, &options, &f->err);
}

/* Return a handle of that registry that shares the lock. */
static sqlock_lock *sharer(struct fixture *f, sqlock_registry *registry)
{
    sqlock_lock *lock = lock_obtain(registry, f->name);

    assert_ok(share(f, lock, 0));
    return lock;
}

/* --- a full lock --- */

#define GROUP_CHARS 62 /* of SHARERS, before the first sharer: sharer.h */

/* Return the text of SHARERS with `count` copies of its only sharer added, each
 * with a CLIENT_ID of its own. */
static char *with_copies(const char *sharers, unsigned count)
{
    const char *one = sharers + GROUP_CHARS;
    size_t length = strlen(one) - strlen("0]}");
    char *text = malloc(GROUP_CHARS + (count + 1) * length + sizeof "0]}");
    char *end;

    assert_non_null(text);
    memcpy(text, sharers, GROUP_CHARS + length);
    end = text + GROUP_CHARS + length;
    for (unsigned i = 0; i < count; i++, end += length) {
        memcpy(end, one, length);
        (void)snprintf(end + 2, SQLOCK_KEY_SIZE,
                       "%08x-0000-4000-8000-000000000000", i);
        end[2 + SQLOCK_KEY_SIZE - 1] = '"';
    }
    memcpy(end, "0]}", sizeof "0]}");
    return text;
}

/* Add copies of the lock's only sharer, as if each had claimed it. */
static void add_copies(struct fixture *f, unsigned count)
{
    char sharers[1000], update[200];
    char key[SQLOCK_KEY_SIZE];
    sqlock_value value;
    sqlock_tx *tx = NULL;
    char *text;

    assert_ok(sqlock_key_of(key, f->name, SQLOCK_KEY_CURRENT, &f->err));
    assert_true(sql_text(&f->sql, sharers, sizeof sharers,
                         "SELECT SHARERS FROM %s WHERE LOCK_KEY = '%s'",
                         f->table, key));
    text = with_copies(sharers, count);
    value = sqlock_text(text);
    (void)snprintf(update, sizeof update,
                   "UPDATE %s SET SHARERS = ? WHERE LOCK_KEY = '%s'", f->table,
                   key);
    assert_ok(sqlock_tx_begin(&tx, f->a, &f->err));
    assert_ok(sqlock_tx_execute(tx, update, &value, 1, NULL, &f->err));
    assert_ok(sqlock_tx_commit(tx, &f->err));
    free(text);
}

TEST_ON(test_a_full_lock_is_refused, ON_ALL, IN_SQLOCK)
{
    sqlock_options options = fixture_options(f);
    sqlock_registry *registry = fixture_registry(f, &options);
    sqlock_lock *first = lock_obtain(f->a, f->name);
    sqlock_lock *last = lock_obtain(f->b, f->name);
    sqlock_lock *more = lock_obtain(registry, f->name);

    assert_ok(share(f, first, 3600000));
    add_copies(f, LK_SHARERS_MAX - 2);
    assert_ok(share(f, last, 0));
    assert_fails(SQLOCK_ECONFLICT, share(f, more, 0));
    assert_contains(f->err.message, "200");
    lock_end(first);
    assert_ok(share(f, more, 0));
    lock_end(more);
    lock_end(last);
    registry_end(registry);
}

/* --- its age, and the doctor --- */

/* The lock was shared before the other was taken, but by another. */
TEST_ON(test_a_shared_lock_is_as_old_as_its_oldest_sharer, ON_ALL, IN_SQLOCK)
{
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
    first = sharer(f, one);
    check_sleep(2);
    other = lock_obtain(one, "other");
    lock_take(other, 0);
    check_sleep(2);
    second = sharer(f, two);
    options.sort = SQLOCK_SORT_HELD;
    for (options.limit = 0; options.limit < 2; options.limit++) {
        assert_ok(sqlock_find(one, &options, &rows, &count, &f->err));
        assert_int_equal(count, options.limit == 1 ? 1 : 2);
        assert_string_equal(rows[0].name, f->name);
        sqlock_info_free(rows, count);
    }
    lock_end(first);
    for (options.limit = 0; options.limit < 2; options.limit++) {
        assert_ok(sqlock_find(one, &options, &rows, &count, &f->err));
        assert_string_equal(rows[0].name, "other");
        sqlock_info_free(rows, count);
    }
    lock_end(second);
    lock_end(other);
    registry_end(one);
    registry_end(two);
}

/* Nobody who shares a lock is taken for a Spring service, nor for one whose
 * clock is off. */
TEST_ON(test_the_doctor_knows_shared_locks, ON_ALL, IN_SQLOCK)
{
    sqlock_options own = fixture_options(f);
    struct diagnosis found;
    sqlock_registry *one, *two;
    sqlock_lock *first, *second;
    char region[64];

    (void)snprintf(region, sizeof region, "region-%u", f->serial);
    own.region = region;
    one = fixture_registry(f, &own);
    two = fixture_registry(f, &own);
    first = sharer(f, one);
    second = sharer(f, two);
    lock_end(first);
    found = diagnosis_make(f, f->url, &own);
    assert_int_equal(diagnosis_worst(&found, "peers"), SQLOCK_FINE);
    assert_contains(diagnosis_find(&found, "peers")->found, "all 1 locks");
    diagnosis_clear(&found);
    lock_end(second);
    registry_end(one);
    registry_end(two);
}
