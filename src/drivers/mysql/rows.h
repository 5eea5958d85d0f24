/*
 * rows.h - convert result sets to sqlock_result
 */
#ifndef LK_MYSQL_ROWS_H
#define LK_MYSQL_ROWS_H

#include "drivers/mysql/connection.h"

/** Read all rows of a prepared statement that was executed.
 *  @retval 0          done
 *  @retval ENOMEM     out of memory, though the statement was executed
 *  @retval EDATABASE  an integer is too large, or a text contains NUL
 *  @retval any other  an error of the server or the client library */
int lk_mysql_read_prepared(struct lk_mysql_connection *connection,
                           struct lk_mysql_prepared *prepared,
                           sqlock_result *result, sqlock_error *err);

/** Free a reader, or NULL.  The caller has closed the reader's statement. */
void lk_mysql_reader_free(struct lk_mysql_reader *reader);

/** Read the rows, or without rows the count, of a query that was sent as text.
 *  @return as lk_mysql_read_prepared() */
int lk_mysql_read_text(struct lk_mysql_connection *connection,
                       sqlock_result *result, sqlock_error *err);

#endif /* LK_MYSQL_ROWS_H */
