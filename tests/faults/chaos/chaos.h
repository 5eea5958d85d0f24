/*
 * chaos.h - processes that use locks in every way while everything around them
 * fails, and a history of what each of them was told
 *
 * A seed decides what they do, and what fails: the same seed draws the same
 * again, though not at the same moments.
 */
#ifndef TESTS_CHAOS_H
#define TESTS_CHAOS_H

#include <stdatomic.h>
#include <stdio.h>
#include <sys/types.h>

#include "support/fixture.h"
#include "support/proxy.h"

#define PROCESSES 8
#define OWNERS 2 /* threads of a process */
#define LEADERS 3
#define LINES_MAX 60000
#define STOCK_BEGAN 1000000
#define TTL_MS 1300 /* no lease lasts longer */
#define STATEMENT_MS 1000
#define DONE 1    /* rc of a run that found its work done */
#define PROXIES 2 /* process i uses proxy i % PROXIES */
#define SERVERS 3 /* of a quorum: the one that is harmed, and two files */
#define ITEM "item"

/* The locks: two that one has alone or shares, and one with permits, which all
 * want; and those that are taken briefly, again and again. */
#define WANTED 3
#define LOCKS 9
#define PERMITS 3
extern const char *const chaos_locks[LOCKS];

/* The acts of owners, and the harms that are done to processes. */
enum chaos_word {
    ONCE,
    BOTH,
    SELL,
    OBSERVE,
    QUORUM,
    BRIEFLY,
    WANT,
    LEAD,
    KILL, /* the first harm */
    STOP,
    CUT,
    SILENCE,
    AWAY,
    CRASH,
    FORGET,
    STORM,
    FULL,
    SESSIONS,
    EXHAUST,
    STEP,
    PROMOTE,
    WORDS
};
extern const char *const chaos_words[WORDS];

/* A part of what a seed draws: so many processes, and without some acts and
 * harms, a bit each. */
struct scope {
    unsigned processes;
    unsigned without;
};

/* Numbers that follow from a seed. */
struct dice {
    uint64_t state;
};

void dice_begin(struct dice *dice, uint64_t seed, uint64_t of);
/* Return a number below `limit`. */
unsigned dice_below(struct dice *dice, unsigned limit);

/* One line of a history (tests/history/README.md).  Times are CLOCK_BOOTTIME;
 * until `to_ns` is set the call has not returned. */
struct line {
    atomic_bool is_whole; /* all that its call was given is there */
    char verb[12];
    unsigned process, life, owner;
    char lock[16];
    int64_t from_ns;
    _Atomic int64_t to_ns;
    int64_t until_ns;  /* 0: not told */
    int64_t queued_ns; /* when its process had a ticket; 0: not seen */
    int64_t token;     /* 0: not told */
    int64_t wait_ms;   /* -1: not told */
    int weight;        /* -1: not told */
    unsigned number;   /* of a write, an order or a text; 0: not told */
    bool is_watched;   /* asks to be told of a loss */
    bool is_renewed;   /* in the background */
    bool is_part;      /* of a call for several locks, which was refused */
    bool is_fenced;    /* a write that a fence protects, in place of a guard */
    int rc;
};

/* The history of a round, in memory that all of its processes share. */
struct chaos {
    uint64_t seed;
    struct scope scope;
    char path[64];                /* by which others can map this */
    unsigned done[WORDS];         /* of harms: how often */
    struct fixture fixture;       /* url, prefix, names; no open connection */
    char urls[PROXIES][1024];     /* of the processes: through the proxies */
    char files[SERVERS - 1][256]; /* URLs; "": there is no SQLite */
    int64_t ends_ns;
    atomic_uint numbers;
    atomic_uint calls;
    atomic_uint forks;
    atomic_uint count; /* of the lines */
    struct line lines[LINES_MAX];
};

/* Return a new line, which has begun now. */
struct line *chaos_line(struct chaos *chaos, const char *verb, unsigned process,
                        unsigned life, unsigned owner, const char *lock);

/* Add a line about a whole process. */
void chaos_note(struct chaos *chaos, const char *verb, unsigned process,
                unsigned life, int64_t from_ns, int64_t to_ns);
/* Return whether there was a grant and a sale, or whichever of them there may
 * be. */
bool chaos_has_begun(struct chaos *chaos);
bool chaos_leaves_out(const struct chaos *chaos, enum chaos_word word);
/* Return the kind of the cluster (servers/promote.sh); NULL: there is none. */
const char *chaos_cluster(void);
/* Return whether a row lock excludes sessions of all servers: not on Galera. */
bool chaos_can_guard(void);
/* Return whether the server that is promoted may lack commits. */
bool chaos_loses_commits(void);
/* Return whether the round's time is over, or the history is full. */
bool chaos_is_over(struct chaos *chaos);

/* In tables.c: make the tables, print what they have at the end, and drop
 * them. */
void tables_open(struct chaos *chaos, const struct database *database);
void tables_print(struct chaos *chaos, FILE *out);
void tables_drop(struct chaos *chaos);

/* In work.c: be a process until the round is over. */
int work(struct chaos *chaos, unsigned process, unsigned life);
/* When all leases are over: take each lock, which nobody has, and add a line of
 * the leases that are in the table afterwards. */
void work_at_end(struct chaos *chaos);

#define LEAD_NOT_RUN 98 /* the exit status of a process that cannot become it */

/* In lead.c: run `sqlock lead` in place of this process, with `PROGRAM serve
 * PATH NUMBER` as its service; be that service, and return its exit status. */
void lead_become(const struct chaos *chaos, unsigned number);
int lead_serve(const char *path, unsigned number);

/* In nemesis.c: start the processes, and harm them, once there was a grant and
 * a sale, until the round is over; then let each end by itself.  There are no
 * proxies where there is no network, NULL. */
void nemesis_run(struct chaos *chaos, struct proxy *const proxies[PROXIES]);

#endif
