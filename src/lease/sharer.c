/*
 * sharer.c - read the text of SHARERS (sharer.h)
 */
#include "lease/sharer.h"

#include <string.h>

#include "base/text.h"

#define ID_LENGTH (SQLOCK_KEY_SIZE - 1)
#define GROUP "{\"g\":\""
#define PERMITS "\",\"n\":\""
#define PERMIT_DIGITS 6
#define TOKEN_DIGITS 19
#define AFTER_TOKEN "\",\""

/* Return the text behind the group's CLIENT_ID, or NULL. */
static const char *behind_group(const char *sharers)
{
    size_t length = strlen(GROUP) + ID_LENGTH;

    if (sharers == NULL || strnlen(sharers, length) < length ||
        strncmp(sharers, GROUP, strlen(GROUP)) != 0)
        return NULL;
    return sharers + length;
}

bool lk_client_id_is_group(const char *client_id)
{
    static const char zeros[] = "00000000-0000";

    return strncmp(client_id, zeros, sizeof zeros - 1) == 0;
}

bool lk_sharers_have(const char *sharers, const char *client_id)
{
    return behind_group(sharers) != NULL && strlen(client_id) == ID_LENGTH &&
           strncmp(sharers + strlen(GROUP), client_id, ID_LENGTH) == 0;
}

uint32_t lk_sharers_permits(const char *sharers)
{
    const char *at = behind_group(sharers);

    if (at == NULL || strncmp(at, PERMITS, strlen(PERMITS)) != 0)
        return LK_NO_LIMIT;
    at += strlen(PERMITS);
    if (strspn(at, "0123456789") != PERMIT_DIGITS || at[PERMIT_DIGITS] != '"')
        return LK_NO_LIMIT;
    return (uint32_t)lk_text_digits(&at);
}

/* Read the digits of a token: INT64_MAX if they stand for more. */
static int64_t digits(const char *text)
{
    int64_t value = lk_text_digits(&text);

    if (*text < '0' || *text > '9')
        return value;
    return __builtin_mul_overflow(value, (int64_t)10, &value) ||
                   __builtin_add_overflow(value, (int64_t)(*text - '0'), &value)
               ? INT64_MAX
               : value;
}

bool lk_sharer_next(const char **at, struct lk_sharer *out)
{
    size_t length = TOKEN_DIGITS + strlen(AFTER_TOKEN);

    if (!lk_ticket_next(at, &out->as) || out->as.holder_length < length ||
        strncmp(out->as.holder + TOKEN_DIGITS, AFTER_TOKEN,
                strlen(AFTER_TOKEN)) != 0)
        return false;
    out->token = digits(out->as.holder);
    out->as.holder += length;
    out->as.holder_length -= length;
    return true;
}

int64_t lk_sharers_end_us(const char *sharers)
{
    struct lk_sharer sharer;
    int64_t end_us = 0;

    while (lk_sharer_next(&sharers, &sharer))
        if (sharer.as.ends_at_us > end_us)
            end_us = sharer.as.ends_at_us;
    return end_us;
}

int64_t lk_sharers_first_us(const char *sharers, int64_t last_us)
{
    struct lk_sharer sharer;
    int64_t first_us = last_us;
    int64_t last = lk_sharers_end_us(sharers);

    for (const char *at = sharers; lk_sharer_next(&at, &sharer);) {
        int64_t left_us = last_us - (last - sharer.as.ends_at_us);

        if (left_us >= 0 && left_us < first_us)
            first_us = left_us;
    }
    return first_us;
}

/* Return what the sharers leave of `most`. */
static int64_t room_beside(const char *sharers, int64_t most, int64_t now_us)
{
    struct lk_sharer sharer;

    while (lk_sharer_next(&sharers, &sharer))
        if (sharer.as.ends_at_us >= now_us)
            most -= sharer.as.weight;
    return most;
}

unsigned lk_sharers_rounds(const char *sharers, bool is_shared,
                           const char *queue, const char *client_id,
                           int64_t now_us)
{
    uint32_t permits = lk_sharers_permits(sharers);
    int64_t most = permits != LK_NO_LIMIT ? permits : UINT32_MAX;
    int64_t room = is_shared ? room_beside(sharers, most, now_us) : 0;
    struct lk_ticket ticket;
    unsigned rounds = 0;

    while (lk_ticket_next(&queue, &ticket)) {
        bool is_own = strncmp(ticket.client_id, client_id, ID_LENGTH) == 0;
        /* an exclusive one has room beside nobody */
        int64_t weight = ticket.weight > 0 ? ticket.weight : most + 1;

        if (weight > room) {
            rounds++;
            room = most;
        }
        room -= weight;
        if (is_own)
            return rounds;
    }
    return 1;
}
