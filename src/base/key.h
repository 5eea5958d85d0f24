/*
 * key.h - how a name becomes a LOCK_KEY; sqlock_key_of() is the function
 */
#ifndef LK_KEY_H
#define LK_KEY_H

#include "sqlock.h"

#define LK_NAME_MAX 10000 /* bytes */

/* Check that a name can be locked: its length, and that it is UTF-8. */
int lk_name_check(const char *name, sqlock_key_rule rule, sqlock_error *err);

#endif
