/*
 * seller.c - one process of a crowd: its threads send one order after another,
 * each order until it has an answer
 */
#include "crowd.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

struct seller {
    pthread_t thread;
    struct crowd *crowd;
    sqlock_stock *stock;
    int process;
    int number;
};

/* Return a number that looks random and depends on the arguments only. */
static uint32_t mix(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t h = a * UINT32_C(2654435761) ^ b * UINT32_C(2246822519) ^
                 c * UINT32_C(3266489917);

    h ^= h >> 15;
    h *= UINT32_C(2246822519);
    return h ^ h >> 13;
}

void order_read(struct order *order, int process, int thread, uint32_t number)
{
    uint32_t drawn = mix((uint32_t)process, (uint32_t)thread, number);

    (void)snprintf(order->id, sizeof order->id, ORDER "%d/%d/%u", process,
                   thread, number);
    order->is_return = drawn % 16 == 0;
    order->count = drawn % 8 == 1 ? 2 : 1;
    order->items[0] = (drawn >> 8) % 4 < 3 ? HOT : COLD;
    order->items[1] =
        order->items[0] == HOT && (drawn >> 12) % 2 == 0 ? COLD : COLDER;
    for (size_t i = 0; i < 2; i++)
        order->quantities[i] = 1 + (int64_t)((drawn >> (16 + 4 * i)) % 3);
}

static int send_order(const struct seller *seller, const struct order *order,
                      const char *id, sqlock_stock_answer *answer,
                      sqlock_error *err)
{
    sqlock_stock_line lines[2];

    for (size_t i = 0; i < 2; i++)
        lines[i] = (sqlock_stock_line){
            .item = seller->crowd->items[order->items[i]],
            .quantity = order->quantities[i],
        };
    if (order->is_return)
        return sqlock_stock_restore_many(seller->stock, NULL, id, lines,
                                         order->count, answer, err);
    if (order->count == 1)
        return sqlock_stock_deduct(seller->stock, NULL, id, lines[0].item,
                                   lines[0].quantity, answer, err);
    return sqlock_stock_deduct_many(seller->stock, NULL, id, lines,
                                    order->count, answer, err);
}

/* Describe an answer that is wrong.  Return the order's state. */
static unsigned char complain(const struct seller *seller,
                              const struct order *order, int rc,
                              const char *message)
{
    (void)snprintf(seller->crowd->wrong, sizeof seller->crowd->wrong,
                   "order %s: %d %s", order->id, rc, message);
    return WRONG;
}

/* Return whether a failure may be over at the next attempt. */
static bool may_pass(int rc)
{
    return rc == SQLOCK_EUNCERTAIN || rc == SQLOCK_EUNREACHABLE ||
           rc == SQLOCK_ECONFLICT || rc == SQLOCK_ERETRY ||
           rc == SQLOCK_EBUSY || rc == SQLOCK_ERESOURCE ||
           rc == SQLOCK_ECANCELED || rc == SQLOCK_ELOST;
}

/* Send an order until there is an answer, and some orders a second time.
 * Return the order's state. */
static unsigned char sell_one(const struct seller *seller, uint32_t number)
{
    const char *id;
    struct order order;
    sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;
    sqlock_error err = {0};
    int again;
    int rc;

    order_read(&order, seller->process, seller->number, number);
    id = seller->crowd->is_careless ? NULL : order.id;
    do
        rc = send_order(seller, &order, id, &answer, &err);
    while (may_pass(rc));
    if (rc != 0 && rc != SQLOCK_EINSUFFICIENT)
        return complain(seller, &order, rc, err.message);
    if (seller->crowd->is_careless || number % 8 == 0) {
        int64_t left = answer.left;

        do
            again = send_order(seller, &order, id, &answer, &err);
        while (may_pass(again));
        if (!seller->crowd->is_careless &&
            (again != rc || !answer.is_duplicate || answer.left != left))
            return complain(seller, &order, again,
                            again < 0 && again != rc
                                ? err.message
                                : "the second answer differs");
    }
    return rc == 0 ? DONE : REFUSED;
}

static void *sell_all(void *context)
{
    struct seller *seller = context;
    struct crowd *crowd = seller->crowd;
    atomic_uchar *answers = crowd->answers[seller->process][seller->number];

    for (uint32_t i = 0; i < crowd->orders; i++) {
        unsigned char answer = atomic_load(&answers[i]);

        if (answer != NOT_SENT && answer != SENT)
            continue;
        if (answer == NOT_SENT && atomic_load(&crowd->is_over))
            break;
        atomic_store(&answers[i], SENT);
        atomic_store(&answers[i], sell_one(seller, i));
    }
    return NULL;
}

static int sell_in(struct crowd *crowd, int process)
{
    struct seller sellers[THREADS];
    sqlock_options options = SQLOCK_OPTIONS_INIT;
    sqlock_registry *registry = NULL;
    sqlock_stock *stock;
    sqlock_error err = {0};
    int rc;

    options.table_prefix = crowd->prefix;
    options.pool_size = THREADS;
    options.connect_timeout_ms = PATIENCE_MS;
    /* Opening fails if the proxy cuts its connection: try again. */
    do
        rc = sqlock_registry_open(&registry, crowd->url, &options, &err);
    while (may_pass(rc));
    if (rc < 0) {
        (void)snprintf(crowd->wrong, sizeof crowd->wrong, "opening: %s",
                       err.message);
        return 2;
    }
    do {
        sqlock_stock_options how = SQLOCK_STOCK_INIT;

        how.strategy = (sqlock_stock_strategy)crowd->strategy;
        rc = sqlock_stock_open(&stock, registry, &how, &err);
    } while (may_pass(rc));
    if (rc < 0) {
        (void)snprintf(crowd->wrong, sizeof crowd->wrong, "opening stock: %s",
                       err.message);
        return 3;
    }
    atomic_fetch_add(&crowd->selling, 1);
    for (int i = 0; i < THREADS; i++) {
        sellers[i] = (struct seller){
            .crowd = crowd, .stock = stock, .process = process, .number = i};
        if (pthread_create(&sellers[i].thread, NULL, sell_all, &sellers[i]) !=
            0)
            return 4;
    }
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(sellers[i].thread, NULL);
    sqlock_stock_close(stock);
    return sqlock_registry_close(registry, NULL) == 0 ? 0 : 5;
}

/* The arguments are FILE and PROCESS. */
int sell(int argc, char **argv)
{
    struct crowd *crowd;
    int fd = argc == 2 ? open(argv[0], O_RDWR | O_CLOEXEC) : -1;

    if (fd < 0)
        return 90;
    crowd =
        mmap(NULL, sizeof *crowd, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)close(fd);
    if (crowd == MAP_FAILED)
        return 91;
    return sell_in(crowd, argv[1][0] - '0');
}
