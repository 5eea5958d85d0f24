/*
 * failover.h - one failover of PostgreSQL under guarded writes of several
 * processes, which note their results in shared memory, to be compared with the
 * tables of the promoted standby
 */
#ifndef TESTS_FAILOVER_H
#define TESTS_FAILOVER_H

#include <sys/types.h>

#include "support/cluster.h"

#define WRITERS 8
#define GRANTS_MAX 20000
#define PREFIX "fo_"

/* The kinds of writes.  Each has a row in the table `counter`, which gives each
 * write its number, in the write's transaction. */
enum lane {
    LANE_WRITERS, /* guarded, under the lock that all writers want */
    LANE_GUARDED, /* guarded, by the paused holder and by the next holder */
    LANE_FENCED,  /* by these two, checked by the token alone */
    LANES
};

struct grant {
    int64_t token;
    int64_t number; /* of the write; 0: none was made */
    enum fate fate; /* of the write */
    bool is_late;   /* the write was on the promoted standby */
};

/* Results, in memory that the test shares with the processes it forks. */
struct notes {
    int64_t port;      /* of the standby that is promoted */
    volatile int over; /* not 0: the writers are to end */
    struct writer {
        volatile unsigned acknowledged;
        volatile unsigned late; /* acknowledged by the promoted standby */
        unsigned refused;       /* calls that failed */
        int last;               /* code of the last call that failed */
        char message[512];
        unsigned count;
        struct grant grants[GRANTS_MAX];
    } writers[WRITERS];
    /* The paused holder, with the codes of its last two writes. */
    struct holder {
        pid_t pid;
        int64_t token;
        int guarded;
        int fenced;
        char message[512];
    } holder;
};

struct notes *notes_make(void);

/* --------------------------------------------------------------- grace.c -- */

/* Make locks with and without grace, which the standby knows, and hold one
 * each. */
void grace_set_up(void);
void grace_hold(void);

void test_F57_without_the_table_two_hold_the_lock(void **state);
void test_F57_a_promoted_standby_grants_nothing_at_first(void **state);

/* ------------------------------------------------------------- cluster.c -- */

extern const struct database *const postgres;

/* Choose the standby that the other functions use. */
void cluster_choose(bool is_synchronous);
bool cluster_is_synchronous(void);

/* Return the variable SQLOCK_TEST_POSTGRES_..._WHAT of that standby; fail the
 * test if it is not set. */
const char *cluster_standby(const char *what);

/* Return a URL that lists the primary and the standby; and one that lists the
 * standby first.  The buffers are static. */
const char *cluster_url(void);
const char *cluster_url_backwards(void);

/* Stop replication to the standby, so that it misses all later commits. */
void cluster_cut_off(void);

/* Kill the primary and its child processes, and keep it from being started
 * again. */
void cluster_kill_primary(void);
void cluster_promote(void);

/* -------------------------------------------------------------- writer.c -- */

/* Fork, and return as fork() does; the child is killed when this process ends.
 * Fails the test if there is no child. */
pid_t writer_fork(void);

/* In a process of its own: acquire, write and release, again and again, until
 * notes->over. */
void writer_run(struct writer *writer, struct notes *notes);

/* In one transaction, increment the lane's counter and insert a row into the
 * table `written`.  The transaction guards the lock's lease; or it is fenced by
 * the counter's row, which remembers the greatest token.  Return the result of
 * the commit, or of the call that failed before. */
int write_guarded(sqlock_registry *registry, sqlock_lock *lock, enum lane lane,
                  const struct notes *notes, struct grant *grant,
                  sqlock_error *err);
int write_fenced(sqlock_registry *registry, const struct notes *notes,
                 int64_t token, const char *owner, sqlock_error *err);

/* -------------------------------------------------------------- holder.c -- */

/* Fork the holder, which acquires a lock with a lease longer than the tests
 * take, and stops itself (SIGSTOP).  Wait until it is stopped; fail the test if
 * it ends. */
void holder_start(struct notes *notes);

/* Let the holder go on until it has made both kinds of writes, LANE_GUARDED and
 * LANE_FENCED, and has stopped itself again. */
void holder_go_on(struct notes *notes);
void holder_end(struct notes *notes);

/* Acquire the paused holder's lock.  A synchronous standby has the lease, which
 * is broken before; an asynchronous one does not have it. */
void test_F57_a_superseded_holder_writes_no_more(void **state);

/* --------------------------------------------------------------- epoch.c -- */

void test_F57_a_new_session_is_no_new_epoch(void **state);
void test_F57_a_promotion_is_reported(void **state);

/* --------------------------------------------------------------- judge.c -- */

extern struct notes *judged;

void test_F57_no_token_is_given_twice(void **state);
void test_F57_acknowledged_writes_are_there(void **state);
void test_F57_no_write_comes_after_its_successors(void **state);

/* Print the totals, and append them as one line to the file SQLOCK_TEST_SUMMARY
 * if that is set. */
void judge_sum_up(void);

#endif
