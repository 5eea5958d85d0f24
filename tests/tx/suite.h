/*
 * suite.h - the topics of this suite: transactions on the application's tables
 *
 * Each test runs on each database that the environment names; those of the
 * guard also on Spring's layouts.
 */
#ifndef TESTS_TX_SUITE_H
#define TESTS_TX_SUITE_H

#include "app.h"
#include "support/suite_main.h"

extern const struct topic topic_adopt;
extern const struct topic topic_names;
extern const struct topic topic_busy;
extern const struct topic topic_guard;
extern const struct topic topic_version;
extern const struct topic topic_stopped;
extern const struct topic topic_input;

/* A holder in a process of its own (test_stopped.c); its exit status. */
int hold(char **arguments);

/* A table of the application: id, a, version, state, moment, fence, owner. */
#define STOCK "tx_stock"
void stock_create(struct fixture *fixture);
void stock_drop(struct fixture *fixture);
/* Rows 1 to 4, each with a = 100, version = 1, state 'new'. */
void stock_fill(struct fixture *fixture);
long long stock_value(struct fixture *fixture, int id);
sqlock_table stock_table(struct fixture *fixture);
/* The table's name, unique to the process. */
const char *stock_name(const struct fixture *fixture);

#endif
