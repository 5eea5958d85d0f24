/*
 * outcome.c - judge the outcome of a statement or a connection attempt
 *
 * SQLSTATE decides, never the text, which is in the server's language.  Nothing
 * is sent here.
 */
#include <ctype.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/clock.h"
#include "base/error.h"
#include "drivers/lookup.h"
#include "drivers/peer.h"
#include "drivers/postgres/session.h"

#define TOO_IDLE "25P03"

static const struct {
    const char *prefix;
    int code;
} classes[] = {
    {"40001", SQLOCK_ERETRY},      /* serialization_failure */
    {"40P01", SQLOCK_ERETRY},      /* deadlock_detected */
    {"40003", SQLOCK_EUNCERTAIN},  /* statement_completion_unknown */
    {"55P03", SQLOCK_EBUSY},       /* lock_not_available */
    {"23505", SQLOCK_EBUSY},       /* unique_violation */
    {"57014", SQLOCK_ECANCELED},   /* query_canceled */
    {"25P04", SQLOCK_ECANCELED},   /* transaction_timeout */
    {"25006", SQLOCK_EREADONLY},   /* read_only_sql_transaction */
    {"53", SQLOCK_ERESOURCE},      /* insufficient_resources */
    {"28", SQLOCK_EACCESS},        /* invalid_authorization */
    {"42501", SQLOCK_EACCESS},     /* insufficient_privilege */
    {"42P01", SQLOCK_ESCHEMA},     /* undefined_table */
    {"42703", SQLOCK_ESCHEMA},     /* undefined_column */
    {"3D000", SQLOCK_ESCHEMA},     /* invalid_catalog_name */
    {"3F000", SQLOCK_ESCHEMA},     /* invalid_schema_name */
    {"57P", SQLOCK_EUNCERTAIN},    /* the server goes away */
    {TOO_IDLE, SQLOCK_EUNCERTAIN}, /* idle_in_transaction_session_timeout */
    {"08", SQLOCK_EUNCERTAIN},     /* connection exceptions */
};

int lk_pg_code_of(const char *sqlstate)
{
    size_t i;

    if (sqlstate == NULL || sqlstate[0] == '\0')
        return SQLOCK_EUNCERTAIN;
    for (i = 0; i < sizeof classes / sizeof *classes; i++) {
        if (strncmp(sqlstate, classes[i].prefix, strlen(classes[i].prefix)) ==
            0)
            return classes[i].code;
    }
    return SQLOCK_EDATABASE;
}

static bool equals(const char *text, const char *other)
{
    return text != NULL && strcmp(text, other) == 0;
}

/* Return whether an error ends the session: FATAL and PANIC do. */
static bool ends_session(const PGresult *result)
{
    const char *severity =
        PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);

    return equals(severity, "FATAL") || equals(severity, "PANIC");
}

/* Return whether a notice warns that the wait for a synchronous standby was
 * cancelled, though the commit succeeds.  Its SQLSTATE is 01000, which is that
 * of most warnings, or 57P01 (admin_shutdown) if the backend is being
 * terminated; so the function that waits decides, where the notice names it.
 * Another warning leaves no doubt, such as the one that transaction ids run
 * short, which comes with each statement. */
static bool tells_unsafe_commit(const PGresult *notice)
{
    const char *severity =
        PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED);
    const char *sqlstate = PQresultErrorField(notice, PG_DIAG_SQLSTATE);
    const char *function = PQresultErrorField(notice, PG_DIAG_SOURCE_FUNCTION);

    if (!equals(severity, "WARNING"))
        return false;
    if (function != NULL)
        return equals(function, "SyncRepWaitForLSN");
    return equals(sqlstate, "57P01") ||
           (equals(sqlstate, "01000") &&
            PQresultErrorField(notice, PG_DIAG_CONTEXT) == NULL);
}

static void on_notice(void *argument, const PGresult *notice)
{
    lk_pg *session = argument;

    /* An error outside any statement comes as a notice: the server's goodbye
     * to an idle session. */
    if (ends_session(notice)) {
        session->dead = true;
        session->was_too_idle =
            equals(PQresultErrorField(notice, PG_DIAG_SQLSTATE), TOO_IDLE);
    }
    if (session->watches_commit && tells_unsafe_commit(notice))
        session->unsafe_commit = true;
}

void lk_pg_watch_notices(lk_pg *session)
{
    (void)PQsetNoticeReceiver(session->conn, on_notice, session);
}

/* Return the length of a text's first line, 400 at most. */
static int first_line(const char *text)
{
    size_t length = strcspn(text, "\r\n");

    return length > 400 ? 400 : (int)length;
}

int lk_pg_statement_error(lk_pg *session, const PGresult *result, int lost,
                          sqlock_error *err)
{
    const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    int code = lk_pg_code_of(sqlstate);

    if (sqlstate == NULL)
        sqlstate = "";
    if (text == NULL)
        text = PQresultErrorMessage(result);
    if (text == NULL || text[0] == '\0')
        text = "no answer";

    memset(session->sqlstate, 0, sizeof session->sqlstate);
    memcpy(session->sqlstate, sqlstate,
           strnlen(sqlstate, sizeof session->sqlstate - 1));

    if (PQstatus(session->conn) != CONNECTION_OK || ends_session(result))
        code = SQLOCK_EUNCERTAIN;
    if (code != SQLOCK_EUNCERTAIN)
        return sqlock_error_set(err, code, 0, sqlstate, "%.*s",
                                first_line(text), text);
    session->dead = true;
    return sqlock_error_set(err, lost, 0, sqlstate,
                            "lost the connection to PostgreSQL: %.*s",
                            first_line(text), text);
}

/* Return the SQLSTATE within the message of a refused connection, or NULL.
 * libpq has no function that returns it, but writes it into a verbose message:
 * "FATAL:  28P01: password authentication failed". */
static const char *find_sqlstate(const char *text)
{
    const char *p = text;
    size_t i;

    for (p = strstr(p, ":  "); p != NULL; p = strstr(p, ":  ")) {
        p += 3;
        i = 0;
        while (i < 5 &&
               (isupper((unsigned char)p[i]) || isdigit((unsigned char)p[i])))
            i++;
        if (i == 5 && p[5] == ':')
            return p;
    }
    return NULL;
}

/* Return advice about a connection that was refused, or "". */
static const char *connect_hint(int code, const char *sqlstate)
{
    if (code == SQLOCK_EACCESS &&
        (*sqlstate == '\0' || strcmp(sqlstate, "28P01") == 0))
        return " (give the password in PGPASSWORD or ~/.pgpass, or name its "
               "environment variable with password_env= in the URL)";
    if (code == SQLOCK_EUNREACHABLE && *sqlstate == '\0')
        return " (is the server running, and is the URL its address?)";
    return "";
}

int lk_pg_connect_error(PGconn *conn, sqlock_error *err)
{
    const char *text = PQerrorMessage(conn);
    const char *found = find_sqlstate(text);
    char sqlstate[6] = "";
    int code = SQLOCK_EUNREACHABLE;

    if (found != NULL) {
        memcpy(sqlstate, found, 5);
        code = lk_pg_code_of(sqlstate);
        text = found + 5 + strspn(found + 5, ": ");
    }
    if (found == NULL && PQconnectionNeedsPassword(conn) != 0)
        code = SQLOCK_EACCESS; /* libpq's own refusal has no SQLSTATE */
    /* The server refuses a setting in the URL's options. */
    if (strncmp(sqlstate, "42", 2) == 0 || strncmp(sqlstate, "22", 2) == 0)
        code = code == SQLOCK_EDATABASE ? SQLOCK_EINVAL : code;
    switch (code) {
    case SQLOCK_EACCESS:
    case SQLOCK_EINVAL:
    case SQLOCK_ESCHEMA:
    case SQLOCK_ERESOURCE:
        break;
    default: /* whatever the error: no statement was sent */
        code = SQLOCK_EUNREACHABLE;
        break;
    }
    return sqlock_error_set(
        err, code, 0, sqlstate, "cannot connect to PostgreSQL: %.*s%s",
        first_line(text), text, connect_hint(code, sqlstate));
}

/* Return whether the socket's path is longer than a path can be. */
static bool is_too_long(const char *folder, const char *port)
{
    return strlen(folder) + strlen("/.s.PGSQL.") + strlen(port) >=
           sizeof((struct sockaddr_un *)NULL)->sun_path;
}

/* How long to look up a host that only libpq knows, from a service. */
#define HOST_MS 700

/* Return whether the parameters can never lead to a server.  libpq names the
 * host in each message about an attempt to reach one, and in no message about a
 * parameter that it refuses. */
static bool is_hopeless(PGconn *conn)
{
    const char *host = PQhost(conn);

    if (host == NULL || *host == '\0' ||
        strstr(PQerrorMessage(conn), host) == NULL)
        return true;
    if (*host == '/' || *host == '@')
        return is_too_long(host, PQport(conn));
    return PQhostaddr(conn)[0] == '\0' &&
           lk_look_up(host, lk_after_ms(sqlock_monotonic_ns(), HOST_MS),
                      NULL) == SQLOCK_EINVAL;
}

int lk_pg_start_error(PGconn *conn, sqlock_error *err)
{
    const char *text = PQerrorMessage(conn);
    int rc = lk_pg_connect_error(conn, err);

    if (rc != SQLOCK_EUNREACHABLE || !is_hopeless(conn))
        return rc;
    return lk_error(err, SQLOCK_EINVAL,
                    "cannot connect to PostgreSQL, by this URL: %.*s",
                    first_line(text), text);
}

int lk_pg_tls_error(PGconn *conn, sqlock_error *err)
{
    const char *text = PQerrorMessage(conn);
    int rc = lk_pg_connect_error(conn, err);

    if (rc != SQLOCK_EUNREACHABLE)
        return rc;
    return lk_error(err, SQLOCK_EACCESS, "cannot connect to PostgreSQL: %.*s",
                    first_line(text), text);
}

int lk_pg_check_peer(PGconn *conn, sqlock_error *err)
{
    /* First bytes of answers to a login, and of TLS records. */
    static const unsigned char begins[] = {'N', 'R', 'E', 'v', 0x15, 0x16};
    unsigned char answer[5];
    ssize_t got =
        recv(PQsocket(conn), answer, sizeof answer, MSG_PEEK | MSG_DONTWAIT);
    bool is_mysql = got == sizeof answer && answer[1] == 0 && answer[2] == 0 &&
                    answer[3] == 0 && answer[4] == 10;

    /* An answer to a request for TLS or GSSAPI, one byte; a TLS record; or one
     * of the messages that a login begins with. */
    if (got <= 0 ||
        (!is_mysql && memchr(begins, answer[0], sizeof begins) != NULL) ||
        (got == 1 && (answer[0] == 'S' || answer[0] == 'G')))
        return 0;
    return lk_error(err, SQLOCK_EINVAL, "the server at %s, port %s, is %s",
                    PQhost(conn), PQport(conn),
                    is_mysql ? "MySQL or MariaDB: use a mysql:// URL"
                             : "not PostgreSQL: is the URL its address?");
}
