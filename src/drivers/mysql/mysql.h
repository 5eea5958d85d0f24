/*
 * mysql.h - the driver for MySQL and MariaDB
 *
 * mysql://user:password@host:port/database?name=value&...   or mariadb://
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
#ifndef LK_DRIVERS_MYSQL_MYSQL_H
#define LK_DRIVERS_MYSQL_MYSQL_H

#include "db/driver.h"

extern const sqlock_driver lk_driver_mysql;

#endif /* LK_DRIVERS_MYSQL_MYSQL_H */
