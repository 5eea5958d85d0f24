/*
 * leader_text.h - the text that a leader publishes, in its row's SHARERS
 *
 * A leader is who has the lock alone.  SHARERS says nothing about such a lease,
 * so its text stands there, in a form that no reader of sharers takes for a
 * group's (sharer.h): neither a group's CLIENT_ID nor permits are found in it.
 *
 *     {"leader":"<CLIENT_ID>","told":"<serial>","text":"<text>"}
 *
 * The text counts while its CLIENT_ID is that of the row and the lease is not
 * over: nobody has to take it away.  It is ASCII, whatever the database's
 * encoding: what is not printable, and " and \, is written as \uHHHH.
 *
 * The serial, of 16 digits, rises with each text that a process publishes: a
 * statement that is carried out late does not replace a later text.
 *
 * "told" says that the leader's process rings at all bells (SQLOCK_SQL_TELL)
 * with each text and when it gives the lead up: who observes it need not poll.
 * Otherwise there is "kept".  The statements of leases without a text are not
 * longer for it, and nobody need know who observes.
 */
#ifndef LK_LEADER_TEXT_H
#define LK_LEADER_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "sqlock.h"
#include "sqlock/leader.h"

#define LK_LEADER_SERIAL_LENGTH 16
/* The longest form of a byte: a character of one has six. */
#define LK_LEADER_FORM_SIZE (6 * SQLOCK_LEADER_TEXT_MAX + 1)

/* Check a text that is to be published.  Return 0 or EINVAL. */
int lk_leader_check(const char *text, sqlock_error *err);

/* Write the form of a text that lk_leader_check() has accepted. */
void lk_leader_write(char out[LK_LEADER_FORM_SIZE], const char *text);

/* Return whether the row's leader, with that CLIENT_ID, has published a text,
 * and tells of changes. */
bool lk_leader_tells(const char *sharers, const char *client_id);

/* Return the serial of the text that CLIENT_ID has published; 0: none. */
int64_t lk_leader_serial(const char *sharers, const char *client_id);

/* Read the text that CLIENT_ID has published from that of SHARERS, which may be
 * NULL.  Return false if there is none. */
bool lk_leader_text(const char *sharers, const char *client_id,
                    char out[SQLOCK_LEADER_TEXT_MAX + 1]);

#endif
