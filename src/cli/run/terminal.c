/*
 * terminal.c - give the terminal of sqlock's session to the command while
 * the command runs, as a shell does for a job
 *
 * The kernel drops stop signals from the keyboard for an orphaned process
 * group, which nothing could continue: no member has a parent in another group
 * of the same session.  The command's parent, the supervisor, is in a session
 * of its own.  So an idle process, the anchor, which is a child of sqlock,
 * joins the command's group.  There is no anchor if sqlock's own group is
 * orphaned: then nothing could continue the command either, and it must not be
 * stopped.
 */
#include "run.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/secret.h"

bool run_ended_by(int wait_status, int number)
{
    return WIFSIGNALED(wait_status)
               ? WTERMSIG(wait_status) == number
               : WEXITSTATUS(wait_status) == CLI_SIGNALLED + number;
}

/* Open sqlock's terminal, wherever its standard files lead; -1: there is none,
 * or it has hung up. */
static int open_terminal(void)
{
    return open("/dev/tty", O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
}

bool run_terminal_exists(void)
{
    int fd = open_terminal();

    if (fd >= 0)
        (void)close(fd);
    return fd >= 0;
}

/* Let the terminal pass from one process group to another, if the first one has
 * it.  SIGTTOU is blocked, so this works from the background.  Return whether
 * it has passed. */
static bool pass(pid_t from, pid_t to)
{
    int fd = open_terminal();
    bool has_passed =
        fd >= 0 && tcgetpgrp(fd) == from && tcsetpgrp(fd, to) == 0;

    if (fd >= 0)
        (void)close(fd);
    return has_passed;
}

/* Give the terminal away before the command has asked for it: not if a pipe may
 * connect sqlock with another program of the job, which would lose the
 * terminal. */
static void give(run_terminal *terminal)
{
    if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
        terminal->is_given = pass(getpgrp(), terminal->group);
}

static void take_back(run_terminal *terminal)
{
    if (terminal->is_given)
        (void)pass(terminal->group, getpgrp());
    terminal->is_given = false;
}

/* Run the child process of is_orphaned().  Since sqlock has threads, a child
 * may only make system calls after fork(). */
static void be_probe(void)
{
    /* all but TSTP, since ^C on the terminal reaches our whole group */
    sigset_t others;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)signal(SIGTSTP, SIG_DFL);
    (void)sigfillset(&others);
    (void)sigdelset(&others, SIGTSTP);
    (void)sigprocmask(SIG_SETMASK, &others, NULL);
    (void)raise(SIGTSTP);
    _exit(CLI_OK);
}

/* Return whether our process group is orphaned, so that nothing can continue
 * it, as in a container or under `ssh -t HOST sqlock run`.  Only the kernel
 * knows the parents of all its members: in such a group, TSTP does not stop a
 * child. */
static bool is_orphaned(void)
{
    pid_t probe = fork();
    int status = 0;

    if (probe == 0)
        be_probe();
    if (probe < 0)
        return false;
    if (waitpid(probe, &status, WUNTRACED) != probe)
        return false;
    if (WIFSTOPPED(status)) {
        (void)kill(probe, SIGKILL);
        (void)waitpid(probe, NULL, 0);
    }
    return WIFEXITED(status);
}

/* Run the anchor.  Since sqlock has threads, a child may only make system calls
 * after fork(). */
static void be_anchor(pid_t parent)
{
    sigset_t all;
    char **entry;

    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (entry = environ; *entry != NULL; entry++)
        lk_wipe_text(*entry); /* /proc must not show it */
    (void)close_range(0, ~0U, 0);
    while (getppid() == parent)
        (void)pause();
    _exit(CLI_OK);
}

/* Start the anchor.  If that fails, only ^Z does not work. */
static void start_anchor(run_terminal *terminal)
{
    pid_t parent = getpid();

    terminal->anchor = fork();
    if (terminal->anchor == 0)
        be_anchor(parent);
    if (terminal->anchor > 0)
        (void)setpgid(terminal->anchor, terminal->group);
    else
        terminal->anchor = 0;
}

void run_terminal_begin(run_terminal *terminal, pid_t group)
{
    *terminal = (run_terminal){.group = group};
    if (!run_terminal_exists() || !is_orphaned())
        start_anchor(terminal);
    give(terminal);
}

/* Return whether the signal comes from the terminal.  In a job whose stdin is
 * none, somebody else has sent STOP, and meant the command alone. */
static bool is_of_terminal(int number)
{
    return number != SIGSTOP || isatty(STDIN_FILENO);
}

bool run_terminal_follow_stop(run_terminal *terminal, int number)
{
    bool needs_terminal = number == SIGTTIN || number == SIGTTOU;

    if (terminal->group == 0 || !run_terminal_exists() ||
        (!terminal->is_given && !is_of_terminal(number)))
        return false;
    if (needs_terminal && pass(getpgrp(), terminal->group)) {
        terminal->is_given = true;
        return true;
    }
    if (is_orphaned())
        return false;
    if (needs_terminal)
        run_note("the command needs the terminal, and is stopped until sqlock "
                 "is in the foreground");
    /* Our shell waits for our whole process group to stop.  While sqlock is
     * stopped, the lease is not renewed; the supervisor, which is not stopped,
     * ends the command in time. */
    take_back(terminal);
    (void)kill(0, SIGSTOP);
    return false;
}

void run_terminal_resume(run_terminal *terminal)
{
    if (terminal->group != 0 && !terminal->is_given)
        give(terminal);
}

bool run_terminal_end(run_terminal *terminal, int wait_status)
{
    bool was_given = terminal->is_given;

    if (terminal->group == 0)
        return false;
    take_back(terminal);
    terminal->group = 0;
    if (terminal->anchor != 0) {
        (void)kill(terminal->anchor, SIGKILL);
        (void)waitpid(terminal->anchor, NULL, 0);
        terminal->anchor = 0;
    }
    /* ^C on the terminal has reached the command's group only.  Pass it on to
     * the other programs of our own group. */
    if (was_given && WIFSIGNALED(wait_status) &&
        WTERMSIG(wait_status) == SIGINT && getpgrp() != getpid())
        (void)kill(0, SIGINT);
    return was_given && (run_ended_by(wait_status, SIGINT) ||
                         run_ended_by(wait_status, SIGQUIT));
}
