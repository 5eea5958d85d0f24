/*
 * slice.c - let clients repeat an operation for a while
 *
 * A client is a thread.  Its results are plain data, which a client process
 * (processes.c) can send.  rounds.c chooses the slices to compare.
 */
#include "bench.h"
#include "cpu.h"
#include "turns.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct client {
    const struct bench_case *the_case;
    void *state;
    unsigned number;
    int64_t duration_ns;
    pthread_barrier_t *start;
    atomic_bool *stop; /* a client has failed */

    int rc;
    uint64_t operations;
    int64_t elapsed_ns; /* of its operations */
    struct bench_failure failure;
    struct bench_histogram latency;
};

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;

    (void)clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void *client_main(void *argument)
{
    struct client *me = argument;
    int64_t before;
    int64_t after;

    (void)pthread_barrier_wait(me->start);
    while (me->elapsed_ns < me->duration_ns && !atomic_load(me->stop)) {
        before = clock_ns(CLOCK_MONOTONIC);
        me->rc = me->the_case->operation(me->state, me->number, &me->failure);
        after = clock_ns(CLOCK_MONOTONIC);
        if (me->rc != 0) {
            atomic_store(me->stop, true);
            break;
        }
        me->operations++;
        me->elapsed_ns += after - before;
        bench_histogram_add(&me->latency, after - before);
    }
    return NULL;
}

/* Start the clients' threads.  If one cannot be started, the others would wait
   for it at the barrier for ever: abort. */
static void start_clients(struct client *clients, pthread_t *threads,
                          unsigned count)
{
    unsigned i;

    for (i = 0; i < count; i++) {
        if (pthread_create(&threads[i], NULL, client_main, &clients[i]) != 0)
            abort();
    }
}

double bench_variation(const uint64_t *operations, unsigned count)
{
    double sum = 0.0;
    double squares = 0.0;

    for (unsigned i = 0; i < count; i++) {
        sum += (double)operations[i];
        squares += (double)operations[i] * (double)operations[i];
    }
    if (sum <= 0.0)
        return 0.0;
    squares = squares / count - (sum / count) * (sum / count);
    return squares <= 0.0 ? 0.0 : sqrt(squares) * count / sum;
}

void bench_slice_turns(struct bench_slice *slice,
                       const struct bench_case *the_case)
{
    struct bench_turns turns;

    if (!the_case->takes_turns || slice->operations == 0)
        return;
    turns = bench_turns_take();
    slice->in_a_row = turns.in_a_row;
    slice->turns_per_second =
        slice->per_second * (double)turns.changes / (double)slice->operations;
}

static int collect(const struct client *clients, unsigned count,
                   struct bench_slice *slice, struct bench_histogram *latency,
                   struct bench_failure *failure)
{
    uint64_t operations[BENCH_CLIENTS_MAX];
    unsigned i;

    memset(slice, 0, sizeof *slice);
    for (i = 0; i < count; i++) {
        if (clients[i].rc != 0)
            return bench_fail(failure, "%s, client %u: %s",
                              clients[i].the_case->name, i,
                              clients[i].failure.text);
    }
    for (i = 0; i < count; i++) {
        operations[i] = clients[i].operations;
        slice->operations += clients[i].operations;
        slice->per_second +=
            (double)clients[i].operations * 1e9 / (double)clients[i].elapsed_ns;
        if (latency != NULL)
            bench_histogram_merge(latency, &clients[i].latency);
    }
    slice->variation = bench_variation(operations, count);
    return 0;
}

double bench_per_operation(double us, const struct bench_slice *slice)
{
    return slice->operations > 0 ? us / (double)slice->operations : us;
}

int bench_slice_run(const struct bench_case *the_case, void *state,
                    const struct bench_target *target, double seconds,
                    struct bench_slice *slice, struct bench_histogram *latency,
                    struct bench_failure *failure)
{
    unsigned count = target->clients;
    pthread_t threads[BENCH_CLIENTS_MAX];
    pthread_barrier_t start;
    atomic_bool stop = false;
    struct client *clients;
    struct bench_traffic before;
    struct bench_traffic after;
    int64_t client_ns;
    int64_t server_ns;
    unsigned i;
    int rc;

    clients = calloc(count, sizeof *clients);
    if (clients == NULL)
        return bench_fail(failure, "out of memory");
    (void)pthread_barrier_init(&start, NULL, count + 1);
    for (i = 0; i < count; i++) {
        clients[i].the_case = the_case;
        clients[i].state = state;
        clients[i].number = i;
        clients[i].duration_ns = (int64_t)(seconds * 1e9);
        clients[i].start = &start;
        clients[i].stop = &stop;
    }
    start_clients(clients, threads, count);
    before = bench_traffic_of_process(target);
    server_ns = bench_cpu_of(target->server_pid);
    client_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    (void)pthread_barrier_wait(&start);
    for (i = 0; i < count; i++)
        (void)pthread_join(threads[i], NULL);
    client_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - client_ns;
    if (server_ns >= 0)
        server_ns = bench_cpu_of(target->server_pid) - server_ns;
    after = bench_traffic_of_process(target);
    (void)pthread_barrier_destroy(&start);

    rc = collect(clients, count, slice, latency, failure);
    if (rc == 0) {
        slice->traffic = bench_traffic_between(&before, &after);
        slice->client_us = bench_per_operation((double)client_ns / 1e3, slice);
        slice->server_us = bench_per_operation((double)server_ns / 1e3, slice);
    }
    free(clients);
    return rc;
}
