/*
 * kept.h - rows that an acquisition of many locks keeps while it waits for
 * another of them
 *
 * It begins by keeping none: it claims all rows together, and where one is
 * refused gives back the others.  Among callers that take these locks one by
 * one, it might then never find all of them free.  So after some setbacks it
 * keeps what it has got and waits for the next.  The locks that it has while it
 * waits for one come before that one in the order of the keys, so such
 * acquisitions never wait for each other crosswise.
 *
 * Somebody who has one of the locks and waits for another may.  So an
 * acquisition keeps rows for a tenth of a second, then gives them all back,
 * which lets such a caller pass, and tries anew for twice as long; and it gives
 * them back when it sees such a caller (deadlock.h, circle.h).  It never leaves
 * the queue of the lock for which it waits.
 *
 * A kept row is claimed, and its part has the turn.  The claim of all, which
 * ends the acquisition, claims it again by the same CLIENT_ID.
 */
#ifndef LK_KEPT_H
#define LK_KEPT_H

#include <stdbool.h>
#include <stdint.h>

struct lk_acquisition;
struct lk_part;

struct lk_kept {
    unsigned setbacks;    /* how often what was got had to be given back */
    int64_t longest_ns;   /* how long to keep rows this time */
    int64_t give_back_ns; /* until when, CLOCK_MONOTONIC */
    int64_t look_ns;      /* when to look at them, if any is kept */
};

/* Note that one of the locks is not to be had, which are others' to wait
 * for. */
void lk_kept_set_back(struct lk_acquisition *a);

/* Return whether the acquisition keeps what it has while it waits for that
 * part. */
bool lk_kept_stays(const struct lk_acquisition *a, const struct lk_part *part,
                   const struct lk_part *waits_for);

/* Return whether rows before the part's would be kept if they were claimed
 * now. */
bool lk_kept_has_more(const struct lk_acquisition *a,
                      const struct lk_part *missing);

/* Keep the row of a part whose claim was granted. */
void lk_kept_add(struct lk_acquisition *a, struct lk_part *part);

/* Note that a kept row is not the part's any more. */
void lk_kept_lost(struct lk_acquisition *a, struct lk_part *part);

/* Give back the kept rows that do not stay during the wait for that part (NULL:
 * all), but not its own.  is_outage: the database is not asked now.  The parts
 * keep their turns. */
void lk_kept_give_back(struct lk_acquisition *a,
                       const struct lk_part *waits_for, bool is_outage);

/* Return when to call lk_kept_look(), CLOCK_MONOTONIC; LK_NEVER: no row is
 * kept. */
int64_t lk_kept_look_ns(const struct lk_acquisition *a);

/* After LK_ALARM: renew the leases of kept rows, if it is time.  Return false
 * if the rows are to be given back, because the time is over, somebody needs
 * one, or one is lost. */
bool lk_kept_look(struct lk_acquisition *a);

#endif
