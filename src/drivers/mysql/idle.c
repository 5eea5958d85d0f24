/*
 * idle.c - have the server end a transaction whose client has vanished
 *
 * A machine that dies, or a network that is cut, says nothing to the server,
 * whose session keeps its row locks for as long as it waits for the next
 * statement.  MariaDB has limits for transactions, which are set when one
 * begins for the first time, and stay.  Oracle's MySQL has only one for all
 * idle time, so it is taken back before the next statement outside of a
 * transaction.
 */
#include <stdio.h>

#include "drivers/mysql/connection.h"

/* A shorter limit of the server stays.  The two limits of MariaDB that come
 * before the general one mean nothing at 0. */
#define MARIADB                                                                \
    "SET idle_transaction_timeout = IF(@@GLOBAL.idle_transaction_timeout "     \
    "BETWEEN 1 AND %u, @@GLOBAL.idle_transaction_timeout, %u), "               \
    "idle_write_transaction_timeout = "                                        \
    "LEAST(@@GLOBAL.idle_write_transaction_timeout, %u), "                     \
    "idle_readonly_transaction_timeout = "                                     \
    "LEAST(@@GLOBAL.idle_readonly_transaction_timeout, %u), "                  \
    "net_write_timeout = LEAST(@@GLOBAL.net_write_timeout, %u)"
/* MySQL takes the least of a variable and a constant for a DECIMAL, and those
 * for no number of seconds. */
#define ORACLE                                                                 \
    "SET wait_timeout = CAST(LEAST(@@GLOBAL.wait_timeout, %u) AS UNSIGNED), "  \
    "net_write_timeout = "                                                     \
    "CAST(LEAST(@@GLOBAL.net_write_timeout, %u) AS UNSIGNED)"

static int send(struct lk_mysql_connection *connection, const char *text,
                uint32_t idle_ms, sqlock_error *err)
{
    MYSQL *mysql = connection->mysql;

    if (mysql_query(mysql, text) != 0)
        return lk_mysql_fail(connection, LK_MYSQL_PREPARING, err);
    connection->present_idle_ms = idle_ms;
    return 0;
}

int lk_mysql_set_idle(struct lk_mysql_connection *connection, uint32_t idle_ms,
                      sqlock_error *err)
{
    unsigned s = (idle_ms + 999) / 1000;
    char text[480];

    if (idle_ms == connection->present_idle_ms)
        return 0;
    if (lk_mysql_is_mariadb(connection->mysql))
        (void)snprintf(text, sizeof text, MARIADB, s, s, s, s, s);
    else
        (void)snprintf(text, sizeof text, ORACLE, s, s);
    return send(connection, text, idle_ms, err);
}

int lk_mysql_unset_idle(struct lk_mysql_connection *connection,
                        sqlock_error *err)
{
    if (connection->present_idle_ms == 0 ||
        lk_mysql_is_mariadb(connection->mysql))
        return 0;
    return send(connection, "SET wait_timeout = DEFAULT", 0, err);
}
