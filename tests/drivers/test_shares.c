/*
 * test_shares.c - locks that several share at a time, by statements: who may
 * join, in which order, and what becomes of the row (lease/sharer.h)
 */
#include "drivers/suite.h"

#include <stdio.h>
#include <string.h>

#include "lease/sharer.h"

#define A test->client_a
#define B test->client_b
static const char C[] = "cccccccc-cccc-4ccc-8ccc-cccccccccccc";
static const char D[] = "dddddddd-dddd-4ddd-8ddd-dddddddddddd";
static const char shown[] = "somebody (in brackets)";

/* --- the statements --- */

struct wish {
    uint32_t weight;  /* 0: exclusive */
    uint32_t permits; /* of the lock; 0: no limit */
};
static const struct wish writer = {0, 0};
static const struct wish reader = {1, 0};
static const struct wish one_of_3 = {1, 3};
static const struct wish two_of_3 = {2, 3};

/* Ask for the lock in that mode, and leave a ticket if `waits`.  Return the
 * token; 0: not granted. */
static int64_t ask_for(struct session *session, const struct test *test,
                       const char *client, struct wish wish, int64_t ttl_us,
                       bool waits)
{
    struct lk_arguments arguments = arguments_for(test, client, ttl_us);
    bool is_granted;

    lk_argument_text(&arguments, SQLOCK_P_SHOWN, shown);
    lk_argument_text(&arguments, SQLOCK_P_BELL, NULL);
    lk_argument_integer(&arguments, SQLOCK_P_WEIGHT, wish.weight);
    lk_argument_integer(&arguments, SQLOCK_P_PERMITS, wish.permits);
    if (waits)
        lk_argument_integer(&arguments, SQLOCK_P_TURN, 0);
    statement_run(session, test,
                  wish.weight > 0 ? SQLOCK_SQL_SHARE
                  : waits         ? SQLOCK_SQL_ENQUEUE
                                  : SQLOCK_SQL_CLAIM,
                  &arguments);
    is_granted = session->result.rows == 1 &&
                 session->result.cells[0].type == SQLOCK_INT64 &&
                 session->result.cells[0].integer != 0;
    return is_granted ? session->result.cells[0].integer : 0;
}

static int64_t ask(struct test *test, const char *client, struct wish wish)
{
    return ask_for(&test->a, test, client, wish, LONG_US, true);
}

static int64_t try(struct test *test, const char *client, struct wish wish)
{
    return ask_for(&test->b, test, client, wish, LONG_US, false);
}

/* Send a statement about the client's share.  Return how many rows changed. */
static int64_t change(struct test *test, sqlock_statement_kind kind,
                      const char *client, int64_t ttl_us)
{
    struct lk_arguments arguments = arguments_for(test, client, ttl_us);

    lk_argument_text(&arguments, SQLOCK_P_SHOWN, shown);
    lk_argument_integer(&arguments, SQLOCK_P_WEIGHT, 1);
    lk_argument_integer(&arguments, SQLOCK_P_PERMITS, 0);
    statement_run(&test->b, test, kind, &arguments);
    return test->b.result.affected;
}

static int64_t leave(struct test *test, const char *client)
{
    return change(test, SQLOCK_SQL_RELEASE_SHARE, client, LONG_US);
}

static int64_t renew_share(struct test *test, const char *client,
                           int64_t ttl_us)
{
    return change(test, SQLOCK_SQL_RENEW_SHARE, client, ttl_us);
}

static int64_t set_permits(struct test *test, uint32_t permits)
{
    struct lk_arguments arguments = arguments_for(test, A, LONG_US);

    lk_argument_integer(&arguments, SQLOCK_P_PERMITS, permits);
    statement_run(&test->b, test, SQLOCK_SQL_PERMITS, &arguments);
    return test->b.result.affected;
}

/* Release the client's lease, whatever its mode. */
static void give_back(struct test *test, const char *client, struct wish wish)
{
    assert_int_equal(wish.weight > 0 ? leave(test, client)
                                     : release(&test->b, test, client),
                     1);
}

/* --- the row --- */

static const char *column(struct test *test, size_t column)
{
    assert_true(read_row(&test->b, test));
    return cell_text(&test->b, 0, column);
}

static int sharers(struct test *test)
{
    const char *at = column(test, INFO_SHARERS);
    struct lk_sharer sharer;
    int count = 0;

    if (!lk_sharers_have(at, cell_text(&test->b, 0, INFO_CLIENT) != NULL
                                 ? cell_text(&test->b, 0, INFO_CLIENT)
                                 : ""))
        return 0;
    while (lk_sharer_next(&at, &sharer))
        count++;
    return count;
}

static int place_of(struct test *test, const char *client)
{
    char before[SQLOCK_KEY_SIZE];

    return lk_ticket_place(column(test, INFO_QUEUE), client, before);
}

static void assert_free(struct test *test)
{
    assert_null(column(test, INFO_CLIENT));
    assert_null(cell_text(&test->b, 0, INFO_QUEUE));
}

/* --- who may join --- */

static void test_readers_share_a_lock(void **state)
{
    struct test *test = *state;
    int64_t first = ask(test, A, reader);
    int64_t second = ask(test, B, reader);
    int64_t third;
    struct lk_sharer sharer;

    assert_less(0, first);
    assert_less(first, second);
    assert_int_equal(sharers(test), 2);
    assert_int_equal(cell_integer(&test->b, 0, INFO_TOKEN), second);
    assert_true(
        lk_sharer_find(cell_text(&test->b, 0, INFO_SHARERS), A, &sharer));
    assert_int_equal(sharer.token, first);
    assert_int_equal(sharer.as.weight, 1);
    assert_int_equal(sharer.as.holder_length, strlen(shown));
    assert_true(sharer.as.ends_at_us - sharer.as.since_us == LONG_US);
    assert_int_equal(try(test, C, writer), 0);
    assert_int_equal(leave(test, A), 1);
    assert_int_equal(leave(test, A), 0);
    assert_int_equal(try(test, C, writer), 0);
    assert_int_equal(leave(test, B), 1);
    assert_free(test);
    assert_null(column(test, INFO_SHARERS));
    assert_string_equal(cell_text(&test->b, 0, INFO_HOLDER) + 37, shown);
    third = try(test, C, writer);
    assert_less(second, third);
    assert_int_equal(release(&test->b, test, C), 1);
}

/* The same claim again finds its share, with its token. */
static void test_a_claim_that_joined_joins_once(void **state)
{
    struct test *test = *state;
    int64_t first = ask(test, A, one_of_3);
    int64_t second = ask(test, B, one_of_3);

    assert_int_equal(ask(test, A, one_of_3), first);
    assert_int_equal(try(test, B, one_of_3), second);
    assert_int_equal(sharers(test), 2);
    assert_int_equal(leave(test, A), 1);
    assert_int_equal(leave(test, B), 1);
    assert_free(test);
}

static void test_permits_are_limited(void **state)
{
    struct test *test = *state;

    assert_less(0, ask(test, A, two_of_3));
    assert_int_equal(try(test, B, two_of_3), 0);
    assert_less(0, try(test, B, one_of_3));
    assert_int_equal(try(test, C, one_of_3), 0);
    assert_int_equal(leave(test, A), 1);
    assert_less(0, try(test, C, two_of_3));
    assert_int_equal(leave(test, B), 1);
    assert_int_equal(leave(test, C), 1);
    assert_free(test);
    assert_int_equal(lk_sharers_permits(column(test, INFO_SHARERS)), 3);
}

/* Another number of permits is refused, also while nobody has one. */
static void test_the_row_has_the_number_of_permits(void **state)
{
    static const struct wish one_of_4 = {1, 4};
    struct test *test = *state;

    assert_less(0, ask(test, A, one_of_3));
    assert_int_equal(ask(test, B, one_of_4), 0);
    assert_int_equal(ask(test, B, reader), 0);
    assert_int_equal(place_of(test, B), -1);
    assert_int_equal(leave(test, A), 1);
    assert_int_equal(ask(test, B, one_of_4), 0);
    assert_less(0, try(test, A, writer));
    assert_int_equal(release(&test->b, test, A), 1);
    assert_int_equal(ask(test, B, one_of_4), 0);
    assert_int_equal(set_permits(test, 4), 1);
    assert_less(0, ask(test, B, one_of_4));
    assert_int_equal(ask(test, A, one_of_3), 0);
    assert_int_equal(leave(test, B), 1);
    /* a lock of readers has none when they are gone */
    assert_int_equal(set_permits(test, 0), 1);
    assert_less(0, ask(test, A, reader));
    assert_int_equal(ask(test, B, one_of_4), 0);
    assert_int_equal(leave(test, A), 1);
    assert_less(0, ask(test, B, one_of_4));
    assert_int_equal(leave(test, B), 1);
}

/* Each pair of modes in each order, and a third: those come in for whom there
 * is room beside the first one, and then beside the second. */
static void test_each_pair_of_modes(void **state)
{
    static const struct wish wishes[] = {{0, 0}, {1, 0}, {1, 2}, {2, 2}};
    struct test *test = *state;

    for (int i = 0; i < 4 * 4 * 4; i++) {
        struct wish one = wishes[i / 16];
        struct wish two = wishes[i / 4 % 4];
        struct wish three = wishes[i % 4];
        /* Those with and without permits do not share a lock. */
        bool is_mixed =
            (one.weight > 0 && two.weight > 0 && one.permits != two.permits) ||
            (two.weight > 0 && three.weight > 0 &&
             two.permits != three.permits) ||
            (one.weight > 0 && three.weight > 0 &&
             one.permits != three.permits);
        bool is_second_in = one.weight > 0 && two.weight > 0 &&
                            (one.permits == 0 || one.weight + two.weight <= 2);
        bool is_third_in = is_second_in && three.weight > 0 && one.permits == 0;

        if (is_mixed)
            continue;
        assert_less(0, ask(test, A, one));
        assert_int_equal(ask(test, B, two) > 0, is_second_in);
        assert_int_equal(ask(test, C, three) > 0, is_third_in);
        assert_int_equal(place_of(test, B), is_second_in ? -1 : 0);
        assert_int_equal(place_of(test, C), is_third_in    ? -1
                                            : is_second_in ? 0
                                                           : 1);
        give_back(test, A, one);
        assert_less(0, ask(test, B, two));
        /* The third is in beside the second if there is room for both. */
        is_third_in = two.weight > 0 && three.weight > 0 &&
                      (two.permits == 0 || two.weight + three.weight <= 2);
        assert_int_equal(ask(test, C, three) > 0, is_third_in);
        give_back(test, B, two);
        assert_less(0, ask(test, C, three));
        give_back(test, C, three);
        assert_free(test);
        if (column(test, INFO_SHARERS) != NULL)
            assert_int_equal(set_permits(test, 0), 1);
    }
}

/* --- waiting --- */

/* A writer that waits lets no new readers past it; those behind come in. */
static void test_readers_and_writers_wait_in_order(void **state)
{
    struct test *test = *state;
    int64_t token;

    assert_less(0, ask(test, A, reader));
    assert_int_equal(ask(test, B, writer), 0);
    assert_int_equal(ask(test, C, reader), 0);
    assert_int_equal(try(test, D, reader), 0);
    assert_int_equal(ask(test, D, reader), 0);
    assert_int_equal(place_of(test, B), 0);
    assert_int_equal(place_of(test, D), 2);
    assert_int_equal(leave(test, A), 1);
    assert_string_equal(column(test, INFO_CLIENT), B);
    assert_true(cell_integer(&test->b, 0, INFO_REMAINING) <= SECOND_US);
    assert_int_equal(ask(test, C, reader), 0);
    token = ask(test, B, writer);
    assert_less(0, token);
    assert_int_equal(ask(test, A, writer), 0);
    assert_int_equal(release(&test->b, test, B), 1);
    assert_string_equal(column(test, INFO_CLIENT), C);
    assert_less(token, ask(test, C, reader));
    assert_less(token, ask(test, D, reader));
    assert_int_equal(sharers(test), 2);
    assert_int_equal(place_of(test, A), 0);
    assert_int_equal(leave(test, C), 1);
    assert_int_equal(leave(test, D), 1);
    assert_less(0, ask(test, A, writer));
    assert_int_equal(release(&test->b, test, A), 1);
    assert_free(test);
}

/* The last sharer reserves the row for all who can share it next, in any
 * order, and for nobody else. */
static void test_the_last_sharer_reserves_the_row_for_sharers(void **state)
{
    struct test *test = *state;
    const struct wish three_of_3 = {3, 3};

    assert_less(0, ask(test, A, three_of_3));
    assert_int_equal(ask(test, B, one_of_3), 0);
    assert_int_equal(ask(test, C, two_of_3), 0);
    assert_int_equal(ask(test, D, one_of_3), 0);
    assert_int_equal(leave(test, A), 1);
    assert_non_null(column(test, INFO_CLIENT));
    assert_in_range(cell_integer(&test->b, 0, INFO_REMAINING), 1, SECOND_US);
    assert_int_equal(try(test, A, writer), 0);
    assert_int_equal(ask(test, D, one_of_3), 0);
    assert_less(0, ask(test, C, two_of_3));
    assert_less(0, ask(test, B, one_of_3));
    assert_int_equal(ask(test, D, one_of_3), 0);
    assert_int_equal(leave(test, B), 1);
    assert_less(0, ask(test, D, one_of_3));
    assert_int_equal(leave(test, C), 1);
    assert_int_equal(leave(test, D), 1);
    assert_free(test);
}

/* A heavy one that waits is not passed by light ones. */
static void test_the_light_do_not_pass_the_heavy(void **state)
{
    struct test *test = *state;

    assert_less(0, ask(test, A, two_of_3));
    assert_int_equal(ask(test, B, two_of_3), 0);
    assert_int_equal(try(test, C, one_of_3), 0);
    assert_int_equal(ask(test, C, one_of_3), 0);
    check_sleep(2100);
    assert_int_equal(ask(test, C, one_of_3), 0);
    assert_int_equal(place_of(test, B), 0);
    assert_int_equal(leave(test, A), 1);
    assert_less(0, ask(test, C, one_of_3));
    assert_less(0, ask(test, B, two_of_3));
    assert_int_equal(leave(test, B), 1);
    assert_int_equal(leave(test, C), 1);
    assert_free(test);
}

static void test_who_does_not_come_is_passed(void **state)
{
    struct test *test = *state;

    assert_less(0, ask(test, A, one_of_3));
    assert_less(0, ask(test, D, two_of_3));
    assert_int_equal(ask(test, B, two_of_3), 0);
    assert_int_equal(ask(test, C, one_of_3), 0);
    /* room for b, who is gone, but not for both */
    assert_int_equal(leave(test, D), 1);
    assert_int_equal(ask(test, C, two_of_3), 0);
    assert_becomes_true(ask(test, C, two_of_3) > 0, PATIENCE_MS);
    assert_int_equal(place_of(test, B), -1);
    assert_int_equal(leave(test, A), 1);
    assert_int_equal(leave(test, C), 1);
    assert_free(test);
}

/* Readers for whom the row was reserved, and who are gone, cost a second. */
static void test_readers_who_do_not_come_are_passed(void **state)
{
    struct test *test = *state;

    assert_less(0, ask(test, A, writer));
    assert_int_equal(ask(test, B, reader), 0);
    assert_int_equal(ask(test, C, reader), 0);
    assert_int_equal(release(&test->b, test, A), 1);
    await_expiry(&test->b, test);
    assert_int_equal(ask_for(&test->a, test, D, writer, LONG_US, true), 0);
    assert_less(0, ask(test, C, reader));
    assert_int_equal(place_of(test, D), 0);
    assert_int_equal(leave(test, C), 1);
    assert_less(0, ask(test, D, writer));
    assert_int_equal(release(&test->b, test, D), 1);
    assert_free(test);
}

/* --- ends --- */

static void test_shares_are_renewed_one_by_one(void **state)
{
    struct test *test = *state;
    struct lk_sharer sharer;

    assert_less(0, ask(test, A, reader));
    assert_less(0, ask(test, B, reader));
    assert_int_equal(renew_share(test, A, 2 * LONG_US), 1);
    assert_less(LONG_US, remaining_us(&test->b, test));
    assert_true(lk_sharer_find(column(test, INFO_SHARERS), A, &sharer));
    assert_int_equal(sharer.as.ends_at_us,
                     cell_integer(&test->b, 0, INFO_EXPIRES));
    /* the row ends with the last of them, though it is not the one renewed */
    assert_int_equal(renew_share(test, A, SECOND_US * 10), 1);
    assert_true(lk_sharer_find(column(test, INFO_SHARERS), B, &sharer));
    assert_int_equal(sharer.as.ends_at_us,
                     cell_integer(&test->b, 0, INFO_EXPIRES));
    assert_int_equal(renew_share(test, C, LONG_US), 0);
    assert_int_equal(leave(test, B), 1);
    assert_true(remaining_us(&test->b, test) <= SECOND_US * 10);
    assert_int_equal(leave(test, A), 1);
    assert_int_equal(renew_share(test, A, LONG_US), 0);
}

/* A share that is over goes when the next one joins; the others go on. */
static void test_a_dead_sharer_gives_way(void **state)
{
    struct test *test = *state;
    int64_t token;

    token = ask_for(&test->a, test, A, one_of_3, SECOND_US / 5, false);
    assert_less(0, token);
    assert_less(0, ask(test, B, two_of_3));
    assert_becomes_true(try(test, C, one_of_3) > 0, PATIENCE_MS);
    assert_int_equal(sharers(test), 2);
    assert_int_equal(renew_share(test, A, LONG_US), 0);
    assert_int_equal(leave(test, A), 0);
    assert_int_equal(try(test, A, one_of_3), 0);
    assert_int_equal(leave(test, B), 1);
    assert_less(token, try(test, A, one_of_3));
    assert_int_equal(leave(test, A), 1);
    assert_int_equal(leave(test, C), 1);
    assert_free(test);
}

/* A claim whose share is over joins anew, with a later token. */
static void test_a_share_that_is_over_is_not_found(void **state)
{
    struct test *test = *state;
    int64_t token;
    int64_t later = 0;

    assert_less(0, ask(test, B, one_of_3));
    token = ask_for(&test->a, test, A, one_of_3, LONG_US, false);
    assert_less(0, token);
    assert_int_equal(try(test, C, two_of_3), 0);
    assert_becomes_true(renew_share(test, A, 1) == 0, PATIENCE_MS);
    later = try(test, A, one_of_3);
    assert_less(token, later);
    assert_int_equal(sharers(test), 2);
    assert_int_equal(leave(test, A), 1);
    assert_int_equal(leave(test, B), 1);
}

/* Sharers are of the past once another had the row, whatever their ends. */
static void test_who_takes_the_row_ends_all_shares(void **state)
{
    struct test *test = *state;

    assert_less(0, ask(test, A, reader));
    assert_less(0, ask(test, B, reader));
    session_run(&test->b,
                "UPDATE %s SET CREATED_DATE = EXPIRED_AFTER, CLIENT_ID = NULL "
                "WHERE LOCK_KEY = '%s'",
                subject.tables[test->layout].quoted, test->key);
    assert_less(0, try(test, C, writer));
    assert_int_equal(renew_share(test, A, LONG_US), 0);
    assert_int_equal(leave(test, B), 0);
    assert_int_equal(try(test, A, reader), 0);
    assert_int_equal(release(&test->b, test, C), 1);
    assert_int_equal(renew_share(test, A, LONG_US), 0);
    assert_less(0, try(test, D, reader));
    assert_int_equal(sharers(test), 1);
    assert_int_equal(renew_share(test, A, LONG_US), 0);
    assert_int_equal(leave(test, D), 1);
}

/* --- from one mode to the other --- */

static void test_a_holder_becomes_a_sharer(void **state)
{
    struct test *test = *state;
    struct lk_sharer sharer;
    int64_t token = ask(test, A, writer);

    assert_int_equal(ask(test, B, reader), 0);
    assert_int_equal(ask(test, C, writer), 0);
    assert_int_equal(change(test, SQLOCK_SQL_DOWNGRADE, D, LONG_US), 0);
    assert_int_equal(change(test, SQLOCK_SQL_DOWNGRADE, A, LONG_US), 1);
    assert_int_equal(change(test, SQLOCK_SQL_DOWNGRADE, A, LONG_US), 0);
    assert_int_equal(sharers(test), 1);
    assert_true(
        lk_sharer_find(cell_text(&test->b, 0, INFO_SHARERS), A, &sharer));
    assert_int_equal(sharer.token, token);
    assert_int_equal(release(&test->b, test, A), 0);
    assert_less(token, ask(test, B, reader));
    assert_int_equal(renew_share(test, A, LONG_US), 1);
    assert_int_equal(ask(test, C, writer), 0);
    assert_int_equal(leave(test, A), 1);
    assert_int_equal(ask(test, C, writer), 0);
    assert_int_equal(leave(test, B), 1);
    assert_less(0, ask(test, C, writer));
    assert_int_equal(release(&test->b, test, C), 1);
    assert_free(test);
}

/* --- breaking --- */

static int64_t break_as(struct test *test, sqlock_statement_kind kind,
                        const char *old_client)
{
    struct lk_arguments arguments = arguments_for(test, D, LONG_US);

    lk_argument_text(&arguments, SQLOCK_P_OLD_CLIENT, old_client);
    lk_argument_text(&arguments, SQLOCK_P_SHOWN, "broken by the operator");
    statement_run(&test->b, test, kind, &arguments);
    return test->b.result.affected;
}

static void test_one_share_is_broken(void **state)
{
    struct test *test = *state;
    struct lk_sharer before, after;

    assert_less(0, ask(test, A, one_of_3));
    assert_less(0, ask(test, B, two_of_3));
    assert_true(lk_sharer_find(column(test, INFO_SHARERS), B, &before));
    assert_int_equal(break_as(test, SQLOCK_SQL_BREAK_SHARE, C), 0);
    assert_int_equal(break_as(test, SQLOCK_SQL_BREAK_SHARE, B), 1);
    assert_int_equal(renew_share(test, B, LONG_US), 0);
    assert_int_equal(leave(test, B), 0);
    assert_int_equal(renew_share(test, A, LONG_US), 1);
    assert_int_equal(try(test, C, one_of_3), 0);
    assert_true(lk_sharer_find(column(test, INFO_SHARERS), D, &after));
    assert_int_equal(after.as.ends_at_us, before.as.ends_at_us);
    assert_int_equal(after.as.weight, 2);
    assert_int_equal(after.as.holder_length, strlen("broken by the operator"));
    assert_less(before.token, cell_integer(&test->b, 0, INFO_TOKEN));
    assert_int_equal(leave(test, D), 1);
    assert_less(0, try(test, C, two_of_3));
    assert_int_equal(leave(test, A), 1);
    assert_int_equal(leave(test, C), 1);
}

/* To break the group, as one breaks any holder, ends all shares. */
static void test_all_shares_are_broken(void **state)
{
    struct test *test = *state;
    char group[SQLOCK_KEY_SIZE];

    for (int i = 0; i < 2; i++) {
        assert_less(0, ask(test, A, reader));
        assert_less(0, ask(test, B, reader));
        (void)snprintf(group, sizeof group, "%s", column(test, INFO_CLIENT));
        assert_int_equal(
            break_as(test, i == 0 ? SQLOCK_SQL_BREAK : SQLOCK_SQL_BREAK_NOW,
                     group),
            1);
        assert_int_equal(sharers(test), 0);
        assert_int_equal(renew_share(test, A, LONG_US), 0);
        assert_int_equal(leave(test, B), 0);
        assert_int_equal(try(test, C, reader) > 0, i == 1);
        assert_int_equal(i == 0 ? release(&test->b, test, D) : leave(test, C),
                         1);
    }
}

void add_share_tests(add_fn add)
{
#define ADD(name) add(#name, test_##name)
    if (subject.layout != SQLOCK_LAYOUT_SQLOCK)
        return;
    ADD(readers_share_a_lock);
    ADD(a_claim_that_joined_joins_once);
    ADD(permits_are_limited);
    ADD(the_row_has_the_number_of_permits);
    ADD(each_pair_of_modes);
    ADD(readers_and_writers_wait_in_order);
    ADD(the_last_sharer_reserves_the_row_for_sharers);
    ADD(the_light_do_not_pass_the_heavy);
    ADD(who_does_not_come_is_passed);
    ADD(readers_who_do_not_come_are_passed);
    ADD(shares_are_renewed_one_by_one);
    ADD(a_dead_sharer_gives_way);
    ADD(a_share_that_is_over_is_not_found);
    ADD(who_takes_the_row_ends_all_shares);
    ADD(a_holder_becomes_a_sharer);
    ADD(one_share_is_broken);
    ADD(all_shares_are_broken);
}
