/*
 * crash.h - what the tests of servers that forget their last commits share
 */
#ifndef TESTS_CRASH_H
#define TESTS_CRASH_H

#include "support/cluster.h"
#include "support/server.h"

/* Longer than a server takes to start again. */
#define TTL_MS 25000

/* A registry with the lock "lost" of the tables with a prefix. */
struct user {
    sqlock_registry *registry;
    sqlock_lock *lock;
};

void user_begin(struct user *user, const char *url, const char *prefix);
/* End what has begun, which may hold a lock that the server has forgotten. */
void user_end(struct user *user);
/* Acquire the lock, which inserts its row, and release it. */
void user_use(const char *url, const char *prefix);

/* The control: the server has forgotten the lease. */
void check_that_two_hold_it(const struct user *before, const char *url,
                            const char *prefix);
/* The server has forgotten it, and grants the lock once the lease is over. */
void check_that_nobody_gets_it(const struct user *before, const char *url,
                               const char *prefix);

/* Call `crash` as often as SQLOCK_TEST_ROUNDS says, or once. */
void crash_again(void (*crash)(void));

extern const struct group mariadb_group, postgres_group;

#endif
