/*
 * owner.h - numbers of the owners of locks: threads, as long as they live,
 * handles, requests and registries
 */
#ifndef LK_OWNER_H
#define LK_OWNER_H

#include <stdbool.h>
#include <stdint.h>

/* Return the number of the calling thread; and a new number for any other
 * owner. Unlike a pthread_t, a number is never reused in a process. */
uint64_t lk_thread_id(void);
uint64_t lk_owner_id(void);

/* Tell whether an owner is a thread that has ended. */
bool lk_has_ended(uint64_t owner);

#endif
