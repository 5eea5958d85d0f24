/*
 * processes.c - clients that are processes of their own
 *
 * Each client process executes this program anew: the benchmark itself has
 * connections, threads and file locks, so it cannot just fork.  A client
 * process gets messages through a socket, its standard input, and answers
 * there.  It ends when the other end is closed.
 */
#include "bench.h"
#include "cpu.h"
#include "floor.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NAME_SIZE 32
#define URL_SIZE 1024
/* Time from the messages that ask for a slice to its begin, so that every
   process has got its message by then. */
#define LEAD_NS 5000000

/* The first message to a client process: what to set up. */
struct post {
    char url[URL_SIZE];
    char database[NAME_SIZE];
    char lock_prefix[NAME_SIZE];
    char floor_prefix[NAME_SIZE];
    int64_t hold_ns;
    unsigned clients;
    unsigned first;
    size_t count;
    char cases[2 * BENCH_CASES_MAX][NAME_SIZE];
};

/* Each later message: run a slice of the case at `index` in post->cases. */
struct errand {
    size_t index;
    double seconds;
    int64_t start_ns; /* CLOCK_MONOTONIC */
};

/* The answer of a client process to each message. */
struct answer {
    int rc;
    struct bench_failure failure;
    struct bench_slice slice;
    struct bench_histogram latency;
};

struct member {
    pid_t pid;
    int socket;
};

struct bench_crew {
    pid_t server_pid;
    unsigned count;
    struct member members[BENCH_CLIENTS_MAX];
};

extern char **environ;

static int64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* -------------------------------------------------- in a client process -- */

static void sleep_until(int64_t at_ns)
{
    const struct timespec at = {at_ns / 1000000000, at_ns % 1000000000};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
        continue;
}

static int set_up(const struct post *post, struct bench_target *target,
                  const struct bench_case **cases, void **states,
                  struct bench_failure *failure)
{
    size_t i;
    int rc = 0;

    target->database = post->database;
    target->url = post->url;
    target->lock_prefix = post->lock_prefix;
    target->floor_prefix = post->floor_prefix;
    target->floor = floor_driver_find(post->database);
    target->hold_ns = post->hold_ns;
    target->clients = post->clients;
    target->first = post->first;
    target->is_set_up = true;
    for (i = 0; i < post->count && rc == 0; i++) {
        cases[i] = bench_case_find(post->cases[i]);
        if (cases[i]->is_in_process)
            cases[i] = NULL; /* no slice of it is asked for */
        else
            rc = cases[i]->setup(&states[i], target, failure);
    }
    return rc;
}

static bool hear(int socket, void *to, size_t size)
{
    return recv(socket, to, size, 0) == (ssize_t)size;
}

static bool say(int socket, const void *what, size_t size)
{
    return send(socket, what, size, MSG_NOSIGNAL) == (ssize_t)size;
}

int bench_crew_serve(void)
{
    struct post *post = calloc(1, sizeof *post);
    struct answer *answer = calloc(1, sizeof *answer);
    const struct bench_case *cases[2 * BENCH_CASES_MAX] = {NULL};
    void *states[2 * BENCH_CASES_MAX] = {NULL};
    struct bench_target target = {0};
    struct errand errand;
    size_t i;

    if (post == NULL || answer == NULL ||
        !hear(STDIN_FILENO, post, sizeof *post))
        goto out;
    answer->rc = set_up(post, &target, cases, states, &answer->failure);
    while (say(STDIN_FILENO, answer, sizeof *answer) &&
           hear(STDIN_FILENO, &errand, sizeof errand)) {
        memset(answer, 0, sizeof *answer);
        sleep_until(errand.start_ns);
        answer->rc = bench_slice_run(cases[errand.index], states[errand.index],
                                     &target, errand.seconds, &answer->slice,
                                     &answer->latency, &answer->failure);
    }
    for (i = 0; i < post->count; i++) {
        if (cases[i] != NULL)
            cases[i]->teardown(states[i]);
    }
out:
    free(post);
    free(answer);
    return EXIT_SUCCESS;
}

/* ----------------------------------------------- in the benchmark itself -- */

static int start_one(struct member *member, struct bench_failure *failure)
{
    char *const arguments[] = {(char[]){"bench"}, (char[]){"--serve"}, NULL};
    posix_spawn_file_actions_t actions;
    int ends[2];
    int rc;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return bench_fail(failure, "socketpair: %s", strerror(errno));
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
    rc = posix_spawn(&member->pid, "/proc/self/exe", &actions, NULL, arguments,
                     environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(ends[1]);
    member->socket = ends[0];
    if (rc == 0)
        return 0;
    member->pid = 0;
    return bench_fail(failure, "posix_spawn: %s", strerror(rc));
}

/* Read the next answer of a client process. */
static int collect(const struct member *member, struct answer *answer,
                   struct bench_failure *failure)
{
    if (!hear(member->socket, answer, sizeof *answer))
        return bench_fail(failure, "client process %ld has ended",
                          (long)member->pid);
    if (answer->rc != 0)
        return bench_fail(failure, "%s", answer->failure.text);
    return 0;
}

static int post_all(struct bench_crew *crew, struct post *post,
                    struct answer *answer, struct bench_failure *failure)
{
    unsigned i;

    for (i = 0; i < crew->count; i++) {
        /* Client 0 is of this process, which has set up the cases. */
        post->first = i * post->clients + 1;
        if (!say(crew->members[i].socket, post, sizeof *post) ||
            collect(&crew->members[i], answer, failure) != 0)
            return bench_fail(failure, "client process %u: no answer", i);
    }
    return 0;
}

int bench_crew_start(struct bench_crew **out, const struct bench_target *target,
                     const struct bench_clients *clients,
                     const struct bench_case *const *cases, size_t count,
                     struct bench_failure *failure)
{
    struct bench_crew *crew = calloc(1, sizeof *crew);
    struct answer *answer = calloc(1, sizeof *answer);
    struct post *post = calloc(1, sizeof *post);
    size_t i;
    int rc = -1;

    *out = NULL;
    if (crew == NULL || answer == NULL || post == NULL) {
        (void)bench_fail(failure, "out of memory");
        goto out;
    }
    if (strlen(target->url) >= sizeof post->url) {
        (void)bench_fail(failure, "the URL is too long for client processes");
        goto out;
    }
    (void)snprintf(post->url, sizeof post->url, "%s", target->url);
    (void)snprintf(post->database, sizeof post->database, "%s",
                   target->database);
    (void)snprintf(post->lock_prefix, sizeof post->lock_prefix, "%s",
                   target->lock_prefix);
    (void)snprintf(post->floor_prefix, sizeof post->floor_prefix, "%s",
                   target->floor_prefix);
    post->hold_ns = target->hold_ns;
    post->clients = clients->count / clients->processes;
    post->count = count;
    for (i = 0; i < count; i++)
        (void)snprintf(post->cases[i], sizeof post->cases[i], "%s",
                       cases[i]->name);
    crew->server_pid = target->server_pid;
    rc = 0;
    while (rc == 0 && crew->count < clients->processes) {
        rc = start_one(&crew->members[crew->count], failure);
        crew->count += rc == 0;
    }
    if (rc == 0)
        rc = post_all(crew, post, answer, failure);
    if (rc == 0) {
        *out = crew;
        crew = NULL;
    }
out:
    bench_crew_stop(crew);
    free(answer);
    free(post);
    return rc;
}

void bench_crew_stop(struct bench_crew *crew)
{
    unsigned i;

    if (crew == NULL)
        return;
    for (i = 0; i < crew->count; i++)
        (void)close(crew->members[i].socket);
    for (i = 0; i < crew->count; i++)
        (void)waitpid(crew->members[i].pid, NULL, 0);
    free(crew);
}

static int gather(const struct bench_crew *crew, struct bench_slice *slice,
                  struct bench_histogram *latency, struct answer *answer,
                  struct bench_failure *failure)
{
    uint64_t operations[BENCH_CLIENTS_MAX];
    double client_us = 0.0;
    unsigned i;

    memset(slice, 0, sizeof *slice);
    for (i = 0; i < crew->count; i++) {
        if (collect(&crew->members[i], answer, failure) != 0)
            return -1;
        operations[i] = answer->slice.operations;
        slice->operations += answer->slice.operations;
        slice->per_second += answer->slice.per_second;
        client_us +=
            answer->slice.client_us * (answer->slice.operations > 0
                                           ? (double)answer->slice.operations
                                           : 1.0);
        bench_traffic_add(&slice->traffic, &answer->slice.traffic);
        if (latency != NULL)
            bench_histogram_merge(latency, &answer->latency);
    }
    slice->client_us = bench_per_operation(client_us, slice);
    slice->variation = bench_variation(operations, crew->count);
    return 0;
}

int bench_crew_slice(struct bench_crew *crew, size_t index, double seconds,
                     struct bench_slice *slice, struct bench_histogram *latency,
                     struct bench_failure *failure)
{
    struct errand errand = {index, seconds, now_ns() + LEAD_NS};
    struct answer *answer = calloc(1, sizeof *answer);
    int64_t server_ns;
    unsigned i;
    int rc;

    if (answer == NULL)
        return bench_fail(failure, "out of memory");
    server_ns = bench_cpu_of(crew->server_pid);
    for (i = 0; i < crew->count; i++)
        (void)say(crew->members[i].socket, &errand, sizeof errand);
    rc = gather(crew, slice, latency, answer, failure);
    if (server_ns >= 0)
        server_ns = bench_cpu_of(crew->server_pid) - server_ns;
    slice->server_us = bench_per_operation((double)server_ns / 1e3, slice);
    free(answer);
    return rc;
}
