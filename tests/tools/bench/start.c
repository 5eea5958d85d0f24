/*
 * start.c - the cases of a command that runs under a lock: `sqlock run` beside
 * `flock`
 *
 * An operation ends when the command's first output has come.  That the command
 * ends, and the lock is released, is not measured.
 */
#include "cases.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define COMMAND "echo"
#define WORDS_MAX 16

struct start_client {
    const char *words[WORDS_MAX]; /* what is executed; NULL at the end */
    char *name; /* of the lock, or of its file; freed at the end */
    pid_t pid;  /* 0: none runs */
    int output; /* of the command */
};

struct start_state {
    char program[BENCH_PROGRAM_SIZE];
    char *url;
    char *file; /* of SQLite, to be removed; NULL: none */
    bool is_flock;
    unsigned clients;
    struct start_client client[BENCH_CLIENTS_MAX];
};

/* Use a SQLite file that no other process has open: the last one that closes a
 * file removes its log, and the first one makes it again. */
static int own_file(struct start_state *state,
                    const struct bench_target *target,
                    struct bench_failure *failure)
{
    sqlock_options options = SQLOCK_OPTIONS_INIT;
    size_t length = strcspn(target->url, "?");
    sqlock_error err = {0};

    free(state->url);
    if (asprintf(&state->url, "%.*s.start%s", (int)length, target->url,
                 target->url + length) < 0)
        state->url = NULL;
    if (state->url == NULL ||
        asprintf(&state->file, "%.*s.start", (int)(length - strlen("sqlite:")),
                 target->url + strlen("sqlite:")) < 0) {
        state->file = NULL;
        return bench_fail(failure, "out of memory");
    }
    options.table_prefix = target->lock_prefix;
    if (sqlock_schema_create(state->url, &options, SQLOCK_LAYOUT_SQLOCK,
                             &err) != 0)
        return bench_fail(failure, "sqlock_schema_create: %s", err.message);
    return 0;
}

int bench_find_program(char out[BENCH_PROGRAM_SIZE],
                       struct bench_failure *failure)
{
    char own[BENCH_PROGRAM_SIZE / 2];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    char *slash;
    int i;

    own[length > 0 ? length : 0] = '\0';
    for (i = 0; i < 2; i++) {
        slash = strrchr(own, '/');
        if (slash != NULL)
            *slash = '\0';
    }
    (void)snprintf(out, BENCH_PROGRAM_SIZE, "%s/bin/sqlock", own);
    if (access(out, X_OK) != 0)
        return bench_fail(failure, "%s is not there: `make` builds it", out);
    return 0;
}

static int fill_client(struct start_state *state, unsigned index,
                       const struct bench_target *target,
                       struct bench_failure *failure)
{
    struct start_client *client = &state->client[index];
    const char *flock_words[] = {"flock", NULL, COMMAND, NULL};
    const char *run_words[] = {
        state->program,      "run", "-q", "--url", state->url, "--table-prefix",
        target->lock_prefix, NULL,  "--", COMMAND, NULL};

    client->output = -1;
    if (asprintf(&client->name, "%s%u",
                 state->is_flock ? "/tmp/bench-flock-" : "bench start ",
                 target->first + index) < 0) {
        client->name = NULL;
        return bench_fail(failure, "out of memory");
    }
    if (state->is_flock) {
        memcpy(client->words, flock_words, sizeof flock_words);
        client->words[1] = client->name;
        return 0;
    }
    memcpy(client->words, run_words, sizeof run_words);
    client->words[7] = client->name;
    return 0;
}

static int set_up(void **out, const struct bench_target *target, bool is_flock,
                  struct bench_failure *failure)
{
    struct start_state *state = calloc(1, sizeof *state);
    int rc = 0;

    *out = state;
    if (state == NULL)
        return bench_fail(failure, "out of memory");
    state->is_flock = is_flock;
    state->url = strdup(target->url);
    if (state->url == NULL)
        return bench_fail(failure, "out of memory");
    if (!is_flock)
        rc = bench_find_program(state->program, failure);
    if (rc == 0 && !is_flock && strcmp(target->database, "sqlite") == 0)
        rc = own_file(state, target, failure);
    for (; rc == 0 && state->clients < target->clients; state->clients++)
        rc = fill_client(state, state->clients, target, failure);
    return rc;
}

int flock_setup(void **out, const struct bench_target *target,
                struct bench_failure *failure)
{
    return set_up(out, target, true, failure);
}

int start_setup(void **out, const struct bench_target *target,
                struct bench_failure *failure)
{
    return set_up(out, target, false, failure);
}

void start_teardown(void *opaque)
{
    struct start_state *state = opaque;
    unsigned i;

    if (state == NULL)
        return;
    for (i = 0; i < state->clients; i++) {
        if (state->is_flock)
            (void)unlink(state->client[i].name);
        free(state->client[i].name);
    }
    if (state->file != NULL)
        (void)unlink(state->file);
    free(state->file);
    free(state->url);
    free(state);
}

/* Execute the client's words, with standard output going to `to`. */
static int spawn(struct start_client *client, int to,
                 struct bench_failure *failure)
{
    posix_spawn_file_actions_t actions;
    int error;

    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_adddup2(&actions, to, STDOUT_FILENO);
    error = posix_spawnp(&client->pid, client->words[0], &actions, NULL,
                         (char *const *)(uintptr_t)client->words, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    if (error == 0)
        return 0;
    client->pid = 0;
    return bench_fail(failure, "cannot run %s: %s", client->words[0],
                      strerror(error));
}

int start_command(void *opaque, unsigned number, struct bench_failure *failure)
{
    struct start_state *state = opaque;
    struct start_client *client = &state->client[number];
    int ends[2];
    char byte;
    int rc;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return bench_fail(failure, "pipe2 has failed");
    client->output = ends[0];
    rc = spawn(client, ends[1], failure);
    (void)close(ends[1]);
    if (rc == 0 && read(client->output, &byte, 1) != 1)
        rc =
            bench_fail(failure, "%s has not run the command", client->words[0]);
    if (rc != 0)
        start_settle(state, number);
    return rc;
}

void start_settle(void *opaque, unsigned number)
{
    struct start_state *state = opaque;
    struct start_client *client = &state->client[number];

    if (client->pid > 0)
        (void)waitpid(client->pid, NULL, 0);
    (void)close(client->output);
    client->pid = 0;
    client->output = -1;
}
