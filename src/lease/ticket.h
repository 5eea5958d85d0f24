/*
 * ticket.h - who waits for a lock, in order, as the text of its row's QUEUE
 *
 * QUEUE is null when nobody waits.  Otherwise it is JSON that every database
 * can change by plain functions of text, because the beginning and each ticket
 * have places of fixed length:
 *
 *     {"e":<end>,"q":[["<CLIENT_ID>",<end>,<since>,"<weight>","<holder>"],0]}
 *
 * Times are us since 1970 by the database's clock, always of 16 digits.  They
 * are shown, and say who gave a sign of life; they do not count for the order,
 * which no clock that steps changes.  "e" is the end of the tickets whose
 * owners were called last (pass_on.h).
 *
 * A ticket has the CLIENT_ID that its claim has, its end, when it was made,
 * what it waits for, and the identity of the waiter, as HOLDER has that of the
 * holder; it ends with "],.  The weight has six digits: 000000 waits for the
 * lock alone, others to share it (sharer.h).  The 0 is there so that all
 * tickets end in the same way.
 */
#ifndef LK_TICKET_H
#define LK_TICKET_H

#include "lease/store.h"

/* How long a ticket lasts that is not renewed: its waiter is gone then. */
#define LK_TICKET_MS 70000u
/* A waiter claims again, and so renews its ticket, after this time. */
#define LK_TICKET_RENEWED_MS 28000u

/* A release of a lock that was waited for and held for less than a second asks
 * nobody to look whether the first is alive.  So each that is behind it looks
 * when its own ticket is that old, and then after twice as long each time. */
#define LK_TICKET_FRESH_MS 2000u

/* Where each waiter hears one other, so many at the front hear the one just
 * before, and those behind them the one in the middle between the front and
 * themselves.  MySQL and MariaDB take a chain of 32 sessions, each waiting for
 * the next one, for a deadlock: 250 in a row were refused their waits. */
#define LK_CHAIN_MAX 16

/* How long a release keeps the row for the first waiter. */
#define LK_RESERVED_MS 1000u

/* One ticket, as lk_ticket_next() reads it.  The texts are not terminated by
 * NUL, and point into the queue. */
struct lk_ticket {
    const char *client_id; /* SQLOCK_KEY_SIZE - 1 bytes */
    int64_t ends_at_us;
    int64_t since_us;
    uint32_t weight; /* 0: exclusive */
    const char *holder;
    size_t holder_length;
};

/* Read the next ticket of a queue from *at on, and move *at behind it.  Begin
 * with the text of the column, or NULL.  Return false if there is none. */
bool lk_ticket_next(const char **at, struct lk_ticket *out);

/* Return whether a queue has a ticket that is not over. */
bool lk_queue_has_any(const char *queue, int64_t now_us);

/* Find the ticket of a claim.  Return its place, 0 for the first; -1: it has
 * none.  `before` gets the CLIENT_ID of the ticket before it whose bell it
 * hears, where it can hear only one; "" if it is the first. */
int lk_ticket_place(const char *queue, const char *client_id,
                    char before[SQLOCK_KEY_SIZE]);

/* Return the end of those in a queue who were called last, or 0. */
int64_t lk_tickets_called_us(const char *queue);

/* Return whether the owner of a claim's ticket was called, and has not renewed
 * the ticket since. */
bool lk_ticket_is_called(const char *queue, const char *client_id);

/* Return a queue without a claim's ticket and those before it, to be freed;
 * NULL: no ticket is left, or the claim had none, or there is no memory. */
char *lk_ticket_behind(const char *queue, const char *client_id);

/* Write a text about a holder, such as the identity of this process, as a
 * ticket has it: without the characters by which tickets are told apart. */
void lk_ticket_holder(const struct lk_store *store, char *out, size_t size,
                      const char *text);

#endif
