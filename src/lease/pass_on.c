/*
 * pass_on.c - pass a row on that its first waiter has not taken (pass_on.h)
 *
 * A call is the end that the called tickets get, a second from now, which QUEUE
 * begins with: who is alive renews its ticket, and so gives it another end.
 * Where waiters cannot be rung, since each hears one other only, those look now
 * and then by themselves, and a call takes no ticket whose owner has its bell;
 * but of a row that is shared, where no second of the row's goes by for it, one
 * that has given no sign for so long that each that lives would have looked.
 */
#include "lease/pass_on.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/writer.h"
#include "lease/bell.h"
#include "lease/grace.h"
#include "lease/row.h"
#include "lease/ticket.h"

#define ID_LENGTH (SQLOCK_KEY_SIZE - 1)
#define CALLED_US (INT64_C(1000) * LK_RESERVED_MS)

/* After a call for so long a bell is no sign of life. */
#define DEAF_US (5 * CALLED_US)

/* A queue, and what becomes of it. */
struct passing {
    /* in */
    const char *queue;
    int64_t now_us;
    bool is_over;  /* the row is reserved for the next */
    bool may_drop; /* who was called and gave no sign loses its ticket */
    /* out */
    char next[SQLOCK_KEY_SIZE]; /* "": nobody, or the row is shared */
    char holder[LK_HOLDER_SIZE];
    char *kept;    /* the new queue */
    char *rung;    /* JSON: what is rung */
    char *dropped; /* JSON: whose tickets go */
    size_t kept_count, dropped_count;
};

static void free_passing(struct passing *passing)
{
    free(passing->kept);
    free(passing->rung);
    free(passing->dropped);
}

/* Add a text to a list in JSON: a CLIENT_ID, and what is behind it. */
static void list(FILE *out, size_t *count, const struct lk_ticket *ticket,
                 const char *behind)
{
    (void)fprintf(out, "%s\"%.*s%s\"", (*count)++ > 0 ? "," : "", ID_LENGTH,
                  ticket->client_id, behind);
}

/* Reserve the row for that ticket. */
static void reserve_for(struct passing *passing, const struct lk_ticket *ticket)
{
    (void)snprintf(passing->next, sizeof passing->next, "%.*s", ID_LENGTH,
                   ticket->client_id);
    (void)snprintf(passing->holder, sizeof passing->holder, "%s %.*s",
                   passing->next, (int)ticket->holder_length, ticket->holder);
}

/* Keep a ticket; called: with the end of those who are called. */
static void keep(struct passing *passing, const struct lk_ticket *ticket,
                 bool is_called, FILE *kept)
{
    int64_t ends_at_us =
        is_called ? passing->now_us + CALLED_US : ticket->ends_at_us;

    passing->kept_count++;
    (void)fprintf(kept,
                  "[\"%.*s\",%016" PRId64 ",%016" PRId64 ",\"%06" PRIu32
                  "\",\"%.*s\"],",
                  ID_LENGTH, ticket->client_id, ends_at_us, ticket->since_us,
                  ticket->weight, (int)ticket->holder_length, ticket->holder);
}

/* Go through the queue, to three texts. */
static void divide(struct passing *passing, FILE *kept, FILE *rung,
                   FILE *dropped)
{
    int64_t called_us = lk_tickets_called_us(passing->queue);
    bool is_front = passing->may_drop && called_us < passing->now_us;
    const char *at = passing->queue;
    size_t rung_count = 0;
    struct lk_ticket ticket;
    bool is_called;

    (void)fprintf(kept, "{\"e\":%016" PRId64 ",\"q\":[",
                  passing->now_us + CALLED_US);
    (void)fputs("[", rung);
    (void)fputs("[", dropped);
    while (lk_ticket_next(&at, &ticket)) {
        is_front = is_front && ticket.ends_at_us == called_us;
        if (is_front) {
            list(dropped, &passing->dropped_count, &ticket, "");
            continue;
        }
        is_called = rung_count < LK_CALLED_MAX;
        if (passing->is_over && passing->next[0] == '\0') {
            reserve_for(passing, &ticket);
            list(rung, &rung_count, &ticket, "");
            continue;
        }
        keep(passing, &ticket, is_called, kept);
        if (is_called) /* "?0": look at once */
            list(rung, &rung_count, &ticket, "?0");
    }
    (void)fputs("0]}", kept);
    (void)fputs("]", rung);
    (void)fputs("]", dropped);
}

/* Fill in what becomes of the queue.  Return false when out of memory. */
static bool plan(struct passing *passing)
{
    struct lk_writer writers[3];
    FILE *kept = lk_writer_open(&writers[0]);
    FILE *rung = lk_writer_open(&writers[1]);
    FILE *dropped = lk_writer_open(&writers[2]);

    if (kept != NULL && rung != NULL && dropped != NULL)
        divide(passing, kept, rung, dropped);
    passing->kept = lk_writer_close(&writers[0]);
    passing->rung = lk_writer_close(&writers[1]);
    passing->dropped = lk_writer_close(&writers[2]);
    return passing->kept != NULL && passing->rung != NULL &&
           passing->dropped != NULL;
}

/* Return whether those whose tickets go may have their bells. */
static bool is_deaf(const struct passing *passing)
{
    return !passing->is_over &&
           lk_tickets_called_us(passing->queue) + DEAF_US < passing->now_us;
}

/* Send the plan.  Return 1; or 0 if the row has changed, or one of the dropped
 * has its bell; or a result of lk_store_run(). */
static int carry_out(struct lk_store *store, const char *key,
                     int64_t deadline_ns, const struct lk_row *row,
                     const struct passing *passing)
{
    bool has_next = passing->next[0] != '\0';
    struct lk_arguments arguments;
    struct lk_run run = {.deadline_ns = deadline_ns};

    lk_store_arguments(store, key, &arguments);
    lk_argument_text(&arguments, SQLOCK_P_CLIENT,
                     has_next ? passing->next : NULL);
    lk_argument_text(&arguments, SQLOCK_P_HOLDER,
                     has_next ? passing->holder : NULL);
    lk_argument_integer(&arguments, SQLOCK_P_TOKEN, row->token);
    lk_argument_text(&arguments, SQLOCK_P_OLD_QUEUE, passing->queue);
    lk_argument_text(&arguments, SQLOCK_P_QUEUE,
                     passing->kept_count > 0 ? passing->kept : NULL);
    lk_argument_text(&arguments, SQLOCK_P_RUNG, passing->rung);
    lk_argument_text(&arguments, SQLOCK_P_DROPPED,
                     is_deaf(passing) ? "[]" : passing->dropped);
    return lk_store_change(store, SQLOCK_SQL_PASS_ON, &arguments, &run, NULL);
}

/* Return whether those who were called still have time to give a sign.  A call
 * from farther ahead is of a clock that was set back since. */
static bool is_being_called(const char *queue, int64_t now_us)
{
    int64_t called_us = lk_tickets_called_us(queue);

    return now_us <= called_us && called_us <= now_us + CALLED_US;
}

static int pass_on(struct lk_store *store, const char *key, int64_t deadline_ns,
                   const struct lk_row *row, const char *queue, bool may_drop,
                   bool *has_dropped)
{
    struct passing passing = {
        .queue = queue,
        .now_us = row->expires_at_us - row->remaining_us,
        .is_over = !row->is_taken,
        .may_drop = may_drop,
    };
    int rc = 0;

    if (!passing.is_over && is_being_called(queue, passing.now_us))
        return 0;
    if (plan(&passing) && (passing.next[0] != '\0' || /* somebody waits */
                           passing.kept_count + passing.dropped_count > 0)) {
        rc = carry_out(store, key, deadline_ns, row, &passing);
        *has_dropped = passing.dropped_count > 0;
    }
    free_passing(&passing);
    return rc;
}

int lk_row_pass_on(struct lk_store *store, const char *key, int64_t deadline_ns)
{
    /* the driver's: also who polls may meet those who have their bells */
    const sqlock_bell *bell = store->db.driver->bell;
    bool has_dropped = false;
    char *queue = NULL;
    struct lk_row row;
    int rc;

    if (lk_grace_left_ns(store) > 0) /* the next one could not take it */
        return 0;
    rc = lk_row_queue(store, key, deadline_ns, &row, &queue, NULL);
    if (rc == 0 && queue != NULL && (!row.is_taken || row.is_shared)) {
        rc = pass_on(store, key, deadline_ns, &row, queue, true, &has_dropped);
        if (rc == 0 && has_dropped && !row.is_taken && bell != NULL &&
            bell->is_of_one)
            rc = pass_on(store, key, deadline_ns, &row, queue, false,
                         &has_dropped);
    }
    free(queue);
    return rc;
}

/* Return whether those who wait for the lock may have waited for long: as long
 * as its holder has waited for it and held it. */
static bool is_old(const struct lk_lease *lease)
{
    return !lease->believed.is_unqueued &&
           sqlock_monotonic_ns() >=
               lk_after_ms(lease->asked.began_ns, LK_RESERVED_MS);
}

void lk_rows_ask_to_look(struct lk_store *store, const struct lk_batch *batch)
{
    const char **keys = malloc(batch->count * sizeof *keys);
    size_t count = 0;

    for (size_t i = 0; keys != NULL && i < batch->count; i++)
        if (is_old(&batch->items[i].lease))
            keys[count++] = batch->items[i].lease.key;
    lk_bell_ask_to_look(store, keys, count, 0);
    free(keys);
}
