/*
 * child.c - start the command: a child of the supervisor in a process group of
 * its own, with the lock in its environment
 * The child waits at a gate, a socket, until everything is ready; then it
 * executes the command, or says through the gate why it cannot.  It stays in
 * sqlock's session, so that it can have the terminal; the supervisor leaves
 * that session before the gate is opened.
 */
#include "run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* ----------------------------------------------------------- environment -- */

#define LISTENER "LISTEN_PID"

typedef struct variable {
    const char *name;
    const char *value;
} variable;

static bool is_variable(const char *entry, const char *name)
{
    size_t length = strlen(name);

    return strncmp(entry, name, length) == 0 && entry[length] == '=';
}

static bool is_one_of(const variable *set, size_t count, const char *entry)
{
    size_t i = 0;

    while (i < count && !is_variable(entry, set[i].name))
        i++;
    return i < count;
}

/* Append "NAME=value".  Return false if out of memory. */
static bool set_one(char **entries, size_t *to, const variable *one)
{
    int length = asprintf(&entries[*to], "%s=%s", one->name, one->value);

    *to += length >= 0;
    return length >= 0;
}

bool run_child_is_listener(void)
{
    const char *pid = getenv(LISTENER);
    int64_t number;

    return pid != NULL && lk_text_integer(pid, &number) && number == getpid();
}

char **run_child_environment(const run_options *options, const run_grant *grant)
{
    const char *around = getenv(RUN_LEASES);
    char *password_variable = cli_password_variable(options->url);
    char *leases = NULL;
    char token[CLI_NUMBER_SIZE];
    const variable set[] = {
        {"SQLOCK_KEY", grant->key},
        {"SQLOCK_NAME", options->name},
        {"SQLOCK_REGION", options->registry.region},
        {"SQLOCK_TOKEN", cli_number_text(token, grant->token)},
        {"SQLOCK_CLIENT_ID", grant->client_id},
        {"SQLOCK_LEASE", grant->lease},
    };
    const size_t set_count = sizeof set / sizeof set[0];
    const variable tag = {"PGAPPNAME", grant->tag};
    char *const *entry;
    char **entries;
    size_t count = 0;
    size_t to = 0;
    size_t i;

    while (environ[count] != NULL)
        count++;
    entries = calloc(count + set_count + CLI_SETTINGS + 3, sizeof *entries);
    if (entries == NULL ||
        asprintf(&leases, "%s%s%s", grant->lease, around != NULL ? " " : "",
                 around != NULL ? around : "") < 0 ||
        !set_one(entries, &to, &(variable){RUN_LEASES, leases}) ||
        (grant->tag[0] != '\0' && getenv(tag.name) == NULL &&
         !set_one(entries, &to, &tag))) {
        free(entries);
        return NULL;
    }
    for (i = 0; i < set_count; i++) {
        if (!set_one(entries, &to, &set[i])) {
            free(entries);
            return NULL;
        }
    }
    for (entry = options->settings; *entry != NULL; entry++) {
        if (!is_one_of(set, set_count, *entry))
            entries[to++] = *entry;
    }
    for (entry = environ; *entry != NULL; entry++) {
        if (!is_one_of(set, set_count, *entry) &&
            !is_variable(*entry, RUN_LEASES) && !cli_is_setting(*entry) &&
            (password_variable == NULL ||
             !is_variable(*entry, password_variable)))
            entries[to++] = *entry;
    }
    return entries;
}

/* ----------------------------------------------------------------- start -- */

/* A service manager hands sockets to the process LISTEN_PID (sd_listen_fds(3)).
 * The command has those that were handed to sqlock: name it there, in the
 * child. */
static void name_listener(char **environment)
{
    static char entry[32];

    for (; *environment != NULL; environment++) {
        if (!is_variable(*environment, LISTENER))
            continue;
        (void)snprintf(entry, sizeof entry, LISTENER "=%d", (int)getpid());
        *environment = entry;
    }
}

/* Become the command, in the child; never return.  When the supervisor ends,
 * the kernel ends the child, too. */
static void become(const run_options *options, char **environment,
                   const sigset_t *mask, pid_t parent, int gate_fd)
{
    ssize_t done;
    char byte;
    int error;

    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(CLI_SYSTEM);
    do {
        done = read(gate_fd, &byte, 1);
    } while (done < 0 && errno == EINTR);
    if (done != 1)
        _exit(CLI_SYSTEM);
    (void)sigprocmask(SIG_SETMASK, mask, NULL);
    if (options->is_listener)
        name_listener(environment);
    (void)execvpe(options->command[0],
                  (char *const *)(uintptr_t)options->command, environment);
    error = errno;
    (void)!write(gate_fd, &error, sizeof error);
    _exit(CLI_UNRUNNABLE);
}

int run_child_fork(run_child *child, const run_options *options,
                   char **environment, const sigset_t *mask,
                   const run_cgroup *cgroup)
{
    pid_t parent = getpid();
    int gate[2];
    int error;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, gate) != 0)
        return errno;
    child->pid = run_cgroup_fork(cgroup);
    error = errno;
    if (child->pid == 0) {
        (void)close(gate[0]);
        become(options, environment, mask, parent, gate[1]);
    }
    (void)close(gate[1]);
    if (child->pid < 0) {
        (void)close(gate[0]);
        child->pid = 0;
        return error;
    }
    /* Parent and child both make the group, so that it exists whichever of them
     * runs first. */
    (void)setpgid(child->pid, child->pid);
    child->gate_fd = gate[0];
    return 0;
}

void run_child_go(run_child *child)
{
    if (child->is_let_in)
        return;
    child->is_let_in = true;
    /* SIGPIPE is blocked; a child that has ended is noticed elsewhere */
    (void)!write(child->gate_fd, "", 1);
}

void run_child_shut_out(run_child *child)
{
    child->is_let_in = true;
    (void)shutdown(child->gate_fd, SHUT_WR);
}

int run_child_read_report(run_child *child)
{
    int error = 0;
    ssize_t got;

    do {
        got = read(child->gate_fd, &error, sizeof error);
    } while (got < 0 && errno == EINTR);
    (void)close(child->gate_fd);
    child->gate_fd = -1;
    return got == (ssize_t)sizeof error ? error : 0;
}
