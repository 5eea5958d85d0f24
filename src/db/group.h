/*
 * group.h - group commit for a database with one writer (SQLite): the first
 * request of a process commits for all that arrive meanwhile
 */
#ifndef LK_GROUP_H
#define LK_GROUP_H

#include <semaphore.h>
#include <stdatomic.h>

#include "db/pool.h"
#include "sqlock/driver.h"

/* One waiting statement, on its caller's stack. */
struct lk_request {
    const sqlock_statement *statement;
    const sqlock_value *values;
    size_t count;
    int64_t deadline_ns;
    sqlock_result *result;
    sqlock_error *err;
    /* out, if it was sent: before the transaction began */
    int64_t sent_boot_ns;
    int rc; /* out */

    struct lk_request *next;
    bool is_gathered; /* in the group whose transaction is to begin */
    bool is_leader;   /* its thread runs the next group */
    sem_t called;     /* it is done, or is to lead */
    /* Atomic because sanitizers do not know that sem_clockwait() orders
     * memory. */
    atomic_bool is_done;
};

struct lk_group {
    pthread_mutex_t mutex;
    struct lk_request *first, *last;
    bool is_led;
};

void lk_group_init(struct lk_group *group);
void lk_group_clear(struct lk_group *group);

/* Run a statement, alone or with others, on a connection of the pool.  0 only
 * after the commit.  ECANCELED also if its deadline passed before the group's
 * transaction began; then it was not sent. */
int lk_group_run(struct lk_group *group, struct lk_pool *pool,
                 struct lk_request *request);

#endif
