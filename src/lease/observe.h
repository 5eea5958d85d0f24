/*
 * observe.h - how long the row of another process keeps us from claiming it
 */
#ifndef LK_OBSERVE_H
#define LK_OBSERVE_H

#include "lease/row.h"

/* Return for how many ns the row is not to be claimed, by what is known now; 0:
 * claim it; LK_NEVER: too long to be counted.  `seen` keeps what was observed
 * before. */
int64_t lk_row_blocked_ns(const struct lk_store *store,
                          struct lk_observed *seen, const struct lk_row *row);

#endif
