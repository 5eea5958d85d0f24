/*
 * counter.c - see counter.h
 */
#include "counter.h"

#include <string.h>

#include "stock/stock.h"

struct counter *counter_at;

static int hold_up(void *context, const struct tap_event *event)
{
    struct counter *counter = context;
    bool expected = false;

    if ((event->call == TAP_BEGIN ||
         (event->call == TAP_EXECUTE && event->text != NULL &&
          strstr(event->text, "UPDATE ") != NULL)) &&
        atomic_compare_exchange_strong(&counter->is_held, &expected, true))
        (void)sem_wait(&counter->go);
    return 0;
}

void counter_open(struct counter *counter, struct fixture *f, int64_t there)
{
    sqlock_options options = fixture_options(f);

    memset(counter, 0, sizeof *counter);
    options.pool_size = 1;
    counter->item = shop_item(f, there);
    counter->registry = fixture_tapped(f, &options);
    counter->stock = shop_open_at(counter->registry, SQLOCK_STOCK_COALESCED);
    (void)sem_init(&counter->go, 0, 0);
    counter_at = counter;
    tap_reset();
    tap_hooks(hold_up, NULL, counter);
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
    caller->rc =
        sqlock_stock_deduct(counter_at->stock, NULL, NULL, counter_at->item,
                            caller->quantity, &caller->answer, &worker->err);
    return 0;
}
