/*
 * cluster.h - functions for suites on the servers of one cluster, which
 * tests/faults/SUITE/with.sh starts
 */
#ifndef TESTS_CLUSTER_H
#define TESTS_CLUSTER_H

#include "group.h"
#include "program.h"
#include "sqlock/tx.h"

struct cluster_suite {
    struct program program;
    struct group group;
    const struct database *database; /* its URL leads to the cluster */
};

/* Run the suite's tests, and return the program's exit status: 77, without
 * running any, if the environment has no URL of the database. */
int cluster_main(const struct cluster_suite *suite, int argc, char **argv);

/* Return the value of the variable SQLOCK_TEST_..., which the suite's with.sh
 * sets; fail the test if it is not set. */
const char *cluster_variable(const char *suite, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Create a lock table with that prefix. */
void cluster_create_table(const char *url, const char *prefix);

/* Create the file DIR/hold of a server (servers/common.sh): when the server
 * ends, it is not started again. */
void cluster_keep_down(const char *path);

/* Let the cluster, which tests/tools/servers/promote.sh runs, do something; get
 * the first line that it prints. */
void cluster_act(const char *action, char *out, size_t size);

/* The outcome of one write to an application's table. */
enum fate {
    UNWRITTEN,    /* not committed */
    ACKNOWLEDGED, /* committed, and the commit was answered */
    UNKNOWN       /* the commit got no answer */
};

/* End the transaction of a write whose result is `rc`.  If that is an error,
 * roll back and return it.  Otherwise commit, return the commit's result, and
 * set *fate if that is 0 or EUNCERTAIN. */
int cluster_end_write(sqlock_tx *tx, int rc, enum fate *fate,
                      sqlock_error *err);

#endif
