/*
 * group.h - group commit for a database with one writer (SQLite): one thread of
 * the process runs the statements of all threads, and commits them together
 */
#ifndef LK_GROUP_H
#define LK_GROUP_H

#include "base/crew.h"
#include "db/pool.h"
#include "db/driver.h"

/* One waiting statement, on the stack of the thread that waits for it. */
struct lk_request {
    struct lk_crew_member member; /* the first, which is cast to the request */
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
};

/* Run a statement, alone or with others of the crew, which has one place, on a
 * connection of the pool.  Return 0
 * only after the commit; SQLOCK_ECANCELED also if the deadline passed before
 * the group's transaction began, when the statement was not sent; otherwise a
 * result of lk_pool_take() or the driver. */
int lk_group_run(struct lk_crew *crew, struct lk_pool *pool,
                 struct lk_request *request);

#endif
