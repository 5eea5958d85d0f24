/*
 * demo.h - what the demo's processes share: the settings, and a board in
 * shared memory on which the workers write down what they did
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
    int64_t orders;
    int64_t items;
    uint64_t seed;
    bool keep;
    int64_t quantity;    /* of each item, before the first order */
    char shop_table[48]; /* both names are this program run's own */
    char lock_prefix[48];
    char lock_table[48];
};

/* What the table says after a run, held against what was sold. */
struct tally {
    int64_t final_stock;
    int64_t oversold;     /* units sold that were not there */
    int64_t lost_updates; /* sales that the table does not know */
    int64_t miscounted;   /* units by which the table's stock is wrong */
};

/* One run, in memory shared by all processes. */
struct board {
    pthread_barrier_t ready; /* every worker is connected */
    pthread_barrier_t meet;  /* workers 0 and 1, between read and write */
    int64_t started_ns;
    int64_t finished_ns[CREW_MAX];
    _Atomic int64_t done;
    _Atomic int64_t sold;
    _Atomic int64_t refused;
    bool has_tables; /* to be dropped */
    struct tally tally;
    char server[96];
    _Atomic int64_t units[]; /* sold, by item */
};

struct run {
    const struct settings *settings;
    struct board *board;
    bool is_locked;
};

/** A worker's whole life: a crew_job; @p run is a struct run. */
int worker_run(int index, void *run);

int64_t demo_now_ns(void);

#endif /* DEMO_DEMO_H */
