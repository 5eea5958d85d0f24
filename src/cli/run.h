/*
 * run.h - the parts of `sqlock run`
 *
 *     cmd_run.c         its options
 *     run_loop.c        sqlock's main thread: decides what to do when
 *     run_lease.c       a thread that waits for the lock and releases it, so
 *                       that a database that hangs blocks nothing else
 *     run_wait.c        how long to wait for a holder, or for a database that
 *                       is away
 *     run_say.c         messages while the lock is held: stderr may block
 *     run_signals.c     the signals that are passed on
 *     run_terminal.c    the terminal and job control, which are sqlock's
 *     run_report.c      --status-fd
 *     run_clock.c       points in time
 *
 *     run_supervisor.c  a process, the command's parent: it ends all
 *                       descendants of the command before the lease ends, even
 *                       if sqlock is killed or stopped
 *     run_watcher.c     a process between the two: it ends what is left if both
 *                       are killed
 *     run_link.c        messages between sqlock and the supervisor
 *     run_child.c       starts the command
 *     run_family.c      finds, signals and collects all descendants
 *     run_cgroup.c      does so by a control group, where that is allowed
 *
 * The supervisor is forked before there is a thread, a connection or a secret
 * that it could inherit.
 *
 * Points in time are CLOCK_BOOTTIME in nanoseconds: it goes on while the
 * machine is suspended, as leases do.
 */
#ifndef SQLOCK_RUN_H
#define SQLOCK_RUN_H

#include "cli.h"

/* Environment variable: the ids of the leases that are held around a command,
 * innermost first, separated by spaces. */
#define RUN_LEASES "SQLOCK_LEASES"

#include <pthread.h>
#include <signal.h>
#include <sys/types.h>

#include "base/retry.h"
#include "sqlock/lease.h"

#define RUN_NS_PER_MS ((int64_t)1000000)

/* A process that KILL does not end in this time cannot be ended. */
#define RUN_GIVE_UP_NS (10000 * RUN_NS_PER_MS)

/* While processes are being ended, how often to check which are left. */
#define RUN_TICK_NS (20 * RUN_NS_PER_MS)

typedef struct run_options {
    const char *url;
    const char *name;
    char **command;
    sqlock_options registry;
    int64_t wait_ms;  /* SQLOCK_FOREVER: without a limit */
    int64_t grace_ms; /* between TERM and KILL */
    int64_t lead_ms;  /* send KILL this long before the lease's end */
    /* after success, keep the lock at least this long */
    int64_t min_hold_ms;
    bool is_fail_fast;  /* a database error ends the wait */
    bool is_once;       /* do not run again after a success */
    bool keeps_daemons; /* even when told to end */
    int busy_status;
    char *settings[CLI_GLOBALS]; /* for the command's environment; NULL at the
                                    end */
} run_options;

int64_t run_now_ns(void);

/** Let a timerfd of CLOCK_BOOTTIME expire at a point; 0: never. */
void run_set_timer(int timer_fd, int64_t at_ns);

/* -------------------------------------------------------------- report -- */

/* The outcome, for --status-fd. */
typedef struct run_report {
    int fd;            /* -1: not requested */
    const char *cause; /* one word, listed in the manual */
    bool has_ended;    /* the command ran, with this waitpid() status */
    int wait_status;
    int64_t token; /* 0: the lock was never ours */
    char key[SQLOCK_KEY_SIZE];
    char client_id[SQLOCK_KEY_SIZE];
} run_report;

/** Write that the lock is held, as one line of JSON, if the pipe takes it at
 *  once. */
void run_report_grant(const run_report *report, const run_options *options);

/** Write the outcome and the exit status, as one line of JSON.  Once. */
void run_report_write(run_report *report, const run_options *options,
                      int status);

/* --------------------------------------------------------------- lease -- */

typedef enum run_lease_state {
    RUN_LEASE_WAITING, /* connecting, or waiting for the lock */
    RUN_LEASE_HELD,
    RUN_LEASE_LOST, /* it can no longer be renewed */
    RUN_LEASE_OVER  /* released, or never held: the thread has ended */
} run_lease_state;

/* The state of the lease, copied from the thread. */
typedef struct run_lease_news {
    run_lease_state state;
    int64_t deadline_ns; /* of the lease, while held or lost */
    int64_t token;
    char key[SQLOCK_KEY_SIZE];
    char client_id[SQLOCK_KEY_SIZE];
    char lease[SQLOCK_LEASE_ID_SIZE];
    char tag[SQLOCK_TAG_SIZE]; /* of the command's sessions, or "" */
    int result;       /* when over: result of acquiring, or else of releasing */
    bool was_held;    /* there is, or was, a lease to release */
    bool is_done;     /* --once: it was done before, or has been recorded */
    bool is_recorded; /* --once: recording was tried */
    sqlock_error error; /* of that result, of the loss, or of recording */
} run_lease_news;

typedef struct run_lease {
    const run_options *options;
    int event_fd; /* readable when the state has changed */
    int order_fd; /* readable when there is an order */
    pthread_t thread;
    pthread_mutex_t mutex; /* guards what follows */
    bool is_recording;
    bool is_stopping;
    run_lease_news news;
} run_lease;

/** Start the thread.  @return false, after a message */
bool run_lease_start(run_lease *lease, const run_options *options);

/** Read the present state of the lease. */
void run_lease_read(run_lease *lease, run_lease_news *news);

/** Ask the thread to record the success (--once); returns at once. */
void run_lease_record(run_lease *lease);

/** Ask the thread to release the lock and end; returns at once. */
void run_lease_stop(run_lease *lease);

/** Free everything; the lease is over. */
void run_lease_clear(run_lease *lease);

/* ---------------------------------------------------------------- wait -- */

typedef struct run_wait {
    const run_options *options;
    int64_t start_ns;
    /* when to report what is waited for; INT64_MAX: never */
    int64_t word_ns;
    struct lk_retry retry;
} run_wait;

void run_wait_begin(run_wait *wait, const run_options *options);

bool run_wait_is_over(const run_wait *wait);

/** Decide after an error whether to try again, after reporting what is waited
 *  for and a pause. */
bool run_wait_goes_on(run_wait *wait, int rc, const sqlock_error *err);

/** Wait for the lock, and have it renewed.  @return as sqlock_acquire() */
int run_wait_acquire(run_wait *wait, sqlock_registry *registry,
                     sqlock_lock *lock, sqlock_error *err);

/** Report who has the lock.  Nothing depends on it: errors are ignored. */
void run_wait_say_holder(const run_options *options, sqlock_registry *registry,
                         bool is_waiting);

/* ---------------------------------------------------------------- say -- */

/** Write a message as cli_note() and cli_info() do, while the lock may be held:
 *  they return after a moment, or a second if the machine is busy, even if
 *  stderr blocks.  A message is dropped while an earlier one is blocked. */
void run_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
void run_info(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Write a message without waiting.  @return false: an earlier message is still
 *  being written */
bool run_note_at_once(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/* ------------------------------------------------------------- signals -- */

typedef struct run_signals {
    int fd;          /* readable when a signal has come; -1: none is handled */
    sigset_t before; /* the initial mask */
    int serial;      /* of the last signal passed on */
    int waking;      /* of the last one that continues a stopped command */
    int ending;      /* of the last one that may end it */
} run_signals;

/** Take over the signals that are passed on.  They are blocked before any
 *  thread starts, and unblocked in the command.  Signals that the caller
 *  ignores (nohup) stay ignored by all.  @return false, after a message */
bool run_signals_block(run_signals *signals);

/** Take a signal that has come.  @return its number, or 0 */
int run_signals_take(const run_signals *signals);

/** Tell whether a signal ends a process by default. */
bool run_signals_may_end(int number);

/** Tell whether a signal tells sqlock to end. */
bool run_signals_tell_to_end(int number);

/** Give a signal that is passed on the next serial number. */
void run_signals_count(run_signals *signals, int number);

/** Stop as TSTP would have stopped sqlock, unless nothing could continue it. */
void run_signals_stop(void);

/** End as the signal would have ended sqlock. */
_Noreturn void run_signals_die_of(const run_signals *signals, int number);

void run_signals_clear(const run_signals *signals);

/* ---------------------------------------------------------------- link -- */

typedef enum run_word {
    /* to the supervisor */
    RUN_START,    /* the lock is ours: prepare the command */
    RUN_GO,       /* let the command begin */
    RUN_DEADLINE, /* the lease was renewed */
    RUN_SIGNAL,   /* pass this signal on */
    RUN_STOP,     /* the lease is lost: end everything */
    /* from the supervisor */
    RUN_READY,   /* the command's process exists, and waits for RUN_GO */
    RUN_REFUSED, /* it cannot be executed: errno */
    RUN_HALTED,  /* it was stopped by job control */
    RUN_ENDED    /* the command has ended, and all that had to end with it */
} run_word;

/* Why the supervisor ended the command and its descendants. */
typedef enum run_end {
    RUN_END_OWN, /* it did not: the command ended by itself */
    /* it did not, but it ended what the command left behind */
    RUN_END_LEFT,
    RUN_END_TOLD, /* a signal did; all that was left is ended */
    RUN_END_LOST,
    RUN_END_DEADLINE,
    RUN_END_ALONE /* sqlock is gone */
} run_end;

typedef struct run_message {
    run_word word;
    int number;  /* SIGNAL; REFUSED: errno; ENDED: of waitpid() */
    run_end why; /* ENDED */
    pid_t pid;   /* READY */
    /* SIGNAL: its own, from 1; HALTED, ENDED: that of the last signal before */
    int serial;
    int64_t deadline_ns; /* START, DEADLINE */
    int64_t token;       /* START */
    char key[SQLOCK_KEY_SIZE];
    char client_id[SQLOCK_KEY_SIZE];
    char lease[SQLOCK_LEASE_ID_SIZE];
    char tag[SQLOCK_TAG_SIZE];
} run_message;

/** Send without waiting.  A full or broken link is detected elsewhere. */
void run_link_send(int fd, const run_message *message);

typedef enum run_link_result {
    RUN_LINK_NOTHING,
    RUN_LINK_MESSAGE,
    RUN_LINK_CLOSED
} run_link_result;

/** Receive without waiting. */
run_link_result run_link_receive(int fd, run_message *message);

/* ---------------------------------------------------------- supervisor -- */

/** Fork the supervisor, and the watcher between it and sqlock; the command gets
 *  the signal mask @p mask.  @return sqlock's end of the link, or -1 after a
 *  message */
int run_supervisor_start(const run_options *options, const sigset_t *mask);

/* ------------------------------------------------------------- watcher -- */

/** Make the calling process, a child of @p sqlock, the watcher.  Returns only
 *  in a child of it, which becomes the supervisor and keeps @p link_fd. */
void run_watcher_become(const run_options *options, pid_t sqlock, int link_fd);

/* --------------------------------------------------------------- child -- */

typedef struct run_child {
    pid_t pid;     /* also its process group; 0: not started */
    int gate_fd;   /* one byte lets it go on to execve(); -1: done */
    int report_fd; /* end of file: execve() worked; -1: done */
} run_child;

/* The environment of the command. */
typedef struct run_environment {
    char *set[8];   /* owned */
    char **entries; /* these and the caller's, ending with NULL */
} run_environment;

/** @param password_variable removed from it, like SQLOCK_URL; may be NULL
 *  @return false: out of memory */
bool run_environment_init(run_environment *made, const run_options *options,
                          const run_message *start,
                          const char *password_variable);
void run_environment_clear(run_environment *made);

/** Fork a process that waits at the gate, in a process group of its own and, if
 *  @p cgroup_fd is not negative, in that control group.  @return 0 or errno */
int run_child_fork(run_child *child, const run_options *options,
                   const run_environment *environment, const sigset_t *mask,
                   int cgroup_fd);

/** Open the gate. */
void run_child_go(run_child *child);

/** End the child if it still waits at the gate. */
void run_child_forget_gate(run_child *child);

/** Read the child's report, once report_fd is readable.  @return 0: the command
 *  was executed; otherwise errno */
int run_child_read_report(run_child *child);

/* -------------------------------------------------------------- family -- */

/* All descendants of the calling process, a subreaper, in whatever session or
 * process group. */

/* Any session.  0 is a session: that of a leader in another container. */
#define RUN_ANY_SESSION ((pid_t)-1)

/** Collect the processes that have ended.  @p child may be 0; its waitpid()
 *  status, also of a stop, is stored in @p status.  @return whether any is
 * left */
bool run_family_reap(pid_t child, int *status, bool *is_told);

/** Send a signal to the processes of @p session, or to all; signal 0: to none.
 *  @return how many were reached */
size_t run_family_signal(int number, pid_t session);

/** KILL the processes of @p session, or all, for a moment, and collect those
 *  that have ended, as run_family_reap() does.  @return whether any is left */
bool run_family_kill(pid_t session, pid_t child, int *status, bool *is_told);

/* -------------------------------------------------------------- cgroup -- */

typedef struct run_cgroup {
    int dir_fd; /* -1: there is none */
    int parent_fd;
    char name[32];
} run_cgroup;

/** Make a control group below our own, named after sqlock's process, if that is
 *  allowed. */
void run_cgroup_make(run_cgroup *group, pid_t sqlock);

/** Find the control group of that sqlock process, if there is one. */
void run_cgroup_find(run_cgroup *group, pid_t sqlock);

/** Return a descriptor to which a process writes "0" to join the group, or -1;
 *  close it. */
int run_cgroup_procs(const run_cgroup *group);

/** KILL all processes in the control group. */
void run_cgroup_kill(const run_cgroup *group);

/** Move the remaining processes to our own control group, and remove the
 *  command's. */
void run_cgroup_clear(run_cgroup *group);

/* ------------------------------------------------------------ terminal -- */

typedef struct run_terminal {
    pid_t group;    /* the command's; 0: none */
    pid_t anchor;   /* see run_terminal.c; 0: none */
    bool is_given;  /* the command's group has the terminal */
    bool was_given; /* at least once */
} run_terminal;

/** Give the terminal, if it is ours, to the command's group. */
void run_terminal_begin(run_terminal *terminal, pid_t group);

/** Stop together with the command, if a user stopped it and can continue us. */
void run_terminal_follow_stop(run_terminal *terminal);

/** Give the terminal back to the command, which will continue. */
void run_terminal_resume(run_terminal *terminal);

/** Take the terminal back after the command has ended. */
void run_terminal_end(run_terminal *terminal, int wait_status);

/* ---------------------------------------------------------------- loop -- */

/** Wait for the lock and run the command under it.  @return the exit status */
int run_loop(const run_options *options, run_report *report);

#endif
