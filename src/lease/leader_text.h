/*
 * leader_text.h - the text that a leader publishes, in its row's LEADER
 *
 * A leader is who has the lock alone.  LEADER has
 *
 *     <CLIENT_ID> <serial> told <text>
 *
 * The text counts while its CLIENT_ID is that of the row and the lease is not
 * over: nobody has to take it away.
 *
 * The serial, of 16 hexadecimal digits, rises with each text that a process
 * publishes: a statement that is carried out late does not replace a later
 * text.
 *
 * "told" says that the leader's process rings at all bells (SQLOCK_SQL_TELL)
 * with each text and when it gives the lead up: who observes it need not poll.
 * Otherwise there is "kept".  The statements of leases without a text are not
 * longer for it, and nobody need know who observes.
 */
#ifndef LK_LEADER_TEXT_H
#define LK_LEADER_TEXT_H

#include <stdbool.h>

#include "sqlock.h"
#include "sqlock/leader.h"

#define LK_LEADER_SERIAL_LENGTH 16

/* The text that a row's leader has published, and whether it tells of
 * changes. */
struct lk_leader {
    bool tells;
    const char *text; /* NULL: none */
};

/* Check a text that is to be published.  Return 0 or EINVAL. */
int lk_leader_check(const char *text, sqlock_error *err);

/* Read what CLIENT_ID has published from the text of LEADER, which may be NULL.
 * Return false if there is none. */
bool lk_leader_read(struct lk_leader *out, const char *leader,
                    const char *client_id);

#endif
