/*
 * target.h - where a URL leads: server, user, database, TLS
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

/* Address and login of a server.  A NULL member is left to the client library.
 * Embed it zeroed. */
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
 * Read a URL (see mysql.h), the environment variable it names, and ~/.my.cnf.
 *
 * @param[out] out to be given to lk_mysql_target_clear(), also after a failure
 * @return 0, EINVAL (never with the password), ENOMEM
 */
int lk_mysql_target_read(struct lk_mysql_target *out, const char *url,
                         sqlock_error *err);

/** Free the target, and wipe its passwords. */
void lk_mysql_target_clear(struct lk_mysql_target *target);

#endif /* LK_MYSQL_TARGET_H */
