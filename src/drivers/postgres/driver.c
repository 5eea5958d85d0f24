/*
 * driver.c - the PostgreSQL driver's table of functions, with the short ones
 *
 * Settings are made by SQL, not by startup options, which poolers refuse.  None
 * of them needs a privilege.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "drivers/postgres/session.h"

/* ----------------------------------------------------------- the session -- */

/* is_local: whether they end with the transaction.  synchronous_commit: a lock
 * that a crash or failover forgets is granted twice, so 'off' and 'local' are
 * raised to 'on'; other values stay (but see be_fast()). */
#define SETTINGS                                                               \
    "SELECT set_config('default_transaction_isolation', 'read committed', "    \
    "is_local), set_config('TimeZone', 'UTC', is_local), "                     \
    "set_config('client_min_messages', 'warning', is_local), "                 \
    "set_config('lock_timeout', '%u', is_local), "                             \
    "set_config('statement_timeout', '%u', is_local), "                        \
    "CASE WHEN current_setting('synchronous_commit') IN ('off', 'local') "     \
    "THEN set_config('synchronous_commit', 'on', is_local) END%s "             \
    "FROM (SELECT %s) AS S (is_local)"

/* Makes the server end a statement whose client is gone (F39).  PostgreSQL has
 * this setting from 14 on, and not on every operating system. */
#define CHECK_CLIENT                                                           \
    ", CASE WHEN current_setting('client_connection_check_interval', true) "   \
    "= '0' THEN set_config('client_connection_check_interval', '500', "        \
    "is_local) END"

/* One text: whether the settings are local (1 or 0), a space, the epoch, a
 * space, and the settings by which a crash loses commits.  The epoch is the
 * cluster's system identifier and its timeline, which changes with a promotion
 * (F57); a standby has none. */
#define IS_LOCAL ", concat(is_local::integer)"
#define EPOCH                                                                  \
    "(SELECT system_identifier FROM pg_control_system()) || '/' || "           \
    "substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)"
#define IS_LOCAL_AND_EPOCH                                                     \
    ", concat(is_local::integer, ' ', CASE WHEN NOT pg_is_in_recovery() "      \
    "THEN " EPOCH " END, ' ', "                                                \
    "concat_ws(', ', CASE current_setting('fsync') WHEN 'off' THEN "           \
    "'fsync = off' END, CASE current_setting('full_page_writes') "             \
    "WHEN 'off' THEN 'full_page_writes = off' END))"

/* Lets a transaction only read if it is on another server than the one that was
 * asked for its epoch, as may happen behind a pooler after a failover: as on a
 * standby, all sessions are then opened, and the server looked at, anew. */
#define ONLY_THERE                                                             \
    ", CASE WHEN NOT pg_is_in_recovery() THEN CASE WHEN " EPOCH " <> '%s' "    \
    "THEN set_config('transaction_read_only', 'on', true) END END"

/* The first is tried first: a server may not know a setting, or not allow a
 * question. */
static const struct {
    const char *setting;
    const char *question;
} more[] = {
    {CHECK_CLIENT, IS_LOCAL_AND_EPOCH},
    {"", IS_LOCAL_AND_EPOCH},
    {CHECK_CLIENT, IS_LOCAL},
    {"", IS_LOCAL},
};
#define WITHOUT_EPOCH 2 /* the first of these */

/* Return which is tried after one that has failed; 0: none.  The epoch is left
 * out only where this login may not ask for it, or the server has no such
 * function: after any other error the session would grant locks that the server
 * may have forgotten. */
static size_t next_after(size_t failed, const sqlock_error *why)
{
    if (failed < WITHOUT_EPOCH && (strcmp(why->sqlstate, "0A000") == 0 ||
                                   strcmp(why->sqlstate, "42501") == 0 ||
                                   strcmp(why->sqlstate, "42704") == 0 ||
                                   strcmp(why->sqlstate, "42883") == 0))
        return WITHOUT_EPOCH;
    return failed % 2 == 0 ? failed + 1 : 0;
}

static void write_settings(char *text, size_t size, const sqlock_connect *how,
                           const char *also, const char *is_local)
{
    (void)snprintf(text, size, SETTINGS, how->lock_timeout_ms,
                   how->statement_timeout_ms, also, is_local);
}

/* Keep the epoch and the rest of a text such as "0 7300.../00000001 fsync =
 * off". */
static void note_epoch(lk_pg *session, const char *found)
{
    size_t length;

    found += strcspn(found, " ");
    found += *found == ' ';
    session->is_standby = *found == ' ';
    length = strcspn(found, " ");
    (void)snprintf(session->epoch, sizeof session->epoch, "%.*s", (int)length,
                   found);
    (void)snprintf(session->forgets, sizeof session->forgets, "%s",
                   found[length] != '\0' ? found + length + 1 : "");
}

/*
 * Make all settings in one statement; if it fails, repeat it without those that
 * this server may not know.
 *
 * They are made for the session only if it is ours alone.  A pooler answers the
 * login by itself, with a process id that it has made up: if the server's own
 * number for the session is another, the session may be lent to others as soon
 * as the statement has ended.  They would keep our settings, and our claims
 * would run with theirs.
 */
static int apply_settings(lk_pg *session, const sqlock_connect *how,
                          sqlock_error *err)
{
    char found[sizeof session->epoch + sizeof session->forgets + 2] = "";
    char text[2 * LK_PG_SETTINGS_SIZE];
    char also[1024];
    char is_local[48];
    sqlock_error why;
    size_t next = 0;
    size_t i;
    int rc;

    (void)snprintf(is_local, sizeof is_local, "pg_backend_pid() <> %d",
                   PQbackendPID(session->conn));
    do {
        i = next;
        why = (sqlock_error){0};
        (void)snprintf(also, sizeof also, "%s%s", more[i].setting,
                       more[i].question);
        write_settings(text, sizeof text, how, also, is_local);
        rc = lk_pg_ask(session, text, how->deadline_ns, found, sizeof found,
                       &why);
        next = rc < 0 && !session->dead ? next_after(i, &why) : 0;
    } while (next != 0);
    if (rc < 0)
        return lk_error_pass(err, &why, rc);
    note_epoch(session, found);
    session->is_lent = found[0] != '0';
    if (session->is_lent) {
        (void)snprintf(also, sizeof also,
                       session->epoch[0] != '\0' ? "%s" ONLY_THERE : "%s",
                       more[i].setting, session->epoch);
        session->is_unprepared = true;
        write_settings(session->settings, sizeof session->settings, how, also,
                       "true");
    }
    return 0;
}

/* Let no commit wait, but in a transaction that begins with session->settings,
 * which restores what was set before. */
static int be_fast(lk_pg *session, int64_t deadline_ns, sqlock_error *err)
{
    char found[16];
    int rc;

    if (session->is_lent)
        return lk_error(err, SQLOCK_ENOTSUP,
                        "a pooler lends this connection, so a crash of the "
                        "server would not be noticed: durability=fast needs "
                        "sessions of its own");
    rc = lk_pg_ask(session,
                   "SELECT set_config('synchronous_commit', 'off', false), "
                   "S.found FROM (SELECT current_setting("
                   "'synchronous_commit') OFFSET 0) AS S (found)",
                   deadline_ns, found, sizeof found, err);
    if (rc == 0)
        (void)snprintf(session->settings, sizeof session->settings,
                       "SET LOCAL synchronous_commit TO %s", found);
    return rc;
}

static int pg_open(void *connection, const struct lk_url *url,
                   const sqlock_connect *how, sqlock_error *err)
{
    lk_pg *session = connection;
    int rc;

    session->idle_ms = how->idle_ms;
    rc = lk_pg_connect(session, url, how->deadline_ns, err);
    if (rc < 0)
        return rc;
    rc = apply_settings(session, how, err);
    if (rc == 0 && lk_url_is_fast(url))
        rc = be_fast(session, how->deadline_ns, err);
    /* Only the driver's own statements were sent. */
    if (rc == SQLOCK_EUNCERTAIN)
        rc = SQLOCK_EUNREACHABLE;
    if (rc < 0 && err != NULL)
        err->code = rc;
    return rc;
}

/* End the session.  PQfinish() sends a goodbye if the socket, which does not
 * block, takes it at once.  A child process must not end the session of its
 * parent (F17): there the connection is not touched. */
static void pg_close(void *connection)
{
    lk_pg *session = connection;

    if (session->conn != NULL && session->pid == getpid())
        PQfinish(session->conn);
    session->conn = NULL;
    session->dead = true;
}

static bool pg_is_alive(void *connection)
{
    lk_pg *session = connection;

    session->was_looked_at = lk_pg_is_alive(session);
    return session->was_looked_at &&
           PQtransactionStatus(session->conn) == PQTRANS_IDLE;
}

static void pg_abort(void *connection)
{
    lk_pg_abort(connection);
}

static void *pg_native(void *connection)
{
    lk_pg *session = connection;

    return session->conn;
}

/* ---------------------------------------------------------- descriptions -- */

static const char *pg_client(void)
{
    return SQLOCK_LIBPQ;
}

static void pg_describe(void *connection, sqlock_description *description)
{
    lk_pg *session = connection;
    const char *version;
    const char *encoding;

    memset(description, 0, sizeof *description);
    if (session->conn == NULL)
        return;
    (void)snprintf(description->client, sizeof description->client,
                   "libpq %d.%d", PQlibVersion() / 10000,
                   PQlibVersion() % 10000);
    /* "15.18 (Debian 15.18-0+deb12u1)" */
    version = PQparameterStatus(session->conn, "server_version");
    if (version != NULL)
        (void)snprintf(description->server, sizeof description->server,
                       "PostgreSQL %.*s", (int)strcspn(version, " "), version);
    if (PQsslInUse(session->conn))
        (void)snprintf(description->tls, sizeof description->tls, "%s %s",
                       PQsslAttribute(session->conn, "protocol"),
                       PQsslAttribute(session->conn, "cipher"));
    encoding = PQparameterStatus(session->conn, "server_encoding");
    description->is_narrow = encoding != NULL &&
                             strcmp(encoding, "UTF8") != 0 &&
                             strcmp(encoding, "SQL_ASCII") != 0;
    description->connection_id = PQbackendPID(session->conn);
    description->tls_check = session->tls_check;
    memcpy(description->epoch, session->epoch, sizeof description->epoch);
    description->is_standby = session->is_standby;
    memcpy(description->forgets, session->forgets, sizeof description->forgets);
}

const sqlock_driver lk_driver_postgres = {
    .name = "postgres",
    .schemes = "postgresql|postgres",
    .connection_bytes = sizeof(lk_pg),
    .can_be_fast = true,
    .dialect = &lk_pg_dialect,
    .client = pg_client,
    .check_url = lk_pg_check_url,
    .open = pg_open,
    .close = pg_close,
    .is_alive = pg_is_alive,
    .execute = lk_pg_execute,
    .begin = lk_pg_begin,
    .commit = lk_pg_commit,
    .rollback = lk_pg_rollback,
    .abort = pg_abort,
    .native = pg_native,
    .describe = pg_describe,
    .transactions = &lk_pg_transactions,
    .bell = &lk_pg_bell,
    .stock = &lk_pg_stock,
};
