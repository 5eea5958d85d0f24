/*
 * owner.h - number the owners of locks: threads, handles, requests and
 * registries
 *
 * Unlike a pthread_t, a number is never used again in a process.
 */
#ifndef LK_OWNER_H
#define LK_OWNER_H

#include <stdbool.h>
#include <stdint.h>

/* Return the number of the calling thread. */
uint64_t lk_thread_id(void);

/* Return a new number, for an owner that is no thread. */
uint64_t lk_owner_id(void);

/* Return whether the owner is a thread that has ended. */
bool lk_has_ended(uint64_t owner);

#endif
