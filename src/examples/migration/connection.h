/*
 * connection.h - the deployer's own connection, in the client library of the
 * database
 */
#ifndef MIGRATION_CONNECTION_H
#define MIGRATION_CONNECTION_H

#include <stdbool.h>

struct connection {
    void *handle; /* PGconn *, MYSQL *, sqlite3 *; NULL: not open */
    bool has_transactional_ddl;
    /* Run all statements of a text; 0, or -1 having said why. */
    int (*run)(void *handle, const char *sql);
    /* Try to take a lock that lasts as long as the server's session, longer
     * than its client if need be: 1, 0 (another session has it) or -1.  NULL:
     * there are no sessions. */
    int (*lock_session)(void *handle);
    void (*close)(void *handle);
};

int connection_open(struct connection *connection, const char *url);
void connection_close(struct connection *connection);

/* One line on stderr; -1. */
int complain(const char *what, const char *why);

#endif
