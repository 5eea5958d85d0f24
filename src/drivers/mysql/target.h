/*
 * target.h - read server, user, database and TLS settings from a URL
 */
#ifndef LK_MYSQL_TARGET_H
#define LK_MYSQL_TARGET_H

#include <stdbool.h>

#include "sqlock.h"

enum lk_mysql_tls {
    LK_MYSQL_TLS_OFF,
    LK_MYSQL_TLS_PREFER,
    LK_MYSQL_TLS_REQUIRE,
    LK_MYSQL_TLS_VERIFY
};

/* Address and login of a server; the texts are malloc'd.  A NULL member is left
 * to the client library.  All zero is a valid value. */
struct lk_mysql_target {
    char *user;
    char *password;
    char *host;
    char *socket;
    char *database;
    char *ca, *cert, *key;
    unsigned int port; /* 0: the usual one */
    enum lk_mysql_tls tls;
};

/**
 * Read a URL (see mysql.h), the environment variable of its password_env, and
 * ~/.my.cnf.
 *
 * @param[out] out to be given to lk_mysql_target_clear(), also after a failure
 * @return 0, EINVAL (the message never contains the password) or ENOMEM
 */
int lk_mysql_target_read(struct lk_mysql_target *out, const char *url,
                         sqlock_error *err);

/** Free the texts of the target, wipe the password, and zero it. */
void lk_mysql_target_clear(struct lk_mysql_target *target);

#endif /* LK_MYSQL_TARGET_H */
