/*
 * cluster.h - the suites on several servers of one cluster, which a script
 * tests/faults/SUITE/with.sh starts for them
 */
#ifndef TESTS_CLUSTER_H
#define TESTS_CLUSTER_H

#include "group.h"
#include "program.h"
#include "sqlock/tx.h"

struct cluster_suite {
    struct program program;
    struct group group;
    const struct database *database; /* whose URL leads to the cluster */
};

/* Run its tests, all in one process, or none (status 77) where the environment
 * names no such servers; return the program's exit status. */
int cluster_main(const struct cluster_suite *suite, int argc, char **argv);

/* Return the variable SQLOCK_TEST_..., which the suite's script sets; fail the
 * test where it is not set. */
const char *cluster_variable(const char *suite, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Create a lock table with that prefix. */
void cluster_create_table(const char *url, const char *prefix);

/* Create the file that keeps a server, once it ends, from being started
 * again. */
void cluster_keep_down(const char *path);

/* The outcome of one write to an application's table. */
enum fate {
    UNWRITTEN,    /* not committed */
    ACKNOWLEDGED, /* its commit was */
    UNKNOWN       /* the commit got no answer */
};

/* Commit the transaction of a write that gave `rc`, or roll it back after an
 * error; return `rc`, or what the commit gave. */
int cluster_end_write(sqlock_tx *tx, int rc, enum fate *fate,
                      sqlock_error *err);

#endif
