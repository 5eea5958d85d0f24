/*
 * demo.h - what the demo's processes share: the settings, the orders, and a
 * board in shared memory on which the workers write down what they did
 */
#ifndef DEMO_DEMO_H
#define DEMO_DEMO_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "crew.h"

struct settings {
    const char *url;
    int processes;
    int threads; /* of each process */
    int64_t orders;
    int64_t items;
    uint64_t seed;
    bool keep_tables;
    char prefix[48]; /* of the tables: this program run's own */
};

/* --------------------------------------------------------------- orders -- */

/* Only orders 0 and 1 want item 0, see nothing.c; many want item 1, the hot
   item. */
enum { HOT_ITEM = 1, LEAST_ITEMS = 3, UNITS_MAX = 5 };

struct order {
    int64_t id;
    int64_t item;
    int64_t units;
    bool is_cancelled; /* after it was done: its units are restored */
};

/** Return the order that comes in at @p position, 0 to settings->orders - 1.
 *  An order that comes in again is the same at each of its positions, and its
 *  id is the first of them. */
struct order order_at(const struct settings *settings, int64_t position);

/** Find the quantity of each item before the first order, which is not quite
 *  enough for all orders.  @param[out] quantities settings->items numbers,
 *  zeroed by the caller */
void order_first_stock(const struct settings *settings, int64_t *quantities);

/* ---------------------------------------------------------------- board -- */

/* The answer to an order. */
enum { NO_ANSWER, DONE, REFUSED };

struct mark {
    atomic_int answer;          /* the first answer to the order */
    atomic_int deducted;        /* how often, repeats not counted */
    atomic_int restored;        /* how often, repeats not counted */
    _Atomic int64_t latency_ns; /* of the order at this position */
};

/* Differences between the table after a run and the workers' answers. */
struct tally {
    int64_t oversold;  /* units sold that were not there */
    int64_t twice;     /* orders deducted, or given back, more than once */
    int64_t lost;      /* units by which the table's stock is wrong */
    int64_t differing; /* orders that were answered in two ways */
};

/* One run, in memory shared by all processes. */
struct board {
    pthread_barrier_t ready; /* every worker is connected */
    pthread_barrier_t meet;  /* orders 0 and 1 of the control, see nothing.c */
    _Atomic int64_t started_ns;
    _Atomic int64_t finished_ns; /* by the last worker */
    _Atomic int64_t answered;    /* positions, so far */
    _Atomic int64_t done;        /* orders deducted, repeats not counted */
    _Atomic int64_t refused;
    _Atomic int64_t retries;
    _Atomic int64_t differing;
    atomic_bool has_failed; /* a worker has failed, and printed why */
    struct tally tally;
    struct mark marks[]; /* indexed by an order's id, or by a position */
};

/* ----------------------------------------------------------------- runs -- */

/* A way to sell, see way.h. */
struct way;

struct run {
    const struct settings *settings;
    const struct way *way;
    struct board *board;
};

/** Run the threads of one process.  A crew_job; @p run is a struct run. */
int worker_run(int index, void *run);

/** Create, fill, check and drop the tables, see tables.c.  Crew_jobs; @p run is
 *  a struct run. */
int tables_create(int index, void *run);
int tables_fill(int index, void *run);
int tables_take_stock(int index, void *run);
int tables_drop(int index, void *run);

/** Print the table of all runs, and the bars below it. */
void report_print(const struct run *runs, int count);

/** Return how many orders a run has deducted per second. */
int64_t report_speed(const struct run *run);

/** Make a directory for an SQLite file.  @return the file's URL; NULL after a
 *  message */
const char *place_make(void);

/** Remove the directory and the files in it. */
void place_remove(void);

int64_t demo_now_ns(void);

#endif /* DEMO_DEMO_H */
