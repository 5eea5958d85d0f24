/*
 * target.c - read server, user, database and TLS settings from a URL
 *
 * Nothing is connected here.  Messages name parameters and their valid values,
 * never the user or password of the URL.
 */
#include "drivers/mysql/target.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define PARAMETERS "socket|tls|ca|cert|key|password_env|defaults_group"
#define DATABASE_MAX 256 /* bytes of 64 characters */

static int read_tls(struct lk_mysql_target *out, const struct lk_url *url,
                    sqlock_error *err)
{
    static const char *const modes[] = {"off", "prefer", "require", "verify"};
    const char *mode = lk_url_parameter(url, "tls");
    unsigned int i = LK_MYSQL_TLS_PREFER;

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
    out->ca = lk_url_parameter(url, "ca");
    out->cert = lk_url_parameter(url, "cert");
    out->key = lk_url_parameter(url, "key");
    if ((out->cert == NULL) != (out->key == NULL))
        return lk_error(err, SQLOCK_EINVAL,
                        "cert and key in the MySQL URL go together");
    return 0;
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
    out->database = name;
    return 0;
}

/* Return whether each element of a list has a character. */
static bool has_no_gap(const char *list)
{
    return list[0] != ',' && list[strlen(list) - 1] != ',' &&
           strstr(list, ",,") == NULL;
}

/* Read the host of that number, and its port. */
static int read_host(struct lk_mysql_target *out, const struct lk_url *url,
                     size_t index, sqlock_error *err)
{
    char *port = NULL;

    if (!lk_url_entry(&out->entry, url->host, index) ||
        !lk_url_entry(&port, url->port, index))
        return lk_error_nomem(err);
    out->host = out->entry;
    if (port != NULL)
        out->port = lk_url_port(port);
    free(port);
    return 0;
}

static int read_address(struct lk_mysql_target *out, const struct lk_url *url,
                        size_t index, sqlock_error *err)
{
    size_t hosts = lk_url_entries(url->host);
    int rc;

    out->socket = lk_url_parameter(url, "socket");
    if (out->socket != NULL && url->host != NULL)
        return lk_error(err, SQLOCK_EINVAL,
                        "the MySQL URL has both a host and a socket");
    if (url->port != NULL && url->host == NULL)
        return lk_error(err, SQLOCK_EINVAL,
                        "the MySQL URL has a port without a host");
    /* Connector/C takes a host with some of these characters for a list of
     * hosts, or for options. */
    if (url->host != NULL &&
        (strpbrk(url->host, ";= ") != NULL || !has_no_gap(url->host) ||
         (url->port != NULL && hosts != lk_url_entries(url->port))))
        return lk_error(err, SQLOCK_EINVAL,
                        "the hosts of the MySQL URL must be names or addresses "
                        "with ',' between: host1:3306,host2:3306");
    rc = read_host(out, url, index, err);
    out->is_of_several = rc == 0 && hosts > 1;
    return rc;
}

/* Fill in from the option file what the URL does not give: password and user,
 * each by itself; and if the URL has neither host nor socket, the host with its
 * port, and, without a host or with localhost, the socket. */
static int fill_in(struct lk_mysql_target *out, const char *group,
                   sqlock_error *err)
{
    const struct lk_mysql_defaults *defaults = &out->defaults;
    int rc = lk_mysql_defaults_read(&out->defaults, group, err);

    if (rc < 0)
        return rc;
    if (out->password == NULL)
        out->password = defaults->password;
    if (out->user == NULL)
        out->user = defaults->user;
    if (out->host != NULL || out->socket != NULL)
        return 0;
    out->host = defaults->host;
    if (defaults->port != NULL && out->host != NULL)
        out->port = lk_url_port(defaults->port);
    if (out->host == NULL || strcmp(out->host, "localhost") == 0)
        out->socket = defaults->socket;
    return 0;
}

int lk_mysql_target_read(struct lk_mysql_target *out, const struct lk_url *url,
                         size_t index, sqlock_error *err)
{
    int rc;

    memset(out, 0, sizeof *out);
    rc = lk_url_check_parameters(url, PARAMETERS, err);
    if (rc == 0)
        rc = read_address(out, url, index, err);
    if (rc == 0)
        rc = read_database(out, url, err);
    if (rc == 0)
        rc = read_tls(out, url, err);
    if (rc == 0)
        rc = lk_url_password(url, &out->password, err);
    if (rc < 0)
        return rc;
    out->user = url->user;
    rc = fill_in(out, lk_url_parameter(url, "defaults_group"), err);
    if (out->host == NULL && out->tls == LK_MYSQL_TLS_PREFER)
        out->tls = LK_MYSQL_TLS_OFF;
    return rc;
}

void lk_mysql_target_clear(struct lk_mysql_target *target)
{
    lk_mysql_defaults_clear(&target->defaults);
    free(target->entry);
    memset(target, 0, sizeof *target);
}
