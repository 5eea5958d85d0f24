/*
 * open.c - read a URL and connect a session
 *
 * The parameters of the URL are libpq's, and password_env.  The hosts of a list
 * are tried one by one, each with its share of the time: libpq's asynchronous
 * interface has no time limit per host, so a host that does not answer would
 * use up the time of the hosts after it.
 *
 * libpq resolves host names, and blocks for as long as the resolver does, so a
 * name is looked up before (lookup.h).
 */
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/command_line.h"
#include "base/error.h"
#include "base/text.h"
#include "drivers/hosts.h"
#include "drivers/lookup.h"
#include "drivers/postgres/session.h"

/* -------------------------------------------------------------- the URL -- */

/* A URL that was checked. */
struct target {
    const struct lk_url *url;
    const char *password;
};

/* Check the parameters of a URL: libpq's, and ours. */
static int check_parameters(const struct lk_url *url, sqlock_error *err)
{
    char known[2048] = "password_env|durability|ssl";
    size_t used = strlen(known);
    PQconninfoOption *options = PQconninfoParse("", NULL);
    const PQconninfoOption *entry = options;

    if (options == NULL)
        return lk_error_nomem(err);
    for (; entry->keyword != NULL && used < sizeof known; entry++)
        used += (size_t)snprintf(known + used, sizeof known - used, "|%s",
                                 entry->keyword);
    PQconninfoFree(options);
    return lk_url_check_parameters(url, known, err);
}

static int target_read(struct target *target, const struct lk_url *url,
                       sqlock_error *err)
{
    const char *port = lk_url_parameter(url, "port");
    int rc = lk_library_load(&lk_pg_library, err);

    target->url = url;
    if (rc == 0)
        rc = check_parameters(url, err);
    if (rc == 0)
        rc = lk_url_password(url, &target->password, err);
    if (rc == 0 && !url->has_authority)
        rc = lk_error(err, SQLOCK_EINVAL,
                      "a PostgreSQL URL begins with postgresql://");
    if (rc == 0 && port != NULL && !lk_url_is_port_list(port))
        rc = lk_error(err, SQLOCK_EINVAL,
                      "the port in the PostgreSQL URL must be 1 to 65535");
    return rc;
}

int lk_pg_check_url(struct lk_url *url, sqlock_error *err)
{
    struct target target;

    return target_read(&target, url, err);
}

/* ------------------------------------------------------------- the hosts -- */

/* Return a setting of the URL, "" if it is empty there, or NULL.  A parameter
 * takes precedence, as in libpq. */
static const char *option(const struct target *target, const char *keyword)
{
    const char *value = lk_url_parameter(target->url, keyword);

    if (value == NULL && strcmp(keyword, "host") == 0)
        value = target->url->host;
    if (value == NULL && strcmp(keyword, "port") == 0)
        value = target->url->port;
    return value;
}

/* Return a setting of the URL, or else of the environment, or NULL.  If a
 * service is named, its file takes precedence over the environment, and only
 * libpq reads it. */
static const char *setting(const struct target *target, const char *keyword,
                           const char *variable)
{
    const char *value = option(target, keyword);

    if (value != NULL && value[0] != '\0')
        return value;
    if (option(target, "service") != NULL || getenv("PGSERVICE") != NULL)
        return NULL;
    return getenv(variable);
}

/* libpq's parameters for one attempt to connect.  The values point into the
 * target, the environment and the other members. */
struct attempt {
    char *host, *hostaddr, *port;
    char name[LK_PROCESS_NAME_SIZE];
    char idle_ms[12], probe_after_s[12], probe_every_s[12];
    const char *keywords[LK_URL_PARAMETERS_MAX + 16];
    const char *values[LK_URL_PARAMETERS_MAX + 16];
    size_t count;
};

static void attempt_clear(struct attempt *attempt)
{
    free(attempt->host);
    free(attempt->hostaddr);
    free(attempt->port);
}

/* Add a keyword and its value, without copying them.  libpq ignores the values
 * NULL and "", and of two values for one keyword takes the later one. */
static void add(struct attempt *attempt, const char *keyword, const char *value)
{
    attempt->keywords[attempt->count] = keyword;
    attempt->values[attempt->count] = value;
    attempt->count++;
}

/* Return a time in seconds that Linux takes for TCP_KEEPIDLE and _KEEPINTVL. */
static unsigned probe_time_s(uint32_t ms)
{
    if (ms < 1000)
        return 1;
    return ms / 1000 > 32767 ? 32767 : ms / 1000;
}

unsigned lk_pg_probe_after_s(const lk_pg *session)
{
    return probe_time_s(session->idle_ms / 2);
}

unsigned lk_pg_probe_every_s(const lk_pg *session)
{
    return probe_time_s(session->idle_ms / 6);
}

/* Let our side of TCP notice a peer that vanished, as the server's does
 * (driver.c); the probes also keep routers from forgetting an idle connection.
 * A URL may have settings of its own; so may a service, which only libpq
 * reads. */
static void add_probes(struct attempt *attempt, const struct target *target,
                       const lk_pg *session)
{
    if (session->idle_ms == 0 || option(target, "service") != NULL ||
        getenv("PGSERVICE") != NULL)
        return;
    (void)snprintf(attempt->idle_ms, sizeof attempt->idle_ms, "%u",
                   session->idle_ms);
    (void)snprintf(attempt->probe_after_s, sizeof attempt->probe_after_s, "%u",
                   lk_pg_probe_after_s(session));
    (void)snprintf(attempt->probe_every_s, sizeof attempt->probe_every_s, "%u",
                   lk_pg_probe_every_s(session));
    add(attempt, "tcp_user_timeout", attempt->idle_ms);
    add(attempt, "keepalives_idle", attempt->probe_after_s);
    add(attempt, "keepalives_interval", attempt->probe_every_s);
    add(attempt, "keepalives_count", LK_PG_PROBES);
}

static size_t count_hosts(const struct target *target)
{
    size_t hosts = lk_url_entries(setting(target, "host", "PGHOST"));
    size_t addresses =
        lk_url_entries(setting(target, "hostaddr", "PGHOSTADDR"));
    size_t count = hosts > addresses ? hosts : addresses;
    size_t ports = lk_url_entries(setting(target, "port", "PGPORT"));

    /* libpq gets lists of different lengths as they are, and refuses them. */
    if ((hosts != 1 && hosts != count) ||
        (addresses != 1 && addresses != count) ||
        (ports != 1 && ports != count))
        return 1;
    return count;
}

/* Add what the URL says, but for the hosts of a list. */
static void add_url(struct attempt *attempt, const struct target *target,
                    bool has_list)
{
    const struct lk_url *url = target->url;

    add(attempt, "user", url->user);
    add(attempt, "password", target->password);
    add(attempt, "dbname", url->path[0] == '/' ? url->path + 1 : NULL);
    add(attempt, "host", url->host);
    add(attempt, "port", url->port);
    for (size_t i = 0; i < url->count; i++) {
        const char *name = url->parameters[i].name;
        const char *value = url->parameters[i].value;

        if (strcmp(name, "ssl") == 0 && strcmp(value, "true") == 0)
            add(attempt, "sslmode", "require"); /* as libpq reads a URL */
        else if (strcmp(name, "password_env") != 0 &&
                 strcmp(name, "durability") != 0)
            add(attempt, name, value);
    }
    for (size_t i = 0; has_list && i < attempt->count; i++)
        if (lk_text_is_listed("host|hostaddr|port", attempt->keywords[i],
                              strlen(attempt->keywords[i])))
            attempt->values[i] = NULL;
}

static int fill_attempt(struct attempt *attempt, const struct target *target,
                        const lk_pg *session, size_t index, size_t hosts)
{
    lk_process_name(attempt->name);
    add(attempt, "fallback_application_name", attempt->name);
    add_probes(attempt, target, session);
    if (hosts > 1 &&
        setting(target, "target_session_attrs", "PGTARGETSESSIONATTRS") == NULL)
        add(attempt, "target_session_attrs", "read-write");
    add_url(attempt, target, hosts > 1);
    add(attempt, "client_encoding", "UTF8");
    if (hosts == 1)
        return 0;

    if (!lk_url_entry(&attempt->host, setting(target, "host", "PGHOST"),
                      index) ||
        !lk_url_entry(&attempt->hostaddr,
                      setting(target, "hostaddr", "PGHOSTADDR"), index) ||
        !lk_url_entry(&attempt->port, setting(target, "port", "PGPORT"), index))
        return SQLOCK_ENOMEM;
    add(attempt, "host", attempt->host);
    add(attempt, "hostaddr", attempt->hostaddr);
    add(attempt, "port", attempt->port);
    return 0;
}

/* ----------------------------------------------------------- connecting -- */

/* Let libpq read what has come.  A server that has answered, and whose answer
 * to the request for TLS libpq does not accept, refuses TLS, or has a
 * certificate that libpq refuses.  Return 0, or the code of a failure. */
static int go_on(lk_pg *session, PostgresPollingStatusType *state,
                 sqlock_error *err)
{
    char byte;
    bool is_tls =
        PQstatus(session->conn) == CONNECTION_SSL_STARTUP &&
        recv(PQsocket(session->conn), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;

    *state = PQconnectPoll(session->conn);
    if (*state != PGRES_POLLING_FAILED)
        return 0;
    return is_tls ? lk_pg_tls_error(session->conn, err)
                  : lk_pg_connect_error(session->conn, err);
}

/* Call PQconnectPoll() until the session is connected. */
static int finish_connecting(lk_pg *session, int64_t deadline_ns,
                             sqlock_error *err)
{
    PostgresPollingStatusType state = PGRES_POLLING_WRITING;
    bool has_answered = false;
    short events;
    int outcome;
    int rc;

    for (;;) {
        switch (state) {
        case PGRES_POLLING_OK:
            return 0;
        case PGRES_POLLING_READING:
            events = POLLIN;
            break;
        case PGRES_POLLING_WRITING:
            events = POLLOUT;
            break;
        default: /* an old libpq's */
            events = POLLIN | POLLOUT;
            break;
        }
        outcome = lk_pg_wait(session, PQsocket(session->conn), events,
                             deadline_ns, NULL);
        if (outcome == LK_PG_ABORTED)
            return lk_error(err, SQLOCK_ECANCELED,
                            "connecting to PostgreSQL timed out: raise "
                            "connect_timeout_ms");
        if (outcome == LK_PG_TIME_IS_UP)
            return lk_error(err, SQLOCK_EUNREACHABLE,
                            "cannot connect to PostgreSQL: no answer in time");
        if (events == POLLIN && !has_answered) {
            has_answered = true;
            rc = lk_pg_check_peer(session->conn, err);
            if (rc < 0)
                return rc;
        }
        rc = go_on(session, &state, err);
        if (rc < 0)
            return rc;
    }
}

/* Return whether the connection is a Unix socket, on which libpq ignores
 * sslmode. */
static bool is_unix_socket(const lk_pg *session)
{
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof address;

    return getsockname(PQsocket(session->conn), (struct sockaddr *)&address,
                       &size) == 0 &&
           address.ss_family == AF_UNIX;
}

/* Return how far libpq checks the server's identity.  Return ENOMEM through
 * *rc. */
static sqlock_tls_check demanded(const lk_pg *session, int *rc)
{
    PQconninfoOption *used = PQconninfo(session->conn);
    const PQconninfoOption *entry = used;
    const char *mode = "";
    sqlock_tls_check check = SQLOCK_TLS_CHECK_NONE;

    *rc = used != NULL ? 0 : SQLOCK_ENOMEM;
    for (; entry != NULL && entry->keyword != NULL; entry++)
        if (strcmp(entry->keyword, "sslmode") == 0 && entry->val != NULL)
            mode = entry->val;
    if (strcmp(mode, "verify-full") == 0)
        check = SQLOCK_TLS_CHECK_FULL;
    else if (strcmp(mode, "verify-ca") == 0)
        check = SQLOCK_TLS_CHECK_AUTHORITY;
    else if (strcmp(mode, "require") == 0)
        check = SQLOCK_TLS_CHECK_DEMANDED;
    PQconninfoFree(used);
    return check;
}

/* Check that the connection has the TLS that sslmode demands, and keep how far
 * libpq has checked the server's identity.  If there are Kerberos tickets,
 * libpq prefers the encryption of Kerberos, whatever sslmode says (F77). */
static int assert_tls(lk_pg *session, sqlock_error *err)
{
    int rc;
    sqlock_tls_check check = demanded(session, &rc);

    if (rc < 0)
        return lk_error_nomem(err);
    if (PQsslInUse(session->conn) != 0)
        session->tls_check = check;
    else if (check != SQLOCK_TLS_CHECK_NONE && !is_unix_socket(session))
        return lk_error(err, SQLOCK_EACCESS,
                        "TLS is required by sslmode, but the connection does "
                        "not use it: try gssencmode=disable");
    return 0;
}

/* Look up the host of an attempt, unless libpq needs no address of it, or has
 * the host from a service. */
static int find_host(const struct attempt *attempt, const struct target *target,
                     int64_t deadline_ns, sqlock_error *err)
{
    const char *host = attempt->host;

    if (host == NULL)
        host = setting(target, "host", "PGHOST");
    if (host == NULL || host[0] == '\0' || host[0] == '/' || host[0] == '@' ||
        strchr(host, ',') != NULL || /* which libpq refuses */
        setting(target, "hostaddr", "PGHOSTADDR") != NULL)
        return 0;
    return lk_look_up(host, deadline_ns, err);
}

static int try_once(lk_pg *session, const struct target *target, size_t index,
                    size_t hosts, int64_t deadline_ns, sqlock_error *err)
{
    struct attempt attempt = {0};
    int rc;

    rc = fill_attempt(&attempt, target, session, index, hosts);
    if (rc < 0) {
        rc = lk_error_nomem(err);
        goto out;
    }
    rc = find_host(&attempt, target, deadline_ns, err);
    if (rc < 0)
        goto out;
    session->conn = PQconnectStartParams(attempt.keywords, attempt.values, 0);
    if (session->conn == NULL) {
        rc = lk_error_nomem(err);
        goto out;
    }
    lk_pg_watch_notices(session);
    if (PQstatus(session->conn) == CONNECTION_BAD) {
        rc = lk_pg_start_error(session->conn, err);
        goto out;
    }
    /* Only a verbose message contains the SQLSTATE of a refusal. */
    (void)PQsetErrorVerbosity(session->conn, PQERRORS_VERBOSE);
    rc = finish_connecting(session, deadline_ns, err);
    if (rc < 0)
        goto out;
    rc = assert_tls(session, err);
    if (rc < 0)
        goto out;
    (void)PQsetErrorVerbosity(session->conn, PQERRORS_DEFAULT);
    if (PQsetnonblocking(session->conn, 1) != 0)
        rc = lk_pg_connect_error(session->conn, err);
out:
    if (rc < 0) {
        PQfinish(session->conn);
        session->conn = NULL;
    }
    attempt_clear(&attempt);
    return rc;
}

/* The session to open, and where. */
struct opening {
    lk_pg *session;
    struct target target;
    size_t hosts;
};

/* Try a host, and once more after what looks like a refusal of TLS: a server
 * that is being stopped may have broken off the handshake. */
static int try_host(void *context, size_t index, int64_t deadline_ns,
                    sqlock_error *err)
{
    const struct opening *opening = context;
    int rc = try_once(opening->session, &opening->target, index, opening->hosts,
                      deadline_ns, err);

    if (rc == SQLOCK_EACCESS && !lk_hosts_is_refused(rc, err))
        rc = try_once(opening->session, &opening->target, index, opening->hosts,
                      deadline_ns, err);
    return rc;
}

int lk_pg_connect(lk_pg *session, const struct lk_url *url, int64_t deadline_ns,
                  sqlock_error *err)
{
    struct opening opening = {.session = session};
    sqlock_error own;
    int rc;

    if (err == NULL)
        err = &own;
    rc = target_read(&opening.target, url, err);
    if (rc < 0)
        return rc;
    session->pid = getpid();
    opening.hosts = count_hosts(&opening.target);
    return lk_hosts_try(opening.hosts, deadline_ns, try_host, &opening, err);
}
