/*
 * told.c - see told.h
 */
#include "told.h"

#include "base/clock.h"

void told_note(void *context, sqlock_lock *lock, int code)
{
    struct told *told = context;

    (void)lock;
    atomic_store(&told->at_ns, lk_boottime_ns());
    atomic_store(&told->code, code);
    (void)atomic_fetch_add(&told->times, 1);
}
