/*
 * waiters.c - tell who waits for a lock (waiters.h)
 */
#include "admin/waiters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/writer.h"
#include "lease/ticket.h"

void lk_write_weight(FILE *out, uint32_t weight)
{
    if (weight != 1)
        (void)fprintf(out, ", weight %u", weight);
}

static void write_waiter(FILE *out, const struct lk_ticket *ticket,
                         int64_t now_us)
{
    double waited = (double)(now_us - ticket->since_us) / 1e6;

    (void)fprintf(out, "%.*s", (int)ticket->holder_length, ticket->holder);
    if (ticket->weight > 0) {
        (void)fputs_unlocked(", to share", out);
        lk_write_weight(out, ticket->weight);
    }
    (void)fprintf(out, ", for %.1f s", waited > 0 ? waited : 0);
}

int lk_waiters_read(const char *queue, const char *number, int64_t now_us,
                    struct lk_waiters *out)
{
    struct lk_ticket ticket;
    struct lk_writer writer;
    FILE *text;

    *out = (struct lk_waiters){0};
    if (queue == NULL)
        return 0;
    text = lk_writer_open(&writer);
    if (text == NULL)
        return SQLOCK_ENOMEM;
    while (lk_ticket_next(&queue, &ticket)) {
        if (ticket.ends_at_us < now_us)
            continue;
        if (out->count++ > 0)
            (void)putc_unlocked('\n', text);
        if (strncmp(ticket.client_id, number, strlen(number)) == 0)
            out->place = out->count;
        write_waiter(text, &ticket, now_us);
    }
    out->text = lk_writer_close(&writer);
    if (out->text == NULL)
        return SQLOCK_ENOMEM;
    if (out->count > 0)
        return 0;
    free(out->text);
    out->text = NULL;
    return 0;
}
