/*
 * run.h - the parts of `sqlock run`
 *
 *     cmd_run.c     its options
 *     run_loop.c    the main thread: signals, timers, what to do when
 *     run_lease.c   a thread of its own that waits for the lock, renews it and
 *                   gives it back: a database that hangs holds up nothing else
 *     run_child.c   the command: starting it, signalling it, ending it
 *
 * Points in time are CLOCK_BOOTTIME in nanoseconds: it goes on while the
 * machine is suspended, as leases do.
 */
#ifndef SQLOCK_RUN_H
#define SQLOCK_RUN_H

#include "cli.h"

#include <pthread.h>
#include <signal.h>
#include <sys/types.h>

#define RUN_NS_PER_MS ((int64_t)1000000)

typedef struct run_options {
    const char *url;
    const char *name;
    char **command;
    sqlock_options registry;
    int64_t wait_ms;  /* SQLOCK_FOREVER: as long as it takes */
    int64_t grace_ms; /* between TERM and KILL */
    int64_t lead_ms;  /* KILL comes so much before the lease's end */
    int busy_status;
} run_options;

int64_t run_now_ns(void);

/* --------------------------------------------------------------- lease -- */

typedef enum run_lease_state {
    RUN_LEASE_WAITING, /* connecting, or waiting for the lock */
    RUN_LEASE_HELD,
    RUN_LEASE_LOST, /* cannot be renewed any more */
    RUN_LEASE_OVER  /* given back, or never had: the thread has ended */
} run_lease_state;

/* What the thread has to say; a copy. */
typedef struct run_lease_news {
    run_lease_state state;
    int64_t deadline_ns; /* of the lease, while held or lost */
    int64_t token;
    char key[SQLOCK_KEY_SIZE];
    int result;         /* when over: of acquiring, or else of releasing */
    bool was_held;      /* when over: there was something to release */
    sqlock_error error; /* of that result, or of the loss */
} run_lease_news;

typedef struct run_lease {
    const run_options *options;
    int event_fd; /* readable when there is news */
    pthread_t thread;
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t wake;
    bool is_stopping;
    run_lease_news news;
} run_lease;

/** Start the thread.  @return false, having said why */
bool run_lease_start(run_lease *lease, const run_options *options);

/** The latest news. */
void run_lease_read(run_lease *lease, run_lease_news *news);

/** Ask the thread to give the lock back and end; returns at once. */
void run_lease_stop(run_lease *lease);

/** Free everything; the lease is over. */
void run_lease_clear(run_lease *lease);

/* --------------------------------------------------------------- child -- */

typedef struct run_child {
    pid_t pid; /* also its process group; 0: not started */
    bool is_reaped;
    int status;         /* of waitpid(), when reaped */
    bool has_terminal;  /* its group is the terminal's foreground group */
    bool is_stopped;    /* by job control */
    bool has_any_child; /* anything of it is left, as far as we can see */
} run_child;

/** Start the command.  @p mask is the signal mask to give it.
 *  @return CLI_OK, CLI_UNRUNNABLE, CLI_NOT_FOUND, CLI_SYSTEM, having said why */
int run_child_start(run_child *child, const run_options *options,
                    const run_lease_news *lease, const sigset_t *mask);

/** Collect what has ended or stopped; never waits. */
void run_child_reap(run_child *child);

/** Whether a process of its group is left. */
bool run_child_has_group(const run_child *child);

/** Send a signal to the process group. */
void run_child_signal(const run_child *child, int number);

/** Send a signal to everything that descends from the command, as far as it
 *  can be found. */
void run_child_signal_all(const run_child *child, int number);

/** Stop with the command when the terminal's user stopped it. */
void run_child_follow_stop(run_child *child);

/** Let a stopped command go on. */
void run_child_continue(run_child *child);

/** Take the terminal back. */
void run_child_give_up_terminal(run_child *child);

/** The exit status that stands for how it ended. */
int run_child_exit_status(const run_child *child);

/* ---------------------------------------------------------------- loop -- */

/** Wait for the lock, run the command under it.  @return exit status */
int run_loop(const run_options *options);

#endif
