/*
 * test_tickets.c - who waits for a lock stands in its row, in order, and gets
 * the row in that order (lease/ticket.h)
 */
#include "drivers/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "lease/ticket.h"

static const char client_c[] = "cccccccc-cccc-4ccc-8ccc-cccccccccccc";
/* By so much may the database's clock and ours differ in two seconds. */
#define CLOCKS_MS 50

static const char shown[] = "somebody (in brackets)";

/* Claim the lock or leave a ticket.  Return the token; 0: not granted. */
static int64_t ask_at(struct session *session, const struct test *test,
                      const char *client, int turn)
{
    struct lk_arguments arguments = arguments_for(test, client, LONG_US);

    lk_argument_integer(&arguments, SQLOCK_P_TURN, turn);
    lk_argument_text(&arguments, SQLOCK_P_SHOWN, shown);
    lk_argument_text(&arguments, SQLOCK_P_BELL, NULL);
    statement_run(session, test, SQLOCK_SQL_ENQUEUE, &arguments);
    if (session->result.rows == 0 ||
        session->result.cells[0].type != SQLOCK_INT64)
        return 0;
    return session->result.cells[0].integer;
}

static int64_t leave(struct session *session, const struct test *test,
                     const char *client)
{
    const struct lk_arguments arguments = arguments_for(test, client, LONG_US);

    statement_run(session, test, SQLOCK_SQL_LEAVE, &arguments);
    return session->result.affected;
}

static int64_t ask(struct session *session, const struct test *test,
                   const char *client)
{
    return ask_at(session, test, client, 0);
}

/* Return the place of the client's ticket in the row; -1: it has none. */
static int place_of(struct test *test, const char *client)
{
    char before[SQLOCK_KEY_SIZE];

    assert_true(read_row(&test->b, test));
    return lk_ticket_place(cell_text(&test->b, 0, INFO_QUEUE), client, before);
}

/* Assert that the row is the client's, for about a second. */
static void assert_reserved_for(struct test *test, const char *client)
{
    assert_true(read_row(&test->b, test));
    assert_string_equal(cell_text(&test->b, 0, INFO_CLIENT), client);
    assert_true(cell_integer(&test->b, 0, INFO_REMAINING) <= 1000000);
    assert_int_equal(
        strncmp(cell_text(&test->b, 0, INFO_HOLDER), client, strlen(client)),
        0);
}

/* a has the lock; b and c have tickets, in that order. */
static void let_two_wait(struct test *test)
{
    assert_less(0, ask(&test->a, test, test->client_a));
    assert_int_equal(ask(&test->b, test, test->client_b), 0);
    assert_int_equal(ask(&test->b, test, client_c), 0);
}

static void test_refused_claims_leave_tickets_in_order(void **state)
{
    struct test *test = *state;
    const char *at;
    struct lk_ticket ticket;

    let_two_wait(test);
    assert_int_equal(place_of(test, test->client_b), 0);
    assert_int_equal(place_of(test, client_c), 1);
    assert_int_equal(ask(&test->b, test, test->client_b), 0); /* renews it */
    assert_int_equal(place_of(test, test->client_b), 0);
    assert_int_equal(place_of(test, client_c), 1);
    at = cell_text(&test->b, 0, INFO_QUEUE);
    assert_true(lk_ticket_next(&at, &ticket));
    assert_int_equal(ticket.weight, 0);
    assert_int_equal(ticket.holder_length, strlen(shown));
    assert_int_equal(strncmp(ticket.holder, shown, strlen(shown)), 0);
    assert_less(ticket.since_us, ticket.ends_at_us);
    assert_true(lk_ticket_next(&at, &ticket));
    assert_false(lk_ticket_next(&at, &ticket));
    assert_int_equal(release(&test->a, test, test->client_a), 1);
}

/* A claim that does not wait is refused as long as somebody has a ticket. */
static void test_a_release_reserves_the_row_for_the_first(void **state)
{
    struct test *test = *state;
    int64_t token;

    token = ask(&test->a, test, test->client_a);
    assert_int_equal(ask(&test->b, test, test->client_b), 0);
    assert_int_equal(ask(&test->b, test, client_c), 0);
    assert_int_equal(release(&test->a, test, test->client_a), 1);
    assert_reserved_for(test, test->client_b);
    assert_less(token, cell_integer(&test->b, 0, INFO_TOKEN));
    assert_int_equal(claim(&test->a, test, test->client_a, LONG_US), 0);
    assert_int_equal(ask(&test->b, test, client_c), 0);
    token = ask(&test->b, test, test->client_b);
    assert_less(0, token);
    assert_less(1000000, remaining_us(&test->b, test));
    assert_int_equal(cell_integer(&test->b, 0, INFO_TOKEN), token);
    assert_int_equal(place_of(test, test->client_b), -1);
    assert_int_equal(place_of(test, client_c), 0);
    assert_int_equal(release(&test->b, test, test->client_b), 1);
    assert_reserved_for(test, client_c);
    assert_null(cell_text(&test->b, 0, INFO_QUEUE));
    assert_less(token, ask(&test->b, test, client_c));
    assert_int_equal(release(&test->b, test, client_c), 1);
    assert_true(read_row(&test->b, test));
    assert_null(cell_text(&test->b, 0, INFO_CLIENT));
}

/* If nobody of those who wait takes the row, a second for each, they are gone,
 * and keep out no claim that does not wait. */
static void test_the_dead_keep_nobody_out(void **state)
{
    struct test *test = *state;
    int64_t token = 0;

    let_two_wait(test);
    assert_int_equal(release(&test->a, test, test->client_a), 1);
    await_expiry(&test->b, test);
    for (int i = 0; token == 0 && i < 1000; i++) {
        token = claim(&test->a, test, test->client_a, LONG_US);
        if (token == 0)
            check_sleep(10);
    }
    assert_less(0, token);
    assert_true(read_row(&test->b, test));
    assert_string_equal(cell_text(&test->b, 0, INFO_CLIENT), test->client_a);
    assert_int_equal(release(&test->a, test, test->client_a), 1);
    assert_int_equal(leave(&test->b, test, client_c), 0);
}

static int64_t claim_plainly(struct session *session, const struct test *test,
                             const char *client)
{
    return claim(session, test, client, LONG_US);
}

typedef int64_t (*try_fn)(struct session *, const struct test *, const char *);

/* Let the reservation for b lapse, and let the client, who has no ticket, try
 * to get the row in the second after it, which is c's.  Return false if that
 * was too late. */
static bool is_refused_in_the_next_second(struct test *test, const char *client,
                                          try_fn try)
{
    int64_t reserved_ns;

    let_two_wait(test);
    reserved_ns = sqlock_monotonic_ns();
    assert_int_equal(release(&test->a, test, test->client_a), 1);
    await_expiry(&test->b, test);
    if (try(&test->a, test, client) == 0)
        return true;
    assert_true(sqlock_monotonic_ns() >=
                lk_after_ms(reserved_ns, 2000 - CLOCKS_MS));
    return false;
}

static void assert_refused_in_the_next_second(struct test *test,
                                              const char *client, try_fn try)
{
    for (int i = 0; !is_refused_in_the_next_second(test, client, try); i++) {
        assert_in_range(i, 0, 50); /* a machine that is busy for seconds */
        next_key(test->key);
    }
}

/* A reservation that is not taken lapses, and the next one takes the row, after
 * the time of those before it. */
static void test_a_reservation_lapses(void **state)
{
    struct test *test = *state;

    assert_refused_in_the_next_second(test, test->client_a, claim_plainly);
    assert_int_equal(ask_at(&test->b, test, client_c, 60), 0);
    assert_less(0, ask(&test->b, test, client_c));
    assert_int_equal(leave(&test->b, test, client_c), 0);
    assert_int_equal(release(&test->b, test, client_c), 1);
    assert_less(0, claim(&test->a, test, test->client_a, LONG_US));
    assert_int_equal(release(&test->a, test, test->client_a), 1);
}

/* A client that comes too late for its reservation waits at the end: the row
 * still has its CLIENT_ID, but is the next one's. */
static void test_who_is_too_late_has_no_lease(void **state)
{
    struct test *test = *state;

    assert_refused_in_the_next_second(test, test->client_b, ask);
    assert_int_equal(place_of(test, client_c), 0);
    assert_int_equal(place_of(test, test->client_b), 1);
    assert_less(0, ask(&test->b, test, client_c));
    assert_int_equal(ask(&test->b, test, test->client_b), 0);
    assert_int_equal(release(&test->b, test, client_c), 1);
    assert_reserved_for(test, test->client_b);
    assert_less(0, ask(&test->b, test, test->client_b));
    assert_int_equal(release(&test->b, test, test->client_b), 1);
}

/* Come too late, which leaves a ticket behind c's, and again at once. */
static int64_t ask_twice(struct session *session, const struct test *test,
                         const char *client)
{
    int64_t token = ask(session, test, client);

    return token != 0 ? token : ask_at(session, test, client, 1);
}

/* Since when the row is free counts from the end of the reservation, also after
 * the one that it was for has come. */
static void test_who_is_too_late_overtakes_nobody(void **state)
{
    struct test *test = *state;

    assert_refused_in_the_next_second(test, test->client_b, ask_twice);
    assert_int_equal(place_of(test, client_c), 0);
    assert_less(0, ask(&test->b, test, client_c));
    assert_int_equal(leave(&test->b, test, test->client_b), 1);
    assert_int_equal(release(&test->b, test, client_c), 1);
}

/* A claim that is sent again after its lease has a token of its own. */
static void test_a_claim_after_its_lease_has_another_token(void **state)
{
    struct test *test = *state;
    int64_t token = claim(&test->a, test, test->client_a, SECOND_US);
    int64_t again;

    assert_less(0, token);
    assert_int_equal(ask(&test->b, test, test->client_b), 0);
    await_expiry(&test->b, test);
    again = claim(&test->a, test, test->client_a, LONG_US);
    if (again != 0) {
        assert_less(token, again);
        assert_int_equal(release(&test->a, test, test->client_a), 1);
    }
}

/* Each of those who are gone costs a second, once. */
static void test_who_takes_the_row_removes_the_tickets_before(void **state)
{
    static const char client_d[] = "dddddddd-dddd-4ddd-8ddd-dddddddddddd";
    static const char client_e[] = "eeeeeeee-eeee-4eee-8eee-eeeeeeeeeeee";
    struct test *test = *state;

    let_two_wait(test);
    assert_int_equal(ask(&test->b, test, client_d), 0);
    assert_int_equal(ask(&test->b, test, client_e), 0);
    assert_int_equal(release(&test->a, test, test->client_a), 1);
    await_expiry(&test->b, test);
    assert_int_equal(place_of(test, client_d), 1);
    assert_becomes_true(ask(&test->b, test, client_d) != 0, PATIENCE_MS);
    assert_int_equal(place_of(test, client_c), -1);
    assert_int_equal(place_of(test, client_e), 0);
    assert_int_equal(release(&test->b, test, client_d), 1);
    assert_reserved_for(test, client_e);
    assert_less(0, ask(&test->b, test, client_e));
    assert_int_equal(release(&test->b, test, client_e), 1);
    assert_less(0, claim(&test->a, test, test->client_a, LONG_US));
    assert_int_equal(release(&test->a, test, test->client_a), 1);
}

static void test_who_leaves_has_no_ticket(void **state)
{
    struct test *test = *state;

    let_two_wait(test);
    assert_int_equal(leave(&test->b, test, test->client_b), 1);
    assert_int_equal(leave(&test->b, test, test->client_b), 0);
    assert_int_equal(place_of(test, client_c), 0);
    assert_int_equal(leave(&test->b, test, client_c), 1);
    assert_true(read_row(&test->b, test));
    assert_null(cell_text(&test->b, 0, INFO_QUEUE));
    assert_int_equal(release(&test->a, test, test->client_a), 1);
    assert_less(0, claim(&test->b, test, test->client_b, LONG_US));
    assert_int_equal(release(&test->b, test, test->client_b), 1);
}

/* After the end of all tickets nobody waits any more. */
static void test_tickets_that_are_over_keep_nobody_out(void **state)
{
    struct test *test = *state;

    let_two_wait(test);
    session_run(&test->b,
                "UPDATE %s SET QUEUE = replace(QUEUE, '\"e\":1', "
                "'\"e\":0') WHERE LOCK_KEY = '%s'",
                subject.tables[test->layout].quoted, test->key);
    assert_int_equal(release(&test->a, test, test->client_a), 1);
    assert_true(read_row(&test->b, test));
    assert_null(cell_text(&test->b, 0, INFO_CLIENT));
    assert_null(cell_text(&test->b, 0, INFO_QUEUE));
    assert_less(0, claim(&test->b, test, test->client_b, LONG_US));
    assert_int_equal(release(&test->b, test, test->client_b), 1);
}

/* Write a text into QUEUE, with a time `ahead` us from now at its %. */
static void write_queue(struct test *test, const char *format, int64_t ahead)
{
    const char *at = strchr(format, '%');
    char time[24] = "";
    int before = (int)(at != NULL ? at - format : (int)strlen(format));

    if (at != NULL)
        (void)snprintf(time, sizeof time, "%lld",
                       (long long)(now_us(&test->b) + ahead));
    session_run(&test->b,
                "UPDATE %s SET QUEUE = '%.*s%s%s' WHERE LOCK_KEY = '%s'",
                subject.tables[test->layout].quoted, before, format, time,
                at != NULL ? at + 1 : "", test->key);
}

/* Check that the lock goes on with such a text in QUEUE, and that the text is
 * gone after one use. */
static void check_rubbish(struct test *test, const char *format, int64_t ahead)
{
    assert_less(0, claim(&test->a, test, test->client_a, LONG_US));
    assert_int_equal(release(&test->a, test, test->client_a), 1);
    write_queue(test, format, ahead);
    assert_less(0, claim(&test->a, test, test->client_a, LONG_US));
    assert_int_equal(release(&test->a, test, test->client_a), 1);
    assert_true(read_row(&test->b, test));
    assert_null(cell_text(&test->b, 0, INFO_QUEUE));
    write_queue(test, format, ahead);
    assert_less(0, ask(&test->a, test, test->client_a));
    write_queue(test, format, ahead);
    assert_int_equal(claim(&test->b, test, test->client_b, LONG_US), 0);
    assert_int_equal(ask(&test->b, test, test->client_b), 0);
    assert_int_equal(place_of(test, test->client_b), 0);
    assert_int_equal(release(&test->a, test, test->client_a), 1);
    assert_reserved_for(test, test->client_b);
    assert_less(0, ask(&test->b, test, test->client_b));
    write_queue(test, format, ahead);
    assert_int_equal(release(&test->b, test, test->client_b), 1);
    assert_less(0, claim(&test->a, test, test->client_a, LONG_US));
    write_queue(test, format, ahead);
    (void)leave(&test->b, test, test->client_a);
    assert_int_equal(release(&test->a, test, test->client_a), 1);
}

static void test_what_is_no_queue_keeps_nobody_out(void **state)
{
    static const char *const rubbish[] = {
        "rubbish",
        "",
        "[\"[\"[\"[\"[\"],[\"],[\"],",
        "{\"e\":9999999999999999,\"q\":[0]}",
        "{\"e\":%,\"q\":[0]}",
        "{\"e\":%,\"q\":[[\"short\",1,2,\"x\"],0]}",
        "{\"e\":%,\"q\":[[\"bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb\"",
    };
    struct test *test = *state;

    for (size_t i = 0; i < sizeof rubbish / sizeof *rubbish; i++)
        check_rubbish(test, rubbish[i], 60000000);
}

static void test_a_break_passes_the_row_on(void **state)
{
    struct test *test = *state;
    struct lk_arguments arguments = arguments_for(test, client_c, LONG_US);

    let_two_wait(test);
    lk_argument_text(&arguments, SQLOCK_P_OLD_CLIENT, test->client_a);
    statement_run(&test->a, test, SQLOCK_SQL_BREAK_NOW, &arguments);
    assert_reserved_for(test, test->client_b);
    assert_less(0, ask(&test->b, test, test->client_b));
    assert_int_equal(release(&test->b, test, test->client_b), 1);
    assert_int_equal(leave(&test->b, test, client_c), 0);
}

static const char client_d[] = "dddddddd-dddd-4ddd-8ddd-dddddddddddd";

/* Open the row of a, with a ticket for d. */
static void open_row(struct test *test)
{
    struct lk_arguments arguments =
        arguments_for(test, test->client_a, LONG_US);

    lk_argument_text(&arguments, SQLOCK_P_TICKET, client_d);
    lk_argument_text(&arguments, SQLOCK_P_SHOWN, shown);
    statement_run(&test->a, test, SQLOCK_SQL_RELEASE_TO_PEERS, &arguments);
    assert_int_equal(test->a.result.affected, 1);
}

/* A row that is opened for Spring services is free for them at once, and for
 * ours a little later, in the order of their tickets: first for the one that
 * opened it. */
static void test_who_opens_the_row_is_the_first(void **state)
{
    struct test *test = *state;

    let_two_wait(test);
    open_row(test);
    assert_int_equal(place_of(test, client_d), 0);
    assert_int_equal(place_of(test, test->client_b), 1);
    assert_int_equal(place_of(test, client_c), 2);
    assert_null(cell_text(&test->b, 0, INFO_CLIENT));
    while (ask_at(&test->a, test, client_d, 0) == 0)
        check_sleep(10);
    assert_int_equal(place_of(test, test->client_b), 0);
    assert_int_equal(release(&test->a, test, client_d), 1);
    assert_reserved_for(test, test->client_b);
}

static void test_who_opens_a_row_without_a_queue_has_a_ticket(void **state)
{
    struct test *test = *state;

    assert_less(0, ask(&test->a, test, test->client_a));
    open_row(test);
    assert_int_equal(place_of(test, client_d), 0);
    assert_int_equal(ask(&test->b, test, test->client_b), 0);
    assert_int_equal(place_of(test, test->client_b), 1);
}

static void delete_row(struct test *test)
{
    session_run(&test->a, "DELETE FROM %s WHERE LOCK_KEY = '%s'",
                subject.tables[test->layout].quoted, test->key);
}

/* Claim a row that does not exist, with tickets, by a statement of that kind.
 */
static void check_tickets_of_a_new_row(struct test *test,
                                       sqlock_statement_kind kind)
{
    struct lk_arguments arguments =
        arguments_for(test, test->client_a, LONG_US);
    char *queue;

    let_two_wait(test);
    assert_true(read_row(&test->b, test));
    queue = strdup(cell_text(&test->b, 0, INFO_QUEUE));
    assert_non_null(queue);
    delete_row(test);
    lk_argument_integer(&arguments, SQLOCK_P_TURN, 0);
    lk_argument_text(&arguments, SQLOCK_P_SHOWN, shown);
    lk_argument_text(&arguments, SQLOCK_P_QUEUE, queue);
    statement_run(&test->a, test, kind, &arguments);
    assert_true(read_row(&test->b, test));
    assert_string_equal(cell_text(&test->b, 0, INFO_QUEUE), queue);
    free(queue);
    assert_int_equal(release(&test->a, test, test->client_a), 1);
    assert_reserved_for(test, test->client_b);
    assert_int_equal(place_of(test, client_c), 0);
    delete_row(test);
}

/* A service deletes the row, with the tickets in it. */
static void test_a_new_row_gets_the_tickets_of_the_one_before(void **state)
{
    check_tickets_of_a_new_row(*state, SQLOCK_SQL_ENQUEUE);
    check_tickets_of_a_new_row(*state, SQLOCK_SQL_CLAIM);
}

static void test_the_tickets_behind_another_one(void **state)
{
    struct test *test = *state;
    const char *queue;
    char before[SQLOCK_KEY_SIZE];
    char *rest;

    let_two_wait(test);
    assert_true(read_row(&test->b, test));
    queue = cell_text(&test->b, 0, INFO_QUEUE);
    rest = lk_ticket_behind(queue, test->client_b);
    assert_non_null(rest);
    assert_int_equal(strncmp(rest, queue, 27), 0);
    assert_int_equal(lk_ticket_place(rest, client_c, before), 0);
    assert_int_equal(lk_ticket_place(rest, test->client_b, before), -1);
    free(rest);
    assert_null(lk_ticket_behind(queue, client_c));
    assert_null(lk_ticket_behind(queue, test->client_a));
    assert_null(lk_ticket_behind("no queue", client_c));
}

void add_ticket_tests(add_fn add)
{
#define ADD(name) add(#name, test_##name)
    if (subject.layout != SQLOCK_LAYOUT_SQLOCK)
        return;
    ADD(refused_claims_leave_tickets_in_order);
    ADD(a_release_reserves_the_row_for_the_first);
    ADD(a_reservation_lapses);
    ADD(who_is_too_late_has_no_lease);
    ADD(who_is_too_late_overtakes_nobody);
    ADD(a_claim_after_its_lease_has_another_token);
    ADD(the_dead_keep_nobody_out);
    ADD(who_takes_the_row_removes_the_tickets_before);
    ADD(who_leaves_has_no_ticket);
    ADD(tickets_that_are_over_keep_nobody_out);
    ADD(what_is_no_queue_keeps_nobody_out);
    ADD(a_break_passes_the_row_on);
    ADD(who_opens_the_row_is_the_first);
    ADD(who_opens_a_row_without_a_queue_has_a_ticket);
    ADD(a_new_row_gets_the_tickets_of_the_one_before);
    ADD(the_tickets_behind_another_one);
}
