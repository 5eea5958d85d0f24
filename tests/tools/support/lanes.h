/*
 * lanes.h - run a suite on several databases side by side, in child processes
 *
 * Each database has a process.  The suite's tests on a database are spread over
 * several more processes, called lanes, since tests mostly wait.  The output of
 * a process is shown when it has ended.  On SQLite each lane has a file of its
 * own.  A single lane of a single database runs in the calling process.
 */
#ifndef TESTS_LANES_H
#define TESTS_LANES_H

#include "database.h"

#define LANES_MAX 8

struct lane {
    const struct database *database;
    unsigned number;   /* from 0 */
    unsigned of;       /* number of lanes */
    bool stops_server; /* runs the tests that stop the server, alone */
};

struct lanes {
    unsigned count;     /* for each database, 1 to LANES_MAX */
    bool stops_servers; /* some tests do; their lane runs first */
    /* Run a lane; return how many tests failed. */
    int (*run)(const struct lane *lane);
    /* Called in the database's process before and after its lanes; may be NULL.
     * They return how many failures they have found. */
    int (*before)(const struct database *database);
    int (*after)(const struct database *database);
};

/* The test that runs, for the message about one that hangs; NULL: not known. */
extern const char *volatile lanes_running;

/* Run the suite on the databases that the command line selects (program.h);
 * return the program's exit status.  A database without a URL in the
 * environment is one skipped test.  SIGALRM means that a test hangs, and ends
 * the process. */
int lanes_run(const struct lanes *lanes);

#endif
