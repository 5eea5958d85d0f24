/*
 * main.c - deduct stock in many ways, one run after another, and check which of
 * them are right
 *
 * Several processes of many threads sell the same orders in every way.  The
 * first way, with nothing to protect it, is the control: it is made to lose an
 * update, which shows that the check can see one.  The others must lose none.
 * Exit status: 0 when all that is so, 1 when not, 2 for a wrong option.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "way.h"

enum {
    PROCESSES = 4,
    THREADS = 16,
    THREADS_MAX = 256,
    ORDERS = 5000,
    ITEMS = 50,
    WAYS_MAX = 16,
    BAR_WIDTH = 40,
    EXIT_USAGE = 2
};

/* ------------------------------------------------------------- one run -- */

static void show_progress(void *context)
{
    const struct run *run = context;
    int64_t orders = run->settings->orders;
    int64_t answered = run->board->answered;
    int filled = (int)(answered * BAR_WIDTH / orders);

    fprintf(stderr, "\r%-14s [", run->way->name);
    for (int i = 0; i < BAR_WIDTH; i++)
        (void)fputc(i < filled ? '#' : '.', stderr);
    fprintf(stderr, "] %3d%%  %" PRId64 "/%" PRId64,
            (int)(answered * 100 / orders), answered, orders);
}

/* Map the memory that the processes of one run share, zeroed. */
static struct board *new_board(const struct settings *settings)
{
    size_t size =
        sizeof(struct board) + (size_t)settings->orders * sizeof(struct mark);
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
    (void)pthread_barrier_init(
        &board->ready, &shared,
        (unsigned)(settings->processes * settings->threads));
    (void)pthread_barrier_init(&board->meet, &shared, 2);
    (void)pthread_barrierattr_destroy(&shared);
    return board;
}

/* Set the quantities, sell all orders, compare the table with the answers. */
static int run_orders(struct run *run)
{
    bool has_bar = isatty(STDERR_FILENO) == 1;
    int rc;

    run->board = new_board(run->settings);
    if (run->board == NULL)
        return -1;
    rc = crew_run(1, tables_fill, run, NULL);
    if (rc != 0)
        return rc;
    rc = crew_run(run->settings->processes, worker_run, run,
                  has_bar ? show_progress : NULL);
    if (has_bar)
        fprintf(stderr, "\r%*s\r", 2 * BAR_WIDTH, "");
    if (rc == 0)
        rc = crew_run(1, tables_take_stock, run, NULL);
    return rc;
}

/* @param[out] count how many runs came to their end */
static int run_all(struct run *runs, const struct settings *settings,
                   int *count)
{
    int rc = 0;

    for (*count = 0; rc == 0 && ways[*count].name != NULL; *count += rc == 0) {
        runs[*count].settings = settings;
        runs[*count].way = &ways[*count];
        rc = run_orders(&runs[*count]);
    }
    return rc;
}

/* ---------------------------------------------------------- the verdict -- */

static bool is_exact(const struct tally *tally)
{
    return tally->oversold == 0 && tally->twice == 0 && tally->lost == 0 &&
           tally->differing == 0;
}

/* Print the table and what it means.  @return the exit status */
static int judge(const struct run *runs, int count)
{
    int status = EXIT_SUCCESS;

    report_print(runs, count);
    (void)putchar('\n');
    for (int i = 0; i < count; i++) {
        const struct tally *tally = &runs[i].board->tally;

        if (runs[i].way->is_control && tally->lost == 0) {
            printf("FAILED: with nothing to protect it the stock is right, so "
                   "this proves nothing.\n");
            status = EXIT_FAILURE;
        } else if (!runs[i].way->is_control && !is_exact(tally)) {
            printf(
                "FAILED: %s lost or sold something twice, or answered %" PRId64
                " orders in two ways.\n",
                runs[i].way->name, tally->differing);
            status = EXIT_FAILURE;
        }
    }
    if (status == EXIT_SUCCESS)
        printf("With nothing to protect it the stock is wrong by %" PRId64
               " units; in every other way each order counts once.\n",
               runs[0].board->tally.lost);
    return status;
}

/* ------------------------------------------------------------- options -- */

static void print_help(FILE *to)
{
    fprintf(
        to,
        "usage: stock_deduction [options]\n"
        "\n"
        "Processes of many threads deduct the same orders from stock: with\n"
        "nothing to protect it, with a lock around, and with each strategy of\n"
        "sqlock's stock.  Many orders want one item, some come in twice, some\n"
        "are cancelled.\n"
        "\n"
        "  --url URL        sqlite:PATH, postgresql://..., mysql://...\n"
        "                   (an SQLite file in a temporary directory).\n"
        "                   Other users see arguments: keep the password in\n"
        "                   PGPASSFILE, ~/.my.cnf or password_env=NAME\n"
        "  --processes N    2 to %d (%d)\n"
        "  --threads N      of each, 1 to %d (%d)\n"
        "  --orders N       2 to 10000000 (%d)\n"
        "  --items N        %d to 10000 (%d)\n"
        "  --seed N         of the orders (1)\n"
        "  --keep           leave the tables in place\n"
        "  --help           this text\n",
        CREW_MAX, PROCESSES, THREADS_MAX, THREADS, ORDERS, LEAST_ITEMS, ITEMS);
}

/* Read a whole number without a sign. */
static int read_number(int64_t *to, const char *text, int64_t least,
                       int64_t most)
{
    int64_t number = 0;

    if (*text == '\0')
        return -1;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9' || number > most)
            return -1;
        number = number * 10 + (*text - '0');
    }
    if (number < least || number > most)
        return -1;
    *to = number;
    return 0;
}

/* @return 0, or the exit status plus 1 if the program is to end */
static int read_options(struct settings *to, int argc, char *argv[])
{
    static const struct option options[] = {
        {"url", required_argument, NULL, 'u'},
        {"processes", required_argument, NULL, 'p'},
        {"threads", required_argument, NULL, 't'},
        {"orders", required_argument, NULL, 'o'},
        {"items", required_argument, NULL, 'i'},
        {"seed", required_argument, NULL, 's'},
        {"keep", no_argument, NULL, 'k'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int64_t processes = PROCESSES;
    int64_t threads = THREADS;
    int64_t seed = 1;
    int rc = 0;
    int option;

    do {
        option = getopt_long(argc, argv, "", options, NULL);
        if (option == 'u')
            to->url = optarg;
        else if (option == 'p')
            rc = read_number(&processes, optarg, 2, CREW_MAX);
        else if (option == 't')
            rc = read_number(&threads, optarg, 1, THREADS_MAX);
        else if (option == 'o')
            rc = read_number(&to->orders, optarg, 2, 10000000);
        else if (option == 'i')
            rc = read_number(&to->items, optarg, LEAST_ITEMS, 10000);
        else if (option == 's')
            rc = read_number(&seed, optarg, 0, INT64_MAX / 16);
        else if (option == 'k')
            to->keep_tables = true;
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
    to->threads = (int)threads;
    to->seed = (uint64_t)seed;
    return 0;
}

/* ---------------------------------------------------------------- main -- */

/* Choose a prefix that no other tables have, since the tables are dropped at
   the end without asking. */
static void name_tables(struct settings *to)
{
    uint32_t number = 0;

    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        number = (uint32_t)getpid(); /* no kernel refuses so few bytes */
    (void)snprintf(to->prefix, sizeof to->prefix, "DEMO_%08" PRIX32 "_",
                   number);
}

/* Leave nothing behind, whatever happened, unless the user wants to keep the
   tables. */
static void clear_up(struct run *run, bool has_place, bool has_tables)
{
    const struct settings *settings = run->settings;

    if (settings->keep_tables && has_tables)
        printf("\nKept: tables %sSTOCK and others%s%s\n", settings->prefix,
               has_place ? " in " : "", has_place ? settings->url : "");
    else if (has_place)
        place_remove();
    else if (has_tables)
        (void)crew_run(1, tables_drop, run, NULL);
}

int main(int argc, char *argv[])
{
    struct settings settings = {.orders = ORDERS, .items = ITEMS};
    struct run runs[WAYS_MAX] = {{.settings = &settings}};
    int status = EXIT_FAILURE;
    bool has_place;
    bool has_tables;
    int number;
    int count;
    int rc;

    rc = read_options(&settings, argc, argv);
    if (rc > 0)
        return rc - 1;
    crew_start();
    name_tables(&settings);
    has_place = settings.url == NULL;
    if (has_place)
        settings.url = place_make();
    if (settings.url == NULL)
        return EXIT_FAILURE;

    rc = crew_run(1, tables_create, &runs[0], NULL);
    has_tables = rc == 0;
    if (rc == 0)
        rc = run_all(runs, &settings, &count);
    number = crew_settle();
    if (rc == 0)
        status = judge(runs, count);
    else if (number == 0 && has_tables)
        fprintf(stderr, "FAILED: the runs did not get to their end.\n");
    clear_up(&runs[0], has_place, has_tables || number != 0);
    return number != 0 ? 128 + number : status;
}
