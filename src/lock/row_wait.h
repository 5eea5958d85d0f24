/*
 * row_wait.h - waiting for a row that another process has: with a ticket in it,
 * for a ring, or by polling
 */
#ifndef LK_ROW_WAIT_H
#define LK_ROW_WAIT_H

#include "lease/batch.h"
#include "lock/slot.h"

/* How an acquisition goes on whose claim was refused, with a ticket in the
 * row. */
enum lk_row_wait_next {
    LK_ROW_WAIT_PARK,  /* sleep until the waiter is woken, or a time */
    LK_ROW_WAIT_AGAIN, /* claim at once: a ring may have been missed */
    LK_ROW_WAIT_POLL   /* nobody will ring: poll */
};

struct lk_row_wait {
    /* when to look although nobody rings, first LK_TICKET_FRESH_MS after the
     * ticket was made, CLOCK_MONOTONIC; 0: there was no ticket yet */
    int64_t look_ns;
    int64_t renew_ns;             /* when to renew the ticket by a claim */
    uint32_t pause_ms;            /* between the last look and that one */
    bool has_called;              /* the last look has called those before */
    bool was_shared;              /* the lock, when it was refused last */
    char before[SQLOCK_KEY_SIZE]; /* whose bell was waited for last */
};

/* Pass the row of a refused claim on, if that is not the first and the row is
 * over; of a row that is shared call those before it now and then.  Return
 * whether to claim again at once. */
bool lk_row_wait_pass_on(struct lk_row_wait *wait, const struct lk_part *part,
                         const struct lk_row *row);

/* After a refused claim that does not wait any longer: look now and then, until
 * the deadline, whether its row is over, and pass it on; where it is shared,
 * call those who wait. */
void lk_row_wait_look(struct lk_part *part, int64_t deadline_ns);

/* Begin to wait for the row of `part`, as the refused claim has found it, and
 * set *until_ns, CLOCK_MONOTONIC. */
enum lk_row_wait_next lk_row_wait_begin(struct lk_row_wait *wait,
                                        struct lk_part *part,
                                        const struct lk_row *row,
                                        int64_t *until_ns);

/* Look at the row of a part that was woken, but is not known to be next.  If
 * the one that it heard has gone, since which fewer are before it, but still
 * others, begin to hear a nearer one; which reads the row, where a claim would
 * write it.  Return as lk_row_wait_begin(); LK_ROW_WAIT_AGAIN: claim. */
enum lk_row_wait_next lk_row_wait_look_on(struct lk_row_wait *wait,
                                          struct lk_part *part,
                                          int64_t *until_ns);

/* Return until when to poll: with a bell, until another process has the row,
 * which then rings; and when to look in any case. */
enum lk_poll_until lk_row_wait_polls(const struct lk_part *part);
int64_t lk_row_wait_looks_at(const struct lk_row_wait *wait,
                             const struct lk_part *part);

/* Return whether the part has waited for long enough to have the lock for
 * services (peers.h); then give up its ticket, but not its turn. */
bool lk_row_wait_ends(struct lk_part *part);

/* Give up the ticket and the session that waits; or the turn, to the next of
 * the FIFO, which goes on with them.  is_outage: the database is not asked
 * now. */
void lk_row_wait_give_up(struct lk_part *part, bool is_outage);

#endif
