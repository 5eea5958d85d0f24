/*
 * fault_driver.h - make a chosen driver call fail, through the tap (tap.h)
 *
 * The result that the library gets is always one that a driver could return:
 *     FAULT_BEFORE   the statement is not sent; the result is a code by which a
 *                    driver says so
 *     FAULT_SENT     the database has carried it out; the result is EUNCERTAIN
 *     FAULT_REPLIED  the result is the database's, and the next call through
 *                    the tap breaks its connection
 */
#ifndef TESTS_FAULT_DRIVER_H
#define TESTS_FAULT_DRIVER_H

#include "tap.h"

enum fault_point { FAULT_BEFORE, FAULT_SENT, FAULT_REPLIED, FAULT_POINTS };

extern const char *const fault_point_names[FAULT_POINTS];

struct fault_plan {
    enum tap_call call;     /* kind of the calls that fail */
    const char *containing; /* only statements with this text; NULL: all */
    unsigned nth;           /* only the nth since fault_arm(), from 1; 0: all */
    enum fault_point point;
    /* BEFORE: 0, EUNREACHABLE, ERETRY, EBUSY, ERESOURCE, ECANCELED.
     * SENT: 0, EUNCERTAIN.  REPLIED: 0, EUNREACHABLE (at the next call). */
    int code;
    unsigned stall_ms;           /* pause at the point */
    void (*hook)(void *context); /* called at the point, before the pause */
    void *context;
};

/* Set the plan, and fail the test if no driver could return its code at its
 * point; or remove it. */
void fault_arm(const struct fault_plan *plan);
void fault_heal(void);

/* Return how often the point was reached since fault_arm(). */
unsigned fault_times(void);

#endif
