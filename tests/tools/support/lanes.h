/*
 * lanes.h - a suite on several databases side by side, in processes of its own
 *
 * Each database has a process, and the suite's tests of it spread over several
 * more ("lanes"), which mostly wait.  Their output is shown when they end.  A
 * lane has, on SQLite, a file of its own.  A single lane of a single database
 * runs in the calling process.
 */
#ifndef TESTS_LANES_H
#define TESTS_LANES_H

#include "database.h"

#define LANES_MAX 8

struct lane {
    const struct database *database;
    unsigned number; /* of so many */
    unsigned of;
    bool stops_server; /* this one stops the server, while no other runs */
};

struct lanes {
    unsigned count;     /* for each database, 1 to LANES_MAX */
    bool stops_servers; /* a lane that stops the server runs first */
    int (*run)(const struct lane *lane); /* how many tests failed */
    /* Run in the database's process before and after its lanes; may be NULL. */
    int (*before)(const struct database *database);
    int (*after)(const struct database *database);
};

/* Run on the databases that the command line asks for (program.h); the
 * program's exit status.  A database that the environment does not name is one
 * skipped test.  An alarm is taken for a test that hangs, and ends its
 * process. */
int lanes_run(const struct lanes *lanes);

#endif
