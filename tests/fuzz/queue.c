/*
 * queue.c - the tickets of a QUEUE: a place is found for each, and a queue
 * without the first of them has one less
 */
#include "fuzz.h"

#include <stdio.h>

#include "lease/sharer.h"
#include "lease/ticket.h"

#define NOW_US INT64_C(1700000000000000)

static size_t count_of(const char *queue)
{
    struct lk_ticket ticket;
    size_t count = 0;

    while (lk_ticket_next(&queue, &ticket)) {
        must(ticket.holder_length <= strlen(ticket.holder));
        must(ticket.ends_at_us >= 0 && ticket.since_us >= 0);
        count++;
    }
    return count;
}

static void check_ticket(const char *queue, const struct lk_ticket *ticket,
                         size_t count)
{
    char id[SQLOCK_KEY_SIZE], before[SQLOCK_KEY_SIZE];
    int place;
    char *rest;

    (void)snprintf(id, sizeof id, "%.*s", SQLOCK_KEY_SIZE - 1,
                   ticket->client_id);
    place = lk_ticket_place(queue, id, before);
    must(place >= 0 && (size_t)place < count);
    must((place == 0) == (before[0] == '\0'));
    must(lk_sharers_rounds(NULL, false, queue, id, NOW_US) >= 1);
    (void)lk_ticket_is_called(queue, id);
    rest = lk_ticket_behind(queue, id);
    if (rest != NULL)
        must(count_of(rest) == count - (size_t)place - 1);
    free(rest);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *queue = fuzz_text(data, size);
    const char *at = queue;
    size_t count = count_of(queue);
    char before[SQLOCK_KEY_SIZE];
    struct lk_ticket ticket;

    for (size_t i = 0; lk_ticket_next(&at, &ticket) && i < 8; i++)
        check_ticket(queue, &ticket, count);
    must(lk_ticket_place(queue, "nobody's", before) == -1);
    must(!lk_queue_has_any(queue, INT64_MAX));
    must(lk_queue_has_any(queue, 0) == (count > 0));
    must(lk_tickets_called_us(queue) >= 0);
    free(queue);
    return 0;
}
