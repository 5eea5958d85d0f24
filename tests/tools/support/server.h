/*
 * server.h - disturb a database server: stop its processes, end sessions
 */
#ifndef TESTS_SERVER_H
#define TESTS_SERVER_H

#include "database.h"

/* Return whether the environment has the server's process id, and this process
 * may send it signals. */
bool server_can_stop(const struct database *database);

/* Return whether the server is also started again when it ends. */
bool server_can_restart(const struct database *database);
/* End the server of session *sql by signal `number`, wait until the restarted
 * server answers at `url`, and open *sql there again. */
void server_restart(struct sql *sql, const char *url, int number);
/* As server_restart() by SIGKILL, which all of its processes get at once, so
 * that none writes anything after the first one is gone. */
void server_crash(struct sql *sql, const char *url);
/* Kill that process of a PostgreSQL server, which restarts the others then, and
 * open *sql again once it answers. */
void server_restart_itself(struct sql *sql, const char *url, pid_t pid);

/* server_stop(): stop the server and its child processes (SIGSTOP), and wait
 * until they have stopped.  server_go_on(): continue all that is stopped
 * (SIGCONT); harmless if nothing is, and async-signal-safe. */
void server_stop(const struct database *database);
/* Stop one process, such as that of a session of PostgreSQL. */
void server_stop_process(pid_t pid);
void server_go_on(void);

/* Let servers whose clock is this machine's plus what the file says
 * (SQLOCK_TEST_CLOCK of servers/common.sh) be so far ahead, or behind. */
void server_set_clock(const char *file, int ms);

/* Return whether the server has that session. */
bool server_has_session(struct sql *sql, int64_t id);

/* Have the server end these sessions, and wait until they are gone; fail the
 * test if one stays. */
void server_end_sessions(struct sql *sql, const int64_t *ids, size_t count);

/* As server_end_sessions(), but without waiting, and without failing the test;
 * return how many statements that end a session succeeded.  Sessions may be
 * gone already. */
size_t server_end_some(struct sql *sql, const int64_t *ids, size_t count);

#endif
