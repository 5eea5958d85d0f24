/*
 * watcher.c - the supervisor's parent, a child of sqlock: it sleeps until the
 * supervisor has ended and, if the supervisor was killed, kills all descendants
 * that are left
 *
 * When a subreaper ends, its children go to the next subreaper above it.  So
 * any two of sqlock, the watcher and the supervisor may be killed together: all
 * descendants of the command are then below the third.  Watcher and supervisor
 * have sessions and names of their own, so neither a signal to a process group
 * nor one sent by name reaches all three.
 */
#include "run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

void run_watcher_prepare(const run_options *options, const char *name)
{
    char *password_variable = cli_password_variable(options->url);
    sigset_t all;

    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
        cli_error("cannot watch a process: %s", strerror(errno));
        _exit(CLI_SYSTEM);
    }
    cli_rename(name);
    cli_forget_variable(password_variable);
    free(password_variable);
}

/* Wait for the supervisor's end.  If it has exited by itself, nothing is left
 * to do.  If sqlock was killed, too, nobody releases the lock: it stays held
 * until the lease expires. */
static void watch(pid_t supervisor, pid_t sqlock)
{
    siginfo_t info = {0};
    int rc;

    do {
        rc = waitid(P_PID, (id_t)supervisor, &info, WEXITED);
    } while (rc != 0 && errno == EINTR);
    if (rc == 0 && info.si_code == CLD_EXITED)
        return;
    (void)run_family_sweep();
    if (getppid() != sqlock) /* otherwise sqlock reports it */
        cli_error("sqlock and its supervisor were killed; the command and its "
                  "processes were killed, too");
}

void run_watcher_become(const run_options *options, pid_t sqlock, int link_fd)
{
    pid_t supervisor;

    run_watcher_prepare(options, "lock-watcher");
    supervisor = fork();
    if (supervisor == 0)
        return;
    if (supervisor < 0)
        _exit(cli_fail_to("cannot start a process", errno));
    (void)close(link_fd);
    (void)setsid();
    watch(supervisor, sqlock);
    _exit(CLI_OK);
}
