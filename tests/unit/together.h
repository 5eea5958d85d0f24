/*
 * together.h - threads that send statements together, each about one key, to a
 * database whose answers the tests choose
 *
 * The first statement is held up until others wait.  The connections are
 * SQLite's, on which nothing is sent; without that driver there is no scene.
 */
#ifndef TESTS_UNIT_TOGETHER_H
#define TESTS_UNIT_TOGETHER_H

#include <stdatomic.h>

#include "lease/batch.h"
#include "lease/open.h"
#include "support/workers.h"
#include "support/test.h"

#ifdef SQLOCK_WITH_SQLITE

#define TTL_MS 5000
#define CLAIM SQLOCK_SQL_CLAIM_UNQUEUED
#define RELEASE SQLOCK_SQL_RELEASE_UNQUEUED

/* The keys: each is one of these characters. */
#define KEYS                                                                   \
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&*+-"
#define FIRST '0' /* of the statement that is held up */
#define MEMBERS (sizeof KEYS - 1)

/* A thread that sends a statement about one key. */
struct member {
    struct worker worker;
    struct scene *scene;
    sqlock_statement_kind kind;
    char key[2];
    struct lk_item item;
    struct lk_batch batch;
    struct lk_run run;
    size_t rows;
    int64_t affected;
    int64_t token;
    atomic_bool has_ended;
    int rc;
};

struct scene {
    struct lk_store store;
    char path[64];
    struct member members[MEMBERS];
    size_t count;
};

/* The database was sent this: "claims 01, release 2, ". */
extern char sent[2048];
extern atomic_uint executed;   /* statements that began */
extern atomic_bool is_held;    /* the statement about FIRST waits */
extern atomic_int first_gives; /* the result of the statement about FIRST */
extern atomic_int many_give;   /* of a statement about several */
extern atomic_int many_times;  /* of so many of them; 0: of all */
extern _Atomic(char) taken;    /* no row is returned for that key */

/* Called before and after a test, whose scene this is. */
void open_scene(void);
void close_scene(void);
extern struct scene *stage;
/* Return how many wait for a place. */
unsigned queued(struct scene *scene);
/* Make a member, which begin() lets run. */
struct member *add(struct scene *scene, sqlock_statement_kind kind, char key);
/* Let the first member run, which is held up; or another one, which waits. */
void begin(struct member *member);
/* Make a member, and let it run. */
struct member *add_and_begin(struct scene *scene, sqlock_statement_kind kind,
                             char key);
/* Let a member run, while the first one is held up. */
void run_to_its_end(struct member *member);
/* Claim the keys up to the last one. */
void claim_to(struct scene *scene, char last);
/* Let all go on and end. */
void end_all(struct scene *scene);
/* Assert that the call has changed the row, with the token of its own key. */
void expect_done(const struct member *member);
/* Assert that the row was not changed, so that the caller goes on alone. */
void expect_nothing(const struct member *member);

#endif

#endif
