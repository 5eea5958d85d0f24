/*
 * told.h - count the calls of on_lost
 */
#ifndef TESTS_TOLD_H
#define TESTS_TOLD_H

#include <stdatomic.h>

#include "check.h"

/* How many there were, and the last one; all zero before. */
struct told {
    atomic_int times;
    atomic_int code;
    _Atomic int64_t at_ns; /* CLOCK_BOOTTIME */
};

/* An on_lost whose context is one of these. */
void told_note(void *context, sqlock_lock *lock, int code);

#endif
