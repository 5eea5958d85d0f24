/*
 * defaults.h - read user, password and address from an option file
 */
#ifndef LK_MYSQL_DEFAULTS_H
#define LK_MYSQL_DEFAULTS_H

#include "sqlock.h"

/* The options that were found; a member is NULL if its option was not.  All
 * zero is a valid value. */
struct lk_mysql_defaults {
    char *user;
    char *password;
    char *host;
    char *port;
    char *socket;
};

/**
 * Read ~/.my.cnf: group client, then @p group unless it is NULL; an option that
 * comes later wins.  A file that is missing, not readable, or writable by
 * everybody is ignored, as MySQL's own programs do.
 *
 * @param[out] out to be given to lk_mysql_defaults_clear(), also after a
 * failure
 * @return 0, or ENOMEM
 */
int lk_mysql_defaults_read(struct lk_mysql_defaults *out, const char *group,
                           sqlock_error *err);

/** Free the options, and wipe the password. */
void lk_mysql_defaults_clear(struct lk_mysql_defaults *defaults);

#endif /* LK_MYSQL_DEFAULTS_H */
