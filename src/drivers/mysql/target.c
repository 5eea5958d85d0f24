/*
 * target.c - read server, user, database and TLS settings from a URL
 *
 * Nothing is connected here.  Messages name parameters and their valid values,
 * never the user or password of the URL.
 */
#include "drivers/mysql/target.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/secret.h"
#include "base/url.h"
#include "drivers/mysql/defaults.h"

#define PARAMETERS                                                             \
    "socket, tls, ca, cert, key, password_env, defaults_group, waiting"
#define DATABASE_MAX 256 /* bytes of 64 characters */

/* Move a malloc'd text to *to, whose old text is wiped and freed; *from becomes
 * NULL. */
static void move(char **to, char **from)
{
    lk_wipe_free(*to);
    *to = *from;
    *from = NULL;
}

static int copy(char **to, const char *text, sqlock_error *err)
{
    if (text == NULL)
        return 0;
    *to = strdup(text);
    return *to == NULL ? lk_error_nomem(err) : 0;
}

/* Return the port, 1 to 65535, or 0 if the text is not a port. */
static unsigned int port_of(const char *text)
{
    unsigned int port = 0;

    for (; isdigit((unsigned char)*text) && port <= 65535; text++)
        port = port * 10 + (unsigned int)(*text - '0');
    return *text == '\0' && port <= 65535 ? port : 0;
}

static int check_parameters(const struct lk_url *url, sqlock_error *err)
{
    static const char *const known[] = {
        "socket",         "tls",    "ca", "cert", "key", "password_env",
        "defaults_group", "waiting"}; /* read by lk_driver_find() */
    size_t i, j;

    for (i = 0; i < url->count; i++) {
        const char *name = url->parameters[i].name;

        for (j = 0; j < sizeof known / sizeof *known; j++) {
            if (strcmp(name, known[j]) == 0)
                break;
        }
        /* The name may belong to a password that was not percent-encoded, so
           the message gives only its number. */
        if (j == sizeof known / sizeof *known)
            return lk_error(err, SQLOCK_EINVAL,
                            "the MySQL URL's parameter number %zu after its "
                            "'?' is unknown; there are " PARAMETERS,
                            i + 1);
        if (url->parameters[i].value[0] == '\0')
            return lk_error(err, SQLOCK_EINVAL,
                            "parameter %s in the MySQL URL has no value", name);
        for (j = 0; j < i; j++) {
            if (strcmp(name, url->parameters[j].name) == 0)
                return lk_error(err, SQLOCK_EINVAL,
                                "the MySQL URL gives %s twice", name);
        }
    }
    return 0;
}

static int read_tls(struct lk_mysql_target *out, const struct lk_url *url,
                    sqlock_error *err)
{
    static const char *const modes[] = {"off", "prefer", "require", "verify"};
    const char *mode = lk_url_parameter(url, "tls");
    unsigned int i = LK_MYSQL_TLS_PREFER;
    int rc;

    if (mode != NULL) {
        for (i = 0; i < sizeof modes / sizeof *modes; i++) {
            if (strcmp(mode, modes[i]) == 0)
                break;
        }
        if (i == sizeof modes / sizeof *modes)
            return lk_error(err, SQLOCK_EINVAL,
                            "tls in the MySQL URL must be off, prefer, "
                            "require or verify");
    }
    out->tls = (enum lk_mysql_tls)i;
    rc = copy(&out->ca, lk_url_parameter(url, "ca"), err);
    if (rc == 0)
        rc = copy(&out->cert, lk_url_parameter(url, "cert"), err);
    if (rc == 0)
        rc = copy(&out->key, lk_url_parameter(url, "key"), err);
    if (rc == 0 && (out->cert == NULL) != (out->key == NULL))
        return lk_error(err, SQLOCK_EINVAL,
                        "cert and key in the MySQL URL go together");
    return rc;
}

static int read_database(struct lk_mysql_target *out, const struct lk_url *url,
                         sqlock_error *err)
{
    const char *name = url->path[0] == '/' ? url->path + 1 : "";

    if (*name == '\0')
        return lk_error(err, SQLOCK_EINVAL,
                        "the MySQL URL names no database: "
                        "mysql://user@host:port/database");
    if (strchr(name, '/') != NULL || strlen(name) > DATABASE_MAX)
        return lk_error(
            err, SQLOCK_EINVAL,
            "the path of the MySQL URL must be the name of a database only");
    return copy(&out->database, name, err);
}

static int read_address(struct lk_mysql_target *out, struct lk_url *url,
                        sqlock_error *err)
{
    const char *socket = lk_url_parameter(url, "socket");

    if (socket != NULL && url->host != NULL)
        return lk_error(err, SQLOCK_EINVAL,
                        "the MySQL URL has both a host and a socket");
    if (url->port != NULL) {
        out->port = port_of(url->port);
        if (out->port == 0 || url->host == NULL)
            return lk_error(
                err, SQLOCK_EINVAL,
                "the port in the MySQL URL must be 1 to 65535, after a host");
    }
    /* Connector/C takes a host with some of these characters for a list of
       hosts, or for options. */
    if (url->host != NULL && strpbrk(url->host, ",;= ") != NULL)
        return lk_error(err, SQLOCK_EINVAL, "the MySQL URL must name one host");
    move(&out->host, &url->host);
    return copy(&out->socket, socket, err);
}

static int read_password(struct lk_mysql_target *out, struct lk_url *url,
                         sqlock_error *err)
{
    const char *name = lk_url_parameter(url, "password_env");
    const char *value;

    if (name == NULL) {
        move(&out->password, &url->password);
        return 0;
    }
    if (url->password != NULL)
        return lk_error(err, SQLOCK_EINVAL,
                        "the MySQL URL has both a password and password_env");
    value = getenv(name);
    if (value == NULL)
        return lk_error(err, SQLOCK_EINVAL,
                        "the environment variable %s, which password_env in "
                        "the MySQL URL names, is not set",
                        name);
    return copy(&out->password, value, err);
}

/* Fill in from the option file what the URL does not give: password and user,
 * each by itself; and if the URL has neither host nor socket, the host with its
 * port, and, without a host or with localhost, the socket. */
static int fill_in(struct lk_mysql_target *out, const struct lk_url *url,
                   sqlock_error *err)
{
    struct lk_mysql_defaults defaults;
    int rc;

    rc = lk_mysql_defaults_read(&defaults,
                                lk_url_parameter(url, "defaults_group"), err);
    if (rc < 0)
        goto out;
    if (out->password == NULL)
        move(&out->password, &defaults.password);
    if (out->user == NULL)
        move(&out->user, &defaults.user);
    if (out->host == NULL && out->socket == NULL) {
        move(&out->host, &defaults.host);
        if (defaults.port != NULL && out->host != NULL)
            out->port = port_of(defaults.port);
        if (out->host == NULL || strcmp(out->host, "localhost") == 0)
            move(&out->socket, &defaults.socket);
    }
out:
    lk_mysql_defaults_clear(&defaults);
    return rc;
}

/* Return whether a URL has a list of hosts, which the URL parser (uriparser)
 * does not support. */
static bool has_host_list(const char *url)
{
    const char *authority = strstr(url, "://");
    const char *at;
    const char *end;

    if (authority == NULL)
        return false;
    authority += 3;
    end = authority + strcspn(authority, "/?#");
    at = memrchr(authority, '@', (size_t)(end - authority));
    if (at != NULL)
        authority = at + 1;
    return memchr(authority, ',', (size_t)(end - authority)) != NULL;
}

int lk_mysql_target_read(struct lk_mysql_target *out, const char *text,
                         sqlock_error *err)
{
    struct lk_url url = {0};
    int rc;

    memset(out, 0, sizeof *out);
    if (has_host_list(text))
        return lk_error(err, SQLOCK_EINVAL,
                        "the MySQL URL must name one host, not several");
    rc = lk_url_parse(&url, text, err);
    if (rc < 0)
        goto out;
    rc = check_parameters(&url, err);
    if (rc < 0)
        goto out;
    rc = read_address(out, &url, err);
    if (rc < 0)
        goto out;
    rc = read_database(out, &url, err);
    if (rc < 0)
        goto out;
    rc = read_tls(out, &url, err);
    if (rc < 0)
        goto out;
    rc = read_password(out, &url, err);
    if (rc < 0)
        goto out;
    move(&out->user, &url.user);
    rc = fill_in(out, &url, err);
    if (rc < 0)
        goto out;
    if (out->host == NULL && out->tls == LK_MYSQL_TLS_PREFER)
        out->tls = LK_MYSQL_TLS_OFF;
out:
    lk_url_clear(&url);
    return rc;
}

void lk_mysql_target_clear(struct lk_mysql_target *target)
{
    free(target->user);
    lk_wipe_free(target->password);
    free(target->host);
    free(target->socket);
    free(target->database);
    free(target->ca);
    free(target->cert);
    free(target->key);
    memset(target, 0, sizeof *target);
}
