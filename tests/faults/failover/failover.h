/*
 * failover.h - one failover of PostgreSQL under guarded writes of several
 * processes: what they noted down, and what the promoted standby has of it
 */
#ifndef TESTS_FAILOVER_H
#define TESTS_FAILOVER_H

#include <sys/types.h>

#include "support/cluster.h"

#define WRITERS 8
#define GRANTS_MAX 20000
#define PREFIX "fo_"

/* The kinds of writes; each has a counter of its own, which gives the writes
 * their numbers in the same transaction. */
enum lane {
    LANE_WRITERS, /* guarded, under the lock that all writers want */
    LANE_GUARDED, /* by the holder that is paused, and its successor */
    LANE_FENCED,  /* by the same, by the token alone */
    LANES
};

struct grant {
    int64_t token;
    int64_t number; /* of the write, unless there was none */
    enum fate fate; /* of the write */
    bool is_late;   /* the write was on the promoted standby */
};

/* Shared by the processes. */
struct notes {
    int64_t port;      /* of the standby that is promoted */
    volatile int over; /* time to end */
    struct writer {
        volatile unsigned acknowledged;
        volatile unsigned late; /* of these, on the promoted standby */
        unsigned refused;       /* calls that failed */
        int last;               /* code of the last one */
        char message[512];
        unsigned count;
        struct grant grants[GRANTS_MAX];
    } writers[WRITERS];
    /* The codes that a holder got for its last two writes. */
    struct holder {
        pid_t pid;
        int64_t token;
        int guarded;
        int fenced;
        char message[512];
    } holder;
};

struct notes *notes_make(void);

/* ------------------------------------------------------------- cluster.c -- */

extern const struct database *const postgres;

/* Choose the standby that the other functions use. */
void cluster_choose(bool is_synchronous);
bool cluster_is_synchronous(void);

/* A variable SQLOCK_TEST_POSTGRES_... of that standby. */
const char *cluster_standby(const char *what);

/* A URL that names both, and in the other order. */
const char *cluster_url(void);
const char *cluster_url_backwards(void);

/* Cut the standby off, so that it misses what is acknowledged from now on. */
void cluster_cut_off(void);

/* End the primary and its children at once, and keep it from coming back. */
void cluster_kill_primary(void);
void cluster_promote(void);

/* -------------------------------------------------------------- writer.c -- */

/* Fork; the child dies with us. */
pid_t writer_fork(void);

/* A process of its own: take the lock, write, release, until it is over. */
void writer_run(struct writer *writer, struct notes *notes);

/* Count up and write a row in a transaction: of a guarded lease, or with a row
 * that remembers the greatest token.  As sqlock_tx_commit(). */
int write_guarded(sqlock_registry *registry, sqlock_lock *lock, enum lane lane,
                  const struct notes *notes, struct grant *grant,
                  sqlock_error *err);
int write_fenced(sqlock_registry *registry, const struct notes *notes,
                 int64_t token, const char *owner, sqlock_error *err);

/* -------------------------------------------------------------- holder.c -- */

/* Another process takes a lock, for longer than all this takes, and is stopped
 * in the middle of its lease. */
void holder_start(struct notes *notes);

/* Let it go on: it writes both ways, and is stopped again. */
void holder_go_on(struct notes *notes);
void holder_end(struct notes *notes);

/* Take its lock from it: as it is, or by ending its lease. */
void test_F57_a_superseded_holder_writes_no_more(void **state);

/* --------------------------------------------------------------- epoch.c -- */

void test_F57_a_new_session_is_no_new_epoch(void **state);
void test_F57_a_promotion_is_reported(void **state);

/* --------------------------------------------------------------- judge.c -- */

extern struct notes *judged;

void test_F57_no_token_is_given_twice(void **state);
void test_F57_acknowledged_writes_are_there(void **state);
void test_F57_no_write_comes_after_its_successors(void **state);

/* A line of what happened to the file SQLOCK_TEST_SUMMARY, where there is
 * one. */
void judge_sum_up(void);

#endif
