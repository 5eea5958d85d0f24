/*
 * sigpipe.h - keep SIGPIPE away from the program
 */
#ifndef LK_MYSQL_SIGPIPE_H
#define LK_MYSQL_SIGPIPE_H

#include <signal.h>
#include <stdbool.h>

#include "drivers/mysql/client.h"

struct lk_mysql_sigpipe {
    sigset_t before;
    bool is_held;
    bool was_pending;
};

/** Begin a part in which writing to this connection, when it is closed, only
 *  fails in this thread. */
void lk_mysql_sigpipe_hold(struct lk_mysql_sigpipe *held, MYSQL *mysql);

/** End that part; @p happened when a write may have failed meanwhile. */
void lk_mysql_sigpipe_release(const struct lk_mysql_sigpipe *held,
                              bool happened);

#endif /* LK_MYSQL_SIGPIPE_H */
