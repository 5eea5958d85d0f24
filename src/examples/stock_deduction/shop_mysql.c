/*
 * shop_mysql.c - the demo's tables in MySQL or MariaDB
 *
 * Statements are run in autocommit, so that nothing but the caller's own lock
 * stands between a read and the write that follows it.  Understands the parts
 * of sqlock's mysql:// URLs that say where the server is and who one is.
 */
#include "shop.h"

#ifdef SQLOCK_WITH_MYSQL

#include <mysql.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONNECT_SECONDS = 10, TEXT_MAX = 256 };

struct mysql_shop {
    MYSQL *connection;
    MYSQL_STMT *read;
    MYSQL_STMT *write;
};

/* The parts of a URL; "" is not given. */
struct address {
    char user[TEXT_MAX];
    char password[TEXT_MAX];
    char host[TEXT_MAX];
    char port[8];
    char database[TEXT_MAX];
    char socket[TEXT_MAX];
    char tls[TEXT_MAX];
    char ca[TEXT_MAX];
};

/* Read "user:password@host:port". */
static int read_authority(struct address *to, const char *text, size_t length)
{
    const char *at = memrchr(text, '@', length);
    const char *end = text + length;
    const char *host = at == NULL ? text : at + 1;
    const char *colon;
    int rc = 0;

    if (at != NULL) {
        colon = memchr(text, ':', (size_t)(at - text));
        if (colon != NULL)
            rc |= shop_url_decode(to->password, sizeof to->password, colon + 1,
                                  (size_t)(at - colon - 1));
        rc |= shop_url_decode(to->user, sizeof to->user, text,
                              (size_t)((colon != NULL ? colon : at) - text));
    }
    colon = memrchr(host, ':', (size_t)(end - host));
    if (colon != NULL && memchr(colon, ']', (size_t)(end - colon)) == NULL) {
        rc |= shop_url_decode(to->port, sizeof to->port, colon + 1,
                              (size_t)(end - colon - 1));
        end = colon;
    }
    if (end - host >= 2 && host[0] == '[' && end[-1] == ']') {
        host++; /* an IPv6 address */
        end--;
    }
    rc |=
        shop_url_decode(to->host, sizeof to->host, host, (size_t)(end - host));
    return rc;
}

/* Take the parameter @p name out of *url. */
static int take(char *to, size_t size, char **url, const char *name)
{
    char *value = NULL;
    char *rest = shop_url_take(*url, name, &value);
    int rc = 0;

    if (rest == NULL)
        return -1;
    free(*url);
    *url = rest;
    if (value != NULL)
        rc = shop_url_decode(to, size, value, strlen(value));
    free(value);
    return rc;
}

static int read_url(struct shop *shop, struct address *to, const char *url)
{
    char variable[TEXT_MAX] = "";
    char *rest = strdup(url + strlen("mysql://"));
    size_t length;
    int rc = 0;

    memset(to, 0, sizeof *to);
    if (rest == NULL)
        return shop_fail(shop, "out of memory");
    rc |= take(to->socket, sizeof to->socket, &rest, "socket");
    rc |= take(to->tls, sizeof to->tls, &rest, "tls");
    rc |= take(to->ca, sizeof to->ca, &rest, "ca");
    rc |= take(variable, sizeof variable, &rest, "password_env");
    length = strcspn(rest, "/?");
    rc |= read_authority(to, rest, length);
    if (rest[length] == '/')
        rc |=
            shop_url_decode(to->database, sizeof to->database,
                            rest + length + 1, strcspn(rest + length + 1, "?"));
    if (rc < 0)
        rc = shop_fail(shop, "a part of the URL is too long for the demo");
    else if (strchr(rest, '?') != NULL)
        rc = shop_fail(shop, "the URL has a parameter that is not socket, "
                             "tls, ca or password_env");
    if (variable[0] != '\0' && getenv(variable) != NULL)
        (void)snprintf(to->password, sizeof to->password, "%s",
                       getenv(variable));
    free(rest);
    return rc;
}

static int fail(struct shop *shop)
{
    struct mysql_shop *own = shop->handle;

    return shop_fail(shop, "MySQL: %s", mysql_error(own->connection));
}

static const char *given(const char *text)
{
    return text[0] == '\0' ? NULL : text;
}

static bool wants_tls(const struct address *address)
{
    return address->tls[0] != '\0' && strcmp(address->tls, "off") != 0;
}

/* The two client libraries disagree on how TLS is asked for. */
static void ask_for_tls(MYSQL *connection, const struct address *address)
{
#ifdef MARIADB_BASE_VERSION
    char yes = 1;

    if (wants_tls(address))
        (void)mysql_optionsv(connection, MYSQL_OPT_SSL_ENFORCE, &yes);
    if (strcmp(address->tls, "verify") == 0)
        (void)mysql_optionsv(connection, MYSQL_OPT_SSL_VERIFY_SERVER_CERT,
                             &yes);
#else
    unsigned mode = SSL_MODE_PREFERRED;
    bool ask_for_key = true; /* what Connector/C does by itself */

    if (strcmp(address->tls, "off") == 0)
        mode = SSL_MODE_DISABLED;
    else if (strcmp(address->tls, "verify") == 0)
        mode = SSL_MODE_VERIFY_IDENTITY;
    else if (wants_tls(address))
        mode = SSL_MODE_REQUIRED;
    (void)mysql_options(connection, MYSQL_OPT_SSL_MODE, &mode);
    (void)mysql_options(connection, MYSQL_OPT_GET_SERVER_PUBLIC_KEY,
                        &ask_for_key);
#endif
    if (address->ca[0] != '\0')
        (void)mysql_options(connection, MYSQL_OPT_SSL_CA, address->ca);
}

static int mysql_shop_open(struct shop *shop, const char *url)
{
    unsigned seconds = CONNECT_SECONDS;
    struct mysql_shop *own;
    struct address address;
    const char *version;
    int64_t port = 0;
    int rc;

    rc = read_url(shop, &address, url);
    if (rc < 0)
        return rc;
    if (address.port[0] != '\0' &&
        shop_number(&port, address.port, 1, UINT16_MAX) < 0)
        return shop_fail(shop, "the port in the URL is not a number");
    own = calloc(1, sizeof *own);
    if (own == NULL)
        return shop_fail(shop, "out of memory");
    shop->handle = own;
    own->connection = mysql_init(NULL);
    if (own->connection == NULL)
        return shop_fail(shop, "out of memory");
    (void)mysql_options(own->connection, MYSQL_READ_DEFAULT_GROUP, "client");
    (void)mysql_options(own->connection, MYSQL_OPT_CONNECT_TIMEOUT, &seconds);
    ask_for_tls(own->connection, &address);
    /* Found, not changed: without the lock two may write the same values. */
    if (mysql_real_connect(own->connection, given(address.host),
                           given(address.user), given(address.password),
                           given(address.database), (unsigned)port,
                           given(address.socket), CLIENT_FOUND_ROWS) == NULL)
        return fail(shop);
    /* Connector/C before 3.4 goes on without TLS where the server has none. */
    if (wants_tls(&address) && mysql_get_ssl_cipher(own->connection) == NULL)
        return shop_fail(shop, "MySQL: the server does not speak TLS");
    version = mysql_get_server_info(own->connection);
    (void)snprintf(shop->server, sizeof shop->server, "%s %.*s",
                   strstr(version, "MariaDB") != NULL ? "MariaDB" : "MySQL",
                   (int)strcspn(version, "-"), version);
    return 0;
}

static void mysql_shop_close(struct shop *shop)
{
    struct mysql_shop *own = shop->handle;

    if (own != NULL && own->connection != NULL) {
        if (own->read != NULL)
            (void)mysql_stmt_close(own->read);
        if (own->write != NULL)
            (void)mysql_stmt_close(own->write);
        mysql_close(own->connection);
    }
    free(own);
    shop->handle = NULL;
}

static int mysql_shop_run(struct shop *shop, const char *sql)
{
    struct mysql_shop *own = shop->handle;

    return mysql_query(own->connection, sql) == 0 ? 0 : fail(shop);
}

/* Prepare once per connection, then run with these parameters. */
static int execute(struct shop *shop, MYSQL_STMT **statement, const char *sql,
                   MYSQL_BIND *parameters)
{
    struct mysql_shop *own = shop->handle;
    MYSQL_STMT *made = *statement;

    if (made == NULL) {
        made = mysql_stmt_init(own->connection);
        *statement = made;
        if (made == NULL)
            return shop_fail(shop, "out of memory");
        if (mysql_stmt_prepare(made, sql, (unsigned long)strlen(sql)) != 0)
            return shop_fail(shop, "MySQL: %s", mysql_stmt_error(made));
    }
    if (mysql_stmt_bind_param(made, parameters) != 0 ||
        mysql_stmt_execute(made) != 0)
        return shop_fail(shop, "MySQL: %s", mysql_stmt_error(made));
    return 0;
}

static MYSQL_BIND number(int64_t *value)
{
    MYSQL_BIND bind;

    memset(&bind, 0, sizeof bind);
    bind.buffer_type = MYSQL_TYPE_LONGLONG;
    bind.buffer = value;
    return bind;
}

static int mysql_shop_read(struct shop *shop, int64_t item, struct stock *out)
{
    struct mysql_shop *own = shop->handle;
    MYSQL_BIND parameter = number(&item);
    MYSQL_BIND columns[] = {number(&out->quantity), number(&out->sales)};
    char sql[160];
    int rc;

    (void)snprintf(sql, sizeof sql,
                   "SELECT quantity, sales FROM %s WHERE item = ?",
                   shop->table);
    rc = execute(shop, &own->read, sql, &parameter);
    if (rc < 0)
        return rc;
    if (mysql_stmt_bind_result(own->read, columns) != 0 ||
        mysql_stmt_fetch(own->read) != 0)
        rc = shop_fail(shop, "MySQL: no such item %s",
                       mysql_stmt_error(own->read));
    (void)mysql_stmt_free_result(own->read);
    return rc;
}

static int mysql_shop_write(struct shop *shop, int64_t item,
                            const struct stock *stock)
{
    struct mysql_shop *own = shop->handle;
    struct stock copy = *stock;
    MYSQL_BIND parameters[] = {number(&copy.quantity), number(&copy.sales),
                               number(&item)};
    char sql[160];
    int rc;

    (void)snprintf(sql, sizeof sql,
                   "UPDATE %s SET quantity = ?, sales = ? WHERE item = ?",
                   shop->table);
    rc = execute(shop, &own->write, sql, parameters);
    if (rc < 0)
        return rc;
    if (mysql_stmt_affected_rows(own->write) != 1)
        return shop_fail(shop, "MySQL: no row was changed");
    return 0;
}

const struct shop_library shop_mysql = {
    .scheme = "mysql://",
    .open = mysql_shop_open,
    .close = mysql_shop_close,
    .run = mysql_shop_run,
    .read = mysql_shop_read,
    .write = mysql_shop_write,
};

#else
typedef int shop_mysql_left_out; /* a file must not be empty in ISO C */
#endif
