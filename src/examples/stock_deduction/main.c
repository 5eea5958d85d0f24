/*
 * main.c - stock deduction, without and with sqlock: the two runs, the table
 *
 * Several processes work off the same orders twice.  The first run, without the
 * lock, is the control: it is made to lose an update, which shows that the
 * check can see one.  The second, with the lock, must lose none.  Exit status:
 * 0 when both is so, 1 when not, 2 for a wrong option.
 */
#include "demo.h"

#include <dirent.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "shop.h"
#include "sqlock.h"

enum {
    PROCESSES = 4,
    ORDERS = 10000,
    ITEMS = 200,
    BAR_WIDTH = 40,
    EXIT_USAGE = 2
};

/* ------------------------------------------------------------ the tables -- */

/* A crew_job: create both tables, the locks' one with sqlock's own schema. */
static int create_tables(int index, void *context)
{
    struct run *run = context;
    const struct settings *settings = run->settings;
    sqlock_options options = SQLOCK_OPTIONS_INIT;
    struct shop shop;
    sqlock_error err;
    int rc;

    (void)index;
    rc = shop_open(&shop, settings->url, settings->shop_table);
    run->board->has_tables = rc == 0; /* or half of them, from here on */
    if (rc == 0)
        rc = shop_create(&shop, settings->items, settings->quantity);
    if (rc < 0) {
        fprintf(stderr, "%s\n", shop.error);
        goto out;
    }
    memcpy(run->board->server, shop.server, sizeof shop.server);
    options.table_prefix = settings->lock_prefix;
    rc = sqlock_schema_create(settings->url, &options, SQLOCK_LAYOUT_SQLOCK,
                              &err);
    if (rc < 0)
        fprintf(stderr, "%s\n", err.message);
out:
    shop_close(&shop);
    return rc;
}

/* A crew_job: drop them again, whichever of them there are. */
static int drop_tables(int index, void *context)
{
    const struct run *run = context;
    struct shop shop;
    int rc;

    (void)index;
    rc = shop_open(&shop, run->settings->url, run->settings->shop_table);
    if (rc == 0)
        rc = shop_drop(&shop, run->settings->lock_table);
    if (rc == 0)
        rc = shop_drop(&shop, run->settings->shop_table);
    if (rc < 0)
        fprintf(stderr, "clearing up: %s\n", shop.error);
    shop_close(&shop);
    return rc;
}

/* A crew_job: hold what the table says against what the workers sold. */
static int take_stock(int index, void *context)
{
    struct run *run = context;
    const struct settings *settings = run->settings;
    struct tally *tally = &run->board->tally;
    int64_t known_sales = 0;
    struct stock stock;
    struct shop shop;
    int rc;

    (void)index;
    rc = shop_open(&shop, settings->url, settings->shop_table);
    for (int64_t item = 0; rc == 0 && item < settings->items; item++) {
        int64_t left = settings->quantity - run->board->units[item];

        rc = shop_read(&shop, item, &stock);
        if (rc < 0)
            break;
        tally->final_stock += stock.quantity;
        tally->oversold += left < 0 ? -left : 0;
        tally->miscounted += llabs(stock.quantity - left);
        known_sales += stock.sales;
    }
    tally->lost_updates = run->board->sold - known_sales;
    if (rc < 0)
        fprintf(stderr, "%s\n", shop.error);
    shop_close(&shop);
    return rc;
}

/* ------------------------------------------------------------- one run -- */

static void show_progress(void *context)
{
    const struct run *run = context;
    int64_t orders = run->settings->orders;
    int64_t done = run->board->done;
    int filled = (int)(done * BAR_WIDTH / orders);

    fprintf(stderr, "\r%s [",
            run->is_locked ? "with the lock   " : "without the lock");
    for (int i = 0; i < BAR_WIDTH; i++)
        (void)fputc(i < filled ? '#' : '.', stderr);
    fprintf(stderr, "] %3d%%  %" PRId64 "/%" PRId64, (int)(done * 100 / orders),
            done, orders);
}

/* Memory that the processes of one run share; zeroed. */
static struct board *new_board(const struct settings *settings)
{
    size_t size = sizeof(struct board) +
                  (size_t)settings->items * sizeof(_Atomic int64_t);
    pthread_barrierattr_t shared;
    struct board *board;

    board = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                 -1, 0);
    if (board == MAP_FAILED) {
        perror("mmap");
        return NULL;
    }
    (void)pthread_barrierattr_init(&shared);
    (void)pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    (void)pthread_barrier_init(&board->ready, &shared,
                               (unsigned)settings->processes);
    (void)pthread_barrier_init(&board->meet, &shared, 2);
    (void)pthread_barrierattr_destroy(&shared);
    return board;
}

/* Create the tables, work off the orders, take stock. */
static int run_orders(struct run *run)
{
    bool has_bar = isatty(STDERR_FILENO) == 1;
    int rc;

    run->board = new_board(run->settings);
    if (run->board == NULL)
        return -1;
    rc = crew_run(1, create_tables, run, NULL);
    if (rc == 0) {
        rc = crew_run(run->settings->processes, worker_run, run,
                      has_bar ? show_progress : NULL);
        if (has_bar)
            (void)fputc('\n', stderr);
    }
    if (rc == 0)
        rc = crew_run(1, take_stock, run, NULL);
    return rc;
}

/* ----------------------------------------------------------- the table -- */

static int64_t orders_per_second(const struct run *run)
{
    int64_t last = run->board->started_ns;

    for (int i = 0; i < run->settings->processes; i++)
        if (run->board->finished_ns[i] > last)
            last = run->board->finished_ns[i];
    if (last == run->board->started_ns)
        return 0;
    return run->board->done * 1000000000 / (last - run->board->started_ns);
}

static void print_row(const char *what, int64_t without, int64_t with)
{
    printf("  %-28s %14" PRId64 " %14" PRId64 "\n", what, without, with);
}

static void print_table(const struct run *control, const struct run *locked)
{
    const struct settings *settings = control->settings;
    const struct board *a = control->board;
    const struct board *b = locked->board;
    int64_t first = settings->items * settings->quantity;

    printf("%d processes, %" PRId64 " items, seed %" PRIu64 ", %s\n\n",
           settings->processes, settings->items, settings->seed, a->server);
    printf("  %-28s %14s %14s\n", "", "without lock", "with lock");
    print_row("orders", a->done, b->done);
    print_row("sold", a->sold, b->sold);
    print_row("refused, not enough stock", a->refused, b->refused);
    print_row("stock before, units", first, first);
    print_row("final stock, units", a->tally.final_stock, b->tally.final_stock);
    print_row("stock wrong by, units", a->tally.miscounted,
              b->tally.miscounted);
    print_row("oversold, units", a->tally.oversold, b->tally.oversold);
    print_row("lost updates", a->tally.lost_updates, b->tally.lost_updates);
    print_row("orders/s", orders_per_second(control),
              orders_per_second(locked));
}

/* Print the table and what it means.  @return the exit status */
static int judge(const struct run *control, const struct run *locked)
{
    const struct tally *tally = &locked->board->tally;
    int64_t orders = locked->settings->orders;
    bool is_exact = tally->lost_updates == 0 && tally->oversold == 0 &&
                    tally->miscounted == 0 &&
                    locked->board->sold + locked->board->refused == orders;

    print_table(control, locked);
    if (control->board->tally.lost_updates <= 0) {
        printf(
            "\nFAILED: the run without the lock lost nothing, so this proves "
            "nothing.\n");
        return EXIT_FAILURE;
    }
    if (!is_exact) {
        printf("\nFAILED: the run with the lock lost something.\n");
        return EXIT_FAILURE;
    }
    printf("\nWith the lock every sale is accounted for.\n");
    return EXIT_SUCCESS;
}

/* ------------------------------------------------------------- options -- */

static void print_help(FILE *to)
{
    fprintf(
        to,
        "usage: stock_deduction [options]\n"
        "\n"
        "Processes deduct orders from stock by read, think, write: first\n"
        "without a lock, then with sqlock's.\n"
        "\n"
        "  --url URL        sqlite:PATH, postgresql://..., mysql://...\n"
        "                   (an SQLite file in a temporary directory).\n"
        "                   Other users see arguments: keep the password in\n"
        "                   PGPASSFILE, ~/.my.cnf or password_env=NAME\n"
        "  --processes N    2 to %d (%d)\n"
        "  --orders N       2 to 10000000 (%d)\n"
        "  --items N        2 to 100000 (%d)\n"
        "  --seed N         of the orders (1)\n"
        "  --keep           leave the tables of the second run in place\n"
        "  --help           this text\n",
        CREW_MAX, PROCESSES, ORDERS, ITEMS);
}

/* @return 0, or the exit status plus 1 */
static int read_options(struct settings *to, int argc, char *argv[])
{
    static const struct option options[] = {
        {"url", required_argument, NULL, 'u'},
        {"processes", required_argument, NULL, 'p'},
        {"orders", required_argument, NULL, 'o'},
        {"items", required_argument, NULL, 'i'},
        {"seed", required_argument, NULL, 's'},
        {"keep", no_argument, NULL, 'k'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int64_t processes = PROCESSES;
    int64_t seed = 1;
    int rc = 0;
    int option;

    do {
        option = getopt_long(argc, argv, "", options, NULL);
        if (option == 'u')
            to->url = optarg;
        else if (option == 'p')
            rc = shop_number(&processes, optarg, 2, CREW_MAX);
        else if (option == 'o')
            rc = shop_number(&to->orders, optarg, 2, 10000000);
        else if (option == 'i')
            rc = shop_number(&to->items, optarg, 2, 100000);
        else if (option == 's')
            rc = shop_number(&seed, optarg, 0, INT64_MAX / 16);
        else if (option == 'k')
            to->keep = true;
        else if (option == 'h') {
            print_help(stdout);
            return EXIT_SUCCESS + 1;
        }
    } while (option != -1 && option != '?' && rc == 0);
    if (option != -1 || optind < argc) {
        if (rc < 0)
            fprintf(stderr, "not a number within the limits: %s\n", optarg);
        print_help(stderr);
        return EXIT_USAGE + 1;
    }
    to->processes = (int)processes;
    to->seed = (uint64_t)seed;
    return 0;
}

/* ------------------------------------------------- the temporary directory -- */

/* Make a directory for the SQLite file.  @return its URL, or NULL */
static const char *make_directory(char *path, size_t size)
{
    static char url[860];
    char file[280];
    char encoded[3 * sizeof file];
    const char *parent = getenv("TMPDIR");

    if (parent == NULL || parent[0] != '/')
        parent = "/tmp";
    if (snprintf(path, size, "%s/sqlock-demo-XXXXXX", parent) >= (int)size ||
        mkdtemp(path) == NULL) {
        perror("mkdtemp");
        path[0] = '\0';
        return NULL;
    }
    (void)snprintf(file, sizeof file, "%s/shop.db", path);
    shop_url_encode(encoded, sizeof encoded, file);
    (void)snprintf(url, sizeof url, "sqlite:%s", encoded);
    return url;
}

static void remove_directory(const char *path)
{
    DIR *directory = opendir(path);
    const struct dirent *entry;

    if (directory == NULL)
        return;
    for (entry = readdir(directory); entry != NULL; entry = readdir(directory))
        if (entry->d_name[0] != '.')
            (void)unlinkat(dirfd(directory), entry->d_name, 0);
    (void)closedir(directory);
    (void)rmdir(path);
}

/* ---------------------------------------------------------------- main -- */

static void name_tables(struct settings *to)
{
    uint32_t number = 0;

    /* Names that nobody else has: what was created here is dropped at the end
       without asking. */
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        number = (uint32_t)getpid(); /* no kernel refuses so few bytes */
    (void)snprintf(to->shop_table, sizeof to->shop_table,
                   "demo_stock_%08" PRIx32, number);
    (void)snprintf(to->lock_prefix, sizeof to->lock_prefix,
                   "DEMO_%08" PRIX32 "_", number);
    (void)snprintf(to->lock_table, sizeof to->lock_table,
                   "DEMO_%08" PRIX32 "_LOCK", number);
    /* The two that meet always find enough; of the items that many want there
       is not enough for all. */
    to->quantity = 10 + 3 * to->orders / to->items;
}

/* Leave nothing behind, whatever happened. */
static void clear_up(struct run *last, const char *directory)
{
    const struct settings *settings = last->settings;

    if (settings->keep)
        printf("\nKept: tables %s and %s%s%s\n", settings->shop_table,
               settings->lock_table, directory[0] == '\0' ? "" : " in ",
               directory[0] == '\0' ? "" : settings->url);
    else if (directory[0] != '\0')
        remove_directory(directory);
    else if (last->board != NULL && last->board->has_tables)
        (void)crew_run(1, drop_tables, last, NULL);
}

int main(int argc, char *argv[])
{
    struct settings settings = {.orders = ORDERS, .items = ITEMS};
    struct run control = {.settings = &settings};
    struct run locked = {.settings = &settings, .is_locked = true};
    char directory[256] = "";
    int status = EXIT_FAILURE;
    int number;
    int rc;

    rc = read_options(&settings, argc, argv);
    if (rc > 0)
        return rc - 1;
    crew_start();
    name_tables(&settings);
    if (settings.url == NULL)
        settings.url = make_directory(directory, sizeof directory);
    if (settings.url == NULL)
        return EXIT_FAILURE;

    rc = run_orders(&control);
    if (rc == 0)
        rc = crew_run(1, drop_tables, &control, NULL);
    if (rc == 0)
        rc = run_orders(&locked);
    number = crew_settle();
    if (rc == 0)
        status = judge(&control, &locked);
    else if (number == 0)
        fprintf(stderr, "FAILED: the runs did not get to their end.\n");
    clear_up(locked.board != NULL ? &locked : &control, directory);
    return number != 0 ? 128 + number : status;
}
