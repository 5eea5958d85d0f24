/*
 * run_child.c - the command that `sqlock run` runs: a child in a process group
 * of its own, with the lock in its environment and nothing of ours besides.
 * When to signal it is decided elsewhere.
 *
 * sqlock is a subreaper: what outlives its parent becomes our child, so that it
 * can be found and waited for.  A kill -9 of sqlock ends the command itself
 * (PR_SET_PDEATHSIG), but not what it has started.
 */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* ----------------------------------------------------------- environment -- */

enum { SET_KEY, SET_NAME, SET_REGION, SET_TOKEN, SET_COUNT };

static const char *const set_names[SET_COUNT] = {
    "SQLOCK_KEY", "SQLOCK_NAME", "SQLOCK_REGION", "SQLOCK_TOKEN"};

static bool is_variable(const char *entry, const char *name)
{
    size_t length = strlen(name);

    return strncmp(entry, name, length) == 0 && entry[length] == '=';
}

static bool is_passed_on(const char *entry, const char *password_variable)
{
    size_t i;

    for (i = 0; i < SET_COUNT; i++) {
        if (is_variable(entry, set_names[i]))
            return false;
    }
    if (password_variable != NULL && is_variable(entry, password_variable))
        return false;
    return !is_variable(entry, "SQLOCK_URL");
}

typedef struct environment {
    char *set[SET_COUNT]; /* owned */
    char **entries;       /* these, and the caller's; NULL at the end */
} environment;

static void environment_clear(environment *made)
{
    size_t i;

    for (i = 0; i < SET_COUNT; i++)
        free(made->set[i]);
    free(made->entries);
}

static bool environment_init(environment *made, const run_options *options,
                             const run_lease_news *lease)
{
    const char *texts[SET_COUNT];
    char *password_variable = cli_password_variable(options->url);
    char token[24];
    size_t count = 0;
    size_t to = 0;
    bool is_whole = true;
    size_t i;

    *made = (environment){.entries = NULL};
    (void)snprintf(token, sizeof token, "%" PRId64, lease->token);
    texts[SET_KEY] = lease->key;
    texts[SET_NAME] = options->name;
    texts[SET_REGION] = options->registry.region;
    texts[SET_TOKEN] = token;
    while (environ[count] != NULL)
        count++;
    made->entries = calloc(count + SET_COUNT + 1, sizeof *made->entries);
    if (made->entries == NULL) {
        free(password_variable);
        return false;
    }
    for (i = 0; i < SET_COUNT; i++) {
        if (asprintf(&made->set[i], "%s=%s", set_names[i], texts[i]) < 0) {
            made->set[i] = NULL;
            is_whole = false;
        }
        made->entries[to++] = made->set[i];
    }
    for (i = 0; i < count; i++) {
        if (is_passed_on(environ[i], password_variable))
            made->entries[to++] = environ[i];
    }
    free(password_variable);
    return is_whole;
}

/* ----------------------------------------------------------------- start -- */

/* An interactive command needs the terminal.  Not when a pipe connects us with
 * another program of the job, which would lose it. */
static bool may_give_terminal(void)
{
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) &&
           tcgetpgrp(STDIN_FILENO) == getpgrp();
}

/* In the child, after fork() in a process with threads: system calls only. */
static void become(const run_options *options, char *const *entries,
                   const sigset_t *mask, pid_t parent, bool has_terminal,
                   int report_fd)
{
    ssize_t written;
    int error;

    (void)setpgid(0, 0);
    if (has_terminal)
        (void)tcsetpgrp(STDIN_FILENO, getpid());
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(CLI_SYSTEM);
    (void)sigprocmask(SIG_SETMASK, mask, NULL);
    (void)execvpe(options->command[0], options->command, entries);
    error = errno;
    written = write(report_fd, &error, sizeof error);
    (void)written;
    _exit(CLI_UNRUNNABLE);
}

/* execve() that works closes the pipe; one that fails writes errno into it. */
static int wait_for_exec(int report_fd)
{
    int error = 0;
    ssize_t got;

    do {
        got = read(report_fd, &error, sizeof error);
    } while (got < 0 && errno == EINTR);
    return got == (ssize_t)sizeof error ? error : 0;
}

static int refuse(const char *command, int error)
{
    bool is_missing = error == ENOENT || error == ENOTDIR;

    cli_error("cannot run \"%s\": %s", command, strerror(error));
    return is_missing ? CLI_NOT_FOUND : CLI_UNRUNNABLE;
}

int run_child_start(run_child *child, const run_options *options,
                    const run_lease_news *lease, const sigset_t *mask)
{
    environment made;
    int report[2] = {-1, -1};
    pid_t parent = getpid();
    int status = CLI_SYSTEM;
    int error;

    if (!environment_init(&made, options, lease)) {
        cli_error("out of memory");
        goto out;
    }
    if (pipe2(report, O_CLOEXEC) != 0) {
        cli_error("pipe: %s", strerror(errno));
        goto out;
    }
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    child->has_terminal = may_give_terminal();
    child->pid = fork();
    if (child->pid == 0)
        become(options, made.entries, mask, parent, child->has_terminal,
               report[1]);
    if (child->pid < 0) {
        cli_error("cannot start a process: %s", strerror(errno));
        child->pid = 0;
        goto out;
    }
    /* Both do it, so that it is done whoever comes first. */
    (void)setpgid(child->pid, child->pid);
    if (child->has_terminal)
        (void)tcsetpgrp(STDIN_FILENO, child->pid);
    (void)close(report[1]);
    report[1] = -1;
    error = wait_for_exec(report[0]);
    status = CLI_OK;
    if (error != 0) {
        (void)waitpid(child->pid, NULL, 0);
        run_child_give_up_terminal(child);
        child->pid = 0;
        status = refuse(options->command[0], error);
    }
out:
    if (report[0] >= 0)
        (void)close(report[0]);
    if (report[1] >= 0)
        (void)close(report[1]);
    environment_clear(&made);
    return status;
}

/* ------------------------------------------------------------- afterwards -- */

void run_child_reap(run_child *child)
{
    pid_t pid;
    int status;

    for (;;) {
        pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED);
        if (pid <= 0)
            break;
        if (pid != child->pid || child->is_reaped)
            continue;
        if (WIFSTOPPED(status) || WIFCONTINUED(status)) {
            child->is_stopped = WIFSTOPPED(status);
            continue;
        }
        child->is_reaped = true;
        child->status = status;
    }
    child->has_any_child = !(pid < 0 && errno == ECHILD);
}

bool run_child_has_group(const run_child *child)
{
    if (child->pid == 0)
        return false;
    /* EPERM: what is left runs as another user and cannot be ended by us.  The
     * number could be another group's by now only if ours has been empty for a
     * whole round of process ids; that is tolerated. */
    return kill(-child->pid, 0) == 0;
}

void run_child_signal(const run_child *child, int number)
{
    if (child->pid != 0)
        (void)kill(-child->pid, number);
}

void run_child_signal_all(const run_child *child, int number)
{
    char path[64];
    FILE *children;
    intmax_t pid;

    run_child_signal(child, number);
    /* Orphans that have left the group are our children by now; a parent that
     * lives hands its own on to us when it ends. */
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/children",
                   (int)getpid());
    children = fopen(path, "re");
    if (children == NULL)
        return;
    while (fscanf(children, "%jd", &pid) == 1) {
        if (getpgid((pid_t)pid) != child->pid)
            (void)kill((pid_t)pid, number);
    }
    (void)fclose(children);
}

void run_child_give_up_terminal(run_child *child)
{
    if (!child->has_terminal)
        return;
    child->has_terminal = false;
    /* SIGTTOU is blocked, so this is allowed from the background. */
    if (tcgetpgrp(STDIN_FILENO) == child->pid)
        (void)tcsetpgrp(STDIN_FILENO, getpgrp());
}

void run_child_follow_stop(run_child *child)
{
    if (!child->is_stopped || child->is_reaped || !isatty(STDIN_FILENO))
        return;
    /* Our shell waits for our whole process group to stop.  Nobody renews the
     * lease meanwhile; after SIGCONT the deadline is looked at first. */
    run_child_give_up_terminal(child);
    (void)kill(0, SIGSTOP);
}

void run_child_continue(run_child *child)
{
    if (child->pid == 0 || child->is_reaped)
        return;
    if (child->is_stopped && may_give_terminal())
        child->has_terminal = tcsetpgrp(STDIN_FILENO, child->pid) == 0;
    child->is_stopped = false;
    run_child_signal(child, SIGCONT);
}

int run_child_exit_status(const run_child *child)
{
    if (WIFSIGNALED(child->status))
        return CLI_SIGNALLED + WTERMSIG(child->status);
    return WEXITSTATUS(child->status);
}
