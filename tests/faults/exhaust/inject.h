/*
 * inject.h - let one call that the library makes fail, the n-th of its kind
 *
 * The library is linked into this suite with the names of those calls
 * redirected (the file `redirected`) to functions of inject.c, which make the
 * real call or fail as it would.  Only the library's own calls count: client
 * libraries and tests have the real ones.
 */
#ifndef TESTS_EXHAUST_INJECT_H
#define TESTS_EXHAUST_INJECT_H

#include <stdbool.h>

enum exhaust_kind {
    EXHAUST_MEMORY,      /* no more memory */
    EXHAUST_DESCRIPTORS, /* no more descriptors */
    EXHAUST_THREADS,     /* no more threads */
    EXHAUST_POLL,        /* poll(2) has no memory */
    EXHAUST_SIGNALS,     /* a signal interrupts poll(2) */
    EXHAUST_KINDS
};

extern const char *const exhaust_names[EXHAUST_KINDS];

/* Let the n-th call of that kind from now on fail, and with is_lasting all
 * later ones, too.  Only calls of the calling thread count, or with
 * `everywhere` those of all threads. */
void exhaust_arm(enum exhaust_kind kind, unsigned nth, bool is_lasting,
                 bool everywhere);

/* Let no call fail any more; return how many failed since exhaust_arm(). */
unsigned exhaust_disarm(void);

/* Between these two functions no call fails, and none is counted. */
void exhaust_pause(void);
void exhaust_go_on(void);

/* Return where the last call that failed was made, such as "function, at 0x12
 * of the program", in a static buffer; or "nowhere". */
const char *exhaust_where(void);

#endif
