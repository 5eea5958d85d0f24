/*
 * run.h - declarations that the files of this room share; README.md draws how
 * the processes work together
 *
 * Points in time are CLOCK_BOOTTIME in nanoseconds: it goes on while the
 * machine is suspended, as leases do.
 */
#ifndef SQLOCK_RUN_H
#define SQLOCK_RUN_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/retry.h"
#include "cli/cli.h"
#include "sqlock/operator.h"

/* Environment variable: the ids of the leases that are held around a command,
 * innermost first, separated by spaces. */
#define RUN_LEASES "SQLOCK_LEASES"

#define RUN_TTL_DEFAULT_MS ((int64_t)30000)
#define RUN_TTL_LEAST_MS ((int64_t)1000) /* a process takes time to start */
#define RUN_TTL_MOST_MS ((int64_t)7 * 86400000)

/* While processes are being ended, how often to check which are left. */
#define RUN_TICK_NS (20 * LK_NS_PER_MS)

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
    sqlock_mode mode;
    uint32_t permits;   /* of a lock that has none; 0: as the row says */
    bool has_slots;     /* the lock is to have permits */
    const char *text;   /* published when the lock is ours; NULL: none */
    bool is_fail_fast;  /* a database error ends the wait */
    bool is_observer;   /* `sqlock wait`, which has no --fail-fast */
    bool is_once;       /* do not run again after a success */
    bool keeps_daemons; /* leave daemons alone even when told to end */
    bool is_listener;   /* has sockets of a service manager */
    int busy_status;
    /* for the command's environment; NULL at the end */
    char *settings[CLI_SETTINGS + 1];
} run_options;

/* --------------------------------------------------------------- asked -- */

/* How the lock is to be taken, as the command line says. */
extern struct run_asked {
    bool is_impatient;
    bool is_fail_fast;
    bool is_shared;
    bool has_slots;
    int64_t slots; /* 0: as the row says */
    int64_t wait_ms;
    int64_t ttl_ms;
} run_asked;

/* The entries of a table of options that read it. */
/* clang-format off */
#define RUN_ASKED_OPTIONS                                                      \
    {"wait", 'w', .ms = &run_asked.wait_ms},                                   \
    {"no-wait", 'n', .flag = &run_asked.is_impatient},                         \
    {"fail-fast", .flag = &run_asked.is_fail_fast},                            \
    {"slots", .flag = &run_asked.has_slots, .number = &run_asked.slots,        \
     .least = 1, .most = 999999},                                              \
    {"ttl", 't', .ms = &run_asked.ttl_ms, .least = RUN_TTL_LEAST_MS,           \
     .most = RUN_TTL_MOST_MS}
/* clang-format on */

/** Fill in what run_asked says.  @param command  for messages  @return false,
 *  after a message: the options contradict each other */
bool run_asked_read(const char *command, run_options *options);

/* A lease, for the report, the supervisor and the command's environment. */
typedef struct run_grant {
    int64_t token; /* 0: the lock was never ours */
    char key[SQLOCK_KEY_SIZE];
    char client_id[SQLOCK_KEY_SIZE];
    char lease[SQLOCK_LEASE_ID_SIZE];
    char tag[SQLOCK_TAG_SIZE]; /* of the command's sessions, or "" */
} run_grant;

/* -------------------------------------------------------------- report -- */

/* The outcome, for --status-fd. */
typedef struct run_report {
    int fd;            /* -1: not requested */
    const char *cause; /* one word, listed in the manual */
    bool was_told;     /* a signal has told sqlock to end */
    bool was_hung_up;  /* HUP came, which may mean another thing */
    bool has_ended;    /* the command ran, with this waitpid() status */
    int wait_status;
    run_grant grant;
} run_report;

/** Write that the lock is held, as one line of JSON, if the pipe takes it at
 *  once. */
void run_report_grant(const run_report *report, const run_options *options);

/* ---------------------------------------------------------------- wait -- */

typedef struct run_wait {
    const run_options *options;
    const atomic_int *interrupted; /* not 0: a signal has ended the wait */
    int stop_fd;                   /* readable then; 0: none */
    int64_t start_ns;
    /* when to report what is waited for; INT64_MAX: never */
    int64_t word_ns;
    struct lk_retry retry;
} run_wait;

/** Begin.  @p interrupted may be NULL, and @p stop_fd 0. */
void run_wait_begin(run_wait *wait, const run_options *options,
                    const atomic_int *interrupted, int stop_fd);

bool run_wait_is_over(const run_wait *wait);

/** Decide after an error whether to try again.  If so, report what is waited
 *  for, when that is due, and pause.  @return true: try again now */
bool run_wait_goes_on(run_wait *wait, int rc, const sqlock_error *err);

/** Report an error that ends as a lock does that is not free, and for which the
 *  caller says nothing, such as a locked file.  @return @p rc */
int run_wait_tell(int rc, const sqlock_error *err);

/** Open the registry, when the database can be reached.  @return as
 *  sqlock_registry_open(), after run_wait_tell() */
int run_wait_open(run_wait *wait, const sqlock_options *how,
                  sqlock_registry **registry, sqlock_error *err);

/** Acquire the lock, to be renewed in the background; while waiting, and if it
 *  was in vain, report who has it.  @param[out] lost_fd  of sqlock_lost_fd()
 *  @return as sqlock_acquire() */
int run_wait_acquire(run_wait *wait, sqlock_registry *registry,
                     sqlock_lock **lock, int *lost_fd, sqlock_error *err);

/** Pause before the lock is looked at again, and report meanwhile who has it.
 *  @return false: the wait is over; that was reported */
bool run_wait_watches(run_wait *wait, sqlock_registry *registry);

/** Return the exit status for the result of a wait: as cli_status_of(), but
 *  CLI_USAGE for --slots of a lock that has none, and CLI_SYSTEM for a limit of
 *  this process. */
int run_wait_status(int rc, const sqlock_error *err);

/** Describe the lease of a lock that is held.  @return as sqlock_lease_id() */
int run_wait_describe(const run_wait *wait, sqlock_lock *lock, run_grant *grant,
                      sqlock_error *err);

/* --------------------------------------------------------------- lease -- */

typedef struct run_lease {
    run_wait wait;
    sqlock_registry *registry;
    sqlock_lock *lock;
    int lost_fd;         /* readable when the lease is lost; -1: no longer */
    atomic_bool is_held; /* there is, or was, a lease to release */
    bool is_lost;        /* it can no longer be renewed */
    int64_t deadline_ns; /* of the lease */
    int64_t renewed_ns;
    bool is_stale; /* it was reported that the lease is not renewed */
    run_grant grant;
    bool is_done;          /* --once: the work is recorded as done */
    bool is_unsaid;        /* `error` is to be said, also where it is EBUSY */
    int64_t done_at_us;    /* --once: when it was, before; 0: not known */
    sqlock_error error;    /* of taking, of the loss, or of recording */
    pthread_mutex_t mutex; /* guards the next member */
    char obstacle[200];    /* why renewals failed last; "": they have not */
} run_lease;

/** Open the registry, and wait for the lock.  Of @p lease, only the descriptor
 *  and the mutex are set.  Call run_lease_release() also after a failure.
 *  @return 0 if the lock is held, or lease->is_done is set, with the lock or
 *  without it; also if a signal has ended the wait with the lock held */
int run_lease_take(run_lease *lease, const run_options *options,
                   const atomic_int *interrupted, int stop_fd);

/** Find out whether the lease is still ours and until when, and report trouble
 *  with its renewals.  @return whether it was renewed */
bool run_lease_look(run_lease *lease);

/** Record the success (--once).  @return as sqlock_once_record() */
int run_lease_record(run_lease *lease);

/** Release the lock, if it was held, and close the registry.  @return as
 *  sqlock_release() */
int run_lease_release(run_lease *lease, sqlock_error *err);

/* ---------------------------------------------------------------- say -- */

/** Return whether a descriptor takes a message without blocking, such as a pipe
 *  takes PIPE_BUF bytes at once; not if it is negative. */
bool run_takes_output(int fd);

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
    bool is_candidate; /* of `sqlock lead`: it outlasts what the service gets */
    bool had_terminal; /* a candidate: HUP may say that it has hung up */
    int looks;         /* how often it looks yet whether that is so */
    /* serial numbers, from 1; 0: there was no such signal */
    int serial; /* the last signal passed on */
    int waking; /* the last one that continues a stopped command */
    int ending; /* the last one that may end the command */
} run_signals;

/** Block the signals that sqlock passes on to the command, to receive them from
 *  signals->fd; signals->is_candidate is set before.  Call it before any thread
 *  starts; the command gets the mask signals->before.  Signals that sqlock's
 *  parent process made it ignore (nohup) stay ignored, also by the command.
 *  @return false, after a message */
bool run_signals_block(run_signals *signals);

/** Take a signal that has come, or HUP if the terminal has hung up since that
 *  came.  @return its number; 0: none has come */
int run_signals_take(run_signals *signals);

/** Wait until a signal comes or other_fd is readable (-1: none), or for some
 *  time (-1: any).  @return as run_signals_take(); -1: other_fd is readable */
int run_signals_await(run_signals *signals, int64_t ms, int other_fd);

/** Return whether a signal that is passed on ends a process by default. */
bool run_signals_may_end(int number);

/** Return whether a signal asks sqlock itself to end. */
bool run_signals_tell_to_end(int number);

/** Return whether a signal ends the wait for the lock.  Those that tell a
 *  service to do something may be sent to all candidates for it: they end none,
 *  but HUP does one whose terminal has hung up. */
bool run_signals_end_wait(run_signals *signals, int number);

/** Give a signal that is passed on the next serial number. */
void run_signals_count(run_signals *signals, int number);

/** Stop sqlock as an unblocked TSTP does: the kernel ignores that signal if
 *  nothing could continue sqlock. */
void run_signals_stop(void);

/** End sqlock as the signal would have done, had it not been blocked. */
_Noreturn void run_signals_die_of(const run_signals *signals, int number);

/** Wait until @p fd, such as a full pipe, takes output again, while signals are
 *  blocked and nobody else takes them.  A signal that ends the wait for the
 *  lock ends this wait, too.  @return that signal, or 0 */
int run_signals_await_reader(run_signals *signals, int fd);

/* ------------------------------------------------------------ listener -- */

/* A thread that ends the wait for the lock by a signal, and all of sqlock if
 * the main thread does not come back from the database soon after. */
typedef struct run_listener {
    run_signals *signals;
    /* end sqlock by the signal; called in the thread */
    void (*die)(void *context, int number);
    void *context;
    /* there is, or was, a lease to release: do not die */
    const atomic_bool *is_held;
    atomic_int number; /* the signal that has ended the wait, or 0 */
    int stop_fd;       /* an eventfd: readable then */
    int heard_fd;      /* an eventfd: ends the thread */
    pthread_t thread;
} run_listener;

/** Start the thread; the first four members are set, the others 0.
 *  @return 0, or ENOMEM */
int run_listener_begin(run_listener *listener, sqlock_error *err);

/** End the thread.  Call it when nothing waits for the database any more. */
void run_listener_end(run_listener *listener);

/* ------------------------------------------------------- report, the end -- */

/** Write the outcome and the exit status, as one line of JSON that a pipe takes
 *  in one piece, and close the descriptor: another call does nothing.  Wait for
 *  a reader as run_report_await() does.  Call it when nothing is started any
 *  more. */
void run_report_write(run_report *report, const run_options *options,
                      run_signals *signals, int status);

/** Write the outcome, if the pipe takes it at once, and end sqlock by a signal.
 */
_Noreturn void run_report_die(run_report *report, const run_options *options,
                              const run_signals *signals, int number);

/** Wait as run_signals_await_reader(), and end sqlock by the signal that ends
 *  the wait.  Call it before a message, once the lock is released. */
void run_report_await(run_report *report, const run_options *options,
                      run_signals *signals, int fd);

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
    /* SIGNAL, HALTED: the signal; REFUSED: errno; ENDED: of waitpid() */
    int number;
    run_end why; /* ENDED */
    pid_t pid;   /* READY */
    /* serial number, see run_signals.  SIGNAL: its own; HALTED, ENDED: of the
     * last signal that had come before */
    int serial;
    int64_t deadline_ns; /* START, DEADLINE */
    run_grant grant;     /* START */
} run_message;

/** Send a message without waiting.  If the link is full or broken, the message
 *  is lost.  run_link_receive() notices a broken link; a process that does not
 *  read its messages is noticed at its next deadline. */
void run_link_send(int fd, const run_message *message);

/** Receive a message without waiting.  If the process at the other end has
 *  ended, close *fd and set it to -1.  @return false: there is no message */
bool run_link_receive(int *fd, run_message *message);

/** Sleep until one of the descriptors, which may be -1, is readable or, unless
 *  @p at_ns is 0, until that point in time.  @param timer_fd  a timerfd of
 *  CLOCK_BOOTTIME */
void run_sleep(int timer_fd, int64_t at_ns, const int fds[3]);

/* ---------------------------------------------------------- processes -- */

/** Fork the supervisor, and the watcher between it and sqlock; the command gets
 *  the signal mask @p mask.  @return sqlock's end of the link, or -1 after a
 *  message */
int run_supervisor_start(const run_options *options, const sigset_t *mask);

/** Make the calling process, a child of process @p sqlock, the watcher, which
 *  never returns.  Return only in a child that the watcher forks, which becomes
 *  the supervisor and keeps @p link_fd. */
void run_watcher_become(const run_options *options, pid_t sqlock, int link_fd);

/** Prepare a process that is to survive sqlock: block all signals, become a
 *  subreaper, wipe what may be secret, and take a name.  Ends the process, with
 *  a message, if that fails. */
void run_watcher_prepare(const run_options *options, const char *name);

/* -------------------------------------------------------------- cgroup -- */

typedef struct run_cgroup {
    int dir_fd;    /* the group's directory; -1: there is no group */
    int parent_fd; /* the directory of sqlock's own group, or -1 */
    char name[32];
} run_cgroup;

/** Choose a new name for the control group, which the processes that are forked
 *  after this call know, too. */
void run_cgroup_name(void);

/** Make a control group of that name below our own, if that is allowed;
 *  otherwise there is no group. */
void run_cgroup_make(run_cgroup *group);

/** Find the control group of that name, if there is one. */
void run_cgroup_find(run_cgroup *group);

/** Fork a process in the group, if there is one.  The child may only execute a
 *  program or exit, by functions that a signal handler may call.  @return as
 *  fork() */
pid_t run_cgroup_fork(const run_cgroup *group);

/** KILL all processes in the control group. */
void run_cgroup_kill(const run_cgroup *group);

/** Move the remaining processes to our own control group, and remove the
 *  command's. */
void run_cgroup_clear(run_cgroup *group);

/* --------------------------------------------------------------- child -- */

typedef struct run_child {
    pid_t pid;       /* also its process group; 0: not started */
    int gate_fd;     /* a socket to it; -1: closed */
    bool is_let_in;  /* by run_child_go() */
    bool has_news;   /* wait_status is new */
    int wait_status; /* of waitpid() */
} run_child;

/** Return whether a service manager has handed sockets to this process, which
 *  the command is to have. */
bool run_child_is_listener(void);

/** Make the environment of the command, for as long as this process lives.
 *  @return NULL: out of memory */
char **run_child_environment(const run_options *options,
                             const run_grant *grant);

/** Fork a process that waits at the gate, in a process group of its own and, if
 *  there is one, in the control group.  @return 0 or errno */
int run_child_fork(run_child *child, const run_options *options,
                   char **environment, const sigset_t *mask,
                   const run_cgroup *cgroup);

/** Open the gate: the child executes the command. */
void run_child_go(run_child *child);

/** End the child if it still waits at the gate. */
void run_child_shut_out(run_child *child);

/** Read the report of a child that has ended, and close the gate.  @return 0:
 *  the command was executed; otherwise errno of execve() */
int run_child_read_report(run_child *child);

/* -------------------------------------------------------------- family -- */

/* These functions act on the descendants of the calling process, in whatever
 * session or process group.  That process must be a subreaper. */

/* Stands for all sessions.  0 does not: the kernel shows it for a session whose
 * leader is in another container. */
#define RUN_ANY_SESSION ((pid_t)-1)

/** Collect the children that have ended.  If @p child, which may be NULL, has
 *  ended, was stopped or was continued, store that in it.  @return whether any
 *  child is left */
bool run_family_reap(run_child *child);

/** Send a signal to the descendants in @p session, or to all (RUN_ANY_SESSION);
 *  with the number 0 only count them, also those that may not be signalled.
 *  @return how many were reached */
size_t run_family_signal(int number, pid_t session);

/** Return whether one of the descendants, of which there are some, is in
 *  @p session; also if none of them can be seen, as without /proc. */
bool run_family_may_have(pid_t session);

/** Return whether one of our children is in that process group. */
bool run_family_has_group(pid_t group);

/** Send a signal to a process group, if one of our children is in it: its
 *  number cannot have been given to another one then. */
void run_family_signal_group(int number, pid_t group);

/** Send KILL to the descendants in @p session, or to all (RUN_ANY_SESSION),
 *  again and again for some ms while a child is left, and collect those that
 *  have ended, as run_family_reap() does.  @return whether any child is left */
bool run_family_kill(pid_t session, run_child *child);

/** Kill all descendants, also by the control group.  Give up after 10 s.
 *  @return whether any is left */
bool run_family_sweep(void);

/* ------------------------------------------------------------ terminal -- */

typedef struct run_terminal {
    pid_t group;   /* the command's; 0: none */
    pid_t anchor;  /* see terminal.c; 0: none */
    bool is_given; /* the command's group has the terminal */
} run_terminal;

/** Return whether a command, which has ended with @p wait_status of waitpid(),
 *  was ended by the signal, itself or as a shell tells it of its command. */
bool run_ended_by(int wait_status, int number);

/** Return whether it has one that has not hung up. */
bool run_terminal_exists(void);

/** Give the terminal, if sqlock's process group has it, to @p group, the
 *  command's process group; not where stdin or stdout is not the terminal. */
void run_terminal_begin(run_terminal *terminal, pid_t group);

/** Follow the command, which was stopped by the signal @p number: give it the
 *  terminal if it has asked for that and sqlock's process group has it, and
 *  otherwise stop that group, if sqlock has a terminal and a shell can continue
 *  it; not by STOP where stdin is no terminal.  @return true: the command has
 *  the terminal, and is to be continued; false: at once, or when sqlock was
 *  continued */
bool run_terminal_follow_stop(run_terminal *terminal, int number);

/** Give the terminal to the command again, before it is continued. */
void run_terminal_resume(run_terminal *terminal);

/** Take the terminal back after the command has ended with @p wait_status of
 *  waitpid(); 0 if there is none.  @return whether the keyboard has ended it,
 *  by INT or QUIT */
bool run_terminal_end(run_terminal *terminal, int wait_status);

/* ---------------------------------------------------------------- loop -- */

/** Wait for the lock and run the command under it.  @param signals  as
 *  run_signals_block() has set it  @return the exit status */
int run_loop(const run_options *options, const run_signals *signals,
             run_report *report);

/** Do so again and again, until the command succeeds, or a signal or an error
 *  that stays ends it.  @return the exit status */
int run_lead(const run_options *options, const run_signals *signals,
             run_report *report);

#endif
