/*
 * random.h - make unique identities, and random numbers for jitter
 */
#ifndef LK_RANDOM_H
#define LK_RANDOM_H

#include <stdint.h>

#include "sqlock.h"

/* Make a random UUID (version 4), in lower case: a CLIENT_ID (F6). */
void lk_random_uuid(char out[SQLOCK_KEY_SIZE]);

/* Return a random number from `from` to `to`, both not negative.  It may be
 * guessed, so do not use it as a secret. */
int64_t lk_random_between(int64_t from, int64_t to);

#endif
