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

/* Item 0 is for the control alone, see nothing.c; item 1 is the hot one. */
enum { HOT_ITEM = 1, LEAST_ITEMS = 3, UNITS_MAX = 5 };

struct order {
    int64_t id;
    int64_t item;
    int64_t units;
    bool is_cancelled; /* after it was done, and the units are back then */
};

/** The order at @p position of those that come in, 0 to settings->orders - 1.
 *  Some come in twice: at two positions is then the same one, and its id is the
 *  first of them. */
struct order order_at(const struct settings *settings, int64_t position);

/** Of each item, what is there before the first order: not quite enough for all
 *  of them.  @param[out] quantities settings->items of them, zeroed */
void order_first_stock(const struct settings *settings, int64_t *quantities);

/* ---------------------------------------------------------------- board -- */

/* The answer to an order. */
enum { NO_ANSWER, DONE, REFUSED };

struct mark {
    atomic_int answer;          /* the first one */
    atomic_int deducted;        /* how often as something new */
    atomic_int restored;        /* how often as something new */
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
    pthread_barrier_t meet;  /* the control's first two, see nothing.c */
    _Atomic int64_t started_ns;
    _Atomic int64_t finished_ns; /* by the last one */
    _Atomic int64_t answered;    /* orders at all positions, so far */
    _Atomic int64_t done;        /* deducted, as something new */
    _Atomic int64_t refused;
    _Atomic int64_t retries;
    _Atomic int64_t differing;
    atomic_bool has_failed; /* a worker, which has said why */
    struct tally tally;
    struct mark marks[]; /* of each order by its id, and of each position */
};

/* ----------------------------------------------------------------- runs -- */

/* A way to sell, see way.h. */
struct way;

struct run {
    const struct settings *settings;
    const struct way *way;
    struct board *board;
};

/** A process's whole life: a crew_job; @p run is a struct run. */
int worker_run(int index, void *run);

/** Crew_jobs around the runs, see tables.c; @p run is a struct run. */
int tables_create(int index, void *run);
int tables_fill(int index, void *run);
int tables_take_stock(int index, void *run);
int tables_drop(int index, void *run);

/** The table of all runs, and the bars below it. */
void report_print(const struct run *runs, int count);

/** Orders of a run that were deducted, per second. */
int64_t report_speed(const struct run *run);

/** Where an SQLite file can be for as long as the program runs: its URL.
 *  @return NULL after having said why; place_remove() must follow */
const char *place_make(void);
void place_remove(void);

int64_t demo_now_ns(void);

#endif /* DEMO_DEMO_H */
