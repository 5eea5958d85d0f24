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

/** Block SIGPIPE in this thread, so that writing to this connection only fails
 *  if it is closed.  @p held is for lk_mysql_sigpipe_release(). */
void lk_mysql_sigpipe_hold(struct lk_mysql_sigpipe *held, MYSQL *mysql);

/** Discard a SIGPIPE that came since lk_mysql_sigpipe_hold(), and restore the
 *  thread's signal mask.  Needed even if all calls succeeded: freeing a
 *  statement writes, too, and reports no error. */
void lk_mysql_sigpipe_release(const struct lk_mysql_sigpipe *held);

#endif /* LK_MYSQL_SIGPIPE_H */
