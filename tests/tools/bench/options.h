/*
 * options.h - the command line of the benchmark
 */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include "bench.h"

enum bench_database {
    BENCH_POSTGRES,
    BENCH_MYSQL,
    BENCH_SQLITE,
    BENCH_DATABASES
};

struct bench_options {
    char *urls[BENCH_DATABASES];        /* NULL: not measured */
    pid_t server_pids[BENCH_DATABASES]; /* 0: not known */
    struct bench_clients clients[BENCH_COUNTS_MAX];
    size_t client_counts;
    struct bench_plan plan;
    double holds_ms[BENCH_HOLDS_MAX]; /* values of bench_target.hold_ns */
    size_t hold_count;
    const char *json; /* NULL: none */
    bool is_help;     /* the help was printed: nothing else to do */
    bool is_serving;  /* run as a client process (processes.c) */
};

/** Return "postgres", "mysql" or "sqlite". */
const char *bench_database_name(enum bench_database database);

/**
 * Read the command line and, if it names no database, the environment.
 *
 * @param[out] out cleared by bench_options_clear(), also after a failure
 */
int bench_options_read(struct bench_options *out, int argc, char **argv,
                       struct bench_failure *failure);

void bench_options_clear(struct bench_options *options);

#endif /* BENCH_OPTIONS_H */
