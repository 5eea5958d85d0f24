/*
 * client.h - hide the differences between the two client libraries
 *
 * MariaDB Connector/C and Oracle's libmysqlclient share their function names,
 * so a build has exactly one of them.  Only client.h and client.c ask which.
 */
#ifndef LK_MYSQL_CLIENT_H
#define LK_MYSQL_CLIENT_H

#include "drivers/mysql/library.h"
#include "drivers/mysql/target.h"
#include "drivers/peer.h"

#ifdef MARIADB_PACKAGE_VERSION_ID
typedef my_bool lk_mysql_bool;
#else
typedef bool lk_mysql_bool;
#endif

/** Return the library's name and version, such as "libmariadb 3.3.20", in
 *  static memory; "" before the first lk_mysql_client_enter(). */
const char *lk_mysql_client_name(void);

/** Initialize the library for the process and the calling thread, before other
 *  calls of it; cheap after the first time.
 *  @return 0, ENOMEM, or ENOTSUP if the library is not there */
int lk_mysql_client_enter(sqlock_error *err);

/** Disable features that a server or a default could enable, and request TLS as
 *  @p target says.  The library may ignore the request: check the cipher after
 *  connecting.
 *  @return 0, or EINVAL if this library cannot do what @p target asks for */
int lk_mysql_client_restrict(MYSQL *mysql, const struct lk_mysql_target *target,
                             sqlock_error *err);

/** Connect as mysql_real_connect() does, until the deadline.  @p reach is
 *  called with @p context before each wait for the library's present socket; if
 *  @p reach returns false, connecting fails.  It also fails before the deadline
 *  if a server stays silent and is one of PostgreSQL.  libmysqlclient ignores
 *  @p deadline_ns and @p reach, and keeps the connect timeout of @p mysql.
 *  @return whether it is connected; if not, mysql_errno() says why */
bool lk_mysql_client_connect(MYSQL *mysql, const struct lk_mysql_target *target,
                             int64_t deadline_ns, bool (*reach)(void *context),
                             void *context);

/** Ask what kind of server listens at the target's host, if it has one; until
 *  the deadline by which to connect.  libmysqlclient has used that up: with it,
 *  the question may take 700 ms more. */
enum lk_peer lk_mysql_client_peer(const struct lk_mysql_target *target,
                                  int64_t deadline_ns);

/** Return whether the library reconnects by itself when the connection is
 *  lost. */
bool lk_mysql_client_reconnects(MYSQL *mysql);

/** Return whether the library itself suppresses SIGPIPE on this connection. */
bool lk_mysql_client_spares_sigpipe(MYSQL *mysql);

/** Return the connection's socket, or -1. */
int lk_mysql_client_socket(MYSQL *mysql);

#endif /* LK_MYSQL_CLIENT_H */
