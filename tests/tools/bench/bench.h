/*
 * bench.h - what the parts of the benchmark share
 *
 * A case is one operation that clients repeat.  Every measured slice of time
 * runs between two slices of the case's baseline, on the same server, and what
 * counts is the ratio: it moves far less than the absolute numbers do on a
 * machine that is shared.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "histogram.h"

#define BENCH_CLIENTS_MAX 256
#define BENCH_COUNTS_MAX 16
#define BENCH_REPEATS_MAX 99
#define BENCH_CASES_MAX 48

/* Why a run ended early: one line. */
struct bench_failure {
    char text[640];
};

/** Say what went wrong, unless something was said before; returns -1. */
int bench_fail(struct bench_failure *failure, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The server a case runs on, and how many clients there are. */
struct bench_target {
    const char *database;     /* "postgres" */
    const char *url;          /* as sqlock takes it */
    const char *lock_prefix;  /* of the table that sqlock uses */
    const char *floor_prefix; /* of a table like it for bare statements */
    const struct floor_driver *floor;
    pid_t server_pid; /* 0: not known */
    unsigned clients; /* threads of this process */
    unsigned first;   /* number of the first of them: more processes of the
                         benchmark have others */
    bool is_set_up;   /* by another process: tables and rows are there */
};

/** Connections of a registry for the clients of @p target: one for each, as far
 *  as a registry has them. */
unsigned bench_pool_size(const struct bench_target *target);

struct bench_case {
    const char *name;
    const char *what;     /* for --help */
    const char *baseline; /* name of the case it is compared with */
    bool takes_turns;     /* what counts are turns of another client */
    bool is_in_process;   /* its clients are threads, also where the others'
                             are processes */

    /** Prepare for target->clients clients.  After a failure teardown is
     *  called all the same. */
    int (*setup)(void **state, const struct bench_target *target,
                 struct bench_failure *failure);

    /** One operation of one client (0 to clients - 1), each in a thread of its
     *  own, not the same in every slice.  @return 0 when it did all it should,
     *  -1 with the reason */
    int (*operation)(void *state, unsigned client,
                     struct bench_failure *failure);

    /** Get the count that replaces operations; NULL: operations count. */
    uint64_t (*count)(void *state);

    /** Hold what the database has at the end against the number of operations
     *  that were counted; NULL: there is nothing to hold. */
    int (*verify)(void *state, uint64_t operations,
                  struct bench_failure *failure);

    /** Undo setup; NULL is allowed. */
    void (*teardown)(void *state);
};

/* Cases that belong together. */
struct bench_group {
    const char *name;
    const char *what;               /* for --help */
    const struct bench_case *cases; /* the last one with a NULL name */
};

/** All groups, the last one with a NULL name; the first is the default. */
extern const struct bench_group bench_groups[];

/** The group of that name, or NULL. */
const struct bench_group *bench_group_find(const char *name);

/** The case of that name, or NULL. */
const struct bench_case *bench_case_find(const char *name);

/* --------------------------------------------------------------- slices -- */

/* The work of the clients in one slice of time. */
struct bench_slice {
    double per_second; /* operations, of all clients together */
    double client_us;  /* CPU of this process per operation, */
    double server_us;  /* and of the server; negative: not known */
    uint64_t operations;
    double
        turns_per_second; /* of another client each; 0 where none are taken */
    double variation;     /* of the clients' operations: deviation by mean */
    unsigned in_a_row;
};

/** How far apart the clients' numbers lie: standard deviation by mean. */
double bench_variation(const uint64_t *operations, unsigned count);

/** CPU of a slice for each operation; without any, all of it. */
double bench_per_operation(double us, const struct bench_slice *slice);

/** Put the turns counted since the last reset into the slice. */
void bench_slice_turns(struct bench_slice *slice,
                       const struct bench_case *the_case);

/**
 * Let the clients of @p target repeat the case's operation for so long.
 *
 * @param latency gets every operation's duration added; may be NULL
 * @return 0, -1 when any operation failed
 */
int bench_slice_run(const struct bench_case *the_case, void *state,
                    const struct bench_target *target, double seconds,
                    struct bench_slice *slice, struct bench_histogram *latency,
                    struct bench_failure *failure);

/* ------------------------------------------------------------- processes -- */

/* Clients that are processes of their own, each with all cases set up. */
struct bench_crew;

/**
 * Start target->clients processes of this program and have them set up
 * @p cases, which this process has set up before.
 *
 * @param[out] out to be given to bench_crew_stop(); NULL on failure
 */
int bench_crew_start(struct bench_crew **out, const struct bench_target *target,
                     const struct bench_case *const *cases, size_t count,
                     struct bench_failure *failure);

/** As bench_slice_run(), of the case at @p index of those they were given. */
int bench_crew_slice(struct bench_crew *crew, size_t index, double seconds,
                     struct bench_slice *slice, struct bench_histogram *latency,
                     struct bench_failure *failure);

/** End them and wait until they are gone.  NULL is allowed. */
void bench_crew_stop(struct bench_crew *crew);

/** A client process's whole life: it is told what to do through standard
 *  input.  @return the exit status */
int bench_crew_serve(void);

/* ---------------------------------------------------------------- rounds -- */

struct bench_plan {
    const struct bench_case *cases[BENCH_CASES_MAX]; /* those to be reported */
    size_t count;
    double seconds; /* of one slice */
    unsigned repeats;
};

/* A case at one number of clients on one database. */
struct bench_result {
    const char *database;
    unsigned clients;
    bool is_processes; /* each of them */
    const struct bench_case *the_case;
    unsigned repeats;
    double ratios[BENCH_REPEATS_MAX];
    double per_second; /* median */
    double client_us;  /* median */
    double server_us;  /* median; negative: not known */
    double ratio;      /* median */
    double ratio_q1;   /* a quarter of the ratios lie below, */
    double ratio_q3;   /* and a quarter above */
    double ratio_best; /* of the two best slices to the baseline's two best */
    double turns_per_second; /* median */
    double variation;        /* median */
    unsigned in_a_row;       /* the most turns of one client */
    uint64_t operations;
    struct bench_histogram latency;
};

/**
 * Run every case of the plan between slices of its baseline.
 *
 * @param is_processes the clients are processes, not threads of this one
 * @param[out] results plan->count of them, in the plan's order
 */
int bench_rounds_run(const struct bench_plan *plan,
                     const struct bench_target *target, bool is_processes,
                     struct bench_result *results,
                     struct bench_failure *failure);

/* ---------------------------------------------------------------- report -- */

/* The report's description of a server. */
struct bench_server {
    const char *database;
    char version[96];
    char settings[160]; /* those that durability depends on */
    bool is_durable;
};

struct bench_report {
    const struct bench_plan *plan;
    struct bench_server servers[3];
    size_t server_count;
    struct bench_result *results;
    size_t count;
};

/** The table's head, and the rows of some results. */
void bench_report_head(void);
void bench_report_rows(const struct bench_result *results, size_t count);

/** Write everything to @p path as JSON. */
int bench_report_json(const struct bench_report *report, const char *path,
                      struct bench_failure *failure);

#endif /* BENCH_BENCH_H */
