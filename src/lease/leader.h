/*
 * leader.h - the text that a leader publishes, in its row's SHARERS
 *
 * A leader is who has the lock alone.  SHARERS says nothing about such a lease,
 * so its text stands there, in a form that no reader of sharers takes for a
 * group's (sharer.h): neither a group's CLIENT_ID nor permits are found in it.
 *
 *     {"leader":"<CLIENT_ID>","at":<us>,"text":"<text>"}
 *
 * The text counts while its CLIENT_ID is that of the row and the lease is not
 * over: nobody has to take it away.  It is ASCII, whatever the database's
 * encoding: what is not printable, and " and \, is written as \uHHHH.
 */
#ifndef LK_LEADER_H
#define LK_LEADER_H

#include "lease/lease.h"
#include "lease/store.h"
#include "sqlock/leader.h"

/* Check a text that is to be published.  Return 0 or EINVAL. */
int lk_leader_check(const char *text, sqlock_error *err);

/* Publish a text that lk_leader_check() has accepted, under an exclusive lease.
 * Return 0; ELOST; EEXPIRED; ECONFLICT: the lock has permits; ENOTSUP: the
 * table has one of Spring's layouts; EUNCERTAIN; ENOMEM; or a result of
 * lk_store_run(). */
int lk_leader_publish(struct lk_store *store, const struct lk_lease *lease,
                      const char *text, sqlock_error *err);

/* Read the text that CLIENT_ID has published from that of SHARERS, which may be
 * NULL.  Return false if there is none. */
bool lk_leader_text(const char *sharers, const char *client_id,
                    char out[SQLOCK_LEADER_TEXT_MAX + 1]);

#endif
