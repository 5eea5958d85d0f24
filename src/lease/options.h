/*
 * options.h - what a caller asked for, checked and made complete
 */
#ifndef LK_OPTIONS_H
#define LK_OPTIONS_H

#include "sqlock.h"

#define LK_REGION_MAX 97 /* bytes: "#tx" and the column's 100 */

/* Behind a region's name: the region of the names that transactions lock. */
#define LK_NAMES_SUFFIX "#tx"
#define LK_NOTE_MAX 80 /* bytes */
#define LK_TTL_MIN_MS 10
#define LK_TTL_MAX_MS (7u * 24 * 3600 * 1000)

/* All fields set; strings still the caller's.  0, EINVAL. */
int lk_options_complete(sqlock_options *out, const sqlock_options *given,
                        sqlock_error *err);

/* A TTL given to one call; 0 stands for `otherwise`.  EINVAL, too, when nothing
 * of it is left behind the margin. */
int lk_ttl_check(const sqlock_options *options, uint32_t *out, uint32_t given,
                 uint32_t otherwise, sqlock_error *err);

/* How much sooner than the database a holder stops believing. */
uint32_t lk_margin_ms(const sqlock_options *options, uint32_t ttl_ms);

#endif
