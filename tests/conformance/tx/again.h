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
void counted_close(struct counted *c);

/* Return how many requests there were since the last call. */
unsigned trips(struct counted *c);

/* Change a row of the application's table. */
void change(struct fixture *f, struct app *app);
/* Adopt, guard, change a row and commit; so many times. */
void work(struct fixture *f, struct app *app, sqlock_lock *lock);
void work_often(struct fixture *f, struct app *app, sqlock_lock *lock,
                unsigned times);
/* Assert the round trips of the parts of a guarded transaction. */
void expect_trips(struct counted *c, unsigned adopt, unsigned guard,
                  unsigned commit);

#endif
