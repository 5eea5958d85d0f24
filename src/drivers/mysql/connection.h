/*
 * connection.h - one connection, shared by the files of this driver
 *
 * All zero is a connection that was never opened.
 */
#ifndef LK_MYSQL_CONNECTION_H
#define LK_MYSQL_CONNECTION_H

#include <stdatomic.h>

#include "drivers/mysql/client.h"
#include "drivers/mysql/errors.h"
#include "sqlock/driver.h"

/* Where a statement's rows are put; it belongs to rows.c. */
struct lk_mysql_reader;

struct lk_mysql_prepared {
    MYSQL_STMT *statement; /* or NULL */
    struct lk_mysql_reader *reader;
};

struct lk_mysql_connection {
    MYSQL *mysql;
    struct lk_mysql_prepared prepared[SQLOCK_STATEMENT_IDS + 1]; /* by id */
    unsigned long thread_id; /* of the session that was opened */
    bool in_transaction;     /* between begin and commit or rollback */
    bool is_rolled_back;     /* it was, by an error, and nobody said so yet */
    bool is_broken;          /* not in step with the server any more */
    bool is_limited;         /* the caller has a savepoint */
    const char *charset;     /* of an adopted one, as the library names it */
    bool has_group;          /* the server is to be a member of one; ... */
    int64_t member_since_ns; /* ... when it was last asked whether it is */
    bool was_looked_at;      /* by is_alive, and nothing was sent since */
    char limits[2][24];      /* of time, as they were set before */
    atomic_bool was_aborted; /* by another thread */
    int alarm;               /* a second descriptor of the socket ... */
    bool has_alarm;          /* ... when there is one */
    sqlock_description description;
};

/** Take the error of the last call; marks the connection when it is broken.
 *  @return its class */
int lk_mysql_fail(struct lk_mysql_connection *connection,
                  enum lk_mysql_stage stage, sqlock_error *err);

/** Take the error of a prepared statement's last call, as lk_mysql_fail(). */
int lk_mysql_fail_statement(struct lk_mysql_connection *connection,
                            MYSQL_STMT *statement, enum lk_mysql_stage stage,
                            sqlock_error *err);

/** Check that the connection may be used, before anything is sent. @return
 *  0, ECANCELED (the deadline has passed), EUNREACHABLE, ENOMEM */
int lk_mysql_ready(struct lk_mysql_connection *connection, int64_t deadline_ns,
                   sqlock_error *err);

/** Tell whether the server has sent nothing since it was last asked.  When
 *  it does, it says goodbye (F45). */
bool lk_mysql_is_quiet(const struct lk_mysql_connection *connection);

/** Let abort() reach the connection from now on.
 *  @return 0, ERESOURCE, EUNREACHABLE (it was aborted) */
int lk_mysql_set_alarm(struct lk_mysql_connection *connection,
                       sqlock_error *err);

/** End the call in flight, from any thread, at any time:
 *  sqlock_driver.abort. */
void lk_mysql_abort(struct lk_mysql_connection *connection);

/** End abort()'s reach, and make the connection all zero. */
void lk_mysql_clear_alarm(struct lk_mysql_connection *connection);

/** Log in and set the session up.  @return as sqlock_driver.open */
int lk_mysql_connect(struct lk_mysql_connection *connection, const char *url,
                     const sqlock_connect *how, sqlock_error *err);

/** Close the prepared statement with that id, if there is one. */
void lk_mysql_unprepare(struct lk_mysql_connection *connection, uint32_t id);

bool lk_mysql_is_mariadb(MYSQL *mysql);

/** The wait queue: user locks of the server. */
extern const sqlock_wait_queue lk_mysql_wait_queue;

/** The driver's part in transactions of the application. */
extern const sqlock_transactions lk_mysql_transactions;

/** Its statements about stock. */
extern const sqlock_stock_dialect lk_mysql_stock;

/** Run a statement: sqlock_driver.execute. */
int lk_mysql_execute(struct lk_mysql_connection *connection,
                     const sqlock_statement *statement,
                     const sqlock_value *parameters, size_t count,
                     int64_t deadline_ns, sqlock_result *result,
                     sqlock_error *err);

#endif /* LK_MYSQL_CONNECTION_H */
