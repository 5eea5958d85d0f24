/*
 * waiters.c - tell who waits for a lock (waiters.h)
 */
#include "admin/waiters.h"

#include <stdio.h>
#include <stdlib.h>

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

int lk_waiters_read(const char *queue, int64_t now_us, int32_t *count,
                    char **text)
{
    struct lk_ticket ticket;
    struct lk_writer writer;
    FILE *out;

    *count = 0;
    *text = NULL;
    if (queue == NULL)
        return 0;
    out = lk_writer_open(&writer);
    if (out == NULL)
        return SQLOCK_ENOMEM;
    while (lk_ticket_next(&queue, &ticket)) {
        if (ticket.ends_at_us < now_us)
            continue;
        if ((*count)++ > 0)
            (void)putc_unlocked('\n', out);
        write_waiter(out, &ticket, now_us);
    }
    *text = lk_writer_close(&writer);
    if (*text == NULL)
        return SQLOCK_ENOMEM;
    if (*count > 0)
        return 0;
    free(*text);
    *text = NULL;
    return 0;
}
