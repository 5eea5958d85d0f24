/*
 * run_terminal.c - the terminal, which belongs to sqlock's session: the command
 * has it while it runs, as a shell's job does
 *
 * The kernel drops stop signals from the keyboard for a process group that
 * nothing could continue: one without a member whose parent is in another group
 * of the same session.  The command's parent is in a session of its own, so an
 * idle process, the anchor, joins the command's group as a child of ours. There
 * is no anchor if nothing could continue sqlock either: then the kernel is
 * right.
 */
#include "run.h"

#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/secret.h"

/* Tell whether the terminal may be given away: not if a pipe connects sqlock
 * with another program of the job, which would lose the terminal. */
static bool may_give(void)
{
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) &&
           tcgetpgrp(STDIN_FILENO) == getpgrp();
}

static void give(run_terminal *terminal)
{
    if (!may_give())
        return;
    terminal->is_given = tcsetpgrp(STDIN_FILENO, terminal->group) == 0;
    terminal->was_given = terminal->was_given || terminal->is_given;
}

/* Take the terminal back.  SIGTTOU is blocked, so this works from the
 * background. */
static void take_back(run_terminal *terminal)
{
    if (!terminal->is_given)
        return;
    terminal->is_given = false;
    if (tcgetpgrp(STDIN_FILENO) == terminal->group)
        (void)tcsetpgrp(STDIN_FILENO, getpgrp());
}

/* The probe of is_orphaned().  After fork() in a process with threads: system
 * calls only. */
static void be_probe(void)
{
    /* the terminal's ^C reaches our whole process group */
    sigset_t others;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)signal(SIGTSTP, SIG_DFL);
    (void)sigfillset(&others);
    (void)sigdelset(&others, SIGTSTP);
    (void)sigprocmask(SIG_SETMASK, &others, NULL);
    (void)raise(SIGTSTP);
    _exit(CLI_OK);
}

/* Tell whether nothing can continue our process group, as in a container or
 * under `ssh -t HOST sqlock run`.  That depends on the parents of all its
 * members, which the kernel knows: in such a group it does not stop a child. */
static bool is_orphaned(void)
{
    pid_t probe = fork();
    int status = 0;

    if (probe == 0)
        be_probe();
    if (probe < 0)
        return false;
    (void)waitpid(probe, &status, WUNTRACED);
    if (WIFSTOPPED(status)) {
        (void)kill(probe, SIGKILL);
        (void)waitpid(probe, NULL, 0);
    }
    return WIFEXITED(status);
}

/* The anchor.  After fork() in a process with threads: system calls only. */
static void be_anchor(pid_t parent)
{
    sigset_t all;
    char **entry;

    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (entry = environ; *entry != NULL; entry++)
        lk_wipe_text(*entry); /* shows nobody anything */
    (void)close_range(0, ~0U, 0);
    while (getppid() == parent)
        (void)pause();
    _exit(CLI_OK);
}

/* Start the anchor.  Without it only ^Z does not work. */
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
    if (!isatty(STDIN_FILENO) || !is_orphaned())
        start_anchor(terminal);
    give(terminal);
}

void run_terminal_follow_stop(run_terminal *terminal)
{
    if (terminal->group == 0 || !isatty(STDIN_FILENO) || is_orphaned())
        return;
    /* Our shell waits for our whole process group to stop.  The lease is not
     * renewed meanwhile; the supervisor keeps its deadline. */
    take_back(terminal);
    (void)kill(0, SIGSTOP);
}

void run_terminal_resume(run_terminal *terminal)
{
    if (terminal->group != 0 && !terminal->is_given)
        give(terminal);
}

void run_terminal_end(run_terminal *terminal, int wait_status)
{
    if (terminal->group == 0)
        return;
    take_back(terminal);
    terminal->group = 0;
    if (terminal->anchor != 0) {
        (void)kill(terminal->anchor, SIGKILL);
        (void)waitpid(terminal->anchor, NULL, 0);
        terminal->anchor = 0;
    }
    /* Other programs of our process group would have received the terminal's
     * ^C. */
    if (terminal->was_given && WIFSIGNALED(wait_status) &&
        WTERMSIG(wait_status) == SIGINT && getpgrp() != getpid())
        (void)kill(0, SIGINT);
}
