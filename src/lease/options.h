/*
 * options.h - check the application's options, and fill in the defaults
 */
#ifndef LK_OPTIONS_H
#define LK_OPTIONS_H

#include "sqlock.h"

#define LK_REGION_MAX 97 /* bytes: the column's 100, less "#tx" */

/* Suffix of a region's name: the region with this suffix has the names that
 * transactions lock. */
#define LK_NAMES_SUFFIX "#tx"
#define LK_NOTE_MAX 80 /* bytes */
#define LK_TTL_MIN_MS 10
#define LK_TTL_MAX_MS (7u * 24 * 3600 * 1000)

/* Check the options, and copy them with all fields set.  `given` NULL: all
 * defaults.  Strings are not copied and must outlive *out.  Return 0 or
 * EINVAL. */
int lk_options_complete(sqlock_options *out, const sqlock_options *given,
                        sqlock_error *err);

/* Check the TTL given to one call, and store it in *out; 0 stands for
 * `otherwise`.  Return 0 or EINVAL, also if the margin would leave nothing of
 * the TTL. */
int lk_ttl_check(const sqlock_options *options, uint32_t *out, uint32_t given,
                 uint32_t otherwise, sqlock_error *err);

/* Return the margin: how much earlier than the row's expiry a holder stops
 * relying on its lease. */
uint32_t lk_margin_ms(const sqlock_options *options, uint32_t ttl_ms);

/* Return for how long a transaction may be idle that guards a lease of that
 * length; then its client is taken to be gone. */
uint32_t lk_idle_ms(uint32_t ttl_ms);

#endif
