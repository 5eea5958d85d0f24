/*
 * look.h - what a look at another process's row says
 */
#ifndef LK_LOOK_H
#define LK_LOOK_H

#include "locks/lease.h"

/* How long a row is not to be claimed, by what is known now: 0, or ns.  `post`
 * remembers what was seen of it before. */
int64_t lk_look_left_ns(const sqlock_registry *registry, struct lk_post *post,
                        const struct lk_row *row);

#endif
