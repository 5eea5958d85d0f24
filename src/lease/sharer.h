/*
 * sharer.h - who shares a lock, as the text of its row's SHARERS
 *
 * SHARERS is null unless the lock has been shared, or has a limit of permits.
 * It is JSON with fixed places, as QUEUE is (ticket.h):
 *
 *     {"g":"<CLIENT_ID>","n":"<permits>","s":[["<CLIENT_ID>",<end>,<since>,
 *         "<weight>","<token>","<holder>"],0]}
 *
 * "g" is the CLIENT_ID of the group of sharers.  The lock is shared while it is
 * that of the row and EXPIRED_AFTER, the latest end of a sharer, lies ahead;
 * otherwise the sharers are of the past.  "n" has six digits, 000000 being no
 * limit; such a limit is forgotten with the group, another one when the row is
 * reaped.  A sharer is a ticket with a token, of 19 digits.
 */
#ifndef LK_SHARER_H
#define LK_SHARER_H

#include "lease/ticket.h"

/* The most sharers of a lock: each statement about one reads and rewrites all.
 * So many leases of 5 s are kept, renewed in the background (README.md). */
#define LK_SHARERS_MAX 200u
/* The most permits of a lock, and the greatest weight. */
#define LK_PERMITS_MAX 999999u
/* The permits of a lock that any number may share. */
#define LK_NO_LIMIT 0u

struct lk_sharer {
    struct lk_ticket as; /* its holder is the sharer's, without the token */
    int64_t token;
};

/* Return whether a CLIENT_ID is a group's, as far as it tells: no process has
 * a number of zeros. */
bool lk_client_id_is_group(const char *client_id);

/* Return whether a row with that CLIENT_ID and that SHARERS, which may be
 * NULL, is a group's. */
bool lk_sharers_have(const char *sharers, const char *client_id);

/* Return the permits of a text of SHARERS; LK_NO_LIMIT if it has none. */
uint32_t lk_sharers_permits(const char *sharers);

/* Read the next sharer from *at on, and move *at behind it.  Begin with the
 * text of the column, or NULL.  Return false if there is none. */
bool lk_sharer_next(const char **at, struct lk_sharer *out);

/* Return when the last lease of a sharer ends; 0: there is none. */
int64_t lk_sharers_end_us(const char *sharers);

/* Return in how many us the first lease of a sharer ends, if the last one does
 * in `last_us`. */
int64_t lk_sharers_first_us(const char *sharers, int64_t last_us);

/* Return how often the lock changes hands before the ticket of a claim has it:
 * 0: it may join those who share the lock; 1: it is among the next, or has no
 * ticket.  `is_shared` tells that the sharers are those of the row. */
unsigned lk_sharers_rounds(const char *sharers, bool is_shared,
                           const char *queue, const char *client_id,
                           int64_t now_us);

#endif
