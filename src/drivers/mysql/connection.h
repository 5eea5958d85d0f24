/*
 * connection.h - one connection, shared by the files of this driver
 *
 * All zero is a connection that was never opened.
 */
#ifndef LK_MYSQL_CONNECTION_H
#define LK_MYSQL_CONNECTION_H

#include <signal.h>
#include <stdatomic.h>

#include "base/thread.h"
#include "drivers/mysql/client.h"
#include "drivers/mysql/errors.h"
#include "db/driver.h"

/* The buffers that a statement's rows are fetched into; defined in rows.c. */
struct lk_mysql_reader;

struct lk_mysql_prepared {
    MYSQL_STMT *statement; /* or NULL */
    struct lk_mysql_reader *reader;
    bool is_named; /* the session has it by a name of again.c */
};

#define LK_MYSQL_OWNER_SIZE 32

struct lk_mysql_connection {
    MYSQL *mysql;
    struct lk_mysql_prepared prepared[SQLOCK_STATEMENT_IDS + 1]; /* by id */
    unsigned long thread_id; /* of the session that was opened */
    bool in_transaction;     /* between begin and commit or rollback */
    bool is_rolled_back;     /* an error has rolled the transaction back, and
                                commit or rollback was not called since */
    bool is_broken;          /* cannot be used any more, only closed */
    bool is_limited;         /* between limit and unlimit: the library has set a
                                savepoint */
    const char *charset;     /* of an adopted connection, at its adoption */
    /* of an adopted session: whose names its statements have, if it has any */
    char owner[LK_MYSQL_OWNER_SIZE];
    bool has_names;
    bool has_savepoint;      /* was set after a statement with such a name */
    bool has_group;          /* the server is configured for a group */
    int64_t member_since_ns; /* when it was last asked for its state there */
    bool was_looked_at;      /* by is_alive, and nothing was sent since */
    bool awaits_bell;        /* a statement of bell.c waits, and nothing else
                                can be sent */
    /* the bell that the session waits for, or may have; "" otherwise */
    char bell[SQLOCK_BELL_MAX + 1];
    char limits[2][24];       /* the time limits that unlimit restores */
    uint32_t idle_ms;         /* as in sqlock_connect; 0: adopted */
    uint32_t present_idle_ms; /* the session's limit; 0: the server's own */
    atomic_bool was_aborted;  /* by another thread */
    int alarm;                /* a second descriptor of the socket, ... */
    bool has_alarm;           /* ... if there is one */
    struct lk_watchdog *dog;  /* NULL: no deadline is kept */
    struct lk_watch watch;    /* ... of the call in progress */
    struct lk_held_signal sigpipe; /* during the call, if it is held */
    bool holds_sigpipe;
    sqlock_description description;
};

/** Convert the error of the client library's last call, and mark the connection
 *  as broken if that error breaks it.  As @p stage, RUNNING also stands for
 *  AUTOCOMMIT.
 *  @return the result code */
int lk_mysql_fail(struct lk_mysql_connection *connection,
                  enum lk_mysql_stage stage, sqlock_error *err);

/** Convert the error of a prepared statement's last call, as lk_mysql_fail()
 *  does. */
int lk_mysql_fail_statement(struct lk_mysql_connection *connection,
                            MYSQL_STMT *statement, enum lk_mysql_stage stage,
                            sqlock_error *err);

/** Begin a call of the driver: check that the connection can be used, keep
 *  SIGPIPE away, and have the call aborted at the deadline.  Call
 *  lk_mysql_call_end() only after 0.
 *  @retval 0             begun
 *  @retval EINVAL        it waits for a bell, which was not heard yet
 *  @retval ECANCELED     the deadline has passed, or it was aborted
 *  @retval EUNREACHABLE  it is broken, or the server has closed it
 *  @retval ENOMEM, ERESOURCE  the client library or a thread cannot start */
int lk_mysql_call_begin(struct lk_mysql_connection *connection,
                        int64_t deadline_ns, sqlock_error *err);
void lk_mysql_call_end(struct lk_mysql_connection *connection);

/** Block SIGPIPE in this thread, so that writing to this connection only fails
 *  if it is closed; for what is no call of the driver. */
void lk_mysql_sigpipe_hold(struct lk_mysql_connection *connection);
/** Discard a SIGPIPE that came since lk_mysql_sigpipe_hold(), and restore the
 *  thread's signal mask.  Needed even if all calls succeeded: freeing a
 *  statement writes, too, and reports no error. */
void lk_mysql_sigpipe_release(struct lk_mysql_connection *connection);

/** Return false if the server has sent something that was not read yet: to an
 *  idle session it sends only the news that it ends the session (F45).
 *  Requires has_alarm. */
bool lk_mysql_is_quiet(const struct lk_mysql_connection *connection);

/** Let lk_mysql_abort() reach the connection's present socket from now on.
 *  @retval 0             done
 *  @retval ERESOURCE     there is no free file descriptor
 *  @retval EUNREACHABLE  lk_mysql_abort() was called already */
int lk_mysql_set_alarm(struct lk_mysql_connection *connection,
                       sqlock_error *err);

/** End the call in flight, from any thread, at any time:
 *  sqlock_driver.abort. */
void lk_mysql_abort(void *handle);

/** Close the alarm, and make the connection all zero.  The caller has closed
 *  the MYSQL handle, or leaves it to the application. */
void lk_mysql_clear_alarm(struct lk_mysql_connection *connection);

/** Log in to the host of that number, and set the session up.  The caller has
 *  called mysql_init().  One of several hosts is refused while it is read-only.
 *  @p err is not NULL.
 *  @return as sqlock_driver.open */
int lk_mysql_connect(struct lk_mysql_connection *connection,
                     const struct lk_url *url, size_t index,
                     const sqlock_connect *how, sqlock_error *err);

/** Read all rows of a prepared statement that was executed.
 *  @retval 0          done
 *  @retval ENOMEM     out of memory, though the statement was executed
 *  @retval EDATABASE  an integer is too large, or a text contains NUL
 *  @retval any other  an error of the server or the client library */
int lk_mysql_read_prepared(struct lk_mysql_connection *connection,
                           struct lk_mysql_prepared *prepared,
                           sqlock_result *result, sqlock_error *err);

/** Free a reader, or NULL.  The caller has closed the reader's statement. */
void lk_mysql_reader_free(struct lk_mysql_reader *reader);

/** Read the rows, or without rows the count, of a query that was sent as text.
 *  @return as lk_mysql_read_prepared() */
int lk_mysql_read_text(struct lk_mysql_connection *connection,
                       sqlock_result *result, sqlock_error *err);

/** Replace ENOMEM, as the result of reading a result, by EUNCERTAIN: the
 *  statement was executed, and its outcome is unknown. */
int lk_mysql_unread(int rc, sqlock_error *err);

/** Close the prepared statement with that id, if there is one. */
void lk_mysql_unprepare(struct lk_mysql_connection *connection, uint32_t id);

bool lk_mysql_is_mariadb(MYSQL *mysql);

/** Let the server end the session once its client has said nothing for so long
 *  in a transaction; send nothing if it is so already.
 *  @return 0, or the code of the error */
int lk_mysql_set_idle(struct lk_mysql_connection *connection, uint32_t idle_ms,
                      sqlock_error *err);
/** Undo that where it also counts outside of transactions.
 *  @return as lk_mysql_set_idle() */
int lk_mysql_unset_idle(struct lk_mysql_connection *connection,
                        sqlock_error *err);

extern const sqlock_driver lk_driver_mysql;

/** Commit by that text, which contains a COMMIT: sqlock_driver.commit.
 *  @retval ENOTFOUND  the text has a name that the session does not know;
 *                     nothing was committed, the transaction goes on
 *  @retval any other  as sqlock_driver.commit */
int lk_mysql_commit_by(struct lk_mysql_connection *connection, const char *text,
                       int64_t deadline_ns, sqlock_error *err);

int lk_mysql_begin(void *handle, int64_t deadline_ns, sqlock_error *err);
int lk_mysql_commit(void *handle, int64_t deadline_ns, sqlock_error *err);
int lk_mysql_rollback(void *handle, int64_t deadline_ns, sqlock_error *err);

/** Statements that a session keeps by their names (again.c):
 *  sqlock_transactions.prepare, .resume, .is_prepared and .commit_same. */
int lk_mysql_prepare_named(void *handle, const char *owner,
                           const sqlock_call *calls, size_t count,
                           int64_t deadline_ns, sqlock_error *err);
int lk_mysql_resume(void *handle, const char *owner, const sqlock_call *calls,
                    size_t count, int64_t deadline_ns, sqlock_error *err);
bool lk_mysql_has_names(void *handle);
int lk_mysql_commit_same(void *handle, int64_t deadline_ns, sqlock_error *err);

/** Run GUARD by its name.  @p err is not NULL.
 *  @return ENOTFOUND if it has found no valid lease, or the session does not
 *          know the name: run it by its text; or as lk_mysql_run_text() */
int lk_mysql_run_named(struct lk_mysql_connection *connection,
                       const sqlock_statement *statement,
                       const sqlock_value *values, size_t count,
                       sqlock_result *result, sqlock_error *err);

/** Send a statement as text; some statements cannot be prepared.  @p result
 *  gets its first result, later ones are discarded. */
int lk_mysql_run_text(struct lk_mysql_connection *connection, const char *text,
                      sqlock_result *result, sqlock_error *err);

/** Ask the server about its group (group.c).  After a failure the connection is
 *  broken.
 *  @retval 0          the server is ONLINE and sees a majority
 *  @retval EREADONLY  the server is not ONLINE, or sees no majority
 *  @retval EACCESS    this user may not read the group's state
 *  @retval any other  EUNREACHABLE, EDATABASE... */
int lk_mysql_ask_group(struct lk_mysql_connection *connection,
                       sqlock_error *err);
/** Call lk_mysql_ask_group() if the server has a group, no transaction is open
 *  and the last answer is old: before a statement or a transaction.
 *  @return 0, or as lk_mysql_ask_group() */
int lk_mysql_stay_in_group(struct lk_mysql_connection *connection,
                           sqlock_error *err);

/** The bell: user locks of the server. */
extern const sqlock_bell lk_mysql_bell;

/** The driver's functions and SQL for transactions of the application. */
extern const sqlock_transactions lk_mysql_transactions;

/** The driver's statements about stock. */
extern const sqlock_stock_dialect lk_mysql_stock;

/** Run a statement: sqlock_driver.execute. */
int lk_mysql_execute(void *handle, const sqlock_statement *statement,
                     const sqlock_value *parameters, size_t count,
                     int64_t deadline_ns, sqlock_result *result,
                     sqlock_error *err);

#endif /* LK_MYSQL_CONNECTION_H */
