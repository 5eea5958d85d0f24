/*
 * client.h - what the two client libraries do differently
 *
 * MariaDB Connector/C and Oracle's libmysqlclient share their function names,
 * so a build has exactly one of them.  Nothing outside client.c asks which.
 */
#ifndef LK_MYSQL_CLIENT_H
#define LK_MYSQL_CLIENT_H

#include <mysql.h>

#include "drivers/mysql/target.h"

#ifdef MARIADB_PACKAGE_VERSION_ID
typedef my_bool lk_mysql_bool;
#else
typedef bool lk_mysql_bool;
#endif

/** Return the library's name and version, "libmariadb 3.3.20": a constant. */
const char *lk_mysql_client_name(void);

/** Make the library ready for the process and the calling thread; cheap after
 *  the first time.  @return 0, ENOMEM */
int lk_mysql_client_enter(sqlock_error *err);

/** Disable features that a server or a default could enable, and request TLS as
 *  @p target says.  The library may ignore that: check the cipher after
 *  connecting.  @return 0, EINVAL, ENOMEM */
int lk_mysql_client_restrict(MYSQL *mysql, const struct lk_mysql_target *target,
                             sqlock_error *err);

/** Connect as mysql_real_connect() does, until the deadline (rounded to whole
 *  seconds with Oracle's library).  @p reach is called for each socket that the
 *  library opens; if it returns false, connecting ends.
 *  @return false: mysql_errno() says why */
bool lk_mysql_client_connect(MYSQL *mysql, const struct lk_mysql_target *target,
                             int64_t deadline_ns, bool (*reach)(void *context),
                             void *context);

/** Tell whether the library reconnects by itself when the connection is
 *  lost. */
bool lk_mysql_client_reconnects(MYSQL *mysql);

/** Tell whether the library itself suppresses SIGPIPE on this connection. */
bool lk_mysql_client_spares_sigpipe(MYSQL *mysql);

/** The connection's socket, or -1. */
int lk_mysql_client_socket(MYSQL *mysql);

#endif /* LK_MYSQL_CLIENT_H */
