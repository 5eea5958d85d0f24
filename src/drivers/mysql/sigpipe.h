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

/** End that part.  The signal is removed even if all calls succeeded: freeing a
 *  statement writes, too, and reports no error. */
void lk_mysql_sigpipe_release(const struct lk_mysql_sigpipe *held);

#endif /* LK_MYSQL_SIGPIPE_H */
