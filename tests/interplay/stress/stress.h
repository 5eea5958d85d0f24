/*
 * stress.h - processes at work on one lock table, and what they leave behind
 *
 * The parent has no connection open while it forks: a child that opened the
 * same SQLite file would otherwise share the parent's record of its locks.
 */
#ifndef TESTS_STRESS_H
#define TESTS_STRESS_H

#include <sys/types.h>

#include "support/fixture.h"

#define CREW_MAX 8

/* Children that begin together. */
struct crew {
    unsigned count;
    pid_t pids[CREW_MAX];
};

struct hand; /* one child */
typedef int (*hand_fn)(struct hand *hand);

struct hand {
    unsigned index;
    void *context;
    struct fixture *fixture; /* url, prefix, names: nothing that is open */
    sqlock_registry *registry;
    sqlock_error err;
};

/* Start `count` children that each open a registry with those options, wait
 * for the others, and run work; crew_join() fails the test unless each of them
 * returned 0. */
void crew_start(struct crew *crew, struct fixture *fixture,
                const sqlock_options *options, unsigned count, hand_fn work,
                void *context);
void crew_join(struct crew *crew);

/* In a child: say what went wrong; a code that is not 0. */
int hand_fail(const struct hand *hand, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A lock table without anything open. */
void yard_open(struct fixture *fixture, const struct database *database,
               sqlock_layout layout);
void yard_close(struct fixture *fixture);

/* A counter and a token in a plain file: read, then written, by nobody's leave
 * but the lock's. */
struct ledger {
    int64_t count;
    int64_t last_token;
    unsigned last_hand;
    unsigned changes; /* how often another one came than the last */
};
int ledger_open(struct fixture *fixture);
bool ledger_read(int file, struct ledger *out);
bool ledger_write(int file, const struct ledger *ledger);

#endif
