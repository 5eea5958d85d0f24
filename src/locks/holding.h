/*
 * holding.h - who has a lock in this process; called with the lock's mutex held
 */
#ifndef LK_HOLDING_H
#define LK_HOLDING_H

#include "locks/registry.h"

/* Whether that one (or, owned by the registry, anybody) has it; the calling
 * thread. */
bool lk_is_owned_by(const sqlock_lock *lock, uint64_t owner);
bool lk_is_mine(const sqlock_lock *lock);

/* How long the holder may still believe; 0 when lost or over. */
int64_t lk_remaining_ns(const sqlock_lock *lock);

#endif
