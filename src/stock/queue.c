/*
 * queue.c - the strategy COALESCED: threads of a process that want the same
 * item queue up, and a leader deducts for all that wait in one statement
 *
 * A thread that finds no round under way leads at once, for itself alone.  Each
 * thread gets an answer of its own.  After each round the first thread in the
 * queue becomes the leader, so no thread works for the others more than once; a
 * request that comes during a round is in a later one.  While a thread is in
 * here, pthread_cancel() has no effect: a cancelled leader first ends its round
 * and makes another thread the leader.
 */
#include "stock/combine.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/thread.h"

/* --- the queue --- */

/* Make the queue of an item, which exists while a thread leads there.  NULL:
 * out of memory. */
static struct lk_combine_queue *make_queue(sqlock_stock *stock,
                                           const char *name)
{
    struct lk_combine_queue *queue = calloc(1, sizeof *queue);

    if (queue == NULL)
        return NULL;
    queue->known_left = -1;
    queue->name = strdup(name);
    if (queue->name != NULL)
        HASH_ADD_KEYPTR(hh, stock->queues, queue->name, strlen(queue->name),
                        queue);
    if (queue->name == NULL || queue->hh.tbl == NULL) {
        free(queue->name);
        free(queue);
        return NULL;
    }
    return queue;
}

static void free_queue(sqlock_stock *stock, struct lk_combine_queue *queue)
{
    HASH_DEL(stock->queues, queue);
    free(queue->name);
    free(queue);
}

/* Let the request lead the next round. */
static void choose(struct lk_combine_queue *queue,
                   struct lk_combined_request *request)
{
    queue->round++;
    request->round = queue->round;
}

static void append(struct lk_combine_queue *queue,
                   struct lk_combined_request *request)
{
    if (queue->last != NULL)
        queue->last->next = request;
    else
        queue->first = request;
    queue->last = request;
}

static struct lk_combined_request *remove_first(struct lk_combine_queue *queue)
{
    struct lk_combined_request *first = queue->first;

    if (first != NULL)
        queue->first = first->next;
    if (queue->first == NULL)
        queue->last = NULL;
    return first;
}

/* Let the request lead, or put it into the queue of its item if another one
 * does.  Return 1 if its thread leads, 0 if it waits, or ENOMEM. */
static int join(sqlock_stock *stock, struct lk_combined_request *request)
{
    const char *name = request->op->lines[0].name;
    struct lk_combine_queue *queue;
    int leads = 0;

    pthread_mutex_lock(&stock->mutex);
    HASH_FIND_STR(stock->queues, name, queue);
    if (queue != NULL) {
        request->queue = queue;
        request->came_in = queue->round - 1; /* the present one is not over */
        append(queue, request);
    } else {
        queue = request->queue = make_queue(stock, name);
        leads = queue != NULL ? 1 : SQLOCK_ENOMEM;
        if (queue != NULL)
            choose(queue, request);
    }
    pthread_mutex_unlock(&stock->mutex);
    return leads;
}

/* Begin the leader's round: move requests from the queue to it, until it has
 * `most`.  The caller holds the stock's mutex. */
static void cut(struct lk_combined_request *leader, struct lk_combine *combine,
                size_t most)
{
    struct lk_combine_queue *queue = leader->queue;

    combine->requests[combine->count++] = leader;
    while (queue->first != NULL && combine->count < most)
        combine->requests[combine->count++] = remove_first(queue);
    combine->round = leader->round;
    combine->known_left = queue->known_left;
}

/* End the leader's round, and choose who leads the next one.  Return that
 * request, or NULL.  The caller holds the stock's mutex. */
static struct lk_combined_request *
pass_on(sqlock_stock *stock, const struct lk_combined_request *leader)
{
    struct lk_combine_queue *queue = leader->queue;
    struct lk_combined_request *next = remove_first(queue);

    if (next != NULL)
        choose(queue, next);
    else
        free_queue(stock, queue);
    return next;
}

static void note_rounds(sqlock_stock *stock, const struct lk_combine *combine)
{
    uint_fast64_t seen = atomic_load(&stock->most_rounds);
    /* First come, first served. */
    uint64_t most = combine->round - combine->requests[0]->came_in;

    while (most > seen &&
           !atomic_compare_exchange_weak(&stock->most_rounds, &seen, most))
        continue;
    atomic_fetch_add(&stock->rounds, 1);
    atomic_fetch_add(&stock->combined, combine->count);
}

/* Wake the threads of a round, except the leader: their requests are answered.
 * A request is gone as soon as its thread is woken. */
static void tell(const struct lk_combine *combine,
                 const struct lk_combined_request *leader)
{
    for (size_t i = 0; i < combine->count; i++)
        if (combine->requests[i] != leader) {
            combine->requests[i]->is_done = true;
            (void)sem_post(&combine->requests[i]->turn);
        }
}

/* Run one round, which begins with the leader's own request. */
static void lead(sqlock_stock *stock, struct lk_combined_request *leader)
{
    struct lk_combined_request *next;
    struct lk_combine combine = {0};
    size_t most = stock->options.batch;

    combine.requests = calloc(most, sizeof *combine.requests);
    if (combine.requests == NULL) { /* no memory: only its own request */
        combine.requests = &combine.one;
        most = 1;
    }
    pthread_mutex_lock(&stock->mutex);
    cut(leader, &combine, most);
    pthread_mutex_unlock(&stock->mutex);

    note_rounds(stock, &combine);
    lk_combine_run(&combine, stock);

    pthread_mutex_lock(&stock->mutex);
    leader->queue->known_left = combine.known_left;
    next = pass_on(stock, leader);
    pthread_mutex_unlock(&stock->mutex);
    /* First wake those with answers: they may join the next round with another
     * request. */
    tell(&combine, leader);
    if (next != NULL)
        (void)sem_post(&next->turn);
    if (combine.requests != &combine.one)
        free(combine.requests);
}

static int wait_or_lead(sqlock_stock *stock,
                        struct lk_combined_request *request)
{
    int leads = join(stock, request);

    if (leads < 0)
        return leads;
    if (leads == 0)
        while (sem_wait(&request->turn) != 0 && errno == EINTR)
            continue;
    /* Either the request is answered, or this thread leads; nobody else changes
     * is_done any more. */
    if (!request->is_done)
        lead(stock, request);
    return 0;
}

static int alone(struct lk_stock_operation *op, sqlock_error *err)
{
    struct lk_combined_request request = {.op = op};
    int before, rc;

    if (sem_init(&request.turn, 0, 0) != 0)
        return lk_error_nomem(err);
    before = lk_cancel_defer();
    rc = wait_or_lead(op->stock, &request);
    lk_cancel_allow(before);
    (void)sem_destroy(&request.turn);
    if (rc < 0)
        return lk_error_nomem(err);
    return lk_error_pass(err, &request.err, request.rc);
}

/* Deduct in the application's transaction, where requests cannot be
 * combined. */
static int take(struct lk_stock_operation *op, struct lk_stock_line *line,
                sqlock_error *err)
{
    return lk_stock_conditional.take(op, line, err);
}

const struct lk_stock_strategy lk_stock_coalesced = {
    .take = take,
    .alone = alone,
};
