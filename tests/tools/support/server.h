/*
 * server.h - disturbing a database server: stop its processes, end sessions
 */
#ifndef TESTS_SERVER_H
#define TESTS_SERVER_H

#include "database.h"

/* Tell whether the environment names the process and we may signal it. */
bool server_can_stop(const struct database *database);

/* Tell whether it is also started again when it ends. */
bool server_can_restart(const struct database *database);
/* End the server with a signal, and wait until the next one answers at `url`;
 * *sql is of the old one before and of the new one after. */
void server_restart(struct sql *sql, const char *url, int number);

/* Stop the server and its children (SIGSTOP); go on (SIGCONT).  Going on is
 * harmless when nothing is stopped, and async-signal-safe. */
void server_stop(const struct database *database);
/* Stop one process, such as a session of PostgreSQL or another server. */
void server_stop_process(pid_t pid);
void server_go_on(void);

/* Tell whether the server has that session. */
bool server_has_session(struct sql *sql, int64_t id);

/* End these sessions from the server's side, and wait until they are gone. */
void server_end_sessions(struct sql *sql, const int64_t *ids, size_t count);

/* End these sessions without waiting, and without failing the test; return how
 * many the server has agreed to end.  One may be gone already. */
size_t server_end_some(struct sql *sql, const int64_t *ids, size_t count);

#endif
