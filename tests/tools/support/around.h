/*
 * around.h - a copy of the driver of the fixture's database, in which a test
 * replaces functions
 *
 * A URL with the copy's name before the scheme, as in "noted+mysql://...",
 * leads to the copy.
 */
#ifndef TESTS_AROUND_H
#define TESTS_AROUND_H

#include "fixture.h"

struct around {
    const sqlock_driver *real; /* NULL: not made yet */
    sqlock_driver driver;      /* copy of *real, for the test to change */
    char schemes[64];
    size_t prefix; /* the length of the name and the plus sign */
};

/* Copy the real driver to around->driver, for URLs with that name, and return
 * true; return false if *around was made before. */
bool around_make(struct around *around, struct fixture *f, const char *name);

/* Register around->driver, in which the test has replaced functions. */
void around_register(struct around *around);

/* Write the fixture's URL, with the name before it, to out; return out. */
const char *around_url(char out[1024], const struct around *around,
                       const struct fixture *f);

#endif
