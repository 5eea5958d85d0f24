/*
 * told.h - count the calls of on_lost
 */
#ifndef TESTS_TOLD_H
#define TESTS_TOLD_H

#include <stdatomic.h>

#include "check.h"

/* The number of calls, and code and time of the last one; all 0 before. */
struct told {
    atomic_int times;
    atomic_int code;
    _Atomic int64_t at_ns; /* CLOCK_BOOTTIME */
};

/* A function for on_lost, whose context is a struct told. */
void told_note(void *context, sqlock_lock *lock, int code);

#endif
