/*
 * owner.h - the numbers of those who may own a lock: threads, as long as they
 * live, handles, requests and registries
 */
#ifndef LK_OWNER_H
#define LK_OWNER_H

#include <stdbool.h>
#include <stdint.h>

/* Of the calling thread, or for something new that is to own a lock; never
 * given twice in a process, unlike a pthread_t. */
uint64_t lk_thread_id(void);
uint64_t lk_owner_id(void);

/* Whether it is a thread's, and that has ended. */
bool lk_has_ended(uint64_t owner);

#endif
