/*
 * group.h - whether the server may be used as a member of its group
 */
#ifndef LK_MYSQL_GROUP_H
#define LK_MYSQL_GROUP_H

#include "drivers/mysql/connection.h"

/** Ask the server about its group. @return 0, EREADONLY (not ONLINE, or no
 *  majority), EACCESS (the right to see it is missing), EUNREACHABLE,
 *  EDATABASE: the connection is broken */
int lk_mysql_ask_group(struct lk_mysql_connection *connection,
                       sqlock_error *err);

/** Ask the server about its group before a statement or a transaction, where
 *  there is a group and the last answer is old. @return as
 *  lk_mysql_ask_group() */
int lk_mysql_stay_in_group(struct lk_mysql_connection *connection,
                           sqlock_error *err);

#endif /* LK_MYSQL_GROUP_H */
