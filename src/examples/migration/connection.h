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
    /* Run all statements of a text.  Return 0, or -1 after a message. */
    int (*run)(void *handle, const char *sql);
    /* Try to take a lock that lasts until the session at the server ends, even
     * if the client has died before.  Return 1; 0 if another session has the
     * lock; -1 after a message.  NULL: the database has no sessions. */
    int (*lock_session)(void *handle);
    void (*close)(void *handle);
};

/* Return 0, or -1 after a message; connection_close() follows in both cases. */
int connection_open(struct connection *connection, const char *url);
void connection_close(struct connection *connection);

/* Print one line on stderr.  Return -1. */
int complain(const char *what, const char *why);

#endif
