/*
 * run.h - the parts of `sqlock run`
 *
 *     cmd_run.c  its options run_loop.c  sqlock's main thread: what to do when
 *     run_lease.c  a thread of its own that waits for the lock and gives it
 *                       back: a database that hangs holds up nothing else
 *     run_wait.c        its time: for a holder, for a database that is away
 *     run_say.c         messages while the lock is held: nobody may read them
 *     run_signals.c     the signals that it passes on
 *     run_terminal.c    the terminal and job control, which are sqlock's
 *     run_report.c      --status-fd
 *     run_clock.c       points in time
 *
 *     run_supervisor.c  a process of its own, the command's parent: it ends all
 *                       that descends from the command before the lease does,
 *                       also when sqlock is killed or frozen
 *     run_watcher.c     a process between the two: it ends what is left should
 *                       both be killed
 *     run_link.c        what sqlock and the supervisor say to each other
 *     run_child.c       starting the command
 *     run_family.c      check, signalling and burying all that descends from it
 *     run_cgroup.c      the same by a control group, where we may have one
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

/* A variable: the ids of the leases that are held around a command, the
 * innermost first, with spaces between. */
#define RUN_LEASES "SQLOCK_LEASES"

#include <pthread.h>
#include <signal.h>
#include <sys/types.h>

#include "base/retry.h"
#include "sqlock/lease.h"

#define RUN_NS_PER_MS ((int64_t)1000000)

/* A process that KILL does not end in this time is not ended by anything. */
#define RUN_GIVE_UP_NS (10000 * RUN_NS_PER_MS)

/* While processes are being ended, how often to look what is left of them. */
#define RUN_TICK_NS (20 * RUN_NS_PER_MS)

typedef struct run_options {
    const char *url;
    const char *name;
    char **command;
    sqlock_options registry;
    int64_t wait_ms;     /* SQLOCK_FOREVER: as long as it takes */
    int64_t grace_ms;    /* between TERM and KILL */
    int64_t lead_ms;     /* KILL comes so much before the lease's end */
    int64_t min_hold_ms; /* keep the lock so long at least, after success */
    bool is_fail_fast;   /* an error of the database ends the wait */
    bool is_once;        /* not again after a success */
    bool keeps_daemons;  /* also when told to end */
    int busy_status;
    char *settings[CLI_GLOBALS]; /* for the command's environment; NULL at the
                                    end */
} run_options;

int64_t run_now_ns(void);

/** Let a timerfd of CLOCK_BOOTTIME expire at a point; 0: never. */
void run_set_timer(int timer_fd, int64_t at_ns);

/* -------------------------------------------------------------- report -- */

/* What came of it, for --status-fd. */
typedef struct run_report {
    int fd;            /* -1: nobody wants to know */
    const char *cause; /* one word, listed in the manual */
    bool has_ended;    /* the command ran, and this is its waitpid() status */
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
    RUN_LEASE_LOST, /* cannot be renewed any more */
    RUN_LEASE_OVER  /* given back, or never had: the thread has ended */
} run_lease_state;

/* What the thread has to say; a copy. */
typedef struct run_lease_news {
    run_lease_state state;
    int64_t deadline_ns; /* of the lease, while held or lost */
    int64_t token;
    char key[SQLOCK_KEY_SIZE];
    char client_id[SQLOCK_KEY_SIZE];
    char lease[SQLOCK_LEASE_ID_SIZE];
    char tag[SQLOCK_TAG_SIZE]; /* of the command's sessions, or "" */
    int result;         /* when over: of acquiring, or else of releasing */
    bool was_held;      /* there is, or was, something to release */
    bool is_done;       /* --once: it was done before, or is recorded now */
    bool is_recorded;   /* --once: recording was tried */
    sqlock_error error; /* of that result, of the loss, of the record */
} run_lease_news;

typedef struct run_lease {
    const run_options *options;
    int event_fd; /* readable when there is news */
    int order_fd; /* readable when there is something to do */
    pthread_t thread;
    pthread_mutex_t mutex; /* guards what follows */
    bool is_recording;
    bool is_stopping;
    run_lease_news news;
} run_lease;

/** Start the thread.  @return false, having said why */
bool run_lease_start(run_lease *lease, const run_options *options);

/** Read the latest news of the lease. */
void run_lease_read(run_lease *lease, run_lease_news *news);

/** Ask the thread to record the success (--once); returns at once. */
void run_lease_record(run_lease *lease);

/** Ask the thread to give the lock back and end; returns at once. */
void run_lease_stop(run_lease *lease);

/** Free everything; the lease is over. */
void run_lease_clear(run_lease *lease);

/* ---------------------------------------------------------------- wait -- */

typedef struct run_wait {
    const run_options *options;
    int64_t start_ns;
    int64_t word_ns; /* when to say what is waited for; INT64_MAX: never */
    struct lk_retry retry;
} run_wait;

void run_wait_begin(run_wait *wait, const run_options *options);

bool run_wait_is_over(const run_wait *wait);

/** Tell, after an error, whether to try again, once it has said what is
 *  waited for and has paused. */
bool run_wait_goes_on(run_wait *wait, int rc, const sqlock_error *err);

/** Wait for the lock, kept.  @return as sqlock_acquire() */
int run_wait_acquire(run_wait *wait, sqlock_registry *registry,
                     sqlock_lock *lock, sqlock_error *err);

/** Say who has the lock.  Nothing depends on it: errors are passed over. */
void run_wait_say_holder(const run_options *options, sqlock_registry *registry,
                         bool is_waiting);

/* ---------------------------------------------------------------- say -- */

/** Write a message as cli_note() and cli_info() do, while the lock may be
 *  held: they return after a moment, also when nobody reads stderr.  A
 *  message that finds another one stuck there is not written. */
void run_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
void run_info(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Write a message without waiting at all. @return false: not now, since an
 *  earlier one is not written yet */
bool run_note_at_once(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/* ------------------------------------------------------------- signals -- */

typedef struct run_signals {
    int fd;          /* readable when one has come; -1: none is taken */
    sigset_t before; /* the mask that we began with */
    int serial;      /* of the last one that was passed on */
    int waking;      /* of the last that lets a stopped command go on */
    int ending;      /* of the last that may end it */
} run_signals;

/** Take the signals that are passed on.  They are blocked before any thread
 *  starts, in all of them, and unblocked in the command.  Signals that the
 *  caller ignores (nohup) stay ignored by all. @return false, having said
 *  why */
bool run_signals_block(run_signals *signals);

/** Take a signal that has come. @return its number, or 0 */
int run_signals_take(const run_signals *signals);

/** Tell whether a signal ends a process that does nothing about it. */
bool run_signals_may_end(int number);

/** Tell whether a signal tells sqlock to end. */
bool run_signals_tell_to_end(int number);

/** Give a signal, which is passed on, the next serial. */
void run_signals_count(run_signals *signals, int number);

/** Stop as TSTP would have stopped sqlock, unless nobody could wake it up. */
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
    RUN_READY,   /* the command's process is there, and waits for RUN_GO */
    RUN_REFUSED, /* it cannot be executed: errno */
    RUN_HALTED,  /* it was stopped by job control */
    RUN_ENDED    /* it has ended, and all that had to end with it */
} run_word;

/* Why the supervisor ended the command, and what descended from it. */
typedef enum run_end {
    RUN_END_OWN,  /* it did not: the command ended by itself */
    RUN_END_LEFT, /* nor did it; but it ended what the command left behind */
    RUN_END_TOLD, /* nor did it, but a signal: all that was left is ended */
    RUN_END_LOST,
    RUN_END_DEADLINE,
    RUN_END_ALONE /* sqlock is gone */
} run_end;

typedef struct run_message {
    run_word word;
    int number;          /* SIGNAL; REFUSED: errno; ENDED: of waitpid() */
    run_end why;         /* ENDED */
    pid_t pid;           /* READY */
    int serial;          /* SIGNAL: of this one, from 1; HALTED, ENDED: of the
                            last that came before */
    int64_t deadline_ns; /* START, DEADLINE */
    int64_t token;       /* START */
    char key[SQLOCK_KEY_SIZE];
    char client_id[SQLOCK_KEY_SIZE];
    char lease[SQLOCK_LEASE_ID_SIZE];
    char tag[SQLOCK_TAG_SIZE];
} run_message;

/** Send without waiting.  A full or broken link is found out otherwise. */
void run_link_send(int fd, const run_message *message);

typedef enum run_link_result {
    RUN_LINK_NOTHING,
    RUN_LINK_MESSAGE,
    RUN_LINK_CLOSED
} run_link_result;

/** Receive without waiting. */
run_link_result run_link_receive(int fd, run_message *message);

/* ---------------------------------------------------------- supervisor -- */

/** Fork the supervisor, and the watcher between it and sqlock; @p mask is
 *  the signal mask to give the command. @return sqlock's end of the link, or
 *  -1, having said why */
int run_supervisor_start(const run_options *options, const sigset_t *mask);

/* ------------------------------------------------------------- watcher -- */

/** Make the calling process, a child of @p sqlock, the watcher.  Returns in
 *  a child of it only, which is to be the supervisor and keeps @p link_fd. */
void run_watcher_become(const run_options *options, pid_t sqlock, int link_fd);

/* --------------------------------------------------------------- child -- */

typedef struct run_child {
    pid_t pid;     /* also its process group; 0: not started */
    int gate_fd;   /* one byte lets it go on to execve(); -1: done */
    int report_fd; /* end of file: execve() worked; -1: done */
} run_child;

/* What the command gets in its environment. */
typedef struct run_environment {
    char *set[8];   /* owned */
    char **entries; /* these, and the caller's; NULL at the end */
} run_environment;

/** @param password_variable kept from it, like SQLOCK_URL; may be NULL
 *  @return false: out of memory */
bool run_environment_init(run_environment *made, const run_options *options,
                          const run_message *start,
                          const char *password_variable);
void run_environment_clear(run_environment *made);

/** Fork a process that waits at the gate, in a process group of its own and, if
 *  @p cgroup_fd is not negative, in that control group.
 *  @return 0 or errno */
int run_child_fork(run_child *child, const run_options *options,
                   const run_environment *environment, const sigset_t *mask,
                   int cgroup_fd);

/** Open the gate. */
void run_child_go(run_child *child);

/** End the child if it still waits at the gate. */
void run_child_forget_gate(run_child *child);

/** Read the child's report, once report_fd is readable. @return 0: it was
 *  executed; or why not */
int run_child_read_report(run_child *child);

/* -------------------------------------------------------------- family -- */

/* Everything that descends from the calling process, a subreaper, wherever it
 * has put itself. */

/* No session in particular.  0 is one: that of a leader in another
 * container. */
#define RUN_ANY_SESSION ((pid_t)-1)

/** Collect the processes that have ended. @p child may be 0; what waitpid()
 *  says of it, also of stops, is left in @p status. @return whether any is
 *  left */
bool run_family_reap(pid_t child, int *status, bool *is_told);

/** Send a signal to the processes of @p session, or to all; with signal 0,
 *  to none. @return how many could be reached */
size_t run_family_signal(int number, pid_t session);

/** KILL the processes of @p session, or all, for a moment, and collect those
 *  that have ended, as run_family_reap() does. @return whether any is left */
bool run_family_kill(pid_t session, pid_t child, int *status, bool *is_told);

/* -------------------------------------------------------------- cgroup -- */

typedef struct run_cgroup {
    int dir_fd; /* -1: we have none */
    int parent_fd;
    char name[32];
} run_cgroup;

/** Make a control group below our own, named after sqlock's process; where
 *  that is not allowed, there is none. */
void run_cgroup_make(run_cgroup *group, pid_t sqlock);

/** Find the control group that was made for this sqlock, if there is one. */
void run_cgroup_find(run_cgroup *group, pid_t sqlock);

/** A descriptor to which a process writes "0" to join, or -1; to be closed. */
int run_cgroup_procs(const run_cgroup *group);

/** KILL all processes in the control group. */
void run_cgroup_kill(const run_cgroup *group);

/** Move what is left to our own control group, and remove the command's. */
void run_cgroup_clear(run_cgroup *group);

/* ------------------------------------------------------------ terminal -- */

typedef struct run_terminal {
    pid_t group;    /* the command's; 0: none */
    pid_t anchor;   /* see run_terminal.c; 0: none */
    bool is_given;  /* the command's group has the terminal */
    bool was_given; /* once, at least */
} run_terminal;

/** Give the terminal to the command, whose group is there, if it is ours. */
void run_terminal_begin(run_terminal *terminal, pid_t group);

/** Stop with the command, which was stopped, if a user did that and can wake
 *  us up. */
void run_terminal_follow_stop(run_terminal *terminal);

/** Give the terminal back to the command, which will go on. */
void run_terminal_resume(run_terminal *terminal);

/** Take the terminal back: the command has ended. */
void run_terminal_end(run_terminal *terminal, int wait_status);

/* ---------------------------------------------------------------- loop -- */

/** Wait for the lock, run the command under it.  @return exit status */
int run_loop(const run_options *options, run_report *report);

#endif
