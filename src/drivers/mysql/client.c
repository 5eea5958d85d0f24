/*
 * client.c - the differences between the two client libraries
 *
 * The library is MariaDB Connector/C (tested: 3.3.20) if its header defines
 * MARIADB_PACKAGE_VERSION_ID, otherwise Oracle's libmysqlclient (9.7.4).
 */
#include "drivers/mysql/client.h"

#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"

#ifdef MARIADB_PACKAGE_VERSION_ID
#define CLIENT_LIBRARY "libmariadb"
#else
#define CLIENT_LIBRARY "libmysqlclient"
#endif

/* A server that has not spoken for so long may not be one of MySQL. */
#define SILENCE_MS 700

/* Our rows are much smaller; a rogue server must not fill the memory. */
#define PACKET_MAX (16UL * 1024 * 1024)

static char client_name[64];
static bool library_is_ready;
static pthread_once_t library_once = PTHREAD_ONCE_INIT;

#ifndef MARIADB_PACKAGE_VERSION_ID
/* libmysqlclient keeps memory for each thread that used it. */
static pthread_key_t thread_key;

static void end_thread(void *ignored)
{
    (void)ignored;
    mysql_thread_end();
}
#endif

/* Initialize the client library; called by pthread_once().  Two threads must
 * not be in mysql_server_init() at once, so the first mysql_init() must not be
 * left to call it. */
static void start_library(void)
{
    struct sigaction before;
    bool restore = sigaction(SIGPIPE, NULL, &before) == 0;
    const char *version;

    library_is_ready = mysql_server_init(0, NULL, NULL) == 0;
#ifndef MARIADB_PACKAGE_VERSION_ID
    library_is_ready =
        library_is_ready && pthread_key_create(&thread_key, end_thread) == 0;
#endif
    /* A library must not change what signals do to the program. */
    if (restore)
        (void)sigaction(SIGPIPE, &before, NULL);
    version = mysql_get_client_info();
    (void)snprintf(client_name, sizeof client_name, CLIENT_LIBRARY " %.*s",
                   (int)strcspn(version, "-"), version);
}

const char *lk_mysql_client_name(void)
{
    return client_name;
}

int lk_mysql_client_enter(sqlock_error *err)
{
    int rc = lk_library_load(&lk_my_library, err);

    if (rc < 0)
        return rc;
    (void)pthread_once(&library_once, start_library);
    if (!library_is_ready)
        return lk_error(err, SQLOCK_ENOMEM,
                        "the MySQL client library cannot be initialized");
#ifndef MARIADB_PACKAGE_VERSION_ID
    if (pthread_getspecific(thread_key) == NULL) {
        if (mysql_thread_init() ||
            pthread_setspecific(thread_key, &thread_key) != 0)
            return lk_error_nomem(err);
    }
#endif
    return 0;
}

#ifdef MARIADB_PACKAGE_VERSION_ID

/* Request TLS.  With MYSQL_OPT_SSL_ENFORCE, Connector/C uses TLS if the server
 * has it and connects without TLS otherwise, as `prefer` means.  The server's
 * certificate is checked only with the second option, which is on by default
 * from 3.4 on. */
static int set_tls(MYSQL *mysql, const struct lk_mysql_target *target,
                   sqlock_error *err)
{
    lk_mysql_bool enforce = target->tls != LK_MYSQL_TLS_OFF;
    lk_mysql_bool verify = target->tls == LK_MYSQL_TLS_VERIFY;

    (void)err;
    mysql_optionsv(mysql, MYSQL_OPT_SSL_ENFORCE, &enforce);
    mysql_optionsv(mysql, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verify);
    return 0;
}

/* Allow all authentication plugins except those that send the password in clear
 * text.  Without TLS, sha2 passwords are encrypted with the server's RSA
 * key. */
static void set_authentication(MYSQL *mysql)
{
    mysql_optionsv(mysql, MARIADB_OPT_RESTRICTED_AUTH,
                   "mysql_native_password,caching_sha2_password,"
                   "sha256_password,client_ed25519,parsec,auth_gssapi_client");
}

/* Return true where the library writes to the socket itself, with
 * MSG_NOSIGNAL. */
bool lk_mysql_client_spares_sigpipe(MYSQL *mysql)
{
    return mysql->net.pvio != NULL && mysql_get_ssl_cipher(mysql) == NULL;
}

int lk_mysql_client_socket(MYSQL *mysql)
{
    return mysql_get_socket(mysql);
}

/* Wait for the socket, the library's own time limit, or the deadline.  Return
 * the events for mysql_real_connect_cont(). */
static int await(MYSQL *mysql, int wanted, int64_t deadline_ns)
{
    struct pollfd entry = {.fd = mysql_get_socket(mysql)};
    int64_t left_ms = (deadline_ns - sqlock_monotonic_ns()) / 1000000;
    int64_t limit_ms = (wanted & MYSQL_WAIT_TIMEOUT) != 0
                           ? (int64_t)mysql_get_timeout_value_ms(mysql)
                           : INT_MAX;

    if ((wanted & MYSQL_WAIT_READ) != 0)
        entry.events |= POLLIN;
    if ((wanted & MYSQL_WAIT_WRITE) != 0)
        entry.events |= POLLOUT;
    if ((wanted & MYSQL_WAIT_EXCEPT) != 0)
        entry.events |= POLLPRI;
    if (left_ms > limit_ms)
        left_ms = limit_ms;
    if (left_ms < 0)
        left_ms = 0; /* what came in time is there */
    if (poll(&entry, 1, (int)left_ms) == 0)
        return MYSQL_WAIT_TIMEOUT;
    return wanted & ~MYSQL_WAIT_TIMEOUT;
}

/* Return whether the server has said nothing for SILENCE_MS, nor before the
 * deadline. */
static bool is_silent(MYSQL *mysql, int64_t deadline_ns)
{
    int64_t until_ns =
        lk_sooner(deadline_ns, lk_after_ms(sqlock_monotonic_ns(), SILENCE_MS));

    return await(mysql, MYSQL_WAIT_READ, until_ns) == MYSQL_WAIT_TIMEOUT;
}

/* Connect with the non-blocking calls of the library: the time limit of the
 * blocking call is in whole seconds, and starts anew for each address of a host
 * name.  Later calls on the connection block again. */
bool lk_mysql_client_connect(MYSQL *mysql, const struct lk_mysql_target *target,
                             int64_t deadline_ns, bool (*reach)(void *context),
                             void *context)
{
    MYSQL *connected = NULL;
    bool has_heard = target->host == NULL;
    int wanted;

    if (mysql_optionsv(mysql, MYSQL_OPT_NONBLOCK, (void *)NULL) != 0)
        return false; /* it found no memory, and would crash */
    wanted = mysql_real_connect_start(
        &connected, mysql, target->host, target->user, target->password,
        target->database, target->port, target->socket, 0);
    while (wanted != 0) {
        bool may_go_on = reach(context);
        int come;

        if (may_go_on && !has_heard && (wanted & MYSQL_WAIT_READ) != 0) {
            has_heard = true;
            may_go_on =
                !is_silent(mysql, deadline_ns) ||
                lk_mysql_client_peer(target, deadline_ns) != LK_PEER_POSTGRES;
        }
        come =
            may_go_on ? await(mysql, wanted, deadline_ns) : MYSQL_WAIT_TIMEOUT;
        wanted = mysql_real_connect_cont(&connected, mysql, come);
    }
    return connected != NULL;
}

#else /* libmysqlclient */

static int set_tls(MYSQL *mysql, const struct lk_mysql_target *target,
                   sqlock_error *err)
{
    unsigned int mode = SSL_MODE_PREFERRED;

    switch (target->tls) {
    case LK_MYSQL_TLS_OFF:
        mode = SSL_MODE_DISABLED;
        break;
    case LK_MYSQL_TLS_PREFER:
        break;
    case LK_MYSQL_TLS_REQUIRE:
        mode = SSL_MODE_REQUIRED;
        break;
    case LK_MYSQL_TLS_VERIFY:
        if (target->ca == NULL)
            return lk_error(err, SQLOCK_EINVAL,
                            "tls=verify needs ca=FILE with this client "
                            "library (" CLIENT_LIBRARY ")");
        mode = SSL_MODE_VERIFY_IDENTITY;
        break;
    }
    mysql_options(mysql, MYSQL_OPT_SSL_MODE, &mode);
    return 0;
}

static void set_authentication(MYSQL *mysql)
{
    unsigned int attempts = 1;

    /* A timeout is one wait, not several in a row. */
    mysql_options(mysql, MYSQL_OPT_RETRY_COUNT, &attempts);
}

/* Return false: the library makes the whole process ignore SIGPIPE, which
 * start_library() undoes. */
bool lk_mysql_client_spares_sigpipe(MYSQL *mysql)
{
    (void)mysql;
    return false;
}

int lk_mysql_client_socket(MYSQL *mysql)
{
    return mysql->net.fd;
}

bool lk_mysql_client_connect(MYSQL *mysql, const struct lk_mysql_target *target,
                             int64_t deadline_ns, bool (*reach)(void *context),
                             void *context)
{
    (void)deadline_ns;
    (void)reach;
    (void)context;
    return mysql_real_connect(mysql, target->host, target->user,
                              target->password, target->database, target->port,
                              target->socket, 0) != NULL;
}

#endif

/* How long to ask a server what kind of server it is. */
#define PEER_MS 700

enum lk_peer lk_mysql_client_peer(const struct lk_mysql_target *target,
                                  int64_t deadline_ns)
{
    unsigned int port = target->port != 0 ? target->port : MYSQL_PORT;
    int64_t until_ns = lk_after_ms(sqlock_monotonic_ns(), PEER_MS);

#ifdef MARIADB_PACKAGE_VERSION_ID
    until_ns = lk_sooner(until_ns, deadline_ns);
#else
    (void)deadline_ns;
#endif
    return target->host != NULL ? lk_peer_at(target->host, port, until_ns)
                                : LK_PEER_UNKNOWN;
}

int lk_mysql_client_restrict(MYSQL *mysql, const struct lk_mysql_target *target,
                             sqlock_error *err)
{
    lk_mysql_bool no = 0;
    unsigned int infile = 0;
    unsigned long packet = PACKET_MAX;
    int rc;

#ifdef MARIADB_PACKAGE_VERSION_ID
    /* Off by default.  libmysqlclient prints a warning if it is set. */
    mysql_options(mysql, MYSQL_OPT_RECONNECT, &no);
#else
    mysql_options(mysql, MYSQL_ENABLE_CLEARTEXT_PLUGIN, &no);
#endif
    mysql_options(mysql, MYSQL_OPT_LOCAL_INFILE, &infile);
    mysql_options(mysql, MYSQL_OPT_MAX_ALLOWED_PACKET, &packet);
    set_authentication(mysql);
    rc = set_tls(mysql, target, err);
    if (rc < 0 || target->tls == LK_MYSQL_TLS_OFF)
        return rc;
    if (target->ca != NULL)
        mysql_options(mysql, MYSQL_OPT_SSL_CA, target->ca);
    if (target->cert != NULL)
        mysql_options(mysql, MYSQL_OPT_SSL_CERT, target->cert);
    if (target->key != NULL)
        mysql_options(mysql, MYSQL_OPT_SSL_KEY, target->key);
    return 0;
}

/* Return whether the library reconnects by itself.  libmysqlclient's member is
 * read, since mysql_get_option() would print a warning about this option to the
 * application's stderr. */
bool lk_mysql_client_reconnects(MYSQL *mysql)
{
#ifdef MARIADB_PACKAGE_VERSION_ID
    lk_mysql_bool reconnects = 0;

    (void)mysql_get_option(mysql, MYSQL_OPT_RECONNECT, &reconnects);
    return reconnects != 0;
#else
    return mysql->reconnect;
#endif
}
