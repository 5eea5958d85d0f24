/*
 * key.h - how a name becomes a LOCK_KEY; sqlock_key_of() is the function
 */
#ifndef LK_KEY_H
#define LK_KEY_H

#include "sqlock.h"

#define LK_NAME_MAX 10000 /* bytes */

/* Whether a name can be locked at all: length and UTF-8. */
int lk_name_check(const char *name, sqlock_key_rule rule, sqlock_error *err);

#endif
