/*
 * counter.c - hold up a round of combined requests until others have queued up
 */
#include "counter.h"

#include <stdio.h>
#include <string.h>

#include "stock/stock.h"

struct counter *counter_at;

bool counter_is_strategy(const struct fixture *f,
                         sqlock_stock_strategy strategy)
{
    bool is_one = strategy == SQLOCK_STOCK_COALESCED ||
                  (strategy == SQLOCK_STOCK_BUCKETS &&
                   (f->database->bit & ON_SERVERS) != 0);

    if (is_one)
        print_message("%s\n", sqlock_stock_strategy_name(strategy));
    return is_one;
}

bool counter_is_write(const struct tap_event *event)
{
    return event->call == TAP_BEGIN ||
           (event->call == TAP_EXECUTE && event->text != NULL &&
            strstr(event->text, "UPDATE ") != NULL);
}

/* Hold the first round up, and refuse the second, if that is the fault. */
int counter_before(void *context, const struct tap_event *event)
{
    struct counter *counter = context;
    bool expected = false;

    if (!counter_is_write(event))
        return 0;
    if (event->call == TAP_BEGIN || strncmp(event->text, "UPDATE ", 7) == 0)
        (void)atomic_fetch_add(&counter->writes, 1);
    if (atomic_compare_exchange_strong(&counter->is_held, &expected, true)) {
        (void)sem_wait(&counter->go);
        atomic_store(&counter->is_released, true);
        return 0;
    }
    if (counter->fault == REFUSE && atomic_load(&counter->is_released))
        return SQLOCK_EACCESS;
    return 0;
}

/* Lose the answer to the second commit, if that is the fault; the first commit
 * is the first round's.  A write outside of a transaction is a commit, too. */
int counter_after(void *context, const struct tap_event *event, int rc)
{
    struct counter *counter = context;

    if (event->call == TAP_BEGIN)
        atomic_store(&counter->is_in_transaction, true);
    if (rc != 0 || counter->fault != LOSE ||
        (event->call != TAP_COMMIT &&
         (!counter_is_write(event) ||
          atomic_load(&counter->is_in_transaction))))
        return rc;
    if (atomic_fetch_add(&counter->commits, 1) != 1)
        return rc;
    atomic_store(&counter->is_lost, true);
    return SQLOCK_EUNCERTAIN;
}

void counter_open(struct counter *counter, struct fixture *f,
                  sqlock_stock_strategy strategy, int64_t there)
{
    sqlock_options options = fixture_options(f);

    memset(counter, 0, sizeof *counter);
    options.pool_size = 1;
    counter->item =
        shop_item(f, strategy == SQLOCK_STOCK_BUCKETS ? there + 1 : there);
    if (strategy == SQLOCK_STOCK_BUCKETS)
        shop_spread(f, counter->item);
    counter->registry = fixture_tapped(f, &options);
    counter->stock = shop_open_at(counter->registry, strategy);
    (void)sem_init(&counter->go, 0, 0);
}

void counter_close(struct counter *counter)
{
    tap_hooks(NULL, NULL, NULL);
    assert_null(counter->stock->queues); /* each goes with its last thread */
    sqlock_stock_close(counter->stock);
    registry_end(counter->registry);
    (void)sem_destroy(&counter->go);
}

int counter_call(struct worker *worker)
{
    struct caller *caller = worker->context;

    caller->answer = (sqlock_stock_answer)SQLOCK_STOCK_ANSWER_INIT;
    caller->rc = sqlock_stock_deduct(counter_at->stock, NULL, caller->order,
                                     counter_at->item, caller->quantity,
                                     &caller->answer, &worker->err);
    (void)snprintf(caller->message, sizeof caller->message, "%.190s",
                   caller->rc < 0 ? worker->err.message : "");
    return 0;
}

void counter_queue(struct counter *counter, const struct caller *callers,
                   unsigned count)
{
    counter_at = counter;
    counter->count = count;
    tap_reset();
    tap_hooks(counter_before, counter_after, counter);
    for (unsigned i = 0; i < count; i++) {
        counter->callers[i] = callers[i];
        worker_start(&counter->workers[i], counter_call, &counter->callers[i]);
        if (i == 0)
            assert_becomes_true(atomic_load(&counter->is_held), PATIENCE_MS);
        assert_becomes_true(worker_is_parked(&counter->workers[i]),
                            PATIENCE_MS);
    }
}

void counter_let_go(struct counter *counter)
{
    (void)sem_post(&counter->go);
    for (unsigned i = 0; i < counter->count; i++)
        worker_join(&counter->workers[i]);
}

void counter_expect(const struct counter *counter, unsigned which, int rc,
                    int64_t left)
{
    const struct caller *caller = &counter->callers[which];

    if (caller->rc != rc || caller->answer.left != left)
        fail_msg("caller %u got %d and %lld: %s", which, caller->rc,
                 (long long)caller->answer.left, caller->message);
}

sqlock_stock_stats counter_stats(struct counter *counter)
{
    sqlock_stock_stats stats = SQLOCK_STOCK_STATS_INIT;

    (void)sqlock_stock_statistics(counter->stock, &stats, NULL);
    return stats;
}
