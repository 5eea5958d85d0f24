/*
 * key.h - check the names that sqlock_key_of() turns into keys
 */
#ifndef LK_KEY_H
#define LK_KEY_H

#include "sqlock.h"

#define LK_NAME_MAX 10000 /* bytes */

/* Check the length of a name, and that it is UTF-8. */
int lk_name_check(const char *name, sqlock_key_rule rule, sqlock_error *err);

#endif
