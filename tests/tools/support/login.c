/*
 * login.c - see login.h
 */
#include "login.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

void url_take_apart(const char *url, struct url_parts *parts)
{
    if (sscanf(url, "%15[^:]://%63[^:]:%63[^@]@%63[^:/]:%7[0-9]/%63[^?]",
               parts->scheme, parts->user, parts->password, parts->host,
               parts->port, parts->database) != 6)
        skip_or_fail("the URL has another form than scheme://u:p@h:port/db");
}

const char *url_put_together(const struct url_parts *parts, char url[512])
{
    (void)snprintf(url, 512, "%s://%s:%s@%s:%s/%s", parts->scheme, parts->user,
                   parts->password, parts->host, parts->port, parts->database);
    return url;
}

void login_make(struct login *login, struct fixture *f, const char *name)
{
    static unsigned serial;
    int rc;

    memset(login, 0, sizeof *login);
    url_take_apart(f->url, &login->parts);
    rc = sql_open(&login->admin, f->database, database_admin_url(f->database));
    assert_lock_ok(rc, &login->admin.err);
    /* No name is used twice: a pooler keeps sessions of a dropped user. */
    (void)snprintf(login->parts.user, sizeof login->parts.user, "u%ld_%u_%s",
                   (long)getpid(), ++serial, name);
    (void)snprintf(login->parts.password, sizeof login->parts.password,
                   LOGIN_PASSWORD);
    if (f->database->bit == ON_POSTGRES)
        rc = sql_try(&login->admin, NULL, "CREATE ROLE %s LOGIN PASSWORD '%s'",
                     login->parts.user, LOGIN_PASSWORD);
    else
        rc = sql_try(&login->admin, NULL, "CREATE USER %s IDENTIFIED BY '%s'",
                     login->parts.user, LOGIN_PASSWORD);
    if (rc == SQLOCK_EACCESS) {
        sql_close(&login->admin);
        skip_or_fail("there is no administrator's URL");
    }
    assert_lock_ok(rc, &login->admin.err);
    (void)url_put_together(&login->parts, login->url);
    if (database_is_polled(f->database))
        (void)snprintf(login->url + strlen(login->url),
                       sizeof login->url - strlen(login->url), "?waiting=poll");
}

void login_grant(struct login *login, const char *what, const char *table)
{
    (void)sql_run(&login->admin, "GRANT %s ON %s TO %s", what, table,
                  login->parts.user);
}

void login_drop(struct login *login, const struct fixture *f)
{
    if (f->database->bit == ON_POSTGRES)
        (void)sql_try(&login->admin, NULL, "DROP OWNED BY %s",
                      login->parts.user);
    (void)sql_run(&login->admin, "DROP %s %s",
                  f->database->bit == ON_POSTGRES ? "ROLE" : "USER",
                  login->parts.user);
    sql_close(&login->admin);
}
