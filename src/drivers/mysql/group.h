/*
 * group.h - check that the server is an active member of its group
 */
#ifndef LK_MYSQL_GROUP_H
#define LK_MYSQL_GROUP_H

#include "drivers/mysql/connection.h"

/** Ask the server about its group.  The caller has called
 *  lk_mysql_sigpipe_hold().  After a failure the connection is broken.
 *  @retval 0          the server is ONLINE and sees a majority
 *  @retval EREADONLY  the server is not ONLINE, or sees no majority
 *  @retval EACCESS    this user may not read the group's state
 *  @retval any other  EUNREACHABLE, EDATABASE... */
int lk_mysql_ask_group(struct lk_mysql_connection *connection,
                       sqlock_error *err);

/** Call lk_mysql_ask_group() if the server has a group, no transaction is open
 *  and the last answer is old.  Call this before a statement or a transaction.
 *  @return 0, or as lk_mysql_ask_group() */
int lk_mysql_stay_in_group(struct lk_mysql_connection *connection,
                           sqlock_error *err);

#endif /* LK_MYSQL_GROUP_H */
