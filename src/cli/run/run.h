/*
 * run.h - declarations that the files of this room share; README.md draws how
 * the processes work together
 *
 * Points in time are CLOCK_BOOTTIME in nanoseconds: it goes on while the
 * machine is suspended, as leases do.
 */
#ifndef SQLOCK_RUN_H
#define SQLOCK_RUN_H

#include "cli/cli.h"

/* Environment variable: the ids of the leases that are held around a command,
 * innermost first, separated by spaces. */
#define RUN_LEASES "SQLOCK_LEASES"

#include <pthread.h>
#include <signal.h>
#include <sys/types.h>

#include "base/retry.h"
#include "sqlock/lease.h"

#define RUN_NS_PER_MS ((int64_t)1000000)

/* A process that has not ended this long after KILL is not waited for any
 * longer. */
#define RUN_GIVE_UP_NS (10000 * RUN_NS_PER_MS)

/* While processes are being ended, how often to check which are left. */
#define RUN_TICK_NS (20 * RUN_NS_PER_MS)

typedef struct run_options {
    const char *url;
    const char *name;
    const char *const *command;
    sqlock_options registry;
    int64_t wait_ms;  /* SQLOCK_FOREVER: without a limit */
    int64_t grace_ms; /* between TERM and KILL */
    int64_t lead_ms;  /* send KILL this long before the lease's end */
    /* after success, keep the lock until it was held this long */
    int64_t min_hold_ms;
    bool is_fail_fast;  /* a database error ends the wait */
    bool is_once;       /* do not run again after a success */
    bool keeps_daemons; /* leave daemons alone even when told to end */
    int busy_status;
    /* for the command's environment; NULL at the end */
    char *settings[CLI_SETTINGS + 1];
} run_options;

int64_t run_now_ns(void);

/** Let a timerfd of CLOCK_BOOTTIME expire at a point in time, at once if that
 *  is past; 0: never. */
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

/** Write the outcome and the exit status, as one line of JSON, and close the
 *  descriptor: another call does nothing.  May block until the line is read. */
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
    int result;    /* when over: of acquiring or, after success, releasing */
    bool was_held; /* there is, or was, a lease to release */
    bool is_done;  /* --once: the work is recorded as done */
    int64_t done_at_us; /* --once: when it was, before; 0: not known */
    bool is_recorded;   /* --once: recording was tried */
    sqlock_error error; /* of `result`, of the loss, or of recording */
} run_lease_news;

typedef struct run_lease {
    const run_options *options;
    int event_fd; /* readable when the state has changed */
    int order_fd; /* readable when the thread is to record or to stop */
    pthread_t thread;
    pthread_mutex_t mutex; /* guards the fields below */
    bool is_recording;
    bool is_stopping;
    run_lease_news news;
    char obstacle[200]; /* why renewals failed last; "": they have not */
} run_lease;

/** Start the thread, which uses @p options until it ends.  @return false, after
 *  a message */
bool run_lease_start(run_lease *lease, const run_options *options);

/** Copy the present state of the lease to @p news, and reset event_fd. */
void run_lease_read(run_lease *lease, run_lease_news *news);

/** Ask the lease's thread to record the success (--once), and return at once.
 *  After the attempt event_fd is readable, news.is_recorded is set, and
 *  news.is_done says whether it succeeded. */
void run_lease_record(run_lease *lease);

/** Ask the lease's thread to release the lock and end, and return at once.
 *  When that is done, event_fd is readable and the state is RUN_LEASE_OVER. */
void run_lease_stop(run_lease *lease);

/** Wait for the thread's end, and free everything.  Call it when the lease is
 *  over. */
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

/** Decide after an error whether to try again.  If so, report what is waited
 *  for, when that is due, and pause.  @return true: try again now */
bool run_wait_goes_on(run_wait *wait, int rc, const sqlock_error *err);

/** Acquire the lock, to be renewed in the background; while waiting, report
 *  what is waited for.  @return as sqlock_acquire() */
int run_wait_acquire(run_wait *wait, sqlock_registry *registry,
                     sqlock_lock *lock, sqlock_error *err);

/** Report who has the lock, and with @p is_waiting that sqlock waits.  Errors
 *  are ignored, since nothing depends on the report. */
void run_wait_say_holder(const run_options *options, sqlock_registry *registry,
                         bool is_waiting);

/* ---------------------------------------------------------------- say -- */

/** Write a message as cli_note() and cli_info() do, while the lock may be held.
 *  Return when the message is written, or after a moment (a second on a busy
 *  machine) if stderr blocks.  If an earlier message still blocks then, drop
 *  this one. */
void run_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
void run_info(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Let a thread write a message, as cli_note() does, without waiting for it.
 *  @return false: dropped, because an earlier message is still being written or
 *  no thread can be started */
bool run_note_at_once(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/* ------------------------------------------------------------- signals -- */

typedef struct run_signals {
    int fd;          /* readable when a signal has come; -1: none is handled */
    sigset_t before; /* the signal mask before run_signals_block() */
    /* serial numbers, from 1; 0: there was no such signal */
    int serial; /* the last signal passed on */
    int waking; /* the last one that continues a stopped command */
    int ending; /* the last one that may end the command */
} run_signals;

/** Block the signals that sqlock passes on to the command, to receive them from
 *  signals->fd.  Call it before any thread starts; the command gets the mask
 *  signals->before.  Signals that sqlock's parent process made it ignore
 *  (nohup) stay ignored, also by the command.  @return false, after a
 *  message */
bool run_signals_block(run_signals *signals);

/** Take a signal that has come.  @return its number; 0: none has come */
int run_signals_take(const run_signals *signals);

/** Return whether a signal that is passed on ends a process by default. */
bool run_signals_may_end(int number);

/** Return whether a signal asks sqlock itself to end. */
bool run_signals_tell_to_end(int number);

/** Give a signal that is passed on the next serial number. */
void run_signals_count(run_signals *signals, int number);

/** Stop sqlock as an unblocked TSTP does: the kernel ignores that signal if
 *  nothing could continue sqlock. */
void run_signals_stop(void);

/** End sqlock as the signal would have done, had it not been blocked. */
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
    RUN_REFUSED, /* the command cannot be executed */
    RUN_HALTED,  /* the command was stopped by job control */
    RUN_ENDED    /* the command has ended, and all that had to end with it */
} run_word;

/* How the command and its descendants ended. */
typedef enum run_end {
    RUN_END_OWN, /* by themselves */
    /* the command by itself; the supervisor ended what was left behind */
    RUN_END_LEFT,
    /* a signal ended the command, or told sqlock to end; the supervisor ended
     * what was left, with all daemons */
    RUN_END_TOLD,
    RUN_END_LOST,     /* by the supervisor: the lease was lost */
    RUN_END_DEADLINE, /* by the supervisor: the lease was about to expire */
    RUN_END_ALONE     /* by the supervisor: sqlock had ended */
} run_end;

typedef struct run_message {
    run_word word;
    int number;  /* SIGNAL: its number; REFUSED: errno; ENDED: of waitpid() */
    run_end why; /* ENDED */
    pid_t pid;   /* READY */
    /* serial number, see run_signals.  SIGNAL: its own; HALTED, ENDED: of the
     * last signal that had come before */
    int serial;
    int64_t deadline_ns; /* START, DEADLINE */
    int64_t token;       /* START */
    char key[SQLOCK_KEY_SIZE];
    char client_id[SQLOCK_KEY_SIZE];
    char lease[SQLOCK_LEASE_ID_SIZE];
    char tag[SQLOCK_TAG_SIZE];
} run_message;

/** Send a message without waiting.  If the link is full or broken, the message
 *  is lost.  run_link_receive() notices a broken link; a process that does not
 *  read its messages is noticed at its next deadline. */
void run_link_send(int fd, const run_message *message);

typedef enum run_link_result {
    RUN_LINK_NOTHING,
    RUN_LINK_MESSAGE,
    RUN_LINK_CLOSED
} run_link_result;

/** Receive a message without waiting.  RUN_LINK_CLOSED: the process at the
 *  other end has ended. */
run_link_result run_link_receive(int fd, run_message *message);

/* ---------------------------------------------------------- supervisor -- */

/** Fork the supervisor, and the watcher between it and sqlock; the command gets
 *  the signal mask @p mask.  @return sqlock's end of the link, or -1 after a
 *  message */
int run_supervisor_start(const run_options *options, const sigset_t *mask);

/* ------------------------------------------------------------- watcher -- */

/** Make the calling process, a child of process @p sqlock, the watcher, which
 *  never returns.  Return only in a child that the watcher forks, which becomes
 *  the supervisor and keeps @p link_fd. */
void run_watcher_become(const run_options *options, pid_t sqlock, int link_fd);

/* --------------------------------------------------------------- child -- */

typedef struct run_child {
    pid_t pid;     /* also its process group; 0: not started */
    int gate_fd;   /* one byte lets the child go on to execve(); -1: closed */
    int report_fd; /* yields errno of execve(), or end of file; -1: closed */
} run_child;

/* The environment of the command. */
typedef struct run_environment {
    char *set[8];   /* allocated, or NULL */
    char **entries; /* `set`, the settings, and what sqlock's own environment
                       passes on; NULL at the end */
} run_environment;

/** Make the environment of the command.  Call run_environment_clear() also
 *  after a failure.
 *  @param start             the message RUN_START, which describes the lease
 *  @param password_variable name of a variable to leave out; NULL: none
 *  @return false: out of memory */
bool run_environment_init(run_environment *made, const run_options *options,
                          const run_message *start,
                          const char *password_variable);
void run_environment_clear(run_environment *made);

/** Fork a process that waits at the gate, a pipe, in a process group of its own
 *  and, if @p cgroup_fd of run_cgroup_procs() is not negative, in that control
 *  group.  @return 0 or errno */
int run_child_fork(run_child *child, const run_options *options,
                   const run_environment *environment, const sigset_t *mask,
                   int cgroup_fd);

/** Open the gate: the child executes the command. */
void run_child_go(run_child *child);

/** End the child if it still waits at the gate. */
void run_child_forget_gate(run_child *child);

/** Read the child's report, and close report_fd.  Blocks until the child has
 *  executed the command or ended.  @return 0: the command was executed;
 *  otherwise errno */
int run_child_read_report(run_child *child);

/* -------------------------------------------------------------- family -- */

/* These functions act on the descendants of the calling process, in whatever
 * session or process group.  That process must be a subreaper. */

/* Stands for all sessions.  0 does not: the kernel shows it for a session whose
 * leader is in another container. */
#define RUN_ANY_SESSION ((pid_t)-1)

/** Collect the children that have ended.  If @p child, which may be 0, has
 *  ended, was stopped or was continued, set *is_told and store its waitpid()
 *  status in *status.  @return whether any child is left */
bool run_family_reap(pid_t child, int *status, bool *is_told);

/** Send a signal to the descendants in @p session, or to all (RUN_ANY_SESSION);
 *  with the number 0 only count them.  @return how many were reached */
size_t run_family_signal(int number, pid_t session);

/** Send KILL to the descendants in @p session, or to all (RUN_ANY_SESSION),
 *  again and again for some ms while a child is left, and collect those that
 *  have ended, as run_family_reap() does.  @return whether any child is left */
bool run_family_kill(pid_t session, pid_t child, int *status, bool *is_told);

/* -------------------------------------------------------------- cgroup -- */

typedef struct run_cgroup {
    int dir_fd;    /* the group's directory; -1: there is no group */
    int parent_fd; /* the directory of sqlock's own group, or -1 */
    char name[32];
} run_cgroup;

/** Make a control group below our own, named after the process @p sqlock, if
 *  that is allowed; otherwise there is no group. */
void run_cgroup_make(run_cgroup *group, pid_t sqlock);

/** Find the control group that was made for the process @p sqlock, if there is
 *  one. */
void run_cgroup_find(run_cgroup *group, pid_t sqlock);

/** Return a descriptor to which a process writes "0" to join the group, or -1.
 *  The caller closes it. */
int run_cgroup_procs(const run_cgroup *group);

/** KILL all processes in the control group. */
void run_cgroup_kill(const run_cgroup *group);

/** Move the remaining processes to our own control group, and remove the
 *  command's. */
void run_cgroup_clear(run_cgroup *group);

/* ------------------------------------------------------------ terminal -- */

typedef struct run_terminal {
    pid_t group;    /* the command's; 0: none */
    pid_t anchor;   /* see terminal.c; 0: none */
    bool is_given;  /* the command's group has the terminal */
    bool was_given; /* at least once */
} run_terminal;

/** Give the terminal, if sqlock's process group has it, to @p group, the
 *  command's process group. */
void run_terminal_begin(run_terminal *terminal, pid_t group);

/** Stop sqlock's process group after the command was stopped, if sqlock has a
 *  terminal and a shell can continue it.  Return when it is continued. */
void run_terminal_follow_stop(run_terminal *terminal);

/** Give the terminal to the command again, before it is continued. */
void run_terminal_resume(run_terminal *terminal);

/** Take the terminal back after the command has ended with @p wait_status of
 *  waitpid(); 0 if there is none. */
void run_terminal_end(run_terminal *terminal, int wait_status);

/* ---------------------------------------------------------------- loop -- */

/** Wait for the lock and run the command under it.  @return the exit status */
int run_loop(const run_options *options, run_report *report);

#endif
