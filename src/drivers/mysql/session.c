/*
 * session.c - log in, assert TLS, set the session up
 *
 * The URL and this file decide all settings: the client library reads no option
 * file, and settings on which locks depend are made, not left to the server's
 * defaults.
 */
#include "drivers/mysql/connection.h"

#include <errmsg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/command_line.h"
#include "base/error.h"
#include "drivers/lookup.h"

#define NS_PER_SECOND INT64_C(1000000000)

/* A fixed sql_mode: strict, so that no value is truncated, and without modes
   that change what quotes, '||' or CHAR columns mean.  No limit on the rows of
   a result: a row that is left out would look like a free lock.  No refusal of
   statements about many rows, such as a renewal of many leases.  The clock is
   the server's, sorting regards whole keys, and IS NULL means null. */
#define SQL_MODE "'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'"
#define ALWAYS                                                                 \
    "NAMES utf8mb4, autocommit = 1, completion_type = 0, "                     \
    "time_zone = '+00:00', sql_select_limit = 18446744073709551615, "          \
    "sql_big_selects = 1, sql_safe_updates = 0, sql_auto_is_null = 0, "        \
    "timestamp = DEFAULT, max_sort_length = 1024, sql_mode = " SQL_MODE

/* Convert to whole seconds, rounded up; never 0, which would mean for ever. */
static unsigned int seconds_of_ms(int64_t ms)
{
    return ms <= 0 ? 1 : (unsigned int)((ms + 999) / 1000);
}

static unsigned int seconds_until(int64_t deadline_ns)
{
    int64_t left = deadline_ns - sqlock_monotonic_ns();

    if (left > 86400 * NS_PER_SECOND)
        left = 86400 * NS_PER_SECOND;
    return seconds_of_ms(left / 1000000 + 1);
}

/* Set the client library's time limits, in seconds.  abort ends connecting and
 * statements at the deadline; these limits are at least a second longer, so
 * that the server's own limits apply first.  With Oracle's library nothing else
 * limits connecting. */
static void set_timeouts(MYSQL *mysql, const sqlock_connect *how)
{
    unsigned int connect = seconds_until(how->deadline_ns);
    unsigned int statement = seconds_of_ms(how->statement_timeout_ms) + 2;
    unsigned int io = connect > statement ? connect : statement;

    mysql_options(mysql, MYSQL_OPT_CONNECT_TIMEOUT, &connect);
    mysql_options(mysql, MYSQL_OPT_READ_TIMEOUT, &io);
    mysql_options(mysql, MYSQL_OPT_WRITE_TIMEOUT, &io);
}

static void set_protocol(MYSQL *mysql, const struct lk_mysql_target *target)
{
    unsigned int protocol = MYSQL_PROTOCOL_TCP;

    if (target->socket != NULL)
        protocol = MYSQL_PROTOCOL_SOCKET;
    else if (target->port == 0)
        return; /* "localhost" is the default socket, by MySQL's custom */
    mysql_options(mysql, MYSQL_OPT_PROTOCOL, &protocol);
}

bool lk_mysql_is_mariadb(MYSQL *mysql)
{
    return strstr(mysql_get_server_info(mysql), "MariaDB") != NULL;
}

static int assert_tls(struct lk_mysql_connection *connection,
                      const struct lk_mysql_target *target, sqlock_error *err)
{
    const char *cipher = mysql_get_ssl_cipher(connection->mysql);

    if (cipher != NULL && *cipher != '\0') {
        (void)snprintf(connection->description.tls,
                       sizeof connection->description.tls, "%s", cipher);
        if (target->tls == LK_MYSQL_TLS_VERIFY)
            connection->description.tls_check = SQLOCK_TLS_CHECK_FULL;
        else if (target->tls == LK_MYSQL_TLS_REQUIRE)
            connection->description.tls_check = SQLOCK_TLS_CHECK_DEMANDED;
        return 0;
    }
    if (target->tls == LK_MYSQL_TLS_REQUIRE ||
        target->tls == LK_MYSQL_TLS_VERIFY) {
        connection->is_broken = true;
        return lk_error(err, SQLOCK_EACCESS,
                        "TLS is required, but the server connected without it");
    }
    return 0;
}

static int run(struct lk_mysql_connection *connection, const char *text)
{
    return mysql_real_query(connection->mysql, text, strlen(text));
}

/* MariaDB skips comments of MySQL, and MySQL those of MariaDB. */
#define TRANSACTIONS(prefix)                                                   \
    prefix "_isolation = 'READ-COMMITTED', " prefix "_read_only = 0"
#define SETTINGS                                                               \
    "SET " ALWAYS ", innodb_lock_wait_timeout = %u, lock_wait_timeout = %u "   \
    "/*M! , " TRANSACTIONS(                                                    \
        "tx") ", max_statement_time = %u.%03u */"                              \
              "/*!50720 , " TRANSACTIONS(                                      \
                  "transaction") ", max_execution_time = %u */"

/* Make all settings in one round trip. */
static int set_session(struct lk_mysql_connection *connection,
                       const sqlock_connect *how, sqlock_error *err)
{
    unsigned wait = seconds_of_ms(how->lock_timeout_ms);
    unsigned ms = how->statement_timeout_ms;
    char text[sizeof SETTINGS + 64];

    (void)snprintf(text, sizeof text, SETTINGS, wait, wait, ms / 1000,
                   ms % 1000, ms);
    return run(connection, text) == 0
               ? 0
               : lk_mysql_fail(connection, LK_MYSQL_CONNECTING, err);
}

/* Fill in the description of server and session.  MariaDB before 11 puts
 * "5.5.5-" before its version, for the sake of old replicas. */
static void describe(struct lk_mysql_connection *connection)
{
    static const char prefix[] = "5.5.5-";
    const char *version = mysql_get_server_info(connection->mysql);

    if (strncmp(version, prefix, sizeof prefix - 1) == 0)
        version += sizeof prefix - 1;
    (void)snprintf(connection->description.server,
                   sizeof connection->description.server, "%s %.*s",
                   lk_mysql_is_mariadb(connection->mysql) ? "MariaDB" : "MySQL",
                   (int)strcspn(version, "-"), version);
    (void)snprintf(connection->description.client,
                   sizeof connection->description.client, "%s",
                   lk_mysql_client_name());
    connection->thread_id = mysql_thread_id(connection->mysql);
    connection->description.connection_id = (int64_t)connection->thread_id;
    connection->description.returns_no_rows =
        !lk_mysql_is_mariadb(connection->mysql);
}

/* A column that lists the settings by which a crash loses commits: the recovery
 * rolls back one that is missing in the binary log, so sync_binlog counts, too;
 * and whether the server is read-only, as super_read_only makes it, too. */
#define STATE                                                                  \
    ", CONCAT_WS(', ', IF(@@innodb_flush_log_at_trx_commit = 1, NULL, "        \
    "CONCAT('innodb_flush_log_at_trx_commit = ', "                             \
    "@@innodb_flush_log_at_trx_commit)), IF(@@log_bin AND @@sync_binlog <> "   \
    "1, CONCAT('sync_binlog = ', @@sync_binlog), NULL)), @@read_only"

/* For MySQL and for MariaDB, statements of which the first that the server
 * knows is used: without the plugin MySQL has no variable for the group.
 * Columns: the epoch (F57), those of STATE, and the configured group.
 * MariaDB's epoch is server_id, which replication requires to differ between
 * servers; it is "" in a Galera cluster, and in a group with several primaries,
 * whose nodes have the same data. */
static const char *const identities[][3] = {
    {"SELECT IF(@@group_replication_group_name <> '' AND NOT "
     "@@group_replication_single_primary_mode, '', @@server_uuid)" STATE
     ", @@group_replication_group_name",
     "SELECT @@server_uuid" STATE, NULL},
    {"SELECT IF(@@wsrep_on, '', @@server_id)" STATE, NULL},
};

/* Return whether it is the answer of a server that does not know the text. */
static bool is_unknown(unsigned int number)
{
    int code = lk_mysql_classify(number, LK_MYSQL_RUNNING);

    return code == SQLOCK_EDATABASE || code == SQLOCK_ESCHEMA ||
           code == SQLOCK_EACCESS;
}

static int identify(struct lk_mysql_connection *connection, bool is_of_several,
                    sqlock_error *err)
{
    sqlock_description *found = &connection->description;
    MYSQL *mysql = connection->mysql;
    const char *const *text = identities[lk_mysql_is_mariadb(mysql) ? 1 : 0];
    MYSQL_RES *rows = NULL;
    MYSQL_ROW row;
    bool is_read_only = false;
    int rc = 0;

    for (; rows == NULL && *text != NULL; text++) {
        if (run(connection, *text) == 0)
            rows = mysql_store_result(mysql);
        if (rows == NULL && !is_unknown(mysql_errno(mysql)))
            return lk_mysql_fail(connection, LK_MYSQL_CONNECTING, err);
    }
    if (rows == NULL) /* the server knows none of them */
        return 0;
    row = mysql_fetch_row(rows);
    if (row != NULL && row[0] != NULL)
        (void)snprintf(found->epoch, SQLOCK_EPOCH_SIZE, "%s", row[0]);
    if (row != NULL && row[1] != NULL)
        (void)snprintf(found->forgets, sizeof found->forgets, "%s", row[1]);
    if (row != NULL && row[2] != NULL)
        is_read_only = strcmp(row[2], "0") != 0 && strcmp(row[2], "OFF") != 0;
    if (row != NULL && mysql_num_fields(rows) > 3)
        connection->has_group = row[3] != NULL && *row[3] != '\0';
    mysql_free_result(rows);
    if (is_read_only && is_of_several)
        return lk_error(err, SQLOCK_EREADONLY, "the server is read-only");
    if (connection->has_group)
        rc = lk_mysql_ask_group(connection, err);
    return rc;
}

/* Let abort end the client library's next wait while it connects.  Return false
 * if connecting must end: abort was called, or there is no descriptor. */
static bool can_be_reached(void *context)
{
    struct lk_mysql_connection *connection = context;

    return lk_mysql_client_socket(connection->mysql) < 0 ||
           lk_mysql_set_alarm(connection, NULL) == 0;
}

static unsigned int port_of(const struct lk_mysql_target *target)
{
    return target->port != 0 ? target->port : MYSQL_PORT;
}

/* Name the host whose failure it is, where there are several. */
static void name_host(const struct lk_mysql_target *target, sqlock_error *err)
{
    char place[sizeof err->message];
    sqlock_error why = *err;

    if (!target->is_of_several)
        return;
    (void)snprintf(place, sizeof place, "%s, port %u", target->host,
                   port_of(target));
    if (strstr(why.message, place) == NULL)
        (void)sqlock_error_set(err, why.code, why.native, why.sqlstate,
                               "%s: %s", place, why.message);
}

/* Judge a failure to log in.  A host that nobody knows, another kind of server,
 * and a server that goes on refusing our TLS stay so until somebody changes the
 * URL: EINVAL, or EACCESS for TLS, unless the time was over in the middle of
 * the handshake.  Everything else is as lk_mysql_fail() has judged. */
static int fail_to_log_in(struct lk_mysql_connection *connection,
                          const struct lk_mysql_target *target,
                          int64_t deadline_ns, sqlock_error *err)
{
    bool is_late = sqlock_monotonic_ns() >= deadline_ns;
    unsigned int number = mysql_errno(connection->mysql);
    unsigned int port = port_of(target);
    int rc = lk_mysql_fail(connection, LK_MYSQL_CONNECTING, err);

    if (target->host == NULL || rc != SQLOCK_EUNREACHABLE)
        return rc;
    if (number == CR_VERSION_ERROR)
        return lk_error(err, SQLOCK_EINVAL,
                        "the server at %s, port %u, is not MySQL: is the URL "
                        "its address?",
                        target->host, port);
    /* It speaks when it is asked again: it was not about to end. */
    if (number == CR_SSL_CONNECTION_ERROR && !is_late &&
        lk_mysql_client_peer(target, deadline_ns) == LK_PEER_MYSQL) {
        err->code = SQLOCK_EACCESS;
        return err->code;
    }
    if (number == CR_SERVER_LOST &&
        lk_mysql_client_peer(target, deadline_ns) == LK_PEER_POSTGRES)
        return lk_error(err, SQLOCK_EINVAL,
                        "the server at %s, port %u, is PostgreSQL: use a "
                        "postgresql:// URL",
                        target->host, port);
    if (number == CR_CONN_HOST_ERROR || number == CR_CONNECTION_ERROR)
        return sqlock_error_set(err, rc, (int)number, err->sqlstate,
                                "cannot connect to the MySQL server at %s, "
                                "port %u: %s%s",
                                target->host, port,
                                mysql_error(connection->mysql),
                                lk_mysql_hint(number));
    return rc;
}

/* Look up the host, unless "localhost" stands for a socket (set_protocol()). */
static int find_host(const struct lk_mysql_target *target, int64_t deadline_ns,
                     sqlock_error *err)
{
    if (target->host == NULL || target->socket != NULL ||
        (target->port == 0 && strcmp(target->host, "localhost") == 0))
        return 0;
    return lk_look_up(target->host, deadline_ns, err);
}

static int log_in(struct lk_mysql_connection *connection,
                  const struct lk_mysql_target *target,
                  const sqlock_connect *how, sqlock_error *err)
{
    MYSQL *mysql = connection->mysql;
    char name[LK_PROCESS_NAME_SIZE];
    int rc;

    lk_process_name(name);
    mysql_options4(mysql, MYSQL_OPT_CONNECT_ATTR_ADD, "program_name", name);
    mysql_options(mysql, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    set_timeouts(mysql, how);
    set_protocol(mysql, target);
    rc = lk_mysql_client_restrict(mysql, target, err);
    if (rc == 0)
        rc = find_host(target, how->deadline_ns, err);
    if (rc < 0)
        return rc;
    if (!lk_mysql_client_connect(mysql, target, how->deadline_ns,
                                 can_be_reached, connection))
        return fail_to_log_in(connection, target, how->deadline_ns, err);
    return 0;
}

int lk_mysql_connect(struct lk_mysql_connection *connection,
                     const struct lk_url *url, size_t index,
                     const sqlock_connect *how, sqlock_error *err)
{
    struct lk_mysql_target target;
    int rc;

    rc = lk_mysql_target_read(&target, url, index, err);
    if (rc < 0)
        goto out;
    rc = log_in(connection, &target, how, err);
    if (rc < 0)
        goto out;
    rc = lk_mysql_set_alarm(connection, err);
    if (rc < 0)
        goto out;
    rc = assert_tls(connection, &target, err);
    if (rc < 0)
        goto out;
    describe(connection);
    rc = set_session(connection, how, err);
    if (rc == 0)
        rc = identify(connection, target.is_of_several, err);
    if (rc < 0)
        goto out;
    if (sqlock_monotonic_ns() > how->deadline_ns) {
        connection->is_broken = true;
        rc = lk_error(
            err, SQLOCK_EUNREACHABLE,
            "the MySQL server did not finish the login before the deadline");
    }
out:
    if (rc < 0)
        name_host(&target, err);
    lk_mysql_target_clear(&target);
    return rc;
}
