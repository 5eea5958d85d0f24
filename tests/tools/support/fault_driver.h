/*
 * fault_driver.h - fail at a chosen statement, through the tap
 *
 * The reported result is always true: a statement that was not sent may be
 * called "not applied" in any of the ways a driver has; one that was sent is
 * called uncertain, and the real database has carried it out; one that was
 * answered returns its answer, and the connection is dead at its next use.
 */
#ifndef TESTS_FAULT_DRIVER_H
#define TESTS_FAULT_DRIVER_H

#include "tap.h"

enum fault_point { FAULT_BEFORE, FAULT_SENT, FAULT_REPLIED, FAULT_POINTS };

extern const char *const fault_point_names[FAULT_POINTS];

struct fault_plan {
    enum tap_call call;     /* which kind of call */
    const char *containing; /* of statements: those with this text; NULL: any */
    unsigned nth;           /* of those since fault_arm(), from 1; 0: each */
    enum fault_point point;
    /* BEFORE: 0, EUNREACHABLE, ERETRY, EBUSY, ERESOURCE, ECANCELED.
     * SENT: 0, EUNCERTAIN.  REPLIED: 0, EUNREACHABLE (at the next call). */
    int code;
    unsigned stall_ms;           /* before it is sent, or before it returns */
    void (*hook)(void *context); /* at the point, before the stall */
    void *context;
};

/* Set the plan; fail the test if its result would not be true. */
void fault_arm(const struct fault_plan *plan);
void fault_heal(void);

/* Return how often the point was reached since fault_arm(). */
unsigned fault_times(void);

#endif
