/*
 * test_tickets.c - what queue.statements cannot say of tickets: the second that
 * is the next one's, texts that are no queue, and those of a new row
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
static int64_t ask(struct session *session, const struct test *test,
                   const char *client)
{
    struct lk_arguments arguments = arguments_for(test, client, LONG_US);

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

/* Return the place of the client's ticket in the row; -1: it has none. */
static int place_of(struct test *test, const char *client)
{
    char before[SQLOCK_KEY_SIZE];

    assert_true(read_row(&test->b, test));
    return lk_ticket_place(cell_text(&test->b, 0, LK_INFO_QUEUE), client,
                           before);
}

/* Assert that the row is the client's, for about a second. */
static void assert_reserved_for(struct test *test, const char *client)
{
    assert_true(read_row(&test->b, test));
    assert_string_equal(cell_text(&test->b, 0, LK_INFO_CLIENT), client);
    assert_true(cell_integer(&test->b, 0, LK_INFO_REMAINING) <= 1000000);
    assert_int_equal(
        strncmp(cell_text(&test->b, 0, LK_INFO_HOLDER), client, strlen(client)),
        0);
}

/* a has the lock; b and c have tickets, in that order. */
static void let_two_wait(struct test *test)
{
    assert_less(0, ask(&test->a, test, test->client_a));
    assert_int_equal(ask(&test->b, test, test->client_b), 0);
    assert_int_equal(ask(&test->b, test, client_c), 0);
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

/* A reservation that is not taken lapses, and the next one takes the row. */
static void test_a_reservation_lapses(void **state)
{
    struct test *test = *state;

    assert_refused_in_the_next_second(test, test->client_a, claim_plainly);
    assert_less(0, ask(&test->b, test, client_c));
    assert_int_equal(leave(&test->b, test, client_c), 0);
    assert_int_equal(release(&test->b, test, client_c), 1);
    assert_less(0, claim(&test->a, test, test->client_a, LONG_US));
    assert_int_equal(release(&test->a, test, test->client_a), 1);
}

/* Come too late, which leaves a ticket behind c's, and again at once. */
static int64_t ask_twice(struct session *session, const struct test *test,
                         const char *client)
{
    int64_t token = ask(session, test, client);

    return token != 0 ? token : ask(session, test, client);
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
    assert_null(cell_text(&test->b, 0, LK_INFO_QUEUE));
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
    queue = strdup(cell_text(&test->b, 0, LK_INFO_QUEUE));
    assert_non_null(queue);
    delete_row(test);
    lk_argument_text(&arguments, SQLOCK_P_SHOWN, shown);
    lk_argument_text(&arguments, SQLOCK_P_QUEUE, queue);
    statement_run(&test->a, test, kind, &arguments);
    assert_true(read_row(&test->b, test));
    assert_string_equal(cell_text(&test->b, 0, LK_INFO_QUEUE), queue);
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
    queue = cell_text(&test->b, 0, LK_INFO_QUEUE);
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
    ADD(a_reservation_lapses);
    ADD(who_is_too_late_overtakes_nobody);
    ADD(what_is_no_queue_keeps_nobody_out);
    ADD(a_new_row_gets_the_tickets_of_the_one_before);
    ADD(the_tickets_behind_another_one);
}
