/*
 * suite_main.h - the main program of a suite whose tests each run once on every
 * database and table layout that they name
 *
 *     SUITE [-l LAYOUT] [-j LANES] [OPTION]... [postgres] [mysql] [sqlite]
 *
 * Databases run side by side.  The tests on each are spread over lanes
 * (lanes.h) with lock tables of their own; -j or SQLOCK_TEST_LANES sets how
 * many.
 */
#ifndef TESTS_SUITE_MAIN_H
#define TESTS_SUITE_MAIN_H

#include "fixture.h"
#include "lanes.h"
#include "test.h"

#define TESTS_MAX 600

struct suite_main {
    const char *name;
    const char *about;  /* see program.h */
    enum test_set set;  /* of its tests */
    unsigned databases; /* ON_...: with tests; 0: all */
    unsigned layouts;   /* default of tests; 0: IN_SQLOCK */
    unsigned lanes;     /* for each database; 0: one */
    bool stops_servers; /* some tests are TEST_STOPPING() */
    /* Time after which a test is taken to hang (0: TEST_SECONDS), and that time
     * in a campaign (0: as test_seconds). */
    unsigned test_seconds;
    unsigned campaign_seconds;
    /* Called after the fixture is opened, and before it is closed; may be
     * NULL. */
    void (*open)(struct fixture *fixture);
    void (*close)(struct fixture *fixture);
    void (*begin)(struct fixture *fixture); /* before each test; or NULL */
};

/* Run the suite; return the program's exit status. */
int suite_main(const struct suite_main *suite, int argc, char **argv);

/* For a suite that runs its tests by itself: write the tests of a layout that
 * fall to the lane to out, which has room for TESTS_MAX; return how many.
 * Their initial state is their struct test, whose body they are to call.
 * *turn counts the tests of all lanes, which get them by turns; it is 0 at
 * first, and goes on from one layout to the next. */
size_t suite_collect(struct CMUnitTest *out, const struct suite_main *suite,
                     const struct lane *lane, sqlock_layout layout,
                     unsigned *turn);

#endif
