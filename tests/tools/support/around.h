/*
 * around.h - a driver that is the real one of the fixture's database, except
 * for the functions that a test replaces
 *
 * It is found by a name before the scheme, as in "noted+mysql://...".
 */
#ifndef TESTS_AROUND_H
#define TESTS_AROUND_H

#include "fixture.h"

struct around {
    const sqlock_driver *real; /* NULL: not made yet */
    sqlock_driver driver;      /* a copy of it, for the test to change */
    char schemes[64];
    size_t prefix; /* the length of the name and the plus sign */
    struct around *next;
};

/* Copy the real driver, for URLs with the name.  False when that was done
 * before. */
bool around_make(struct around *around, struct fixture *f, const char *name);

/* Register the copy, with what the test has replaced in it. */
void around_register(struct around *around, struct fixture *f);

/* Functions of a wait queue in which everybody is the first at once. */
int around_enqueue_nothing(void *connection, int64_t queue, int64_t until_ns,
                           sqlock_error *err);
int around_leave_nothing(void *connection, int64_t queue, int64_t deadline_ns,
                         sqlock_error *err);

/* Write the fixture's URL with the name to out. */
const char *around_url(char out[1024], const struct around *around,
                       const struct fixture *f);

#endif
