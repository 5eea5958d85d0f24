/*
 * target.h - read server, user, database and TLS settings from a URL
 *
 * mysql://user:password@host:port,host2:port2/database?name=value&...
 *
 * or mariadb://.  Of several hosts the first that can be written is taken.
 *
 *     socket=PATH      Unix socket; no host then
 *     tls=MODE         off, prefer (TLS where the server has it; the default),
 *                      require (TLS, whoever the server is), verify (TLS, and
 *                      the server's certificate is valid for the host's name).
 *                      Over a Unix socket, prefer means off
 *     ca=FILE          certificates of authorities, for verify
 *     cert=FILE        our own certificate, with key=FILE
 *     password_env=N   the password is in the environment variable N
 *     defaults_group=G read group G of ~/.my.cnf after group client
 *
 * User, password and address that are not in the URL are read from the group
 * client of ~/.my.cnf; nothing else is taken from there.  With a port, host
 * "localhost" means TCP; without one, the client library's default socket.
 */
#ifndef LK_MYSQL_TARGET_H
#define LK_MYSQL_TARGET_H

#include "base/url.h"
#include "drivers/mysql/defaults.h"

enum lk_mysql_tls {
    LK_MYSQL_TLS_OFF,
    LK_MYSQL_TLS_PREFER,
    LK_MYSQL_TLS_REQUIRE,
    LK_MYSQL_TLS_VERIFY
};

/* Address and login of a server.  The texts are the URL's, the environment's or
 * those of `defaults`.  A NULL member is left to the client library. */
struct lk_mysql_target {
    const char *user;
    const char *password;
    const char *host;
    char *entry; /* the host, of the URL's list */
    bool is_of_several;
    const char *socket;
    const char *database;
    const char *ca, *cert, *key;
    unsigned int port; /* 0: the usual one */
    enum lk_mysql_tls tls;
    struct lk_mysql_defaults defaults;
};

/**
 * Read a URL, the environment variable of its password_env, and ~/.my.cnf.
 *
 * @param index of the host, less than lk_url_entries() of the URL's
 * @param[out] out to be given to lk_mysql_target_clear(), also after a failure
 * @return 0, EINVAL (the message never contains the password) or ENOMEM
 */
int lk_mysql_target_read(struct lk_mysql_target *out, const struct lk_url *url,
                         size_t index, sqlock_error *err);
void lk_mysql_target_clear(struct lk_mysql_target *target);

#endif /* LK_MYSQL_TARGET_H */
