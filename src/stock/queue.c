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

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"

/* --- the queue; the caller holds the stock's mutex --- */

/* Make the queue of an item.  NULL: out of memory. */
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
    lk_crew_init(&queue->crew, 1, 0);
    return queue;
}

static void free_queue(sqlock_stock *stock, struct lk_combine_queue *queue)
{
    HASH_DEL(stock->queues, queue);
    lk_crew_clear(&queue->crew);
    free(queue->name);
    free(queue);
}

/* --- its users --- */

static struct lk_combine_queue *find_queue(sqlock_stock *stock,
                                           const char *name)
{
    struct lk_combine_queue *queue;

    pthread_mutex_lock(&stock->mutex);
    HASH_FIND_STR(stock->queues, name, queue);
    if (queue == NULL)
        queue = make_queue(stock, name);
    if (queue != NULL)
        queue->users++;
    pthread_mutex_unlock(&stock->mutex);
    return queue;
}

static void leave_queue(sqlock_stock *stock, struct lk_combine_queue *queue)
{
    pthread_mutex_lock(&stock->mutex);
    queue->users--;
    if (queue->users == 0)
        free_queue(stock, queue);
    pthread_mutex_unlock(&stock->mutex);
}

static void note_round(sqlock_stock *stock, const struct lk_combine *combine,
                       uint64_t rounds)
{
    uint_fast64_t seen = atomic_load(&stock->most_rounds);

    while (rounds > seen &&
           !atomic_compare_exchange_weak(&stock->most_rounds, &seen, rounds))
        continue;
    atomic_fetch_add(&stock->rounds, 1);
    atomic_fetch_add(&stock->combined, combine->count);
}

/* Run one round, of the leader's own request and those that wait. */
static void lead(sqlock_stock *stock, struct lk_combine_queue *queue,
                 struct lk_combined_request *leader)
{
    struct lk_combine combine = {.known_left = queue->known_left};
    size_t most = stock->options.batch;

    combine.requests = calloc(most, sizeof *combine.requests);
    if (combine.requests == NULL) { /* no memory: only its own request */
        combine.requests = &combine.one;
        most = 1;
    }
    (void)lk_crew_gather(&queue->crew, &leader->member, most - 1, NULL);
    for (struct lk_crew_member *at = &leader->member; at != NULL; at = at->next)
        combine.requests[combine.count++] = (struct lk_combined_request *)at;
    /* First come, first served: the leader has waited for longest. */
    note_round(stock, &combine, queue->crew.rounds - leader->member.came_in);
    lk_combine_run(&combine, stock);
    queue->known_left = combine.known_left;
    /* First wake those with answers: they may join the next round with another
     * request. */
    lk_crew_dismiss(&leader->member);
    lk_crew_pass_on(&queue->crew);
    if (combine.requests != &combine.one)
        free(combine.requests);
}

static int alone(struct lk_stock_operation *op, sqlock_error *err)
{
    struct lk_combine_queue *queue = find_queue(op->stock, op->lines[0].name);
    struct lk_combined_request request = {.op = op};
    bool has_waited;
    int before;

    if (queue == NULL)
        return lk_error_nomem(err);
    before = lk_cancel_defer();
    if (lk_crew_join(&queue->crew, &request.member, LK_NEVER, LK_NEVER,
                     &has_waited) == LK_CREW_LEADS)
        lead(op->stock, queue, &request);
    lk_crew_leave(&queue->crew, &request.member);
    leave_queue(op->stock, queue);
    lk_cancel_allow(before);
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
