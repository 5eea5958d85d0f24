/*
 * leader.h - publish the text of a leader (leader_text.h)
 */
#ifndef LK_LEADER_H
#define LK_LEADER_H

#include "lease/lease.h"
#include "lease/store.h"

/* Publish a text that lk_leader_check() has accepted, under an exclusive lease.
 * Return 0, also if a later text is there; ELOST; EEXPIRED; ENOTSUP: the table
 * has one of Spring's layouts; EUNCERTAIN; or a result of lk_store_run(). */
int lk_leader_publish(struct lk_store *store, const struct lk_lease *lease,
                      const char *text, sqlock_error *err);

#endif
