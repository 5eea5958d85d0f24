/*
 * group.h - run a group of cmocka's tests in a process of its own
 *
 * A test that failed may have left a transaction open, a row locked, threads
 * that wait: its process ends with it, as they do, and the tests behind it run
 * in another one, with a group fixture of its own.
 */
#ifndef TESTS_GROUP_H
#define TESTS_GROUP_H

#include "check.h"

struct group {
    const char *name;
    const struct CMUnitTest *tests;
    size_t count;
    /* Group fixtures as cmocka's: *state is given to tests without an initial
     * state of their own; may be NULL. */
    CMFixtureFunction open;
    CMFixtureFunction close;
    /* Each test goes on where the one before it has stopped: after a failure
     * the others fail, too, and are not run. */
    bool is_sequence;
};

/* Run the tests that the command line selects (program.h), or print their
 * names; return how many failed.  With no tests the fixtures are not used. */
int group_run(const struct group *group);

/* Run a group without fixtures. */
int group_run_suites(const struct suite *const *suites, size_t count);

#endif
