/*
 * floor.h - bare statements, with which sqlock is compared
 *
 * A floor driver uses the same client library as sqlock's driver, on
 * connections of its own, and as directly as possible.  A connection has
 * prepared one UPDATE of one row by its primary key, and repeats it.  Its table
 * has the columns of the lock table, and a row as wide.  Each UPDATE commits by
 * itself, as durably as the server is configured.
 *
 * The case "floor" is two such UPDATEs.  That is less than any lock needs: they
 * change 8 bytes of one column and do not read the clock, and their sessions
 * have the server's defaults and no time limits.  So everything that sqlock
 * adds counts against it in the ratio.
 */
#ifndef BENCH_FLOOR_H
#define BENCH_FLOOR_H

#include "bench.h"

#define FLOOR_REGION "DEFAULT"
#define FLOOR_VALUES_MAX 2
#define FLOOR_CELLS 3
#define FLOOR_CELL_SIZE 160

/* The statements that a connection may prepare. */
enum floor_statement {
    FLOOR_UPDATE, /* of the client's row; the other ones are those of a sale */
    FLOOR_SELECT, /* the only one that returns a row */
    FLOOR_DEDUCT,
    FLOOR_INSERT,
    FLOOR_BEGIN, /* these two where the driver `prepares_all` */
    FLOOR_COMMIT,
    FLOOR_STATEMENTS
};

/* One client library.  Each function returns 0, or -1 with the reason. */
struct floor_driver {
    const char *database; /* as in bench_target */
    const char *begin;    /* begins a transaction that writes */
    const char *locking;  /* the end of a SELECT that locks its row */
    /* of an INSERT that does nothing if the row is there: the verb, the values
     * of two times, and the end */
    const char *insert, *times, *unless;
    const char *places[FLOOR_VALUES_MAX]; /* parameters, such as "$1" */
    bool prepares_all;

    /* Queries of one row: the version, the settings on which durability
     * depends, and 1 if a commit is durable. */
    const char *describe;
    /* Queries whose last cell counts what the server has written to its log,
     * and to its binary log.  NULL: there is none. */
    const char *written, *written_binlog;

    /** Connect.  The caller closes *client by close(), also after a failure. */
    int (*open)(void **client, const char *url, struct bench_failure *failure);
    void (*close)(void *client);

    /** Return the client library's own handle. */
    void *(*native)(void *client);

    int (*prepare)(void *client, enum floor_statement which, const char *text,
                   struct bench_failure *failure);

    /** Execute what is prepared.  Fail unless that writes, or returns, one
     *  row. */
    int (*execute)(void *client, enum floor_statement which,
                   const char *const *values, unsigned count,
                   struct bench_failure *failure);

    /** Run one statement that returns no rows. */
    int (*run)(void *client, const char *text, struct bench_failure *failure);

    /** Run one statement, and write the cells of its first row, "" where there
     *  is none.  @return the number of cells, or -1 */
    int (*row)(void *client, const char *text,
               char cells[FLOOR_CELLS][FLOOR_CELL_SIZE],
               struct bench_failure *failure);
};

/* The members that all drivers have: functions open_DATABASE() and so on. */
#define FLOOR_MEMBERS(name)                                                    \
    .database = #name, .open = open_##name, .close = close_##name,             \
    .native = native_##name, .prepare = prepare_##name,                        \
    .execute = execute_##name, .run = run_##name, .row = row_##name

extern const struct floor_driver floor_postgres;
extern const struct floor_driver floor_mysql;
extern const struct floor_driver floor_sqlite;

/** Return the floor driver of a database, or NULL. */
const struct floor_driver *floor_driver_find(const char *database);

struct floor_connection {
    const struct floor_driver *driver; /* NULL: it was not opened */
    void *client;
    char key[37]; /* of its row */
};

/** Connect client @p number, insert its row and prepare the UPDATE.  The caller
 *  closes it by floor_close(), also after a failure.  @return 0; -1 with the
 *  reason, as the others */
int floor_open(struct floor_connection *connection,
               const struct bench_target *target, unsigned number,
               struct bench_failure *failure);
void floor_close(struct floor_connection *connection);

/** Run one autocommit UPDATE of the client's row. */
int floor_update(struct floor_connection *connection,
                 struct bench_failure *failure);

int floor_begin(struct floor_connection *connection,
                struct bench_failure *failure);
int floor_commit(struct floor_connection *connection,
                 struct bench_failure *failure);

/** Prepare, or run, a statement that is written as by printf(). */
int floor_prepare(struct floor_connection *connection,
                  enum floor_statement which, struct bench_failure *failure,
                  const char *format, ...)
    __attribute__((format(printf, 4, 5)));
int floor_run(struct floor_connection *connection,
              struct bench_failure *failure, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** Execute what is prepared, with a value, or without one (NULL). */
int floor_execute(struct floor_connection *connection,
                  enum floor_statement which, const char *value,
                  struct bench_failure *failure);

/** Run one query, and write the number in the last cell of its row. */
int floor_number(struct floor_connection *connection, const char *text,
                 int64_t *number, struct bench_failure *failure);

/* A connection for each client of a case. */
struct floor_clients {
    unsigned count;
    struct floor_connection client[BENCH_CLIENTS_MAX];
};

int floor_clients_open(struct floor_clients *clients,
                       const struct bench_target *target,
                       struct bench_failure *failure);
void floor_clients_close(struct floor_clients *clients);

#endif /* BENCH_FLOOR_H */
