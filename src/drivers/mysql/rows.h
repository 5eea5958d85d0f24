/*
 * rows.h - result sets as sqlock_results
 */
#ifndef LK_MYSQL_ROWS_H
#define LK_MYSQL_ROWS_H

#include "drivers/mysql/connection.h"

/** Read all rows of a prepared statement that was executed. @return 0,
 *  ENOMEM, EDATABASE (a value that is neither an integer nor text),
 *  EUNCERTAIN, ... */
int lk_mysql_read_prepared(struct lk_mysql_connection *connection,
                           struct lk_mysql_prepared *prepared,
                           sqlock_result *result, sqlock_error *err);

/** Free a reader, after its statement was closed.  NULL is allowed. */
void lk_mysql_reader_free(struct lk_mysql_reader *reader);

/** Read the rows, or else the count, of a query that was sent as text. */
int lk_mysql_read_text(struct lk_mysql_connection *connection,
                       sqlock_result *result, sqlock_error *err);

#endif /* LK_MYSQL_ROWS_H */
