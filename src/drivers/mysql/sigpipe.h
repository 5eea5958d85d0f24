/*
 * sigpipe.h - keep SIGPIPE away from the program
 */
#ifndef LK_MYSQL_SIGPIPE_H
#define LK_MYSQL_SIGPIPE_H

#include <signal.h>
#include <stdbool.h>

struct lk_mysql_sigpipe {
    sigset_t before;
    bool was_pending;
};

/** From here on, in this thread, writing to a closed socket only fails. */
void lk_mysql_sigpipe_hold(struct lk_mysql_sigpipe *held);

/** Until here; @p happened when a write may have failed meanwhile. */
void lk_mysql_sigpipe_release(const struct lk_mysql_sigpipe *held,
                              bool happened);

#endif /* LK_MYSQL_SIGPIPE_H */
