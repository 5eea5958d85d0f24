/*
 * run_loop.c - the main thread of `sqlock run`: it sleeps until a signal, news
 * of the lease, or a point in time arrives, and then takes the one next step.
 * It never waits for the database, so nothing keeps it from ending the command
 * before the lease does.
 *
 *     WAITING --held--> RUNNING --ended--> RELEASING --> DONE
 *                          |                   ^
 *                          +-----> STOPPING ---+
 */
#include "run.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* While the command is being ended, how often to look what is left of it:
 * what is not our child ends without a word to us. */
#define TICK_NS (20 * RUN_NS_PER_MS)

/* What KILL does not end in this time, nothing will. */
#define GIVE_UP_NS (10000 * RUN_NS_PER_MS)

typedef enum run_phase {
    WAITING,
    RUNNING,
    STOPPING,
    RELEASING,
    DONE
} run_phase;

typedef struct run_state {
    const run_options *options;
    run_lease lease;
    run_lease_news news;
    run_child child;
    run_phase phase;
    bool is_for_leftovers; /* STOPPING what the command left behind */
    bool is_killing;
    int64_t kill_at_ns;
    int status;
    int death; /* signal to die of at the end, or 0 */
    sigset_t before;
    int signal_fd;
    int timer_fd;
} run_state;

/* --------------------------------------------------------------- signals -- */

static const int passed_on[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM,
                                SIGUSR1, SIGUSR2, SIGTSTP};
#define PASSED_ON (sizeof passed_on / sizeof passed_on[0])

/* Blocked here before any thread starts, in all of them, and unblocked in the
 * command.  What the caller ignores (nohup) stays ignored by all. */
static bool block_signals(run_state *run)
{
    struct sigaction action;
    sigset_t watched;
    sigset_t blocked;
    size_t i;

    (void)signal(SIGCHLD, SIG_DFL);
    (void)sigemptyset(&watched);
    (void)sigaddset(&watched, SIGCHLD);
    (void)sigaddset(&watched, SIGCONT);
    for (i = 0; i < PASSED_ON; i++) {
        if (sigaction(passed_on[i], NULL, &action) == 0 &&
            action.sa_handler != SIG_IGN)
            (void)sigaddset(&watched, passed_on[i]);
    }
    blocked = watched;
    (void)sigaddset(&blocked, SIGPIPE);
    (void)sigaddset(&blocked, SIGTTOU);
    (void)sigprocmask(SIG_BLOCK, &blocked, &run->before);
    run->signal_fd = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
    return run->signal_fd >= 0;
}

/* End as the signal would have ended us.  Not for QUIT: a core file would hold
 * the URL. */
static int die_of(const run_state *run, int number)
{
    if (number != SIGQUIT) {
        (void)signal(number, SIG_DFL);
        (void)raise(number);
        (void)sigprocmask(SIG_SETMASK, &run->before, NULL);
    }
    _exit(CLI_SIGNALLED + number);
}

static void start_releasing(run_state *run, int status)
{
    run->status = status;
    run->phase = RELEASING;
    run_lease_stop(&run->lease);
}

static void take_signal(run_state *run, int number)
{
    if (run->phase == WAITING) {
        if (number == SIGTSTP) {
            (void)raise(SIGSTOP);
        } else if (number != SIGCONT && number != SIGCHLD) {
            /* A claim in flight cannot be taken back: should it be granted,
             * the row runs out after the TTL. */
            if (run->news.state == RUN_LEASE_WAITING)
                (void)die_of(run, number);
            run->death = number;
            start_releasing(run, CLI_SIGNALLED + number);
        }
        return;
    }
    if (number == SIGCHLD || run->phase == RELEASING)
        return;
    if (number == SIGCONT) {
        /* What was stopped for longer than its lease must not go on. */
        if (run_now_ns() <
            run->news.deadline_ns - run->options->lead_ms * RUN_NS_PER_MS)
            run_child_continue(&run->child);
        return;
    }
    run_child_signal(&run->child, number);
    if (number != SIGTSTP && run->child.is_stopped)
        run_child_continue(&run->child);
}

static void take_signals(run_state *run)
{
    struct signalfd_siginfo info;

    while (read(run->signal_fd, &info, sizeof info) == (ssize_t)sizeof info)
        take_signal(run, (int)info.ssi_signo);
}

/* ----------------------------------------------------------------- steps -- */

static int64_t last_moment_ns(const run_state *run)
{
    return run->news.deadline_ns - run->options->lead_ms * RUN_NS_PER_MS;
}

static int64_t term_at_ns(const run_state *run)
{
    return last_moment_ns(run) - run->options->grace_ms * RUN_NS_PER_MS;
}

static void end_with(run_state *run, int number)
{
    if (run->is_for_leftovers)
        run_child_signal(&run->child, number);
    else
        run_child_signal_all(&run->child, number);
}

static void start_stopping(run_state *run, bool is_for_leftovers)
{
    run->phase = STOPPING;
    run->is_for_leftovers = is_for_leftovers;
    run->kill_at_ns = run_now_ns() + run->options->grace_ms * RUN_NS_PER_MS;
    end_with(run, SIGTERM);
    end_with(run, SIGCONT); /* what is stopped cannot end */
}

static void report_refusal(run_state *run)
{
    run->phase = DONE;
    run->status = cli_status_of(run->news.result);
    if (run->status == CLI_BUSY)
        run->status = run->options->busy_status;
    else
        (void)cli_fail(&run->news.error);
}

static void step_waiting(run_state *run)
{
    int status;

    if (run->news.state == RUN_LEASE_WAITING)
        return;
    if (run->news.state == RUN_LEASE_OVER) {
        report_refusal(run);
        return;
    }
    if (run->news.state == RUN_LEASE_LOST || run_now_ns() >= term_at_ns(run)) {
        cli_error("the lease was over before the command was started");
        start_releasing(run, CLI_LOST);
        return;
    }
    cli_info("\"%s\" is ours, starting %s", run->options->name,
             run->options->command[0]);
    status =
        run_child_start(&run->child, run->options, &run->news, &run->before);
    if (status == CLI_OK)
        run->phase = RUNNING;
    else
        start_releasing(run, status);
}

static void step_running(run_state *run)
{
    if (run->child.is_reaped) {
        run_child_give_up_terminal(&run->child);
        if (!run_child_has_group(&run->child)) {
            start_releasing(run, run_child_exit_status(&run->child));
            return;
        }
        cli_note("the command has left processes behind: ending them");
        start_stopping(run, true);
        return;
    }
    if (run->news.state == RUN_LEASE_LOST) {
        cli_error("ending the command: %s", run->news.error.message);
        start_stopping(run, false);
        return;
    }
    if (run_now_ns() >= term_at_ns(run)) {
        cli_error("ending the command: the lease could not be renewed and is "
                  "about to end");
        start_stopping(run, false);
        return;
    }
    run_child_follow_stop(&run->child);
}

static bool is_gone(const run_state *run)
{
    if (!run->child.is_reaped)
        return false;
    return run->is_for_leftovers ? !run_child_has_group(&run->child)
                                 : !run->child.has_any_child;
}

static void step_stopping(run_state *run)
{
    int64_t now_ns = run_now_ns();
    int status = CLI_LOST;

    if (run->is_for_leftovers)
        status = run_child_exit_status(&run->child);
    if (is_gone(run)) {
        start_releasing(run, status);
        return;
    }
    if (run->kill_at_ns > last_moment_ns(run))
        run->kill_at_ns = last_moment_ns(run);
    if (now_ns < run->kill_at_ns)
        return;
    if (!run->is_killing) {
        run->is_killing = true;
        run->kill_at_ns = now_ns;
    }
    end_with(run, SIGKILL);
    if (now_ns - run->kill_at_ns < GIVE_UP_NS)
        return;
    /* Not released: what still runs keeps the lock until the lease ends. */
    cli_error("a process of the command cannot be ended; the lock is left to "
              "run out");
    _exit(CLI_LOST);
}

static void step_releasing(run_state *run)
{
    int result = run->news.result;

    if (run->news.state != RUN_LEASE_OVER)
        return;
    run->phase = DONE;
    if (result == 0 || run->status == CLI_LOST)
        return;
    if (result == SQLOCK_ELOST) {
        cli_error("the lease was lost before the command ended: another owner "
                  "may have had the lock at the same time");
        run->status = CLI_LOST;
    } else if (result == SQLOCK_EEXPIRED) {
        cli_error("the lease ran out before the command ended; nobody has "
                  "taken the lock");
    } else {
        cli_note("the lock could not be given back, it runs out by itself: %s",
                 run->news.error.message);
    }
}

static void step(run_state *run)
{
    run_phase before;

    do {
        before = run->phase;
        switch (run->phase) {
        case WAITING:
            step_waiting(run);
            break;
        case RUNNING:
            step_running(run);
            break;
        case STOPPING:
            step_stopping(run);
            break;
        case RELEASING:
            step_releasing(run);
            break;
        case DONE:
            break;
        }
    } while (run->phase != before);
}

/* ------------------------------------------------------------------ loop -- */

static void set_timer(const run_state *run)
{
    struct itimerspec when = {.it_value = {0}};
    int64_t at_ns = 0;

    if (run->phase == RUNNING)
        at_ns = term_at_ns(run);
    else if (run->phase == STOPPING)
        at_ns = run_now_ns() + TICK_NS;
    if (run->phase == STOPPING && !run->is_killing && run->kill_at_ns < at_ns)
        at_ns = run->kill_at_ns;
    if (at_ns > 0) {
        when.it_value.tv_sec = (time_t)(at_ns / 1000000000);
        when.it_value.tv_nsec = (long)(at_ns % 1000000000);
    }
    (void)timerfd_settime(run->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static void wait_for_event(run_state *run)
{
    struct pollfd files[] = {
        {.fd = run->signal_fd, .events = POLLIN},
        {.fd = run->lease.event_fd, .events = POLLIN},
        {.fd = run->timer_fd, .events = POLLIN},
    };

    set_timer(run);
    (void)poll(files, sizeof files / sizeof files[0], -1);
    run_lease_read(&run->lease, &run->news);
    take_signals(run);
    if (run->child.pid != 0)
        run_child_reap(&run->child);
}

/* Programs of our own process group would have had the terminal's ^C, too. */
static void share_interrupt(const run_state *run, bool had_terminal)
{
    if (had_terminal && run->child.is_reaped &&
        WIFSIGNALED(run->child.status) &&
        WTERMSIG(run->child.status) == SIGINT && getpgrp() != getpid())
        (void)kill(0, SIGINT);
}

int run_loop(const run_options *options)
{
    run_state run = {.options = options, .signal_fd = -1, .timer_fd = -1};
    bool had_terminal = false;
    bool has_lease = false;

    run.status = CLI_SYSTEM;
    if (!block_signals(&run)) {
        cli_error("signalfd: %s", strerror(errno));
        goto out;
    }
    run.timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (run.timer_fd < 0) {
        cli_error("timerfd: %s", strerror(errno));
        goto out;
    }
    has_lease = run_lease_start(&run.lease, options);
    if (!has_lease)
        goto out;
    while (run.phase != DONE) {
        wait_for_event(&run);
        step(&run);
        had_terminal = had_terminal || run.child.has_terminal;
    }
    share_interrupt(&run, had_terminal);
out:
    if (has_lease)
        run_lease_clear(&run.lease);
    if (run.timer_fd >= 0)
        (void)close(run.timer_fd);
    if (run.signal_fd >= 0)
        (void)close(run.signal_fd);
    if (run.death != 0)
        (void)die_of(&run, run.death);
    return run.status;
}
