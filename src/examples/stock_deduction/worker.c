/*
 * worker.c - one process of the shop: its threads take orders as they come in,
 * sell them, and record the answers
 *
 * How an order is sold is up to the way, see way.c.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "way.h"

enum { THREADS_MAX = 256 };

struct worker {
    pthread_t thread;
    const struct seller *seller;
    int number; /* of all workers in all processes */
    int rc;
};

int64_t demo_now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Report an error, once in a run: most errors come to all workers at once. */
static int complain(const struct worker *worker, const struct order *order,
                    const char *what, const sqlock_error *err)
{
    if (atomic_exchange(&worker->seller->run->board->has_failed, true))
        return -1;
    fprintf(stderr,
            "%s, worker %d, order %" PRId64 ", item %" PRId64 ": %s: %s\n",
            worker->seller->run->way->name, worker->number, order->id,
            order->item, what, err->message);
    return -1;
}

/* Record the answer, and whether it differs from the first answer to the order,
   which must not be. */
static void note_sale(struct board *board, const struct order *order,
                      const struct deal *deal)
{
    struct mark *mark = &board->marks[order->id];
    int answer = deal->is_done ? DONE : REFUSED;
    int first = NO_ANSWER;

    if (!atomic_compare_exchange_strong(&mark->answer, &first, answer) &&
        first != answer)
        atomic_fetch_add(&board->differing, 1);
    if (deal->is_repeat)
        return;
    if (deal->is_done)
        atomic_fetch_add(&mark->deducted, 1);
    atomic_fetch_add(deal->is_done ? &board->done : &board->refused, 1);
}

/* Deal with the order at one position. */
static int deal(const struct worker *worker, int64_t position)
{
    const struct run *run = worker->seller->run;
    struct order order = order_at(run->settings, position);
    struct mark *mark = &run->board->marks[order.id];
    struct deal sale = {0};
    struct deal cancellation = {0};
    sqlock_error err = {0};
    int64_t before = demo_now_ns();

    if (run->way->sell(worker->seller, &order, &sale, &err) != 0)
        return complain(worker, &order, "sell", &err);
    run->board->marks[position].latency_ns = demo_now_ns() - before;
    note_sale(run->board, &order, &sale);
    if (sale.is_done && order.is_cancelled) {
        if (run->way->cancel(worker->seller, &order, &cancellation, &err) != 0)
            return complain(worker, &order, "cancel", &err);
        if (!cancellation.is_repeat)
            atomic_fetch_add(&mark->restored, 1);
    }
    atomic_fetch_add(&run->board->answered, 1);
    return 0;
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    const struct run *run = worker->seller->run;
    struct board *board = run->board;
    int64_t workers =
        (int64_t)run->settings->processes * run->settings->threads;
    int64_t now;
    int64_t last;

    if (pthread_barrier_wait(&board->ready) == PTHREAD_BARRIER_SERIAL_THREAD)
        board->started_ns = demo_now_ns();
    /* Worker N takes the positions N, N + workers, and so on. */
    for (int64_t position = worker->number;
         worker->rc == 0 && position < run->settings->orders;
         position += workers)
        worker->rc = deal(worker, position);
    now = demo_now_ns();
    last = board->finished_ns;
    while (last < now &&
           !atomic_compare_exchange_weak(&board->finished_ns, &last, now))
        continue;
    return NULL;
}

static int run_threads(const struct seller *seller, int process)
{
    const struct settings *settings = seller->run->settings;
    struct worker workers[THREADS_MAX] = {{0}};
    int rc = 0;

    for (int i = 0; i < settings->threads; i++) {
        workers[i].seller = seller;
        /* Workers 0 and 1 are in two processes. */
        workers[i].number = i * settings->processes + process;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0) {
            perror("pthread_create");
            _exit(EXIT_FAILURE); /* the others would wait for it for ever */
        }
    }
    for (int i = 0; i < settings->threads; i++) {
        (void)pthread_join(workers[i].thread, NULL);
        if (workers[i].rc != 0)
            rc = -1;
    }
    return rc;
}

int worker_run(int index, void *context)
{
    const struct run *run = context;
    struct seller seller;
    sqlock_error err = {0};
    int rc;

    /* It is opened after the fork: a registry belongs to one process. */
    rc = seller_open(&seller, run, &err);
    if (rc == 0)
        rc = run_threads(&seller, index);
    else if (!atomic_exchange(&run->board->has_failed, true))
        fprintf(stderr, "process %d: %s\n", index, err.message);
    seller_close(&seller);
    return rc;
}
