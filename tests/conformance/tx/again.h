/*
 * again.h - an application that adopts one connection again and again, behind a
 * proxy that counts its requests
 */
#ifndef TESTS_TX_AGAIN_H
#define TESTS_TX_AGAIN_H

#include "suite.h"
#include "support/proxy.h"

struct counted {
    struct fixture *f;
    struct proxy *proxy;
    struct app app;
    sqlock_lock *lock;
    unsigned before;
};

/* Connect through a proxy, and take a lock of fixture->a. */
void counted_open(struct fixture *f, struct counted *c);
/* As counted_open(), of a connection whose session stays its own: the library
 * prepares nothing in one that a pooler lends. */
void counted_open_own(struct fixture *f, struct counted *c);
/* As counted_open_own(), on MariaDB, which keeps the statements of the library;
 * on Oracle's MySQL the test is skipped.  The registry has asked already
 * whether that is a cluster. */
void counted_open_mariadb(struct fixture *f, struct counted *c);
/* As counted_open_mariadb(), and work() three times: the next adoption is one
 * block of statements, and the row's value is 103. */
void counted_open_known(struct fixture *f, struct counted *c);
void counted_close(struct counted *c);

/* Return how many statements the session was asked to prepare by a name. */
long long prepared_by_name(struct app *app);

/* Take a second lock, of that registry.  The test ends it by lock_end(). */
sqlock_lock *take_other(struct fixture *f, sqlock_registry *registry);
/* Take the lock again, whose lease was lost. */
void take_anew(struct counted *c);

/* Return how many requests there were since the last call. */
unsigned trips(struct counted *c);

/* Change a row of the application's table. */
void change(struct fixture *f, struct app *app);
/* Adopt, guard, change a row and commit; so many times. */
void work(struct fixture *f, struct app *app, sqlock_lock *lock);
void work_often(struct fixture *f, struct app *app, sqlock_lock *lock,
                unsigned times);
/* Adopt the connection, and guard by the lock. */
sqlock_tx *tx_guarded(struct counted *c);
/* Assert that the commit succeeds, or that it finds the lease lost. */
void commit_guarded(struct counted *c, sqlock_tx *tx, bool is_lost);
/* Assert the round trips of the parts of a guarded transaction. */
void expect_trips(struct counted *c, unsigned adopt, unsigned guard,
                  unsigned commit);

#endif
