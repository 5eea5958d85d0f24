/*
 * group.h - group commit for a database with one writer (SQLite): one thread of
 * the process runs the statements of all threads, and commits them together
 */
#ifndef LK_GROUP_H
#define LK_GROUP_H

#include <semaphore.h>
#include <stdatomic.h>

#include "db/pool.h"
#include "db/driver.h"

/* One waiting statement, on the stack of the thread that waits for it. */
struct lk_request {
    const sqlock_statement *statement;
    const sqlock_value *values;
    size_t count;
    int64_t deadline_ns;
    sqlock_result *result;
    sqlock_error *err;
    /* out: CLOCK_BOOTTIME before the transaction began; unchanged if the
     * request was in no group */
    int64_t sent_boot_ns;
    int rc; /* out */

    struct lk_request *next;
    bool is_gathered; /* in the group whose transaction is to begin */
    bool is_leader;   /* its thread runs the next group */
    sem_t called;     /* posted when it is done, or is to lead */
    /* Atomic because sanitizers do not know that sem_clockwait() orders
     * memory. */
    atomic_bool is_done;
};

struct lk_group {
    pthread_mutex_t mutex;
    struct lk_request *first, *last; /* queue of the waiting requests */
    bool is_led;                     /* a thread is the leader */
};

void lk_group_init(struct lk_group *group);
void lk_group_clear(struct lk_group *group);

/* Run a statement, alone or with others, on a connection of the pool.  Return 0
 * only after the commit; SQLOCK_ECANCELED also if the deadline passed before
 * the group's transaction began, when the statement was not sent; otherwise a
 * result of lk_pool_take() or the driver. */
int lk_group_run(struct lk_group *group, struct lk_pool *pool,
                 struct lk_request *request);

#endif
