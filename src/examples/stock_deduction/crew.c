/*
 * crew.c - run a job in several processes and watch them
 *
 * The parent touches no database: connections, client libraries and the
 * threads of a registry come to life in the children only, after the fork.
 */
#include "crew.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const int interrupts[] = {SIGINT, SIGTERM, SIGHUP};
enum { INTERRUPTS = sizeof interrupts / sizeof interrupts[0] };

static sigset_t watched;  /* SIGCHLD and the interrupts */
static sigset_t original; /* the mask this program was started with */
static int interrupted_by;
static bool is_settled; /* interrupts do not count any more */

void crew_start(void)
{
    (void)sigemptyset(&watched);
    (void)sigaddset(&watched, SIGCHLD);
    for (size_t i = 0; i < INTERRUPTS; i++)
        (void)sigaddset(&watched, interrupts[i]);
    (void)sigprocmask(SIG_BLOCK, &watched, &original);
    (void)signal(SIGPIPE, SIG_IGN); /* a lost connection is an error code */
}

int crew_settle(void)
{
    for (size_t i = 0; i < INTERRUPTS; i++)
        (void)signal(interrupts[i], SIG_IGN); /* drops pending ones, too */
    is_settled = true;
    return interrupted_by;
}

static _Noreturn void run_child(int index, crew_job job, void *context,
                                pid_t parent)
{
    /* Ctrl-C reaches every process of the terminal: the parent alone acts on
       it.  And no child outlives a parent that was killed. */
    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGTERM, SIG_DFL);
    (void)signal(SIGHUP, SIG_IGN);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(EXIT_FAILURE);
    (void)sigprocmask(SIG_SETMASK, &original, NULL);
    exit(job(index, context) == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
}

/* Reap one child if it has ended.  @return -1 when it did not end well, which
   is printed unless @p is_ending; otherwise 0 */
static int reap(pid_t *child, int index, bool is_ending)
{
    int status = 0;

    if (*child == 0 || waitpid(*child, &status, WNOHANG) != *child)
        return 0;
    *child = 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS)
        return 0;
    if (WIFSIGNALED(status) && !is_ending)
        fprintf(stderr, "process %d was ended by signal %d (%s)\n", index,
                WTERMSIG(status), strsignal(WTERMSIG(status)));
    return -1;
}

/* Wait until something happens, a tenth of a second at most. */
static void wait_for_news(void)
{
    const struct timespec tenth = {.tv_nsec = 100000000};
    int number = sigtimedwait(&watched, NULL, &tenth);

    for (size_t i = 0; i < INTERRUPTS; i++)
        if (number == interrupts[i] && interrupted_by == 0)
            interrupted_by = number;
}

static int start(pid_t children[], int count, crew_job job, void *context)
{
    pid_t parent = getpid();

    (void)fflush(NULL); /* or each child would print it again */
    for (int i = 0; i < count; i++) {
        children[i] = fork();
        if (children[i] == 0)
            run_child(i, job, context, parent);
        if (children[i] < 0) {
            perror("fork");
            children[i] = 0;
            return -1;
        }
    }
    return 0;
}

int crew_run(int count, crew_job job, void *context, crew_tick tick)
{
    pid_t children[CREW_MAX] = {0};
    int rc = start(children, count, job, context);
    bool is_ending = false;
    int left;

    do {
        left = 0;
        for (int i = 0; i < count; i++) {
            if (reap(&children[i], i, is_ending) < 0)
                rc = -1;
            left += children[i] != 0;
        }
        if (interrupted_by != 0 && !is_settled)
            rc = -1;
        if (rc < 0 && !is_ending) {
            /* Not SIGTERM: a process that was stopped would not notice. */
            for (int i = 0; i < count; i++)
                if (children[i] != 0)
                    (void)kill(children[i], SIGKILL);
            is_ending = true;
        }
        if (tick != NULL)
            tick(context);
        if (left > 0)
            wait_for_news();
    } while (left > 0);
    return rc;
}
