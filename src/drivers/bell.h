/*
 * bell.h - names of bells
 */
#ifndef LK_BELL_H
#define LK_BELL_H

#include <stdbool.h>

#include "base/error.h"

/* Return whether that is the name of a bell (db/driver.h).  Such a name is safe
 * within a statement's text and a file's name. */
bool lk_is_bell(const char *name);

/* Return 0, or EINVAL for what is not the name of a bell. */
int lk_check_bell(const char *name, sqlock_error *err);

#endif
