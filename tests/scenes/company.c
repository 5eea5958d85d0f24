/*
 * company.c - see company.h
 */
#include "company.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "result.h"

struct process *company_find(struct company *company, const char *id)
{
    for (size_t i = 0; i < company->count; i++)
        if (strcmp(company->all[i].id, id) == 0)
            return &company->all[i];
    return NULL;
}

/* In the child: become an actor. */
static void become(int from, int to, pid_t parent)
{
    const char *command = getenv("SQLOCK_TEST_ACTOR");

    check_end_with(parent);
    if (dup2(from, STDIN_FILENO) < 0 || dup2(to, STDOUT_FILENO) < 0)
        _exit(126);
    if (command != NULL)
        (void)execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    else
        (void)execl("/proc/self/exe", "scenes", "--actor", (char *)NULL);
    _exit(127);
}

struct process *company_start(struct company *company, const char *id)
{
    struct process *process = &company->all[company->count++];
    pid_t parent = getpid();
    int there[2];
    int back[2];

    assert_in_range(company->count, 1, PROCESSES_MAX);
    *process = (struct process){.counted = -1};
    (void)snprintf(process->id, sizeof process->id, "%s", id);
    assert_int_equal(pipe2(there, O_CLOEXEC), 0);
    assert_int_equal(pipe2(back, O_CLOEXEC), 0);
    (void)fflush(NULL);
    process->pid = fork();
    assert_true(process->pid >= 0);
    if (process->pid == 0)
        become(there[0], back[1], parent);
    (void)close(there[0]);
    (void)close(back[1]);
    process->to = there[1];
    process->from = back[0];
    return process;
}

void company_call(struct process *process, int thread, const char *words)
{
    char line[1024];
    int length = snprintf(line, sizeof line, "%d %s\n", thread, words);

    assert_in_range(thread, 0, THREADS_MAX - 1);
    assert_in_range(length, 1, sizeof line - 1);
    process->calls[thread] = (struct call){.is_made = true};
    if (write(process->to, line, (size_t)length) != length)
        process->is_gone = true;
}

/* -------------------------------------------------------- what they say -- */

static struct loss *loss_of(struct process *process, const char *name)
{
    struct loss *loss = process->losses;

    while (loss->name[0] != '\0' && strcmp(loss->name, name) != 0)
        if (++loss == process->losses + LOSSES_MAX)
            abort();
    (void)snprintf(loss->name, sizeof loss->name, "%s", name);
    return loss;
}

const struct loss *company_loss(const struct process *process, const char *name)
{
    static const struct loss none;

    for (size_t i = 0; i < LOSSES_MAX; i++)
        if (strcmp(process->losses[i].name, name) == 0)
            return &process->losses[i];
    return &none;
}

/* Understand a line: "lost CODE NAME", "THREAD begun TID" or "THREAD ended CODE
 * TOKEN MESSAGE". */
static void hear(struct process *process, const char *line)
{
    char name[96];
    long long token;
    struct call *call;
    unsigned thread;
    int code;
    int at = 0;

    if (sscanf(line, "lost %d %95s", &code, name) == 2) {
        struct loss *loss = loss_of(process, name);

        process->told++;
        loss->times++;
        loss->code = loss->code == NOT_PLAYED ? NOT_PLAYED : code;
        return;
    }
    if (sscanf(line, "%u begun %d", &thread, &code) == 2 &&
        thread < THREADS_MAX) {
        process->calls[thread].has_begun = true;
        process->calls[thread].tid = code;
        return;
    }
    if (sscanf(line, "%u ended %d %lld %n", &thread, &code, &token, &at) < 3 ||
        thread >= THREADS_MAX) {
        print_error("%s says: %s\n", process->id, line);
        return;
    }
    call = &process->calls[thread];
    call->rc = code;
    call->token = token;
    (void)snprintf(call->message, sizeof call->message, "%s", line + at);
    call->is_over = true;
}

static void read_from(struct process *process)
{
    size_t room = sizeof process->bytes - process->count - 1;
    ssize_t got = read(process->from, process->bytes + process->count, room);
    char *end;

    if (got <= 0) {
        process->is_gone = got == 0 || errno != EINTR;
        return;
    }
    process->count += (size_t)got;
    process->bytes[process->count] = '\0';
    while ((end = strchr(process->bytes, '\n')) != NULL) {
        size_t rest = process->count - (size_t)(end + 1 - process->bytes);

        *end = '\0';
        hear(process, process->bytes);
        memmove(process->bytes, end + 1, rest + 1);
        process->count = rest;
    }
}

void company_listen(struct company *company, int ms)
{
    struct pollfd polled[PROCESSES_MAX];

    for (size_t i = 0; i < company->count; i++) {
        const struct process *process = &company->all[i];

        polled[i] = (struct pollfd){.fd = process->is_gone ? -1 : process->from,
                                    .events = POLLIN};
    }
    if (poll(polled, (nfds_t)company->count, ms) <= 0)
        return;
    for (size_t i = 0; i < company->count; i++)
        if (polled[i].revents != 0)
            read_from(&company->all[i]);
}

bool company_await(struct company *company, const struct process *process,
                   int thread)
{
    const struct call *call = &process->calls[thread];
    int64_t until = check_deadline_ns(2 * PATIENCE_MS);

    while (!call->is_over && !process->is_gone && check_deadline_ns(0) < until)
        company_listen(company, 20);
    return call->is_over;
}

/* ---------------------------------------------------- what they do not -- */

/* Read the first line of a file about a thread, or nothing. */
static void read_about(pid_t pid, int tid, const char *what, char *out,
                       size_t size)
{
    char path[64];
    FILE *file;

    out[0] = '\0';
    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/%s", (int)pid, tid,
                   what);
    file = fopen(path, "re");
    if (file == NULL)
        return;
    (void)!fgets(out, (int)size, file);
    (void)fclose(file);
}

/* A thread must be found asleep so often, 2 ms apart; more often in a system
 * call in which it may have a statement under way, if that matters. */
enum { SLEEPS = 5, SLEEPS_IN_CALL = 200 };

/* Return how often the thread, which sleeps now, must be found asleep; 0: it
 * does not sleep. */
static int sleeps_for(pid_t pid, int tid, bool is_idle)
{
    char text[256];
    const char *state;

    read_about(pid, tid, "stat", text, sizeof text);
    state = strrchr(text, ')');
    if (state == NULL || strncmp(state, ") S", 3) != 0)
        return 0;
    if (!is_idle)
        return SLEEPS;
    read_about(pid, tid, "syscall", text, sizeof text);
    return strtol(text, NULL, 10) == SYS_futex ? SLEEPS : SLEEPS_IN_CALL;
}

bool company_settle(struct company *company, const struct process *process,
                    int thread, bool is_idle)
{
    const struct call *call = &process->calls[thread];
    int64_t until = check_deadline_ns(PATIENCE_MS);
    bool is_settled = false;
    int sleeps = 0;

    while (!call->is_over && !process->is_gone && !is_settled &&
           check_deadline_ns(0) < until) {
        int needed = 0;

        company_listen(company, 0);
        if (call->has_begun)
            needed = sleeps_for(process->pid, call->tid, is_idle);
        sleeps = needed > 0 ? sleeps + 1 : 0;
        is_settled = needed > 0 && sleeps >= needed;
        check_sleep(2);
    }
    company_listen(company, 0);
    return !call->is_over && is_settled;
}

long company_sleeps(const struct process *process, int thread)
{
    char path[64];
    char line[128];
    long count = -1;
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/status",
                   (int)process->pid, process->calls[thread].tid);
    file = fopen(path, "re");
    while (file != NULL && count < 0 && fgets(line, sizeof line, file) != NULL)
        (void)sscanf(line, "voluntary_ctxt_switches: %ld", &count);
    if (file != NULL)
        (void)fclose(file);
    return count;
}

int64_t company_processor_ms(const struct process *process)
{
    char path[64];
    char text[512] = "";
    const char *name_end;
    long long user = 0;
    long long kernel = 0;
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)process->pid);
    file = fopen(path, "re");
    if (file == NULL)
        return 0;
    (void)!fgets(text, sizeof text, file);
    (void)fclose(file);
    name_end = strrchr(text, ')');
    if (name_end != NULL)
        (void)sscanf(name_end + 1,
                     " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lld %lld",
                     &user, &kernel);
    return (user + kernel) * 1000 / sysconf(_SC_CLK_TCK);
}

/* -------------------------------------------------------------- the end -- */

int company_end(struct company *company, struct process *process)
{
    int64_t until = check_deadline_ns(PATIENCE_MS);
    int status = -1;

    if (process->to >= 0)
        (void)close(process->to);
    process->to = -1;
    while (!process->is_gone && check_deadline_ns(0) < until)
        company_listen(company, 20);
    if (!process->is_gone)
        (void)kill(process->pid, SIGKILL);
    if (process->pid > 0)
        (void)waitpid(process->pid, &status, 0);
    process->pid = 0;
    (void)close(process->from);
    process->is_gone = true;
    return status;
}
