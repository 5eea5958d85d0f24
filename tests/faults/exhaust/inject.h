/*
 * inject.h - failing one call that the library makes, the n-th of its kind
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

/* Fail the n-th call of a kind from now on, and with is_lasting all after it;
 * those of the calling thread, or with everywhere those of any. */
void exhaust_arm(enum exhaust_kind kind, unsigned nth, bool is_lasting,
                 bool everywhere);

/* No more; how many have failed. */
unsigned exhaust_disarm(void);

/* Nothing fails and nothing counts between the two. */
void exhaust_pause(void);
void exhaust_go_on(void);

/* Where the last one that failed was called from: "function+0x12". */
const char *exhaust_where(void);

#endif
