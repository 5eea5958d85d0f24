/*
 * group.h - run a group of cmocka's tests in a child process
 *
 * A test that fails may leave an open transaction, a locked row or waiting
 * threads behind.  So its process ends, and the tests after it run in another
 * process, with another group fixture.
 */
#ifndef TESTS_GROUP_H
#define TESTS_GROUP_H

#include "check.h"

struct group {
    const char *name;
    const struct CMUnitTest *tests;
    size_t count;
    /* Group fixtures as cmocka's; may be NULL.  Tests without an initial state
     * of their own get the *state that `open` sets. */
    CMFixtureFunction open;
    CMFixtureFunction close;
    /* Each test continues from the state that the test before it has left:
     * after a failure the later tests are not run, and count as failed. */
    bool is_sequence;
    /* Time after which a test is taken to hang, ten times as long in campaigns;
     * 0: the suite sees to that itself, or a test may take any time. */
    unsigned test_seconds;
};

/* Run the tests that the command line selects (program.h), or print their
 * names; return how many failed.  With no tests the fixtures are not used. */
int group_run(const struct group *group);

/* Run all tests of a program (test.h), which need no fixtures, those of a file
 * as a group; return how many failed. */
int group_run_tests(void);

#endif
