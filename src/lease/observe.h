/*
 * observe.h - what reading another process's row says
 */
#ifndef LK_OBSERVE_H
#define LK_OBSERVE_H

#include "lease/row.h"

/* How long a row is not to be claimed, by what is known now: 0, or ns.  `seen`
 * remembers what was seen of it before. */
int64_t lk_row_blocked_ns(const struct lk_store *store,
                          struct lk_observed *seen, const struct lk_row *row);

#endif
