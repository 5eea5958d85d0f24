/*
 * lookup.h - look up a host name before a deadline
 *
 * The client libraries look names up themselves, and block for as long as the
 * resolver does, which may be a minute where no name server answers.  A name
 * that is looked up here first is known to be answered for.
 */
#ifndef LK_LOOKUP_H
#define LK_LOOKUP_H

#include <stdint.h>

#include "sqlock.h"

/** Look up a name, or an address, which takes no time.  Return 0 if it is
 *  known; SQLOCK_EINVAL if the resolver says that it is not;
 *  SQLOCK_EUNREACHABLE if it has no answer before the deadline; or
 *  SQLOCK_ENOMEM. */
int lk_look_up(const char *host, int64_t deadline_ns, sqlock_error *err);

#endif
