/*
 * owner.h - the numbers of those who may own a lock: threads, as long as they
 * live, handles, requests and registries
 */
#ifndef LK_OWNER_H
#define LK_OWNER_H

#include <stdbool.h>
#include <stdint.h>

/* The number of the calling thread, and a new number for anything else that
 * is to own a lock.  Unlike a pthread_t, a number is never given twice in a
 * process. */
uint64_t lk_thread_id(void);
uint64_t lk_owner_id(void);

/* Tell whether an owner is a thread that has ended. */
bool lk_has_ended(uint64_t owner);

#endif
