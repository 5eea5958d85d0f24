/*
 * election.c - the case of a leader that is killed: how soon the next one,
 * which waits already, has the lock
 *
 * The leader is a process of `sqlock run`, and the next one is a thread here.
 * The case "handoff" of two clients tells what a leader that resigns costs.
 */
#include "cases.h"

#include <fcntl.h>
#include <stdio.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NAME "bench leader"
#define TTL "2s"
#define SETTLE_NS 100000000

struct election_state {
    char program[BENCH_PROGRAM_SIZE];
    const char *url, *prefix;
    sqlock_registry *registry;
    sqlock_lock *lock;
    pthread_t next; /* waits for the lock, while there is a leader */
    int rc;         /* of its acquire */
    sqlock_error err;
    pid_t leader; /* 0: none */
    int input;    /* the leader ends with it */
};

/* Find the command that was built with this program, build/bin/sqlock beside
 * build/tests/bench. */
static int find_program(char out[BENCH_PROGRAM_SIZE],
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

/* Start a process that leads, and does until its input ends; wait until it
 * does. */
static int start_leader(struct election_state *state,
                        struct bench_failure *failure)
{
    const char *words[] = {state->program,
                           "run",
                           "-q",
                           "--ttl",
                           TTL,
                           "--url",
                           state->url,
                           "--table-prefix",
                           state->prefix,
                           NAME,
                           "--",
                           "sh",
                           "-c",
                           "echo; exec cat",
                           NULL};
    posix_spawn_file_actions_t actions;
    int in[2], out[2], error;
    char byte;

    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
        return bench_fail(failure, "pipe2 has failed");
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    (void)posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    /* there the command's guard says that it was killed */
    (void)posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null",
                                           O_WRONLY, 0);
    error = posix_spawn(&state->leader, state->program, &actions, NULL,
                        (char *const *)(uintptr_t)words, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(in[0]);
    (void)close(out[1]);
    state->input = in[1];
    if (error != 0)
        state->leader = 0;
    if (error != 0 || read(out[0], &byte, 1) != 1)
        (void)bench_fail(failure, "%s does not lead", state->program);
    (void)close(out[0]);
    return failure->text[0] == '\0' ? 0 : -1;
}

static void *campaign(void *opaque)
{
    struct election_state *state = opaque;

    state->rc = sqlock_acquire(state->lock, SQLOCK_FOREVER, NULL, &state->err);
    if (state->rc == 0)
        state->rc = sqlock_release(state->lock, &state->err);
    return NULL;
}

/* Have a leader, and let the next one wait behind it. */
int killed_prepare(void *opaque, unsigned client, struct bench_failure *failure)
{
    const struct timespec settle = {.tv_nsec = SETTLE_NS};
    struct election_state *state = opaque;

    (void)client;
    if (start_leader(state, failure) < 0)
        return -1;
    if (pthread_create(&state->next, NULL, campaign, state) != 0)
        abort();
    (void)nanosleep(&settle, NULL);
    return 0;
}

int killed_setup(void **out, const struct bench_target *target,
                 struct bench_failure *failure)
{
    struct election_state *state = calloc(1, sizeof *state);
    sqlock_options options = SQLOCK_OPTIONS_INIT;
    sqlock_error err = {0};

    *out = state;
    if (state == NULL)
        return bench_fail(failure, "out of memory");
    if (target->clients > 1)
        return bench_fail(failure, "killed: with one client only");
    state->url = target->url;
    state->prefix = target->lock_prefix;
    options.table_prefix = target->lock_prefix;
    if (find_program(state->program, failure) < 0)
        return -1;
    if (sqlock_registry_open(&state->registry, target->url, &options, &err) <
            0 ||
        sqlock_obtain(&state->lock, state->registry, NAME, &err) < 0)
        return bench_fail(failure, "sqlock: %s", err.message);
    return 0;
}

/* Kill the leader, and wait until the next one has the lock and, which takes
 * next to no time beside that, has given it back. */
static int kill_leader(struct election_state *state)
{
    (void)kill(state->leader, SIGKILL);
    (void)pthread_join(state->next, NULL);
    (void)waitpid(state->leader, NULL, 0);
    (void)close(state->input);
    state->leader = 0;
    return state->rc;
}

int killed_leader(void *opaque, unsigned client, struct bench_failure *failure)
{
    struct election_state *state = opaque;

    (void)client;
    if (kill_leader(state) < 0)
        return bench_fail(failure, "sqlock_acquire: %s", state->err.message);
    return 0;
}

void killed_teardown(void *opaque)
{
    struct election_state *state = opaque;

    if (state == NULL)
        return;
    (void)sqlock_registry_close(state->registry, NULL);
    free(state);
}
