/*
 * ticket.c - read the text of a QUEUE (ticket.h)
 */
#include "lease/ticket.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define ID_LENGTH (SQLOCK_KEY_SIZE - 1)
#define BEGIN "[\""
#define AFTER_ID "\","
#define BEFORE_WEIGHT ",\""
#define BEFORE_HOLDER "\",\""
#define END "\"],"

/* Return the text behind `wanted` if `at` begins with it, otherwise NULL. */
static const char *behind(const char *at, const char *wanted)
{
    size_t length = strlen(wanted);

    return at != NULL && strncmp(at, wanted, length) == 0 ? at + length : NULL;
}

bool lk_ticket_next(const char **at, struct lk_ticket *out)
{
    const char *begin = *at != NULL ? strstr(*at, BEGIN) : NULL;
    const char *text;

    *at = NULL;
    if (begin == NULL)
        return false;
    out->client_id = begin + strlen(BEGIN);
    if (strnlen(out->client_id, ID_LENGTH) < ID_LENGTH)
        return false;
    text = behind(out->client_id + ID_LENGTH, AFTER_ID);
    if (text == NULL)
        return false;
    out->ends_at_us = lk_text_digits(&text);
    text = behind(text, ",");
    if (text == NULL)
        return false;
    out->since_us = lk_text_digits(&text);
    text = behind(text, BEFORE_WEIGHT);
    if (text == NULL)
        return false;
    out->weight = (uint32_t)lk_text_digits(&text);
    out->holder = behind(text, BEFORE_HOLDER);
    text = out->holder != NULL ? strstr(out->holder, END) : NULL;
    if (text == NULL)
        return false;
    out->holder_length = (size_t)(text - out->holder);
    *at = text + strlen(END);
    return true;
}

bool lk_queue_has_any(const char *queue, int64_t now_us)
{
    struct lk_ticket ticket;

    while (lk_ticket_next(&queue, &ticket))
        if (ticket.ends_at_us >= now_us)
            return true;
    return false;
}

/* Copy the CLIENT_ID of the ticket at that place, which there is. */
static void copy_id_at(const char *queue, int place, char id[SQLOCK_KEY_SIZE])
{
    struct lk_ticket ticket;

    while (lk_ticket_next(&queue, &ticket)) {
        if (place-- > 0)
            continue;
        (void)snprintf(id, SQLOCK_KEY_SIZE, "%.*s", ID_LENGTH,
                       ticket.client_id);
        return;
    }
}

int lk_ticket_place(const char *queue, const char *client_id,
                    char before[SQLOCK_KEY_SIZE])
{
    const char *at = queue;
    struct lk_ticket ticket;
    int place = 0;

    before[0] = '\0';
    while (lk_ticket_next(&at, &ticket)) {
        if (strncmp(ticket.client_id, client_id, ID_LENGTH) != 0) {
            place++;
            continue;
        }
        if (place > 0)
            copy_id_at(queue, place <= LK_CHAIN_MAX ? place - 1 : place / 2,
                       before);
        return place;
    }
    return -1;
}

int64_t lk_tickets_called_us(const char *queue)
{
    const char *text = behind(queue, "{\"e\":");

    return text != NULL ? lk_text_digits(&text) : 0;
}

bool lk_ticket_is_called(const char *queue, const char *client_id)
{
    int64_t called_us = lk_tickets_called_us(queue);
    struct lk_ticket ticket;

    while (lk_ticket_next(&queue, &ticket))
        if (strncmp(ticket.client_id, client_id, ID_LENGTH) == 0)
            return ticket.ends_at_us == called_us;
    return false;
}

char *lk_ticket_behind(const char *queue, const char *client_id)
{
    const char *first = strstr(queue, BEGIN);
    const char *at = queue;
    struct lk_ticket ticket;
    char *rest = NULL;

    while (lk_ticket_next(&at, &ticket)) {
        if (strncmp(ticket.client_id, client_id, ID_LENGTH) != 0)
            continue;
        if (behind(at, BEGIN) != NULL &&
            asprintf(&rest, "%.*s%s", (int)(first - queue), queue, at) < 0)
            rest = NULL;
        break;
    }
    return rest;
}

void lk_ticket_holder(const struct lk_store *store, char *out, size_t size,
                      const char *text)
{
    lk_store_shown(store, out, size, text);
    for (char *at = out; *at != '\0'; at++) {
        if (*at == '[')
            *at = '(';
        else if (*at == ']')
            *at = ')';
        else if (*at == '"' || *at == '\\')
            *at = '\'';
    }
}
