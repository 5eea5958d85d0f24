/*
 * fixture.h - a lock table of one layout in one database, two registries on it
 * and a fresh lock name for each test
 */
#ifndef TESTS_FIXTURE_H
#define TESTS_FIXTURE_H

#include "database.h"
#include "sqlock/operator.h"

/* On the four-column layout, the TTL of the Spring peers. */
#define PEER_TTL_MS 400

/* Lease length of the fixture's registries: longer than any test. */
#define LONG_TTL_MS 60000

struct fixture {
    const struct database *database;
    sqlock_layout layout;
    const char *url;
    char prefix[32];
    char table[40];
    sqlock_registry *a;
    sqlock_registry *b;
    struct sql sql;
    char name[64]; /* a lock name that was not used before */
    unsigned serial;
    const void *data;          /* of the test's line in its table */
    sqlock_error err;          /* for the test's calls */
    sqlock_capabilities gives; /* size 0: not known yet */
};

const char *layout_name(sqlock_layout layout);

/* Initialize the fixture and create its table, with that prefix, without
 * opening anything; return a code. */
int fixture_create(struct fixture *fixture, const struct database *database,
                   sqlock_layout layout, const char *prefix);

/* Create the table, and open the registries and the session.  Return 0; or
 * print a message and return -1.  fixture_close() also drops the table. */
int fixture_open(struct fixture *fixture, const struct database *database,
                 sqlock_layout layout);
void fixture_close(struct fixture *fixture);

/* Assert that a call, whose error is in f->err (`f`: the test's fixture),
 * succeeds; or that it returns that code. */
#define assert_ok(call)                                                        \
    (f->err.code = 0, assert_lock_ok((call), &f->err),                         \
     assert_int_equal(f->err.code, 0)) /* it is written on failure only */
#define assert_fails(code, call) assert_code((code), (call), &f->err)

/* Return what the database supports, by sqlock_capabilities_of(), which is
 * called once per fixture. */
sqlock_capabilities fixture_gives(struct fixture *fixture);

/* Make a new name in fixture->name. */
void fixture_next(struct fixture *fixture);

/* Return the options of the fixture's registries. */
sqlock_options fixture_options(const struct fixture *fixture);

/* Open another registry on the table, with these options (NULL: the
 * fixture's); close it with registry_end(). */
sqlock_registry *fixture_registry(struct fixture *fixture,
                                  const sqlock_options *options);
sqlock_registry *fixture_registry_at(struct fixture *fixture, const char *url,
                                     const sqlock_options *options);
/* Open another registry through the tap (tap.h), and then call tap_reset(). */
sqlock_registry *fixture_tapped(struct fixture *fixture,
                                const sqlock_options *options);
/* Open another registry on the table, in that region. */
sqlock_registry *fixture_in_region(struct fixture *fixture, const char *region);
void registry_end(sqlock_registry *registry);

/* The functions down to lock_break() fail the test if they do not succeed. */
sqlock_lock *lock_obtain(sqlock_registry *registry, const char *name);
void lock_drop(sqlock_lock *lock);
#define lock_take(lock, ttl_ms)                                                \
    lock_take_at((lock), (ttl_ms), __FILE__, __LINE__)
void lock_take_at(sqlock_lock *lock, uint32_t ttl_ms, const char *file,
                  int line);
#define lock_give(lock) lock_give_at((lock), __FILE__, __LINE__)
void lock_give_at(sqlock_lock *lock, const char *file, int line);
#define lock_renew(lock, ttl_ms)                                               \
    lock_renew_at((lock), (ttl_ms), __FILE__, __LINE__)
void lock_renew_at(sqlock_lock *lock, uint32_t ttl_ms, const char *file,
                   int line);

/* Acquire and release the lock, which nobody else may hold. */
#define lock_take_and_give(lock)                                               \
    lock_take_and_give_at((lock), __FILE__, __LINE__)
void lock_take_and_give_at(sqlock_lock *lock, const char *file, int line);

/* Assert that an acquire without a wait gives EBUSY. */
#define assert_busy(lock) lock_busy_at((lock), __FILE__, __LINE__)
void lock_busy_at(sqlock_lock *lock, const char *file, int line);

/* Release and drop. */
#define lock_end(lock)                                                         \
    do {                                                                       \
        lock_give(lock);                                                       \
        lock_drop(lock);                                                       \
    } while (0)

/* Break the lease of the lock's holder by sqlock_break(), through fixture->b.
 * The lock becomes free when the lease would have expired; with `now`, at
 * once. */
void lock_break(struct fixture *fixture, sqlock_lock *lock, bool now);

/* Acquire with a wait and a TTL (0: the registry's), and return the code.
 * Workers may call it. */
int lock_try(sqlock_lock *lock, int64_t wait_ms, uint32_t ttl_ms,
             sqlock_error *err);

/* The row of a name as the table has it. */
struct row {
    bool exists;
    char key[SQLOCK_KEY_SIZE];
    char client[SQLOCK_KEY_SIZE]; /* "" for null */
    int64_t created_us;
    int64_t expires_us; /* on four columns: CREATED_DATE and the peers' TTL */
    int64_t fence;      /* 0 where there is no such column */
};
struct row fixture_row(struct fixture *fixture, const char *name);

/* Return whether nobody holds the lock of that name, or it has no row.  One
 * statement reads it, because the row may be deleted at any time. */
bool fixture_is_free(struct fixture *fixture, const char *name);

/* Return whether the server is Oracle's MySQL, not MariaDB. */
bool fixture_is_oracles(struct fixture *fixture);

/* Return how many statements a claim of many locks takes. */
unsigned fixture_claims_of_many(struct fixture *fixture);

/* Return SQL for the holder's CLIENT_ID in a row: null if the lock is free,
 * even where a release leaves the old CLIENT_ID in the column. */
const char *fixture_holder(const struct fixture *fixture);

/* Open a session in *sql, begin a transaction there, and lock the lock's row
 * (NULL: no row), as another program may.  fixture_unlock_row() rolls back and
 * closes the session. */
void fixture_lock_row(struct fixture *fixture, struct sql *sql,
                      const sqlock_lock *lock);
void fixture_unlock_row(struct sql *sql);

/* Wait until the database's clock is past the lease's end in the table. */
void fixture_await_expiry(struct fixture *fixture, const char *name);

/* Change the row of a name so that its lease has expired, without the holder's
 * knowledge; not on the four-column layout. */
void fixture_expire(struct fixture *fixture, const char *name);

/* Move the times of a row by an hour, into the future: so they look from a
 * clock of the database that was set back. */
void fixture_set_back(struct fixture *fixture, const char *key);

/* Delete the row of a name, as a peer may at any time; fail the test if there
 * is none. */
void fixture_delete(struct fixture *fixture, const char *name);

/* Return SQL for a time: the database's present time plus offset_us. */
const char *fixture_time(const struct fixture *fixture, char out[160],
                         int64_t offset_us);

/* Insert a row as another program would (client NULL: free), with times
 * relative to the database's present time. */
void fixture_put_row(struct fixture *fixture, const char *key,
                     const char *region, const char *client,
                     int64_t created_in_us, int64_t expires_in_us);

/* Insert rows as another program would, with the keys "row-00000" and so on,
 * but not in that order: more rows than a page of sqlock_find() has. */
#define FIXTURE_MANY 5100
void fixture_put_many(struct fixture *fixture, const char *region);

void fixture_delete_region(struct fixture *fixture, const char *region);

#endif
