/*
 * supervisor.c - the command's parent: it makes sure that the command and
 * all its descendants end before the lease does, whatever happens to sqlock
 *
 * When sqlock ends, the supervisor reads end of file from their link (F71,
 * F72).  The supervisor has a session of its own and all signals blocked, does
 * not use the database, and sleeps until a message comes, the state of a child
 * changes, or a point in time is reached.  Nothing else blocks the supervisor:
 * it writes messages only when no process is left to be ended, since stderr may
 * be a full pipe or a stopped terminal.
 *
 *     START --> RUNNING --ended--> (OVER)
 *                   |                 ^
 *                   +--> STOPPING ----+
 *
 * The supervisor is a subreaper: orphans become its children.  A process that
 * has made a session of its own is a daemon: it is left alone if the command
 * ends by itself, and ended like the rest if sqlock was told to end, if a
 * signal has ended the command, or if the lease ends first.
 */
#include "run.h"

#include <errno.h>
#include <sched.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* How long processes that the command left behind have to make sessions of
 * their own. */
#define DAEMON_NS (100 * LK_NS_PER_MS)

typedef enum phase { RUNNING, STOPPING, OVER } phase;

typedef struct supervision {
    const run_options *options;
    const sigset_t *mask; /* for the command */
    run_child child;
    run_cgroup cgroup;
    phase phase;
    run_end why;
    bool may_begin;    /* RUN_GO has come: the command may begin */
    bool is_told;      /* told to end while the command ran */
    int64_t reaped_ns; /* end of the command itself; 0: not yet */
    int serial;        /* of the last signal that came while the command ran */
    bool has_family;
    int refusal;   /* errno of execve(), or 0 */
    pid_t session; /* session of sqlock, and of the command */
    int64_t deadline_ns;
    int64_t kill_at_ns;
    int link_fd; /* -1: sqlock has ended */
    int signal_fd;
    int timer_fd;
} supervision;

/* ----------------------------------------------------------------- time -- */

static int64_t last_moment_ns(const supervision *own)
{
    return own->deadline_ns - own->options->lead_ms * LK_NS_PER_MS;
}

static int64_t term_at_ns(const supervision *own)
{
    return last_moment_ns(own) - own->options->grace_ms * LK_NS_PER_MS;
}

/* ------------------------------------------------------------- messages -- */

static void tell(const supervision *own, run_word word, int number)
{
    run_message message = {.word = word,
                           .number = number,
                           .why = own->why,
                           .pid = own->child.pid,
                           .serial = own->serial};

    run_link_send(own->link_fd, &message);
}

/* Raise the priority above ordinary programs, if that is allowed: on an
 * overloaded machine, the process that ends the command must run first.  The
 * supervisor hardly ever runs, and forks no other process from here on. */
static void take_precedence(void)
{
    const struct sched_param least = {.sched_priority = 1};

    (void)sched_setscheduler(0, SCHED_FIFO, &least);
}

/* Fork the command's process.  Return 0 or errno. */
static int start(supervision *own, const run_message *message)
{
    char **environment = run_child_environment(own->options, &message->grant);
    int error;

    own->deadline_ns = message->deadline_ns;
    if (environment == NULL)
        return ENOMEM;
    run_cgroup_make(&own->cgroup);
    error = run_child_fork(&own->child, own->options, environment, own->mask,
                           &own->cgroup);
    if (error != 0)
        return error;
    own->session = getsid(0);
    (void)setsid();
    take_precedence();
    return 0;
}

/* Wait for RUN_START.  Return whether the command's process exists. */
static bool has_started(supervision *own)
{
    run_message message;
    int error;

    while (!run_link_receive(&own->link_fd, &message)) {
        if (own->link_fd < 0)
            return false;
        run_sleep(own->timer_fd, 0, (const int[]){own->link_fd, -1, -1});
    }
    error = start(own, &message);
    tell(own, error == 0 ? RUN_READY : RUN_REFUSED, error);
    return error == 0;
}

/* Pass a signal on to the command's process group, with CONT unless it is to
 * stop: a stopped process notices only CONT and KILL. */
static void pass_on(const supervision *own, int number)
{
    (void)kill(-own->child.pid, number);
    if (number != SIGTSTP)
        (void)kill(-own->child.pid, SIGCONT);
}

/* Return whether the command has ended, and is a zombie. */
static bool has_ended(const supervision *own)
{
    siginfo_t info = {0};

    return waitid(P_PID, (id_t)own->child.pid, &info,
                  WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid != 0;
}

static void take_signal(supervision *own, const run_message *message)
{
    bool was_over = has_ended(own); /* the signal may end it at once */

    if (own->reaped_ns != 0)
        return;
    if (run_signals_tell_to_end(message->number))
        own->is_told = true;
    /* A command that was stopped for longer than its lease must not
     * continue. */
    if (lk_boottime_ns() < last_moment_ns(own))
        pass_on(own, message->number);
    if (!was_over)
        own->serial = message->serial;
}

static void end_all(supervision *own, run_end why);

static void obey(supervision *own, const run_message *message)
{
    switch (message->word) {
    case RUN_GO:
        own->may_begin = true;
        break;
    case RUN_DEADLINE:
        own->deadline_ns = message->deadline_ns;
        break;
    case RUN_SIGNAL:
        take_signal(own, message);
        break;
    case RUN_STOP:
        if (own->phase == RUNNING)
            end_all(own, RUN_END_LOST);
        break;
    default:
        break;
    }
}

/* ---------------------------------------------------------------- steps -- */

/* Handle what run_family_reap() has found out about the command itself. */
static void note_child(supervision *own)
{
    run_child *child = &own->child;

    if (child->has_news && WIFSTOPPED(child->wait_status))
        tell(own, RUN_HALTED, WSTOPSIG(child->wait_status));
    else if (child->has_news && !WIFCONTINUED(child->wait_status))
        own->reaped_ns = lk_boottime_ns();
    child->has_news = false;
    /* If execve() has failed, the child has reported so before it ended. */
    if (own->reaped_ns != 0 && child->gate_fd >= 0)
        own->refusal = run_child_read_report(child);
}

static bool ended_by_itself(const supervision *own)
{
    return own->why == RUN_END_OWN || own->why == RUN_END_LEFT;
}

/* Return whether all that is left is to be ended, with daemons: a signal has
 * ended the command or told sqlock to end, and --keep-daemons is not set. */
static bool was_ended(const supervision *own)
{
    return !own->options->keeps_daemons &&
           (own->is_told || WIFSIGNALED(own->child.wait_status));
}

/* Return the session of the processes to be ended; RUN_ANY_SESSION: all,
 * including daemons. */
static pid_t session_meant(const supervision *own)
{
    return ended_by_itself(own) ? own->session : RUN_ANY_SESSION;
}

static void end_all(supervision *own, run_end why)
{
    own->why = why;
    own->phase = STOPPING;
    run_child_shut_out(&own->child);
    own->kill_at_ns = lk_boottime_ns() + own->options->grace_ms * LK_NS_PER_MS;
    if (run_family_signal(SIGTERM, session_meant(own)) == 0)
        run_family_signal_group(SIGTERM, own->child.pid); /* without /proc */
    (void)run_family_signal(SIGCONT, session_meant(own));
    run_family_signal_group(SIGCONT, own->child.pid);
}

/* Report why the command was ended, where sqlock may be unable to: sqlock was
 * killed or, since the lease was not renewed, may be stopped.  sqlock reports
 * all other reasons when it receives RUN_ENDED.  If this write blocks,
 * RUN_ENDED is not sent, and sqlock takes over (loop.c). */
static void say_why(run_end why)
{
    if (why == RUN_END_ALONE)
        cli_error("sqlock was killed: the command was ended");
    else if (why == RUN_END_DEADLINE)
        cli_error("the command was ended: the lease could not be renewed and "
                  "was about to expire");
}

static void finish(supervision *own)
{
    own->phase = OVER;
    say_why(own->why);
    if (own->refusal != 0 && ended_by_itself(own))
        tell(own, RUN_REFUSED, own->refusal);
    else
        tell(own, RUN_ENDED, own->child.wait_status);
}

/* Return whether processes may still become daemons: `setsid program &` at the
 * end of a shell script may have forked, but not yet made its session. */
static bool may_become_daemons(const supervision *own)
{
    int64_t now_ns = lk_boottime_ns();

    return own->link_fd >= 0 && now_ns < own->reaped_ns + DAEMON_NS &&
           now_ns < term_at_ns(own);
}

static void step_running(supervision *own)
{
    if (own->reaped_ns != 0) {
        if (own->has_family && was_ended(own))
            end_all(own, RUN_END_TOLD);
        else if (!own->has_family || !run_family_may_have(own->session))
            finish(own);
        else if (!may_become_daemons(own))
            end_all(own, RUN_END_LEFT);
    } else if (own->link_fd < 0) {
        end_all(own, RUN_END_ALONE);
    } else if (lk_boottime_ns() >= term_at_ns(own)) {
        end_all(own, RUN_END_DEADLINE);
    } else if (own->may_begin) {
        run_child_go(&own->child);
    }
}

static bool is_gone(const supervision *own)
{
    if (own->reaped_ns == 0 || !own->has_family)
        return own->reaped_ns != 0;
    return ended_by_itself(own) && !run_family_may_have(own->session);
}

/* Return whether KILL has reached whatever it can: what is left is not in the
 * command's group, and is seen nowhere, as a daemon without /proc. */
static bool is_out_of_reach(const supervision *own)
{
    return own->reaped_ns != 0 && !run_family_has_group(own->child.pid) &&
           access("/proc/self", F_OK) != 0 && errno == ENOENT;
}

static void step_stopping(supervision *own)
{
    if (is_gone(own)) {
        finish(own);
        return;
    }
    if (own->kill_at_ns > last_moment_ns(own))
        own->kill_at_ns = last_moment_ns(own);
    if (lk_boottime_ns() < own->kill_at_ns)
        return;
    if (!ended_by_itself(own))
        run_cgroup_kill(&own->cgroup);
    run_family_signal_group(SIGKILL, own->child.pid);
    own->has_family = run_family_kill(session_meant(own), &own->child);
    note_child(own);
    if (is_gone(own) || is_out_of_reach(own))
        finish(own);
}

static void step(supervision *own)
{
    if (own->phase == RUNNING)
        step_running(own);
    if (own->phase == STOPPING)
        step_stopping(own);
}

/* ----------------------------------------------------------------- loop -- */

static void look_at_family(supervision *own)
{
    struct signalfd_siginfo info;

    while (read(own->signal_fd, &info, sizeof info) > 0)
        continue;
    own->has_family = run_family_reap(&own->child);
    note_child(own);
}

/* Return when the next step is due. */
static int64_t next_ns(const supervision *own)
{
    int64_t tick_ns = lk_boottime_ns() + RUN_TICK_NS;

    if (own->phase == RUNNING && own->reaped_ns == 0)
        return term_at_ns(own);
    /* No signal comes when a process that is not our child ends, or leaves the
     * command's session. */
    if (own->kill_at_ns > lk_boottime_ns() && own->kill_at_ns < tick_ns)
        return own->kill_at_ns;
    return tick_ns;
}

static _Noreturn void supervise(supervision *own)
{
    run_message message;
    sigset_t children;

    run_watcher_prepare(own->options, "lock-supervisor");
    (void)sigemptyset(&children);
    (void)sigaddset(&children, SIGCHLD);
    own->signal_fd = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    own->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (own->signal_fd < 0 || own->timer_fd < 0)
        _exit(cli_fail_to("cannot supervise a command", errno));
    if (!has_started(own))
        own->phase = OVER;
    while (own->phase != OVER) {
        run_sleep(own->timer_fd, next_ns(own),
                  (const int[]){own->link_fd, own->signal_fd, -1});
        while (run_link_receive(&own->link_fd, &message))
            obey(own, &message);
        look_at_family(own);
        step(own);
    }
    run_cgroup_clear(&own->cgroup);
    _exit(CLI_OK);
}

int run_supervisor_start(const run_options *options, const sigset_t *mask)
{
    supervision own = {.options = options,
                       .mask = mask,
                       .cgroup = {.dir_fd = -1, .parent_fd = -1},
                       .child = {.gate_fd = -1}};
    int link[2];
    pid_t sqlock = getpid();
    pid_t pid;

    run_cgroup_name();
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, link) != 0) {
        (void)cli_fail_to("cannot open a socket", errno);
        return -1;
    }
    pid = fork();
    if (pid == 0) {
        (void)close(link[0]);
        run_watcher_become(options, sqlock, link[1]);
        own.link_fd = link[1];
        supervise(&own);
    }
    (void)close(link[1]);
    if (pid < 0) {
        (void)cli_fail_to("cannot start a process", errno);
        (void)close(link[0]);
        return -1;
    }
    return link[0];
}
