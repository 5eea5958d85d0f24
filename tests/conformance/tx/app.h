/*
 * app.h - an application with its own connection, in its own client library
 *
 * Nothing here goes through the library under test.
 */
#ifndef TESTS_TX_APP_H
#define TESTS_TX_APP_H

#include "support/database.h"

struct app {
    const struct database *database;
    void *native; /* PGconn *, MYSQL *, sqlite3 * */
    long long session;
    unsigned long flags; /* of mysql_real_connect() */
    /* Of the last statement: its text, its error and its first cell. */
    char sql[2048];
    char error[256];
    char first[256];
    bool has_first;
};

/* Fails the test when it cannot connect. */
void app_open(struct app *app, const struct database *database,
              const char *url);
void app_close(struct app *app);
/* On MySQL: one whose server counts the rows that were found. */
void app_open_counting_found(struct app *app, const struct database *database,
                             const char *url);

/* One statement without parameters: 0, or -1 with app->error. */
int app_try(struct app *app, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Run one statement as app_try() does; a failure fails the test. */
#define app_run(app, ...) app_check((app), app_try((app), __VA_ARGS__))
void app_check(struct app *app, int rc);

/* The first cell of the first row; a failure or no row fails the test. */
#define app_integer(app, ...) (app_run((app), __VA_ARGS__), app_number(app))
long long app_number(struct app *app);

#define LEVELS 3
extern const char *const app_levels[LEVELS]; /* of isolation, rising */

/* BEGIN at an isolation level; not on SQLite, which has none. */
void app_begin_at(struct app *app, const char *level);

/* Whether the client library says that a transaction is open. */
bool app_in_transaction(struct app *app);

/* On MySQL: let the client library connect anew by itself, or not. */
void app_reconnect(struct app *app, bool reconnects);

/* Let the client library set the session's character set: UTF-8 or Latin 1. */
void app_set_utf8(struct app *app, bool is_utf8);

/* All settings of the session as one text, to be freed. */
char *app_settings(struct app *app);

/* Its number on the server, 0 on SQLite; also while another thread uses it. */
long long app_session(const struct app *app);

#endif
