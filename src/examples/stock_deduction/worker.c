/*
 * worker.c - one process of the shop: takes orders and deducts them
 *
 * Start reading at deal_under_lock().  Deducting is a plain read, a pause for
 * thought and a plain write: right as long as nobody else does the same to the
 * same item in between.  The lock sees to that, or nothing does.
 */
#include "demo.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "shop.h"
#include "sqlock.h"

enum {
    THINK_NS = 1000000, /* between reading the stock and writing it */
    WAIT_MS = 30000,    /* for an item that another worker deals with */
    POLL_MS = 10,       /* an item is locked for a few milliseconds */
    MOST_UNITS = 5,     /* in one order */
    LEASE_OVER = 1      /* begin the order again */
};

struct order {
    int64_t number;
    int64_t item;
    int64_t units;
};

struct worker {
    int index;
    const struct run *run;
    struct shop shop;
    sqlock_registry *registry; /* NULL in the run without the lock */
};

int64_t demo_now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The numbers of SplitMix64, by position: any worker can draw any order. */
static uint64_t draw(uint64_t seed, uint64_t position)
{
    uint64_t z = seed + (position + 1) * UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Orders 0 and 1 want item 0, which nobody else wants.  The others go for few
   items more often than for most, as customers do. */
static struct order draw_order(const struct settings *settings, int64_t number)
{
    uint64_t others = (uint64_t)settings->items - 1;
    uint64_t position = (uint64_t)number * 3;
    struct order order = {.number = number};
    uint64_t a;
    uint64_t b;

    order.units = 1 + (int64_t)(draw(settings->seed, position) % MOST_UNITS);
    a = draw(settings->seed, position + 1) % others;
    b = draw(settings->seed, position + 2) % others;
    if (number > 1)
        order.item = 1 + (int64_t)(a * b / others);
    return order;
}

static int complain(const struct worker *worker, const struct order *order,
                    const char *what, const char *why)
{
    fprintf(stderr, "worker %d, order %" PRId64 ", item %" PRId64 ": %s: %s\n",
            worker->index, order->number, order->item, what, why);
    return -1;
}

static void think(const struct worker *worker, const struct order *order)
{
    const struct timespec pause = {.tv_nsec = THINK_NS};

    (void)nanosleep(&pause, NULL);
    /* Without the lock, workers 0 and 1 wait here for each other: both have
       read what they are going to deduct from, neither has written.  Whatever
       the timing, one of their updates will be lost.  With the lock, the second
       could never get here while the first waits. */
    if (worker->registry == NULL && order->number < 2)
        (void)pthread_barrier_wait(&worker->run->board->meet);
}

/* Read, think, write.  @p lock is NULL in the run without it.
 * @return 0, -1, LEASE_OVER: nothing was written */
static int deduct(struct worker *worker, const struct order *order,
                  sqlock_lock *lock)
{
    struct board *board = worker->run->board;
    struct stock stock;

    if (shop_read(&worker->shop, order->item, &stock) < 0)
        return complain(worker, order, "read", worker->shop.error);
    think(worker, order);
    if (stock.quantity < order->units) {
        atomic_fetch_add(&board->refused, 1);
        return 0;
    }
    /* A worker that was held up for longer than its lease must not write. */
    if (lock != NULL && sqlock_remaining_ms(lock) == 0)
        return LEASE_OVER;
    stock.quantity -= order->units;
    stock.sales++;
    if (shop_write(&worker->shop, order->item, &stock) < 0)
        return complain(worker, order, "write", worker->shop.error);
    atomic_fetch_add(&board->units[order->item], order->units);
    atomic_fetch_add(&board->sold, 1);
    return 0;
}

/* The same, with the item locked meanwhile. */
static int deal_under_lock(struct worker *worker, const struct order *order)
{
    sqlock_lock *lock = NULL;
    sqlock_error err;
    char name[40];
    int released;
    int rc;

    (void)snprintf(name, sizeof name, "item/%" PRId64, order->item);
    rc = sqlock_obtain(&lock, worker->registry, name, &err);
    if (rc < 0)
        return complain(worker, order, "obtain", err.message);

    rc = sqlock_acquire(lock, WAIT_MS, NULL, &err);
    if (rc < 0) {
        (void)complain(worker, order, "acquire", err.message);
        goto out;
    }
    rc = deduct(worker, order, lock);
    released = sqlock_release(lock, &err);
    if (released < 0)
        (void)complain(worker, order, "release", err.message);
    /* Only then may somebody else have been let in before the write.  After
       any other failure the row runs out by itself, and the sale stands. */
    if (rc == 0 && released == SQLOCK_ELOST)
        rc = -1;
out:
    (void)sqlock_drop(lock, NULL);
    return rc;
}

static int deal(struct worker *worker, const struct order *order)
{
    int rc;

    if (!worker->run->is_locked)
        return deduct(worker, order, NULL);
    do {
        rc = deal_under_lock(worker, order);
    } while (rc == LEASE_OVER);
    return rc;
}

static int connect_worker(struct worker *worker)
{
    const struct settings *settings = worker->run->settings;
    sqlock_options options = SQLOCK_OPTIONS_INIT;
    sqlock_error err;

    if (shop_open(&worker->shop, settings->url, settings->shop_table) < 0) {
        fprintf(stderr, "worker %d: %s\n", worker->index, worker->shop.error);
        return -1;
    }
    if (!worker->run->is_locked)
        return 0;
    /* After the fork, never before: a registry belongs to one process. */
    options.table_prefix = settings->lock_prefix;
    options.holder_note = "stock deduction demo";
    options.poll_ms = POLL_MS;
    if (sqlock_registry_open(&worker->registry, settings->url, &options, &err) <
        0) {
        fprintf(stderr, "worker %d: %s\n", worker->index, err.message);
        return -1;
    }
    return 0;
}

/* Every worker takes the orders of its own number. */
static int work(struct worker *worker)
{
    const struct settings *settings = worker->run->settings;
    struct board *board = worker->run->board;
    int rc = 0;

    if (pthread_barrier_wait(&board->ready) == PTHREAD_BARRIER_SERIAL_THREAD)
        board->started_ns = demo_now_ns();
    for (int64_t number = worker->index; rc == 0 && number < settings->orders;
         number += settings->processes) {
        struct order order = draw_order(settings, number);

        rc = deal(worker, &order);
        atomic_fetch_add(&board->done, 1);
    }
    board->finished_ns[worker->index] = demo_now_ns();
    return rc;
}

int worker_run(int index, void *run)
{
    struct worker worker = {.index = index, .run = run};
    sqlock_error err;
    int rc;

    rc = connect_worker(&worker);
    if (rc == 0)
        rc = work(&worker);
    if (sqlock_registry_close(worker.registry, &err) < 0) {
        fprintf(stderr, "worker %d: %s\n", index, err.message);
        rc = -1;
    }
    shop_close(&worker.shop);
    return rc;
}
