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
static int64_t ask(struct session *session, const struct fixture *f,
                   const char *client)
{
    struct lk_arguments arguments = arguments_for(f, client, LONG_US);

    lk_argument_text(&arguments, SQLOCK_P_SHOWN, shown);
    lk_argument_text(&arguments, SQLOCK_P_BELL, NULL);
    statement_run(session, f, SQLOCK_SQL_ENQUEUE, &arguments);
    if (session->result.rows == 0 ||
        session->result.cells[0].type != SQLOCK_INT64)
        return 0;
    return session->result.cells[0].integer;
}

static int64_t leave(struct session *session, const struct fixture *f,
                     const char *client)
{
    const struct lk_arguments arguments = arguments_for(f, client, LONG_US);

    statement_run(session, f, SQLOCK_SQL_LEAVE, &arguments);
    return session->result.affected;
}

/* Return the place of the client's ticket in the row; -1: it has none. */
static int place_of(struct fixture *f, const char *client)
{
    char before[SQLOCK_KEY_SIZE];

    assert_true(read_row(&f->b, f));
    return lk_ticket_place(cell_text(&f->b, 0, LK_INFO_QUEUE), client, before);
}

/* Assert that the row is the client's, for about a second. */
static void assert_reserved_for(struct fixture *f, const char *client)
{
    assert_true(read_row(&f->b, f));
    assert_string_equal(cell_text(&f->b, 0, LK_INFO_CLIENT), client);
    assert_true(cell_integer(&f->b, 0, LK_INFO_REMAINING) <= 1000000);
    assert_int_equal(
        strncmp(cell_text(&f->b, 0, LK_INFO_HOLDER), client, strlen(client)),
        0);
}

/* a has the lock; b and c have tickets, in that order. */
static void let_two_wait(struct fixture *f)
{
    assert_less(0, ask(&f->a, f, f->client_a));
    assert_int_equal(ask(&f->b, f, f->client_b), 0);
    assert_int_equal(ask(&f->b, f, client_c), 0);
}

static int64_t claim_plainly(struct session *session, const struct fixture *f,
                             const char *client)
{
    return claim(session, f, client, LONG_US);
}

typedef int64_t (*try_fn)(struct session *, const struct fixture *,
                          const char *);

/* Let the reservation for b lapse, and let the client, who has no ticket, try
 * to get the row in the second after it, which is c's.  Return false if that
 * was too late. */
static bool is_refused_in_the_next_second(struct fixture *f, const char *client,
                                          try_fn try)
{
    int64_t reserved_ns;

    let_two_wait(f);
    reserved_ns = sqlock_monotonic_ns();
    assert_int_equal(release(&f->a, f, f->client_a), 1);
    await_expiry(&f->b, f);
    if (try(&f->a, f, client) == 0)
        return true;
    assert_true(sqlock_monotonic_ns() >=
                lk_after_ms(reserved_ns, 2000 - CLOCKS_MS));
    return false;
}

static void assert_refused_in_the_next_second(struct fixture *f,
                                              const char *client, try_fn try)
{
    for (int i = 0; !is_refused_in_the_next_second(f, client, try); i++) {
        assert_in_range(i, 0, 50); /* a machine that is busy for seconds */
        next_key(f->key);
    }
}

/* A reservation that is not taken lapses, and the next one takes the row. */
TEST_ON(test_a_reservation_lapses, ON_ALL, IN_SQLOCK)
{
    assert_refused_in_the_next_second(f, f->client_a, claim_plainly);
    assert_less(0, ask(&f->b, f, client_c));
    assert_int_equal(leave(&f->b, f, client_c), 0);
    assert_int_equal(release(&f->b, f, client_c), 1);
    assert_less(0, claim(&f->a, f, f->client_a, LONG_US));
    assert_int_equal(release(&f->a, f, f->client_a), 1);
}

/* Come too late, which leaves a ticket behind c's, and again at once. */
static int64_t ask_twice(struct session *session, const struct fixture *f,
                         const char *client)
{
    int64_t token = ask(session, f, client);

    return token != 0 ? token : ask(session, f, client);
}

/* Since when the row is free counts from the end of the reservation, also after
 * the one that it was for has come. */
TEST_ON(test_who_is_too_late_overtakes_nobody, ON_ALL, IN_SQLOCK)
{
    assert_refused_in_the_next_second(f, f->client_b, ask_twice);
    assert_int_equal(place_of(f, client_c), 0);
    assert_less(0, ask(&f->b, f, client_c));
    assert_int_equal(leave(&f->b, f, f->client_b), 1);
    assert_int_equal(release(&f->b, f, client_c), 1);
}

/* Write a text into QUEUE, with a time `ahead` us from now at its %. */
static void write_queue(struct fixture *f, const char *format, int64_t ahead)
{
    const char *at = strchr(format, '%');
    char time[24] = "";
    int before = (int)(at != NULL ? at - format : (int)strlen(format));

    if (at != NULL)
        (void)snprintf(time, sizeof time, "%lld",
                       (long long)(now_us(&f->b) + ahead));
    session_run(&f->b, "UPDATE %s SET QUEUE = '%.*s%s%s' WHERE LOCK_KEY = '%s'",
                subject.tables[f->layout].quoted, before, format, time,
                at != NULL ? at + 1 : "", f->key);
}

/* Check that the lock goes on with such a text in QUEUE, and that the text is
 * gone after one use. */
static void check_rubbish(struct fixture *f, const char *format, int64_t ahead)
{
    assert_less(0, claim(&f->a, f, f->client_a, LONG_US));
    assert_int_equal(release(&f->a, f, f->client_a), 1);
    write_queue(f, format, ahead);
    assert_less(0, claim(&f->a, f, f->client_a, LONG_US));
    assert_int_equal(release(&f->a, f, f->client_a), 1);
    assert_true(read_row(&f->b, f));
    assert_null(cell_text(&f->b, 0, LK_INFO_QUEUE));
    write_queue(f, format, ahead);
    assert_less(0, ask(&f->a, f, f->client_a));
    write_queue(f, format, ahead);
    assert_int_equal(claim(&f->b, f, f->client_b, LONG_US), 0);
    assert_int_equal(ask(&f->b, f, f->client_b), 0);
    assert_int_equal(place_of(f, f->client_b), 0);
    assert_int_equal(release(&f->a, f, f->client_a), 1);
    assert_reserved_for(f, f->client_b);
    assert_less(0, ask(&f->b, f, f->client_b));
    write_queue(f, format, ahead);
    assert_int_equal(release(&f->b, f, f->client_b), 1);
    assert_less(0, claim(&f->a, f, f->client_a, LONG_US));
    write_queue(f, format, ahead);
    (void)leave(&f->b, f, f->client_a);
    assert_int_equal(release(&f->a, f, f->client_a), 1);
}

TEST_ON(test_what_is_no_queue_keeps_nobody_out, ON_ALL, IN_SQLOCK)
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

    for (size_t i = 0; i < sizeof rubbish / sizeof *rubbish; i++)
        check_rubbish(f, rubbish[i], 60000000);
}

static void delete_row(struct fixture *f)
{
    session_run(&f->a, "DELETE FROM %s WHERE LOCK_KEY = '%s'",
                subject.tables[f->layout].quoted, f->key);
}

/* Claim a row that does not exist, with tickets, by a statement of that kind.
 */
static void check_tickets_of_a_new_row(struct fixture *f,
                                       sqlock_statement_kind kind)
{
    struct lk_arguments arguments = arguments_for(f, f->client_a, LONG_US);
    char *queue;

    let_two_wait(f);
    assert_true(read_row(&f->b, f));
    queue = strdup(cell_text(&f->b, 0, LK_INFO_QUEUE));
    assert_non_null(queue);
    delete_row(f);
    lk_argument_text(&arguments, SQLOCK_P_SHOWN, shown);
    lk_argument_text(&arguments, SQLOCK_P_QUEUE, queue);
    statement_run(&f->a, f, kind, &arguments);
    assert_true(read_row(&f->b, f));
    assert_string_equal(cell_text(&f->b, 0, LK_INFO_QUEUE), queue);
    free(queue);
    assert_int_equal(release(&f->a, f, f->client_a), 1);
    assert_reserved_for(f, f->client_b);
    assert_int_equal(place_of(f, client_c), 0);
    delete_row(f);
}

/* A service deletes the row, with the tickets in it. */
TEST_ON(test_a_new_row_gets_the_tickets_of_the_one_before, ON_ALL, IN_SQLOCK)
{
    check_tickets_of_a_new_row(f, SQLOCK_SQL_ENQUEUE);
    check_tickets_of_a_new_row(f, SQLOCK_SQL_CLAIM);
}

TEST_ON(test_the_tickets_behind_another_one, ON_ALL, IN_SQLOCK)
{
    const char *queue;
    char before[SQLOCK_KEY_SIZE];
    char *rest;

    let_two_wait(f);
    assert_true(read_row(&f->b, f));
    queue = cell_text(&f->b, 0, LK_INFO_QUEUE);
    rest = lk_ticket_behind(queue, f->client_b);
    assert_non_null(rest);
    assert_int_equal(strncmp(rest, queue, 27), 0);
    assert_int_equal(lk_ticket_place(rest, client_c, before), 0);
    assert_int_equal(lk_ticket_place(rest, f->client_b, before), -1);
    free(rest);
    assert_null(lk_ticket_behind(queue, client_c));
    assert_null(lk_ticket_behind(queue, f->client_a));
    assert_null(lk_ticket_behind("no queue", client_c));
}
