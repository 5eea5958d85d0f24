/*
 * stress.h - several processes (a crew, each process a hand) that use one lock
 * table (the yard), and a counter in a file (the ledger)
 *
 * The parent has no connection open while it forks: a child that opened the
 * same SQLite file would otherwise share the parent's record of the file's
 * locks.
 */
#ifndef TESTS_STRESS_H
#define TESTS_STRESS_H

#include <sys/types.h>

#include "support/fixture.h"

#define CREW_MAX 8

/* Child processes that begin together. */
struct crew {
    unsigned count;
    pid_t pids[CREW_MAX];
};

struct hand; /* one child process */
typedef int (*hand_fn)(struct hand *hand);

struct hand {
    unsigned index;
    void *context;
    struct fixture *fixture; /* url, prefix, names; no open connection */
    sqlock_registry *registry;
    sqlock_error err;
};

/* crew_start(): start `count` children; each opens a registry with those
 * options and runs work(), with that context, once all are ready.  crew_join():
 * wait for the children, and fail the test unless work() returned 0 in each. */
void crew_start(struct crew *crew, struct fixture *fixture,
                const sqlock_options *options, unsigned count, hand_fn work,
                void *context);
void crew_join(struct crew *crew);

/* In a child: print a message about a failure, and return 1. */
int hand_fail(const struct hand *hand, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Create a lock table, and fill in the fixture without leaving a connection
 * open; or drop the table.  A failure fails the test. */
void yard_open(struct fixture *fixture, const struct database *database,
               sqlock_layout layout);
void yard_close(struct fixture *fixture);

/* In shares.c. */
void test_readers_and_writers(const struct database *database);
void test_permits(const struct database *database);
void test_the_check_of_histories(const struct database *database);

/* A counter and a token in a plain file.  Only the lock keeps the processes
 * from reading and writing it at the same time.  ledger_open() returns the
 * descriptor of a new file, which the caller closes, or fails the test;
 * ledger_read() and ledger_write() return false on failure. */
struct ledger {
    int64_t count;
    int64_t last_token;
    unsigned last_hand; /* index of the last writer, plus 1 */
    unsigned changes;   /* how often a writer was not the last one again */
};
int ledger_open(struct fixture *fixture);
bool ledger_read(int file, struct ledger *out);
bool ledger_write(int file, const struct ledger *ledger);

#endif
