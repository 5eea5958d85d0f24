/*
 * galera.h - three nodes of a Galera cluster that all take writes, the load on
 * them, and the faults that the tests cause
 */
#ifndef TESTS_GALERA_H
#define TESTS_GALERA_H

#include "support/cluster.h"
#include "support/workers.h"

#define NODES 3
#define PREFIX "ga_"

/* Return the variable SQLOCK_TEST_GALERA_N_WHAT; fail the test if it is not
 * set. */
const char *node_variable(unsigned number, const char *what);

sqlock_options node_options(void);
sqlock_registry *node_registry(unsigned number);

/* Return the process id of the node; 0 while it is down. */
pid_t node_pid(unsigned number);

/* Wait until the node answers, has all the data, and is in a cluster of so many
 * nodes; fail the test if that takes too long. */
void node_await(unsigned number, unsigned size);

/* Return whether rc is the code of a held lock, a broken node or a conflict,
 * after which the call is repeated. */
bool node_is_passing(int rc);

/* Print the state that the node reports of itself. */
void node_print(unsigned number);

/* ---------------------------------------------------------------- load.c -- */

#define LOADERS (2 * NODES)

/* Start threads, two at each node, that acquire a lock, write with its token
 * and release it, again and again.  load_grants(): return how often a lock was
 * acquired so far.  load_end(): end the threads, and check every lease and
 * every write. */
void load_start(void);
unsigned load_grants(void);
/* Print the last error of each of these threads. */
void load_print(void);
void load_end(void);

/* ------------------------------------------------------------- nemesis.c -- */

/* Kill a node, or stop it and let it go on, again and again under the load. */
void test_F64_nodes_are_killed_and_paused(void **state);

#endif
