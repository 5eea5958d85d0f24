/*
 * signals.c - receive the signals that sqlock passes on to the command
 *
 * They are blocked and read from a descriptor, so that the main loop sleeps
 * until a signal or anything else comes, and none is lost in between.  A signal
 * that was ignored when sqlock began, as HUP below nohup, stays ignored.
 */
#include "run.h"

#include <errno.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

static const int passed_on[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM,
                                SIGUSR1, SIGUSR2, SIGTSTP};
#define PASSED_ON (sizeof passed_on / sizeof passed_on[0])

/* How often and how long a candidate looks at its terminal after HUP: where the
 * session's leader dies, HUP comes before the terminal is gone. */
#define LOOK_MS 100
#define LOOKS 100

bool run_signals_block(run_signals *signals)
{
    struct sigaction action;
    sigset_t watched;
    sigset_t blocked;
    size_t i;

    signals->had_terminal = signals->is_candidate && run_terminal_exists();
    (void)signal(SIGCHLD, SIG_DFL);
    (void)sigemptyset(&watched);
    (void)sigaddset(&watched, SIGCONT);
    for (i = 0; i < PASSED_ON; i++) {
        if (sigaction(passed_on[i], NULL, &action) == 0 &&
            action.sa_handler != SIG_IGN)
            (void)sigaddset(&watched, passed_on[i]);
    }
    blocked = watched;
    (void)sigaddset(&blocked, SIGPIPE);
    (void)sigaddset(&blocked, SIGTTOU);
    (void)sigprocmask(SIG_BLOCK, &blocked, &signals->before);
    signals->fd = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals->fd >= 0)
        return true;
    (void)cli_fail_to("cannot listen for signals", errno);
    return false;
}

int run_signals_take(run_signals *signals)
{
    struct signalfd_siginfo info;

    if (read(signals->fd, &info, sizeof info) == (ssize_t)sizeof info)
        return (int)info.ssi_signo;
    if (signals->looks == 0)
        return 0;
    if (run_terminal_exists()) {
        signals->looks--;
        return 0;
    }
    signals->looks = 0;
    return SIGHUP;
}

int run_signals_await(run_signals *signals, int64_t ms, int other_fd)
{
    struct pollfd files[] = {{.fd = other_fd, .events = POLLIN},
                             {.fd = signals->fd, .events = POLLIN}};
    bool looks = signals->looks > 0 && (ms < 0 || ms > LOOK_MS);

    (void)poll(files, 2, looks ? LOOK_MS : (int)ms);
    return files[0].revents != 0 ? -1 : run_signals_take(signals);
}

bool run_signals_may_end(int number)
{
    return number != SIGCONT && number != SIGTSTP;
}

/* Return whether the signal tells sqlock to end: USR1 and USR2 are meant for
 * the command only. */
bool run_signals_tell_to_end(int number)
{
    return run_signals_may_end(number) && number != SIGUSR1 &&
           number != SIGUSR2;
}

bool run_signals_end_wait(run_signals *signals, int number)
{
    if (!signals->is_candidate)
        return run_signals_may_end(number);
    if (number != SIGHUP)
        return run_signals_tell_to_end(number);
    if (signals->had_terminal && !run_terminal_exists())
        return true;
    signals->looks = signals->had_terminal ? LOOKS : 0;
    return false;
}

int run_signals_await_reader(run_signals *signals, int fd)
{
    for (;;) {
        struct pollfd files[] = {{.fd = fd, .events = POLLOUT},
                                 {.fd = signals->fd, .events = POLLIN}};
        int number;

        (void)poll(files, 2, signals->looks > 0 ? LOOK_MS : -1);
        if (files[0].revents != 0)
            return 0;
        number = run_signals_take(signals);
        if (number == SIGTSTP)
            run_signals_stop();
        else if (number != 0 && run_signals_end_wait(signals, number))
            return number;
    }
}

void run_signals_count(run_signals *signals, int number)
{
    signals->serial++;
    if (number != SIGTSTP)
        signals->waking = signals->serial;
    if (run_signals_may_end(number))
        signals->ending = signals->serial;
}

void run_signals_stop(void)
{
    sigset_t stop;

    (void)sigemptyset(&stop);
    (void)sigaddset(&stop, SIGTSTP);
    (void)raise(SIGTSTP);
    (void)sigprocmask(SIG_UNBLOCK, &stop, NULL);
    (void)sigprocmask(SIG_BLOCK, &stop, NULL);
}

/* End by the signal, or for QUIT by its exit status: a core file would contain
 * the URL. */
void run_signals_die_of(const run_signals *signals, int number)
{
    /* One that a closed pipe has caused would be delivered first. */
    (void)signal(SIGPIPE, SIG_IGN);
    if (number != SIGQUIT) {
        (void)signal(number, SIG_DFL);
        (void)raise(number);
        (void)sigprocmask(SIG_SETMASK, &signals->before, NULL);
    }
    _exit(CLI_SIGNALLED + number);
}
