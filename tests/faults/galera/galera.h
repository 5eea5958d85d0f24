/*
 * galera.h - three nodes of a Galera cluster that all take writes, the load on
 * them, and what befalls them
 */
#ifndef TESTS_GALERA_H
#define TESTS_GALERA_H

#include "support/cluster.h"
#include "support/workers.h"

#define NODES 3
#define PREFIX "ga_"

/* A variable SQLOCK_TEST_GALERA_N_... */
const char *node_variable(unsigned number, const char *what);

sqlock_options node_options(void);
sqlock_registry *node_registry(unsigned number);

/* 0 while the node is down. */
pid_t node_pid(unsigned number);

/* Wait until the node answers as one of so many that have all the data. */
void node_await(unsigned number, unsigned size);

/* Tell whether it is the code of a broken node or a conflict, after which a
 * call is repeated. */
bool node_is_passing(int rc);

/* Print the state that the node reports of itself. */
void node_print(unsigned number);

/* ---------------------------------------------------------------- load.c -- */

#define LOADERS (2 * NODES)

/* Of all nodes at once: take a lease, write under its token, release it; until
 * load_end(), which judges every lease and every write. */
void load_start(void);
unsigned load_grants(void);
/* Print the last result of each loader. */
void load_print(void);
void load_end(void);

/* ------------------------------------------------------------- nemesis.c -- */

/* Kill a node, or stop it and let it go on, again and again under the load. */
void test_F64_nodes_are_killed_and_paused(void **state);

#endif
