/*
 * bench.h - declarations shared by the parts of the benchmark
 *
 * A case is one operation that clients repeat.  A slice is a short time in
 * which the clients of one case do so.  Every measured slice runs between two
 * slices of the case's baseline, on the same server.  The result is the ratio
 * to the baseline, which varies far less than absolute numbers do on a machine
 * that other work shares.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "histogram.h"
#include "traffic.h"

#define BENCH_CLIENTS_MAX 256
#define BENCH_COUNTS_MAX 16
#define BENCH_REPEATS_MAX 99
#define BENCH_CASES_MAX 64
#define BENCH_HOLDS_MAX 8

/* The reason why a run ended early, one line; "": none. */
struct bench_failure {
    char text[640];
};

/** Write the reason, unless there is one already.  @return -1 */
int bench_fail(struct bench_failure *failure, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Clients that run at a time: threads of the benchmark, or of processes of
   their own. */
struct bench_clients {
    unsigned count;     /* of all threads */
    unsigned processes; /* 0: the threads are the benchmark's */
};

/* The server a case runs on, and how many clients there are. */
struct bench_target {
    const char *database;     /* "postgres" */
    const char *url;          /* as sqlock takes it */
    const char *lock_prefix;  /* of sqlock's lock table */
    const char *floor_prefix; /* of a table like it, for bare statements */
    const struct floor_driver *floor;
    struct floor_connection *observer; /* to ask the server; a client process
                                          has none */
    pid_t server_pid;                  /* 0: not known */
    unsigned clients;                  /* threads of this process */
    unsigned first;  /* number of the first client: no two processes of the
                         benchmark have clients of one number */
    int64_t hold_ns; /* for how long a lock is held that others wait for */
    bool is_set_up;  /* another process has made the tables and rows */
};

/** A target whose leases do not wait for the disk, on PostgreSQL. */
struct bench_fast {
    struct bench_target target;
    char url[1024];
};
/** Make it of another target, with durability=fast in the URL.
 *  @return 0; -1: the URL does not fit */
int bench_make_fast(struct bench_fast *fast, const struct bench_target *target,
                    struct bench_failure *failure);

/** Return the pool_size of a registry for the clients of @p target: one
 *  connection each, but at most the largest pool_size. */
unsigned bench_pool_size(const struct bench_target *target);

struct bench_case {
    const char *name;
    const char *what;     /* for --help */
    const char *baseline; /* name of the case to compare with */
    bool takes_turns;     /* ratios compare turns (turns.h) */
    bool is_in_process;   /* its clients are threads of this process, also
                             where those of other cases are processes */

    bool is_elsewhere; /* its server is not the database: what that does is
                             not told */
    const char *needs; /* a program; without it the case's group is measured
                             without the case; NULL: none */

    /** Prepare for target->clients clients, and set *state for the functions
     *  below.  `teardown` is called even after a failure. */
    int (*setup)(void **state, const struct bench_target *target,
                 struct bench_failure *failure);

    /** Do what precedes each slice, in the benchmark's own process, and undo it
     *  after the slice; NULL: nothing.  @return 0; -1 with the reason */
    int (*begin)(void *state, struct bench_failure *failure);
    void (*end)(void *state);

    /** Do one operation of one client (0 to clients - 1).  Each client has a
     *  thread of its own, a new one in each slice.  @return 0; -1 with the
     *  reason */
    int (*operation)(void *state, unsigned client,
                     struct bench_failure *failure);

    /** Compare the data in the database at the end with the number of
     *  operations; NULL: there is nothing to compare.  @return 0; -1 with the
     *  reason */
    int (*verify)(void *state, uint64_t operations,
                  struct bench_failure *failure);

    /** Undo setup; NULL is allowed. */
    void (*teardown)(void *state);
};

/* Cases that belong together. */
struct bench_group {
    const char *name;
    const char *what;               /* for --help */
    const struct bench_case *cases; /* the last one has a NULL name */
};

/** All groups; the last one has a NULL name, the first one is the default. */
extern const struct bench_group bench_groups[];

/** Return the group of that name, or NULL. */
const struct bench_group *bench_group_find(const char *name);

/** Return the case of that name, or NULL. */
const struct bench_case *bench_case_find(const char *name);

/** Return whether the program that the case needs is in PATH. */
bool bench_case_is_there(const struct bench_case *the_case);

/* --------------------------------------------------------------- slices -- */

/* The work of the clients in one slice of time. */
struct bench_slice {
    double per_second; /* operations, of all clients together */
    double client_us;  /* CPU time of the clients for each operation */
    double server_us;  /* as client_us, of the server; negative: not known */
    uint64_t operations;
    double turns_per_second; /* see turns.h; 0 if the case takes no turns */
    double variation;        /* see bench_variation() */
    unsigned in_a_row;       /* see turns.h */
    struct bench_traffic traffic;
};

/** Return how much the clients' numbers of operations differ: the standard
 *  deviation divided by the mean. */
double bench_variation(const uint64_t *operations, unsigned count);

/** Return @p us, a CPU time of a slice, divided by its number of operations; or
 *  @p us if there were none. */
double bench_per_operation(double us, const struct bench_slice *slice);

/** Write the turns to the slice, if the case takes turns, and count them from 0
 *  again. */
void bench_slice_turns(struct bench_slice *slice,
                       const struct bench_case *the_case);

/**
 * Let the clients of @p target repeat the case's operation for @p seconds.
 *
 * @param latency every operation's duration is added to it, unless the case has
 *                a count of its own; may be NULL
 * @return 0; -1 with the reason if an operation failed
 */
int bench_slice_run(const struct bench_case *the_case, void *state,
                    const struct bench_target *target, double seconds,
                    struct bench_slice *slice, struct bench_histogram *latency,
                    struct bench_failure *failure);

/* ------------------------------------------------------------- processes -- */

/* Clients that are processes of their own, each with all cases set up. */
struct bench_crew;

/**
 * Start processes of this program, each with its part of @p clients, and have
 * them set up @p cases, which this process has set up before.
 *
 * @param[out] out ended by bench_crew_stop(); NULL on failure
 */
int bench_crew_start(struct bench_crew **out, const struct bench_target *target,
                     const struct bench_clients *clients,
                     const struct bench_case *const *cases, size_t count,
                     struct bench_failure *failure);

/** As bench_slice_run(), for the case at @p index in the `cases` that
 *  bench_crew_start() got. */
int bench_crew_slice(struct bench_crew *crew, size_t index, double seconds,
                     struct bench_slice *slice, struct bench_histogram *latency,
                     struct bench_failure *failure);

/** End the processes and wait for them.  NULL is allowed. */
void bench_crew_stop(struct bench_crew *crew);

/** Run as a client process: obey the messages that come through standard input,
 *  until it is closed.  @return the exit status */
int bench_crew_serve(void);

/* ---------------------------------------------------------------- rounds -- */

struct bench_plan {
    const struct bench_case *cases[BENCH_CASES_MAX]; /* to be reported */
    size_t count;
    double seconds; /* of one slice */
    unsigned repeats;
    double limit; /* in seconds, for each case: no further round is begun */
};

/* A case at one number of clients on one database. */
struct bench_result {
    const char *database;
    struct bench_clients clients;
    const struct bench_case *the_case;
    double hold_ms; /* negative: the case holds no lock that others wait for */
    unsigned repeats; /* rounds that were run */
    double ratios[BENCH_REPEATS_MAX];
    double per_second; /* median */
    double client_us;  /* median */
    double server_us;  /* median; negative: not known */
    double ratio;      /* median */
    double ratio_q1;   /* lower quartile */
    double ratio_q3;   /* upper quartile */
    double ratio_best; /* of the two best slices to the baseline's two best */
    double turns_per_second; /* median */
    double variation;        /* median */
    unsigned in_a_row;       /* the most of all slices */
    uint64_t operations;
    struct bench_traffic traffic; /* of all slices */
    struct bench_histogram latency;
};

/**
 * Run every case of the plan between slices of its baseline.
 *
 * @param clients      as many as target->clients
 * @param[out] results array of plan->count results, in the plan's order
 */
int bench_rounds_run(const struct bench_plan *plan,
                     const struct bench_target *target,
                     const struct bench_clients *clients,
                     struct bench_result *results,
                     struct bench_failure *failure);

/* ---------------------------------------------------------------- report -- */

/* The report's description of a server. */
struct bench_server {
    const char *database;
    char version[160];
    char settings[160]; /* those on which durability depends */
    bool is_durable;
};

struct bench_report {
    const struct bench_plan *plan;
    struct bench_server servers[3];
    size_t server_count;
    struct bench_result *results;
    size_t count;
    bool is_incomplete; /* cases have failed */
};

#define BENCH_CLIENTS_SIZE 24
/** Write the clients as --clients has them, "64", "64p" or "8x8", to @p out.
 *  @return @p out */
const char *bench_clients_text(const struct bench_clients *clients,
                               char out[BENCH_CLIENTS_SIZE]);

/** Print the table's head, or the rows of some results. */
void bench_report_head(void);
void bench_report_rows(const struct bench_result *results, size_t count);

/** Write everything to @p path as JSON. */
int bench_report_json(const struct bench_report *report, const char *path,
                      struct bench_failure *failure);

#endif /* BENCH_BENCH_H */
