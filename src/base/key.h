/*
 * key.h - check the names that sqlock_key_of() turns into keys
 */
#ifndef LK_KEY_H
#define LK_KEY_H

#include "sqlock.h"

#define LK_NAME_MAX 10000 /* bytes */

/* Check that a name has an allowed length and is valid UTF-8, or, for
 * SQLOCK_KEY_RAW, printable ASCII.  Return 0, or SQLOCK_EINVAL, also for an
 * unknown rule. */
int lk_name_check(const char *name, sqlock_key_rule rule, sqlock_error *err);

#endif
