/*
 * play.h - a scene that is being played
 */
#ifndef TESTS_SCENES_PLAY_H
#define TESTS_SCENES_PLAY_H

#include <setjmp.h>

#include "company.h"
#include "result.h"
#include "scene.h"
#include "sqlock/lease.h"
#include "sqlock/operator.h"
#include "support/pooler.h"
#include "support/proxy.h"

#define NAMES_MAX 16
#define PEERS_MAX 4

/* A lock that the scene has named. */
struct named {
    char name[96];
    int64_t token;           /* the greatest that was seen */
    int held[PROCESSES_MAX]; /* acquires not released */
    bool
        is_kept[PROCESSES_MAX]; /* it was not told of a loss, and will not be */
    struct row row;             /* when it was looked at */
};

/* A step that a thread has begun. */
struct begun {
    const struct step *step; /* NULL: it has ended */
    int64_t token;           /* what it acquires has a greater one, or this */
};

/* A Spring service that shares the table. */
struct service {
    char id[16];
    struct sql sql;
};

struct play {
    struct fixture *f;
    const struct step *step; /* for a failure's place */
    const char *file;
    struct company company;
    char folder[64];
    struct begun begun[PROCESSES_MAX][THREADS_MAX];
    struct named names[NAMES_MAX];
    bool somebody_died;
    char lease_id[SQLOCK_LEASE_ID_SIZE]; /* that was told last */
    struct proxy *proxies[SERVERS];      /* NULL: not named yet */
    char servers[SERVERS][1024];         /* URLs; "": it has no table yet */
    struct pooler pooler;                /* its pid is 0: as above */
    bool has_stubs;
    bool has_stock;      /* the application's table */
    bool is_left_out;    /* the scene is not about this database */
    bool is_readonly;    /* the database */
    jmp_buf *escape;     /* where a failure goes instead of ending the test */
    char why[512];       /* that failure */
    struct sql stranger; /* a session with a transaction; or closed */
    struct service services[PEERS_MAX];
};

/* The result of a step. */
struct result {
    int rc;
    const char *message;
    bool is_undecided; /* may be another one soon: try again */
};

/* Play a scene from its first step to its end; fail the test with the file and
 * line of the step that did not go as written. */
void play_scene(struct fixture *f, const struct scene *scene);

/* The pieces of that, for scenes that are not written but made up (random.c):
 * play_step() returns whether the step's result is as expected, and sets
 * *result. */
void play_open(struct play *play, struct fixture *f);
bool play_step(struct play *play, const struct step *step,
               struct result *result);
void play_close(struct play *play);

/* Kill the processes, and end what the stage disturbs. */
void play_abandon(struct play *play);

/* Fail the test at the present step. */
void play_fail(struct play *play, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));

/* Perform a step of a thread, "a.1", or of a process, "a". */
struct result play_thread(struct play *play, const struct step *step);
struct result play_process(struct play *play, const struct step *step);

/* Let a process close its registry and end, or kill it. */
struct result play_end_process(struct play *play, struct process *process);
struct result play_kill(struct play *play, struct process *process);

/* Return whether the actor is the stage's: the network, the database, a
 * stranger, a Spring service, the operator, the table, the time. */
bool stage_has(const char *actor);

/* Perform a step of the stage. */
struct result stage_perform(struct play *play, const struct step *step);

/* Write the URL that a process opens, with the options of that step, to out; of
 * one of several servers. */
const char *stage_url(struct play *play, char out[1024],
                      const struct step *step, int server);

/* Write a statement of the scene to out, with the tables' names for @stock and
 * @locks; return its length. */
size_t stage_statement(struct play *play, char *out, size_t size,
                       const char *statement);

/* Make the application's table, unless it is there; return its name. */
const char *stage_stock(struct play *play);

/* Put an end to all that the stage disturbs. */
void stage_close(struct play *play);

/* Write the name that a lock of the scene has in the database to out. */
const char *play_name(const struct play *play, char out[96], const char *name);

/* Return what is known of a lock of the scene. */
struct named *play_named(struct play *play, const char *name);

#endif
