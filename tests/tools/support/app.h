/*
 * app.h - an application with its own connection, in its own client library
 *
 * The application's statements do not go through the library under test.
 */
#ifndef TESTS_APP_H
#define TESTS_APP_H

#include "database.h"

struct app {
    const struct database *database;
    void *native; /* PGconn *, MYSQL *, sqlite3 * */
    long long session;
    unsigned long flags; /* of mysql_real_connect() */
    /* text, error and first cell of the last statement */
    char sql[2048];
    char error[256];
    char first[256];
    void *result; /* MYSQL_RES *: not yet read */
    bool has_first;
};

/* Connect; a failure fails the test. */
void app_open(struct app *app, const struct database *database,
              const char *url);
/* Disconnect, unless that was done before. */
void app_close(struct app *app);
/* Connect as app_open() does; on MySQL with CLIENT_FOUND_ROWS, so an UPDATE
 * counts the rows that it finds, not those that it changes. */
void app_open_counting_found(struct app *app, const struct database *database,
                             const char *url);

/* Run one statement without parameters.  Return 0, or -1 with the message in
 * app->error. */
int app_try(struct app *app, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Run one statement as app_try() does; a failure fails the test. */
#define app_run(app, ...) app_check((app), app_try((app), __VA_ARGS__))
void app_check(struct app *app, int rc);

/* Run one statement, and return the first cell of the first row; a failure or
 * no row fails the test. */
#define app_integer(app, ...) (app_run((app), __VA_ARGS__), app_number(app))
long long app_number(struct app *app);

#define LEVELS 3
extern const char *const app_levels[LEVELS]; /* of isolation, rising */

/* Begin a transaction at an isolation level; not on SQLite, which has none. */
void app_begin_at(struct app *app, const char *level);

/* Return whether the client library says that a transaction is open. */
bool app_in_transaction(struct app *app);

/* Let MySQL's client library reconnect by itself, or not. */
void app_reconnect(struct app *app, bool reconnects);

/* Let libpq begin or end its pipeline mode.  Return false if it has none. */
bool app_pipeline(struct app *app, bool begins);

/* Let the client library connect anew, on the same handle; not on SQLite. */
void app_reset(struct app *app);

/* Let MySQL's client library reset the session, which then is as a new one with
 * the same number; or log the same user in again. */
void app_forget(struct app *app, bool logs_in);
/* Let it have another number of the session than the server, as a pooler tells
 * it. */
void app_renumber(struct app *app);
/* Let it send a query, and read the result at last. */
void app_begin_result(struct app *app, const char *sql);
void app_end_result(struct app *app);

/* Let the client library set the session's character set to UTF-8 or Latin 1;
 * not on SQLite. */
void app_set_utf8(struct app *app, bool is_utf8);

/* Return all settings of the session as one text, which the caller frees. */
char *app_settings(struct app *app);
/* Give the session other settings than the default. */
void app_change_settings(struct app *app);

/* Return the session's number on the server, 0 on SQLite.  No I/O: another
 * thread may be using the connection. */
long long app_session(const struct app *app);

#endif
