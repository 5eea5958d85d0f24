/*
 * child.c - start the command: a child of the supervisor in a process group
 * of its own, with the lock in its environment
 *
 * The child waits at a gate, a pipe, until everything is ready; then it
 * executes the command.  It stays in sqlock's session, so that it can have the
 * terminal; the supervisor leaves that session before the gate is opened.
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

/* Variables that are set; the last one only if sqlock's own environment does
 * not have it and the lease has a tag. */
enum {
    SET_KEY,
    SET_NAME,
    SET_REGION,
    SET_TOKEN,
    SET_CLIENT_ID,
    SET_LEASE,
    SET_LEASES,
    SET_TAG,
    SET_COUNT
};

static const char *const set_names[SET_COUNT] = {
    "SQLOCK_KEY",       "SQLOCK_NAME",  "SQLOCK_REGION", "SQLOCK_TOKEN",
    "SQLOCK_CLIENT_ID", "SQLOCK_LEASE", RUN_LEASES,      "PGAPPNAME"};

static bool is_variable(const char *entry, const char *name)
{
    size_t length = strlen(name);

    return strncmp(entry, name, length) == 0 && entry[length] == '=';
}

static bool is_passed_on(const char *entry, const char *password_variable)
{
    size_t i;

    for (i = 0; i < SET_TAG; i++) {
        if (is_variable(entry, set_names[i]))
            return false;
    }
    if (password_variable != NULL && is_variable(entry, password_variable))
        return false;
    return !cli_is_setting(entry);
}

void run_environment_clear(run_environment *made)
{
    size_t i;

    for (i = 0; i < SET_COUNT; i++)
        free(made->set[i]);
    free(made->entries);
}

bool run_environment_init(run_environment *made, const run_options *options,
                          const run_message *start,
                          const char *password_variable)
{
    const char *around = getenv(RUN_LEASES);
    const char *texts[SET_COUNT];
    char token[24];
    bool has_tag = start->tag[0] != '\0' && getenv(set_names[SET_TAG]) == NULL;
    char *const *setting;
    size_t count = 0;
    size_t to = 0;
    bool is_whole = true;
    size_t i;

    *made = (run_environment){.entries = NULL};
    (void)snprintf(token, sizeof token, "%" PRId64, start->token);
    texts[SET_KEY] = start->key;
    texts[SET_NAME] = options->name;
    texts[SET_REGION] = options->registry.region;
    texts[SET_TOKEN] = token;
    texts[SET_CLIENT_ID] = start->client_id;
    texts[SET_LEASE] = start->lease;
    texts[SET_LEASES] = start->lease;
    texts[SET_TAG] = start->tag;
    while (environ[count] != NULL)
        count++;
    made->entries =
        calloc(count + SET_COUNT + CLI_SETTINGS + 1, sizeof *made->entries);
    if (made->entries == NULL)
        return false;
    for (i = 0; i < (has_tag ? SET_COUNT : SET_TAG); i++) {
        bool has_more = i == SET_LEASES && around != NULL;

        if (asprintf(&made->set[i], "%s=%s%s%s", set_names[i], texts[i],
                     has_more ? " " : "", has_more ? around : "") < 0) {
            made->set[i] = NULL;
            is_whole = false;
        }
        made->entries[to++] = made->set[i];
    }
    for (setting = options->settings; *setting != NULL; setting++) {
        if (!is_variable(*setting, set_names[SET_REGION]))
            made->entries[to++] = *setting;
    }
    for (i = 0; i < count; i++) {
        if (is_passed_on(environ[i], password_variable))
            made->entries[to++] = environ[i];
    }
    return is_whole;
}

/* ----------------------------------------------------------------- start -- */

typedef struct way_in {
    int gate[2];
    int report[2];
} way_in;

static void close_pair(const int pair[2])
{
    if (pair[0] >= 0)
        (void)close(pair[0]);
    if (pair[1] >= 0)
        (void)close(pair[1]);
}

/* Become the command, in the child; never return.  When the supervisor ends,
 * the kernel ends the child, too. */
static void become(const run_options *options, char *const *entries,
                   const sigset_t *mask, pid_t parent, const way_in *way,
                   int cgroup_fd)
{
    ssize_t done;
    char byte;
    int error;

    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(CLI_SYSTEM);
    if (cgroup_fd >= 0) {
        done = write(cgroup_fd, "0", 1);
        (void)done; /* if refused, family.c finds its descendants alone */
    }
    (void)close(way->gate[1]);
    do {
        done = read(way->gate[0], &byte, 1);
    } while (done < 0 && errno == EINTR);
    if (done != 1)
        _exit(CLI_SYSTEM);
    (void)sigprocmask(SIG_SETMASK, mask, NULL);
    (void)execvpe(options->command[0],
                  (char *const *)(uintptr_t)options->command, entries);
    error = errno;
    done = write(way->report[1], &error, sizeof error);
    (void)done;
    _exit(CLI_UNRUNNABLE);
}

int run_child_fork(run_child *child, const run_options *options,
                   const run_environment *environment, const sigset_t *mask,
                   int cgroup_fd)
{
    way_in way = {.gate = {-1, -1}, .report = {-1, -1}};
    pid_t parent = getpid();
    pid_t pid;
    int error;

    if (pipe2(way.gate, O_CLOEXEC) != 0 || pipe2(way.report, O_CLOEXEC) != 0)
        goto failed;
    pid = fork();
    if (pid == 0)
        become(options, environment->entries, mask, parent, &way, cgroup_fd);
    if (pid < 0)
        goto failed;
    /* Parent and child both make the group, so that it exists whichever of them
     * runs first. */
    (void)setpgid(pid, pid);
    (void)close(way.gate[0]);
    (void)close(way.report[1]);
    *child = (run_child){
        .pid = pid, .gate_fd = way.gate[1], .report_fd = way.report[0]};
    return 0;
failed:
    error = errno;
    close_pair(way.gate);
    close_pair(way.report);
    return error;
}

void run_child_go(run_child *child)
{
    ssize_t written;

    if (child->gate_fd < 0)
        return;
    written = write(child->gate_fd, "", 1);
    /* SIGPIPE is blocked; a child that has ended is noticed elsewhere */
    (void)written;
    run_child_forget_gate(child);
}

void run_child_forget_gate(run_child *child)
{
    if (child->gate_fd >= 0)
        (void)close(child->gate_fd);
    child->gate_fd = -1;
}

int run_child_read_report(run_child *child)
{
    int error = 0;
    ssize_t got;

    do {
        got = read(child->report_fd, &error, sizeof error);
    } while (got < 0 && errno == EINTR);
    (void)close(child->report_fd);
    child->report_fd = -1;
    return got == (ssize_t)sizeof error ? error : 0;
}
