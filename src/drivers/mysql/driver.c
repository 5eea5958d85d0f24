/*
 * driver.c - the table of functions of the driver for MySQL and MariaDB, with
 * those that open, close, begin, commit and roll back
 *
 * Calls block: at the deadline another thread of the library calls abort
 * (connection.c).  execute.c runs statements, session.c logs in.
 */
#include "drivers/mysql/connection.h"

#include <sys/socket.h>

#include "base/error.h"
#include "drivers/hosts.h"
#include "drivers/mysql/dialect.h"

static int driver_check_url(struct lk_url *url, sqlock_error *err)
{
    struct lk_mysql_target target;
    int rc;

    rc = lk_mysql_target_read(&target, url, 0, err);
    lk_mysql_target_clear(&target);
    return rc < 0 ? rc : lk_mysql_client_enter(err);
}

/* End the session.  mysql_close() sends a goodbye to the server, and with TLS
 * even waits for a reply.  So that it does not block, the socket is first shut
 * down for receiving, and if the connection is broken for sending, too.  So it
 * is if a statement waits: the server looks now and then whether its client is
 * still there, and an unread goodbye would look as if it were. */
static void driver_close(void *handle)
{
    struct lk_mysql_connection *connection = handle;
    bool in_order = !connection->is_broken && !connection->awaits_bell &&
                    !atomic_load(&connection->was_aborted);
    uint32_t i;

    if (connection->mysql == NULL)
        return;
    (void)lk_mysql_client_enter(NULL);
    lk_mysql_sigpipe_hold(connection);
    if (connection->has_alarm)
        (void)shutdown(connection->alarm, in_order ? SHUT_RD : SHUT_RDWR);
    mysql_close(connection->mysql);
    /* After mysql_close() this only frees memory. */
    for (i = 0; i <= SQLOCK_STATEMENT_IDS; i++)
        lk_mysql_unprepare(connection, i);
    lk_mysql_sigpipe_release(connection);
    lk_mysql_clear_alarm(connection);
}

/* The connection to open, and where. */
struct opening {
    struct lk_mysql_connection *connection;
    const struct lk_url *url;
    const sqlock_connect *how;
};

/* Connect to a host of the URL, after the one before it has failed. */
static int try_host(void *context, size_t index, int64_t deadline_ns,
                    sqlock_error *err)
{
    const struct opening *opening = context;
    struct lk_mysql_connection *connection = opening->connection;
    sqlock_connect how = *opening->how;
    int rc;

    driver_close(connection);
    connection->mysql = mysql_init(NULL);
    if (connection->mysql == NULL)
        return lk_error_nomem(err);
    connection->dog = how.dog;
    connection->watch.abort = lk_mysql_abort;
    connection->watch.connection = connection;
    connection->idle_ms = how.idle_ms;
    how.deadline_ns = deadline_ns;
    rc = lk_mysql_call_begin(connection, deadline_ns, err);
    if (rc < 0)
        return rc;
    rc = lk_mysql_connect(connection, opening->url, index, &how, err);
    lk_mysql_call_end(connection);
    return rc;
}

static int driver_open(void *handle, const struct lk_url *url,
                       const sqlock_connect *how, sqlock_error *err)
{
    struct opening opening = {handle, url, how};
    sqlock_error own = {0};
    int rc;

    if (err == NULL)
        err = &own;
    rc = lk_mysql_client_enter(err);
    return rc < 0 ? rc
                  : lk_hosts_try(lk_url_entries(url->host), how->deadline_ns,
                                 try_host, &opening, err);
}

static bool driver_is_alive(void *handle)
{
    struct lk_mysql_connection *connection = handle;

    connection->was_looked_at =
        connection->has_alarm && !connection->is_broken &&
        !connection->awaits_bell && !atomic_load(&connection->was_aborted) &&
        mysql_thread_id(connection->mysql) == connection->thread_id &&
        lk_mysql_is_quiet(connection);
    return connection->was_looked_at &&
           (connection->mysql->server_status & SERVER_STATUS_IN_TRANS) == 0;
}

static void *driver_native(void *handle)
{
    struct lk_mysql_connection *connection = handle;

    return connection->mysql;
}

static const char *driver_client(void)
{
    return SQLOCK_MYSQL_LIBRARY;
}

static void driver_describe(void *handle, sqlock_description *description)
{
    struct lk_mysql_connection *connection = handle;

    *description = connection->description;
}

const sqlock_driver lk_driver_mysql = {
    .name = "mysql",
    .schemes = "mysql|mariadb",
    .connection_bytes = sizeof(struct lk_mysql_connection),
    .dialect = &lk_mysql_dialect,
    .client = driver_client,
    .check_url = driver_check_url,
    .open = driver_open,
    .close = driver_close,
    .is_alive = driver_is_alive,
    .execute = lk_mysql_execute,
    .begin = lk_mysql_begin,
    .commit = lk_mysql_commit,
    .rollback = lk_mysql_rollback,
    .abort = lk_mysql_abort,
    .native = driver_native,
    .describe = driver_describe,
    .transactions = &lk_mysql_transactions,
    .bell = &lk_mysql_bell,
    .stock = &lk_mysql_stock,
};
