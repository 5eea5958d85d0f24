/*
 * stock.c - the cases that sell one hot item, by sqlock's public interface or
 * by the client library alone
 *
 * All clients sell the same item.  An operation is one committed sale of one
 * unit, with or without the order's row.  Attempts that fail take time, but are
 * not counted.  At the end the quantity that is left must agree with the number
 * of sales.
 */
#include "cases.h"
#include "floor.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sqlock/stock.h"

#define PLENTY INT64_C(1000000000000) /* quantity before the first sale */
#define ATTEMPTS_MAX 1000000u         /* the deadline alone ends a sale */
#define DEADLINE_MS (600u * 1000)
#define ORDER_SIZE 48

/* Number of order ids that a client has used in all cases.  The tables of
   orders outlast a case, so no id may come again. */
static struct counter {
    uint64_t used;
    char apart[56]; /* so that each counter has its own cache line */
} counters[BENCH_CLIENTS_MAX];

static void next_order(char *to, unsigned client)
{
    struct counter *counter = &counters[client];

    counter->used++;
    (void)snprintf(to, ORDER_SIZE, "%ld-%u-%" PRIu64, (long)getpid(), client,
                   counter->used);
}

static int check_left(const char *what, int64_t left, uint64_t operations,
                      struct bench_failure *failure)
{
    int64_t expected = PLENTY - (int64_t)operations;

    if (left == expected)
        return 0;
    return bench_fail(failure,
                      "%s: %" PRId64 " left where %" PRId64 " were expected",
                      what, left, expected);
}

/* ------------------------------------------- FOR UPDATE, without sqlock -- */

#define BARE_ITEM "hot"

/* State shared by the cases with and without orders, since servers do not have
   enough connections for both. */
static struct bare {
    struct floor_clients floor;
    char prefix[32];
    unsigned users;    /* cases that are set up */
    unsigned verified; /* cases of which bare_verify() was called */
    uint64_t operations;
} bare;

static int create_bare_tables(const struct bench_target *target,
                              struct floor_connection *connection,
                              struct bench_failure *failure)
{
    const char *prefix = target->floor_prefix;
    const char *end =
        strcmp(target->database, "mysql") == 0 ? " ENGINE=InnoDB" : "";

    if (floor_run(connection, failure,
                  "CREATE TABLE IF NOT EXISTS %sSALE (ORDER_ID VARCHAR(190) "
                  "PRIMARY KEY, ITEM VARCHAR(190) NOT NULL, "
                  "QUANTITY BIGINT NOT NULL)%s",
                  prefix, end) != 0 ||
        floor_run(connection, failure, "DROP TABLE IF EXISTS %sITEM", prefix) !=
            0 ||
        floor_run(connection, failure,
                  "CREATE TABLE %sITEM (ITEM VARCHAR(190) PRIMARY KEY, "
                  "QUANTITY BIGINT NOT NULL)%s",
                  prefix, end) != 0)
        return -1;
    return floor_run(connection, failure,
                     "INSERT INTO %sITEM VALUES ('" BARE_ITEM "', %" PRId64 ")",
                     prefix, PLENTY);
}

static int prepare_sale(const struct bench_target *target,
                        struct floor_connection *connection,
                        struct bench_failure *failure)
{
    const char *prefix = target->floor_prefix;
    const struct floor_driver *driver = connection->driver;

    if (floor_prepare(connection, FLOOR_SELECT, failure,
                      "SELECT QUANTITY FROM %sITEM WHERE ITEM = '" BARE_ITEM
                      "'%s",
                      prefix, driver->locking) != 0 ||
        floor_prepare(connection, FLOOR_DEDUCT, failure,
                      "UPDATE %sITEM SET QUANTITY = QUANTITY - 1 "
                      "WHERE ITEM = '" BARE_ITEM "'",
                      prefix) != 0)
        return -1;
    return floor_prepare(connection, FLOOR_INSERT, failure,
                         "INSERT INTO %sSALE (ORDER_ID, ITEM, QUANTITY) "
                         "VALUES (%s, '" BARE_ITEM "', 1)",
                         prefix, driver->places[0]);
}

static int bare_setup(void **out, const struct bench_target *target,
                      struct bench_failure *failure)
{
    struct floor_connection *first = &bare.floor.client[0];
    int rc;

    *out = &bare;
    bare.users++;
    if (bare.users > 1)
        return 0;
    (void)snprintf(bare.prefix, sizeof bare.prefix, "%s", target->floor_prefix);
    rc = floor_clients_open(&bare.floor, target, failure);
    if (rc == 0 && !target->is_set_up)
        rc = create_bare_tables(target, first, failure);
    for (unsigned i = 0; i < target->clients && rc == 0; i++)
        rc = prepare_sale(target, &first[i], failure);
    return rc;
}

static void bare_teardown(void *state)
{
    (void)state;
    bare.users--;
    if (bare.users > 0)
        return;
    floor_clients_close(&bare.floor);
    memset(&bare, 0, sizeof bare);
}

/* Add up the operations of both cases, which sell the same item; check the
   quantity that is left when the last case calls. */
static int bare_verify(void *state, uint64_t operations,
                       struct bench_failure *failure)
{
    char text[128];
    int64_t left = -1;

    (void)state;
    bare.operations += operations;
    bare.verified++;
    if (bare.verified < bare.users)
        return 0;
    (void)snprintf(text, sizeof text,
                   "SELECT QUANTITY FROM %sITEM WHERE ITEM = '" BARE_ITEM "'",
                   bare.prefix);
    if (floor_number(&bare.floor.client[0], text, &left, failure) != 0)
        return -1;
    return check_left("for update", left, bare.operations, failure);
}

/* Sell one unit, as a shop does without sqlock: lock the item's row, and insert
 * that of the order, if there is one. */
static int sell_bare(unsigned client, const char *order,
                     struct bench_failure *failure)
{
    struct floor_connection *connection = &bare.floor.client[client];

    if (floor_begin(connection, failure) != 0 ||
        floor_execute(connection, FLOOR_SELECT, NULL, failure) != 0 ||
        floor_execute(connection, FLOOR_DEDUCT, NULL, failure) != 0 ||
        (order != NULL &&
         floor_execute(connection, FLOOR_INSERT, order, failure) != 0))
        return -1;
    return floor_commit(connection, failure);
}

static int bare_sell(void *state, unsigned client,
                     struct bench_failure *failure)
{
    (void)state;
    return sell_bare(client, NULL, failure);
}

static int bare_sell_order(void *state, unsigned client,
                           struct bench_failure *failure)
{
    char order[ORDER_SIZE];

    (void)state;
    next_order(order, client);
    return sell_bare(client, order, failure);
}

/* -------------------------------------------------------- the strategies -- */

/* The case of one strategy, with or without orders. */
struct seller {
    sqlock_stock *stock;
    char item[40]; /* sold by this case only */
};

/* The registry of all strategies, with a connection for each client. */
static struct shop {
    sqlock_registry *registry;
    unsigned users; /* cases that are set up */
} shop;

static int open_shop(const struct bench_target *target,
                     struct bench_failure *failure)
{
    sqlock_options options = SQLOCK_OPTIONS_INIT;
    sqlock_error err = {0};
    int rc = 0;

    shop.users++;
    if (shop.users > 1)
        return 0;
    options.table_prefix = target->lock_prefix;
    options.pool_size = bench_pool_size(target);
    if (!target->is_set_up)
        rc = sqlock_stock_schema_create(target->url, &options, &err);
    if (rc == 0)
        rc = sqlock_registry_open(&shop.registry, target->url, &options, &err);
    return rc == 0 ? 0
                   : bench_fail_call(failure, "opening the stock", rc, &err);
}

static int open_seller(void **out, const struct bench_target *target,
                       sqlock_stock_strategy strategy, const char *suffix,
                       struct bench_failure *failure)
{
    struct seller *seller = calloc(1, sizeof *seller);
    sqlock_stock_options options = SQLOCK_STOCK_INIT;
    sqlock_error err = {0};
    int rc;

    *out = seller;
    rc = open_shop(target, failure);
    if (rc != 0)
        return rc;
    if (seller == NULL)
        return bench_fail(failure, "out of memory");
    (void)snprintf(seller->item, sizeof seller->item, "%s%s",
                   sqlock_stock_strategy_name(strategy), suffix);
    options.strategy = strategy;
    options.attempts = ATTEMPTS_MAX;
    options.deadline_ms = DEADLINE_MS;
    rc = sqlock_stock_open(&seller->stock, shop.registry, &options, &err);
    if (rc == 0 && !target->is_set_up)
        rc = sqlock_stock_set(seller->stock, NULL, NULL, seller->item, PLENTY,
                              NULL, &err);
    return rc == 0 ? 0 : bench_fail_call(failure, seller->item, rc, &err);
}

static void seller_teardown(void *opaque)
{
    struct seller *seller = opaque;

    if (seller != NULL)
        sqlock_stock_close(seller->stock);
    free(seller);
    shop.users--;
    if (shop.users > 0)
        return;
    (void)sqlock_registry_close(shop.registry, NULL);
    shop.registry = NULL;
}

static int seller_verify(void *opaque, uint64_t operations,
                         struct bench_failure *failure)
{
    struct seller *seller = opaque;
    sqlock_error err = {0};
    int64_t left = -1;
    int rc;

    rc = sqlock_stock_read(seller->stock, NULL, seller->item, &left, &err);
    if (rc != 0)
        return bench_fail_call(failure, seller->item, rc, &err);
    return check_left(seller->item, left, operations, failure);
}

static int deduct(struct seller *seller, const char *order,
                  struct bench_failure *failure)
{
    sqlock_error err = {0};
    int rc;

    rc = sqlock_stock_deduct(seller->stock, NULL, order, seller->item, 1, NULL,
                             &err);
    return rc == 0 ? 0 : bench_fail_call(failure, seller->item, rc, &err);
}

static int sell(void *opaque, unsigned client, struct bench_failure *failure)
{
    (void)client;
    return deduct(opaque, NULL, failure);
}

static int sell_order(void *opaque, unsigned client,
                      struct bench_failure *failure)
{
    struct seller *seller = opaque;
    char order[ORDER_SIZE];

    next_order(order, client);
    return deduct(seller, order, failure);
}

/* ------------------------------------------------ one seller for all -- */

#define PROGRAM "stock_seller" /* of the examples */
#define PLACE_VARIABLE "SQLOCK_BENCH_SELLER"
#define TRIES 1000 /* to connect to a program that starts */
#define PAUSE_NS 10000000L

/* The clients of the program, each with a connection to its socket. */
struct remote {
    struct seller *seller; /* COALESCED, as in the program */
    pid_t program;         /* 0: another process has started it */
    /* the socket and its directory; "": another process has made them */
    char directory[64], place[80];
    unsigned clients;
    int fd[BENCH_CLIENTS_MAX];
};

/* Start the program, which ends with this process, and tell client processes
 * the path of its socket. */
static int start_program(struct remote *remote,
                         const struct bench_target *target,
                         struct bench_failure *failure)
{
    const char *parent = getenv("SQLOCK_TEST_DIR");
    const char *words[] = {
        "setpriv",     "--pdeathsig",       "TERM", PROGRAM, target->url,
        remote->place, target->lock_prefix, NULL};
    int error;

    (void)snprintf(remote->directory, sizeof remote->directory,
                   "%.40s/seller.XXXXXX", parent != NULL ? parent : "/tmp");
    if (mkdtemp(remote->directory) == NULL) {
        remote->directory[0] = '\0';
        return bench_fail(failure, "mkdtemp: %s", strerror(errno));
    }
    (void)snprintf(remote->place, sizeof remote->place, "%s/socket",
                   remote->directory);
    (void)setenv(PLACE_VARIABLE, remote->place, 1);
    error = posix_spawnp(&remote->program, words[0], NULL, NULL,
                         (char *const *)(uintptr_t)words, environ);
    if (error == 0)
        return 0;
    remote->program = 0;
    return bench_fail(failure, "%s: %s", words[0], strerror(error));
}

/* Return a connection to the program, once it listens; -1: it does not. */
static int connect_to_program(void)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    const char *place = getenv(PLACE_VARIABLE);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s",
                   place != NULL ? place : "");
    for (unsigned i = 0; i < TRIES; i++) {
        if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
            return fd;
        (void)nanosleep(&pause, NULL);
    }
    (void)close(fd);
    return -1;
}

static int remote_setup(void **out, const struct bench_target *target,
                        struct bench_failure *failure)
{
    struct remote *remote = calloc(1, sizeof *remote);
    void *seller;
    int rc;

    *out = remote;
    if (remote == NULL)
        return bench_fail(failure, "out of memory");
    rc = open_seller(&seller, target, SQLOCK_STOCK_COALESCED, "+seller",
                     failure);
    remote->seller = seller;
    if (rc == 0 && !target->is_set_up)
        rc = start_program(remote, target, failure);
    while (rc == 0 && remote->clients < target->clients) {
        int fd = connect_to_program();

        if (fd < 0)
            return bench_fail(failure, PROGRAM " takes no connection");
        remote->fd[remote->clients++] = fd;
    }
    return rc;
}

static void remote_teardown(void *opaque)
{
    struct remote *remote = opaque;

    if (remote == NULL)
        return;
    for (unsigned i = 0; i < remote->clients; i++)
        (void)close(remote->fd[i]);
    if (remote->program > 0) {
        (void)kill(remote->program, SIGTERM);
        (void)waitpid(remote->program, NULL, 0);
        (void)unlink(remote->place);
    }
    if (remote->directory[0] != '\0')
        (void)rmdir(remote->directory);
    seller_teardown(remote->seller);
    free(remote);
}

static int remote_verify(void *opaque, uint64_t operations,
                         struct bench_failure *failure)
{
    const struct remote *remote = opaque;

    return seller_verify(remote->seller, operations, failure);
}

/* Buy one unit, by a line to the program and a line from it. */
static int remote_sell(void *opaque, unsigned client,
                       struct bench_failure *failure)
{
    const struct remote *remote = opaque;
    char order[ORDER_SIZE];
    char line[128];
    size_t length;
    ssize_t more = 1;

    next_order(order, client);
    length = (size_t)snprintf(line, sizeof line, "%s %s 1\n", order,
                              remote->seller->item);
    if (send(remote->fd[client], line, length, MSG_NOSIGNAL) != (ssize_t)length)
        return bench_fail(failure, PROGRAM ", send: %s", strerror(errno));
    for (length = 0; more > 0 && memchr(line, '\n', length) == NULL;
         length += (size_t)more)
        more = recv(remote->fd[client], line + length, sizeof line - length, 0);
    if (more <= 0 || strncmp(line, "0 ", 2) != 0)
        return bench_fail(failure, PROGRAM " sells nothing: %.*s", (int)length,
                          line);
    return 0;
}

/* ------------------------------------------------------------- the cases -- */

#define SETUPS(name, strategy)                                                 \
    static int name##_setup(void **state, const struct bench_target *target,   \
                            struct bench_failure *failure)                     \
    {                                                                          \
        return open_seller(state, target, strategy, "", failure);              \
    }                                                                          \
    static int name##_order_setup(void **state,                                \
                                  const struct bench_target *target,           \
                                  struct bench_failure *failure)               \
    {                                                                          \
        return open_seller(state, target, strategy, "+order", failure);        \
    }
SETUPS(conditional, SQLOCK_STOCK_CONDITIONAL)
SETUPS(pessimistic, SQLOCK_STOCK_PESSIMISTIC)
SETUPS(optimistic, SQLOCK_STOCK_OPTIMISTIC)
SETUPS(coalesced, SQLOCK_STOCK_COALESCED)

#define BASE "sale"
#define ORDER "+order"
#define SELLER(strategy, text)                                                 \
    {                                                                          \
        .name = #strategy,                                                     \
        .what = (text),                                                        \
        .baseline = BASE,                                                      \
        .setup = strategy##_setup,                                             \
        .operation = sell,                                                     \
        .verify = seller_verify,                                               \
        .teardown = seller_teardown,                                           \
    },                                                                         \
    {                                                                          \
        .name = #strategy ORDER, .what = "the same, with the order's row",     \
        .baseline = BASE ORDER, .setup = strategy##_order_setup,               \
        .operation = sell_order, .verify = seller_verify,                      \
        .teardown = seller_teardown,                                           \
    }

const struct bench_case bench_stock_cases[] = {
    {
        .name = BASE,
        .what = "BEGIN, SELECT FOR UPDATE, UPDATE, COMMIT, no sqlock",
        .baseline = BASE,
        .setup = bare_setup,
        .operation = bare_sell,
        .verify = bare_verify,
        .teardown = bare_teardown,
    },
    {
        .name = BASE ORDER,
        .what = "the same, with an INSERT of the order",
        .baseline = BASE ORDER,
        .setup = bare_setup,
        .operation = bare_sell_order,
        .verify = bare_verify,
        .teardown = bare_teardown,
    },
    SELLER(pessimistic, "sqlock's FOR UPDATE"),
    SELLER(optimistic, "compare and set by version"),
    SELLER(conditional, "one UPDATE where there is enough"),
    SELLER(coalesced, "one thread sells for all that wait"),
    {
        .name = "seller" ORDER,
        .what = "the example stock_seller sells for all clients",
        .baseline = BASE ORDER,
        .needs = PROGRAM,
        .setup = remote_setup,
        .operation = remote_sell,
        .verify = remote_verify,
        .teardown = remote_teardown,
    },
    {.name = NULL},
};
