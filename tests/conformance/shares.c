/*
 * shares.c - leases that share their lock, by the functions of src/lease: what
 * is granted, and what is known of it after each outcome
 */
#include "conformance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lease/row.h"
#include "lease/share.h"
#include "sqlock/tx.h"

#define TTL_MS 60000u

/* --- the functions --- */

static struct lk_store *store_of(struct fixture *f)
{
    struct lk_store *store = NULL;

    assert_int_equal(lk_store_of(f->a, &store, &f->err), 0);
    return store;
}

static const char *key_of(struct fixture *f)
{
    static char key[SQLOCK_KEY_SIZE];

    assert_int_equal(sqlock_key_of(key, f->name, SQLOCK_KEY_CURRENT, NULL), 0);
    return key;
}

static struct lk_lease new_lease(struct fixture *f, uint32_t weight,
                                 uint32_t permits)
{
    return (struct lk_lease){
        .key = key_of(f),
        .name = f->name,
        .ttl_ms = TTL_MS,
        .turn = -1,
        .weight = weight,
        .permits = permits,
    };
}

/* Send a batch of one, and return the lease's result; err is about it. */
static int send_one(struct fixture *f, struct lk_lease *lease, lk_batch_fn send)
{
    struct lk_batch batch;
    struct lk_item item;
    int rc;

    memset(&f->err, 0, sizeof f->err);
    lk_batch_of_one(&batch, &item, lease, lk_store_deadline(store_of(f)));
    rc = send(store_of(f), &batch, &f->err);
    *lease = item.lease;
    if (rc == 0 && send == lk_batch_claim)
        (void)lk_claim_error(&item, &f->err);
    return rc < 0 ? rc : item.rc;
}

static int take(struct fixture *f, struct lk_lease *lease)
{
    return send_one(f, lease, lk_batch_claim);
}

static int renew(struct fixture *f, struct lk_lease *lease)
{
    return send_one(f, lease, lk_batch_renew);
}

static int give(struct fixture *f, struct lk_lease *lease)
{
    return send_one(f, lease, lk_batch_release);
}

static struct lk_row row_for(struct fixture *f, const struct lk_lease *lease)
{
    struct lk_batch batch;
    struct lk_item item;

    lk_batch_of_one(&batch, &item, lease, lk_store_deadline(store_of(f)));
    assert_int_equal(lk_rows_read(store_of(f), &batch, NULL), 0);
    return item.row;
}

/* --- the tests --- */

static void test_a_share_is_claimed_renewed_and_released(void **state)
{
    struct fixture *f = *state;
    struct lk_lease one = new_lease(f, 1, 0);
    struct lk_lease two = new_lease(f, 1, 0);
    struct lk_lease writer = new_lease(f, 0, 0);
    struct lk_row row;
    int64_t deadline_ns;

    assert_int_equal(take(f, &one), 0);
    assert_int_equal(take(f, &two), 0);
    assert_less(one.token, two.token);
    assert_int_equal(take(f, &writer), SQLOCK_EBUSY);
    row = row_for(f, &one);
    assert_true(row.is_shared && row.is_taken && row.is_sqlocks);
    assert_int_equal(row.sharers, 2);
    assert_string_equal(row.client_id, one.client_id);
    assert_int_equal(row.token, one.token);
    row = row_for(f, &writer);
    assert_true(row.is_shared && row.is_taken);
    assert_string_not_equal(row.client_id, two.client_id);
    deadline_ns = one.deadline_boot_ns;
    check_sleep(5);
    assert_int_equal(renew(f, &one), 0);
    assert_less(deadline_ns, one.deadline_boot_ns);
    assert_int_equal(give(f, &one), 0);
    assert_int_equal(give(f, &one), SQLOCK_ELOST);
    assert_int_equal(renew(f, &one), SQLOCK_ELOST);
    assert_int_equal(give(f, &two), 0);
    assert_int_equal(take(f, &writer), 0);
    assert_less(two.token, writer.token);
    assert_int_equal(give(f, &writer), 0);
}

/* A writer that waits learns that others share the lock: nobody rings for a
 * group on MySQL. */
static void test_a_writer_learns_whom_it_waits_for(void **state)
{
    struct fixture *f = *state;
    struct lk_lease reader = new_lease(f, 1, 0);
    struct lk_lease writer = new_lease(f, 0, 0);
    struct lk_batch batch;
    struct lk_item item;

    assert_int_equal(take(f, &reader), 0);
    writer.may_wait = true;
    lk_batch_of_one(&batch, &item, &writer, lk_store_deadline(store_of(f)));
    assert_lock_ok(lk_batch_claim(store_of(f), &batch, &f->err), &f->err);
    assert_int_equal(item.rc, SQLOCK_EBUSY);
    assert_true(item.row.is_shared && item.row.is_taken);
    assert_int_equal(item.row.place, 0);
    lk_resolver_leave(store_of(f), reader.key, item.lease.client_id, false);
    assert_int_equal(give(f, &reader), 0);
}

/* As after a lost answer: the same claim again has the same token. */
static void test_a_share_in_doubt_is_found(void **state)
{
    struct fixture *f = *state;
    struct lk_lease one = new_lease(f, 2, 3);
    int64_t token;

    assert_int_equal(take(f, &one), 0);
    token = one.token;
    one.token = 0;
    one.fate = LK_CLAIM_IN_DOUBT;
    assert_int_equal(take(f, &one), 0);
    assert_int_equal(one.token, token);
    assert_int_equal(row_for(f, &one).sharers, 1);
    assert_int_equal(give(f, &one), 0);
}

static void test_another_number_of_permits_is_refused(void **state)
{
    struct fixture *f = *state;
    struct lk_lease one = new_lease(f, 1, 3);
    struct lk_lease other = new_lease(f, 1, 4);
    struct lk_lease reader = new_lease(f, 1, 0);

    other.may_wait = true;
    assert_int_equal(lk_share_set_permits(store_of(f), one.key, 4, &f->err),
                     SQLOCK_ENOTFOUND);
    assert_int_equal(take(f, &one), 0);
    assert_int_equal(take(f, &other), SQLOCK_ECONFLICT);
    assert_non_null(strstr(f->err.message, "3 permits, not 4"));
    assert_int_equal(row_for(f, &other).place, -1);
    assert_int_equal(take(f, &reader), SQLOCK_ECONFLICT);
    assert_int_equal(give(f, &one), 0);
    assert_int_equal(take(f, &other), SQLOCK_ECONFLICT);
    assert_lock_ok(lk_share_set_permits(store_of(f), one.key, 4, &f->err),
                   &f->err);
    assert_lock_ok(lk_share_set_permits(store_of(f), one.key, 4, &f->err),
                   &f->err);
    assert_int_equal(take(f, &other), 0);
    assert_int_equal(give(f, &other), 0);
}

static void test_a_lease_is_downgraded(void **state)
{
    struct fixture *f = *state;
    struct lk_lease one = new_lease(f, 0, 0);
    struct lk_lease again, two = new_lease(f, 1, 0);
    struct lk_lease writer = new_lease(f, 0, 0);
    int64_t token;

    assert_int_equal(take(f, &one), 0);
    again = one;
    token = one.token;
    assert_lock_ok(lk_share_downgrade(store_of(f), &one, &f->err), &f->err);
    assert_int_equal(one.weight, 1);
    assert_int_equal(one.token, token);
    assert_int_equal(take(f, &two), 0);
    assert_int_equal(take(f, &writer), SQLOCK_EBUSY);
    /* as after a lost answer */
    assert_lock_ok(lk_share_downgrade(store_of(f), &again, &f->err), &f->err);
    assert_int_equal(again.weight, 1);
    assert_int_equal(renew(f, &one), 0);
    assert_int_equal(give(f, &one), 0);
    again.weight = 0;
    assert_int_equal(lk_share_downgrade(store_of(f), &again, &f->err),
                     SQLOCK_ELOST);
    assert_int_equal(again.weight, 0);
    assert_int_equal(give(f, &two), 0);
}

static void test_a_share_is_broken(void **state)
{
    struct fixture *f = *state;
    struct lk_lease one = new_lease(f, 1, 2);
    struct lk_lease two = new_lease(f, 1, 2);
    struct lk_lease three = new_lease(f, 1, 2);

    assert_int_equal(take(f, &one), 0);
    assert_int_equal(take(f, &two), 0);
    assert_lock_ok(lk_share_break(store_of(f), one.key, one.client_id,
                                  "broken by me", false, &f->err),
                   &f->err);
    assert_true(row_for(f, &one).is_broken);
    assert_int_equal(renew(f, &one), SQLOCK_ELOST);
    assert_int_equal(give(f, &one), SQLOCK_ELOST);
    assert_int_equal(renew(f, &two), 0);
    assert_int_equal(take(f, &three), SQLOCK_EBUSY);
    assert_int_equal(lk_share_break(store_of(f), one.key, one.client_id,
                                    "broken by me", true, &f->err),
                     SQLOCK_ECONFLICT);
    assert_lock_ok(lk_share_break(store_of(f), one.key, two.client_id,
                                  "broken by me", true, &f->err),
                   &f->err);
    assert_int_equal(give(f, &two), SQLOCK_ELOST);
    assert_int_equal(take(f, &three), 0);
    assert_int_equal(give(f, &three), 0);
}

/* A batch may have leases of both modes. */
static void test_modes_are_mixed_in_a_batch(void **state)
{
    struct fixture *f = *state;
    struct lk_store *store = store_of(f);
    struct lk_item items[3];
    struct lk_batch batch = {.items = items, .count = 3};
    struct lk_lease reader = new_lease(f, 1, 0);
    char keys[3][SQLOCK_KEY_SIZE];

    for (size_t i = 0; i < 3; i++) {
        char name[64];

        (void)snprintf(name, sizeof name, "%.40s-%zu", f->name, i);
        assert_int_equal(sqlock_key_of(keys[i], name, SQLOCK_KEY_CURRENT, NULL),
                         0);
        items[i] = (struct lk_item){.lease = new_lease(f, i == 1, 0)};
        items[i].lease.key = keys[i];
    }
    lk_batch_sort(&batch);
    batch.deadline_ns = lk_store_deadline(store);
    assert_lock_ok(lk_batch_claim(store, &batch, &f->err), &f->err);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(items[i].rc, 0);
        reader.key = items[i].lease.key;
        reader.client_id[0] = '\0';
        assert_int_equal(take(f, &reader) == 0, items[i].lease.weight > 0);
    }
    assert_lock_ok(lk_batch_renew(store, &batch, &f->err), &f->err);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(items[i].rc, 0);
    assert_lock_ok(lk_batch_release(store, &batch, &f->err), &f->err);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(items[i].rc, 0);
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
    sqlock_value value;
    sqlock_tx *tx = NULL;
    char *text;

    assert_true(sql_text(&f->sql, sharers, sizeof sharers,
                         "SELECT SHARERS FROM %s WHERE LOCK_KEY = '%s'",
                         f->table, key_of(f)));
    text = with_copies(sharers, count);
    value = sqlock_text(text);
    (void)snprintf(update, sizeof update,
                   "UPDATE %s SET SHARERS = ? WHERE LOCK_KEY = '%s'", f->table,
                   key_of(f));
    assert_ok(sqlock_tx_begin(&tx, f->a, &f->err));
    assert_ok(sqlock_tx_execute(tx, update, &value, 1, NULL, &f->err));
    assert_ok(sqlock_tx_commit(tx, &f->err));
    free(text);
}

static void test_a_full_lock_is_refused(void **state)
{
    struct fixture *f = *state;
    struct lk_lease first = new_lease(f, 1, 0);
    struct lk_lease last = new_lease(f, 1, 0);
    struct lk_lease more = new_lease(f, 1, 0);

    first.ttl_ms = 3600000;
    assert_int_equal(take(f, &first), 0);
    add_copies(f, LK_SHARERS_MAX - 2);
    assert_int_equal(row_for(f, &first).sharers, LK_SHARERS_MAX - 1);
    assert_int_equal(take(f, &last), 0);
    assert_int_equal(take(f, &more), SQLOCK_ECONFLICT);
    assert_non_null(strstr(f->err.message, "1000"));
    assert_int_equal(give(f, &first), 0);
    assert_int_equal(take(f, &more), 0);
}

static void test_weights_are_checked(void **state)
{
    struct fixture *f = *state;
    struct lk_store *store = store_of(f);

    assert_lock_ok(lk_share_check(store, 1, 0, &f->err), &f->err);
    assert_lock_ok(lk_share_check(store, 3, 3, &f->err), &f->err);
    assert_int_equal(lk_share_check(store, 2, 0, &f->err), SQLOCK_EINVAL);
    assert_int_equal(lk_share_check(store, 4, 3, &f->err), SQLOCK_EINVAL);
    assert_int_equal(lk_share_check(store, 0, 3, &f->err), SQLOCK_EINVAL);
    assert_int_equal(lk_share_check(store, 1, 1000000, &f->err), SQLOCK_EINVAL);
}

static void test_springs_tables_have_no_shares(void **state)
{
    struct fixture *f = *state;
    struct lk_lease one = new_lease(f, 1, 0);

    assert_int_equal(lk_share_check(store_of(f), 1, 0, &f->err),
                     SQLOCK_ENOTSUP);
    assert_int_equal(take(f, &one), SQLOCK_ENOTSUP);
    assert_non_null(strstr(f->err.message, "layout of Spring's"));
    one.weight = 0;
    assert_int_equal(take(f, &one), 0);
    assert_int_equal(lk_share_downgrade(store_of(f), &one, &f->err),
                     SQLOCK_ENOTSUP);
    assert_int_equal(give(f, &one), 0);
}

static const struct test tests[] = {
    TEST_ON(test_a_share_is_claimed_renewed_and_released, ON_ALL, IN_SQLOCK),
    TEST_ON(test_a_writer_learns_whom_it_waits_for, ON_ALL, IN_SQLOCK),
    TEST_ON(test_a_share_in_doubt_is_found, ON_ALL, IN_SQLOCK),
    TEST_ON(test_another_number_of_permits_is_refused, ON_ALL, IN_SQLOCK),
    TEST_ON(test_a_lease_is_downgraded, ON_ALL, IN_SQLOCK),
    TEST_ON(test_a_share_is_broken, ON_ALL, IN_SQLOCK),
    TEST_ON(test_modes_are_mixed_in_a_batch, ON_ALL, IN_SQLOCK),
    TEST_ON(test_a_full_lock_is_refused, ON_ALL, IN_SQLOCK),
    TEST_ON(test_weights_are_checked, ON_ALL, IN_SQLOCK),
    TEST_ON(test_springs_tables_have_no_shares, ON_ALL,
            IN_SPRING7 | IN_SPRING6),
};
const struct topic topic_shares = TOPIC(tests);
