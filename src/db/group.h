/*
 * group.h - writes of one process to a database that has one writer (SQLite):
 * whoever comes first commits for all who came meanwhile
 */
#ifndef LK_GROUP_H
#define LK_GROUP_H

#include <semaphore.h>
#include <stdatomic.h>

#include "db/pool.h"
#include "sqlock/driver.h"

/* One statement that waits for its turn; on its caller's stack. */
struct lk_request {
    const sqlock_statement *statement;
    const sqlock_value *values;
    size_t count;
    int64_t deadline_ns;
    sqlock_result *result;
    sqlock_error *err;
    int64_t sent_boot_ns; /* out, if it was: before the transaction began */
    int rc;               /* out */

    struct lk_request *next;
    bool is_gathered; /* for the group whose transaction is to begin */
    bool is_leader;   /* its thread runs the next group */
    sem_t called;     /* it is done, or to lead */
    /* Atomic for what comes before it: sanitizers know nothing of how
     * sem_clockwait() orders. */
    atomic_bool is_done;
};

struct lk_group {
    pthread_mutex_t mutex;
    struct lk_request *first, *last;
    bool is_led;
};

void lk_group_init(struct lk_group *group);
void lk_group_clear(struct lk_group *group);

/* Run a statement, alone or together with others, on a connection of the pool.
 * 0 only once it is committed.  ECANCELED also when its deadline came before
 * the transaction of the others had begun: it is not in it. */
int lk_group_run(struct lk_group *group, struct lk_pool *pool,
                 struct lk_request *request);

#endif
