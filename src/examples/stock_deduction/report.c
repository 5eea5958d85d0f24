/*
 * report.c - print the table of all runs, and the bars below it
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "way.h"

enum { BAR_WIDTH = 48 };

int64_t report_speed(const struct run *run)
{
    int64_t ns = run->board->finished_ns - run->board->started_ns;

    return ns <= 0 ? 0 : run->board->done * 1000000000 / ns;
}

static int compare_numbers(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left;
    int64_t b = *(const int64_t *)right;

    return (a > b) - (a < b);
}

/* Return the milliseconds that so many percent of the numbers do not exceed. */
static double percentile(const int64_t *sorted, size_t count, size_t percent)
{
    size_t at = count * percent / 100;

    return (double)sorted[at] / 1e6;
}

static void find_latencies(const struct run *run, double *p50, double *p99)
{
    size_t count = (size_t)run->settings->orders;
    int64_t *sorted = malloc(count * sizeof *sorted);

    *p50 = 0.0;
    *p99 = 0.0;
    if (sorted == NULL)
        return;
    for (size_t i = 0; i < count; i++)
        sorted[i] = run->board->marks[i].latency_ns;
    qsort(sorted, count, sizeof *sorted, compare_numbers);
    *p50 = percentile(sorted, count, 50);
    *p99 = percentile(sorted, count, 99);
    free(sorted);
}

static void print_row(const struct run *run)
{
    const struct board *board = run->board;
    const struct tally *tally = &board->tally;
    double p50;
    double p99;

    find_latencies(run, &p50, &p99);
    printf("  %-14s %7" PRId64 " %7" PRId64 " %8" PRId64
           " %8.2f %8.2f %7" PRId64 " %8" PRId64 " %7" PRId64 " %9" PRId64 "\n",
           run->way->name, board->done, board->refused, report_speed(run), p50,
           p99, board->retries, tally->oversold, tally->twice, tally->lost);
}

/* Find the rate that a whole bar stands for: the fastest. */
static int64_t find_most(const struct run *runs, int count)
{
    int64_t most = 0;

    for (int i = 0; i < count; i++)
        if (report_speed(&runs[i]) > most)
            most = report_speed(&runs[i]);
    return most > 0 ? most : 1;
}

static void print_bars(const struct run *runs, int count)
{
    int64_t most = find_most(runs, count);

    printf("\nDeductions per second\n\n");
    for (int i = 0; i < count; i++) {
        int64_t speed = report_speed(&runs[i]);

        printf("  %-14s ", runs[i].way->name);
        for (int64_t j = 1; j * most <= speed * BAR_WIDTH; j++)
            (void)putchar('#');
        printf(" %" PRId64 "\n", speed);
    }
}

void report_print(const struct run *runs, int count)
{
    const struct settings *settings = runs->settings;

    printf("%d processes of %d threads, %" PRId64 " orders of %" PRId64
           " items, seed %" PRIu64 ", %.*s\n\n",
           settings->processes, settings->threads, settings->orders,
           settings->items, settings->seed, (int)strcspn(settings->url, ":"),
           settings->url);
    printf("  %-14s %7s %7s %8s %8s %8s %7s %8s %7s %9s\n", "", "done",
           "refused", "done/s", "p50 ms", "p99 ms", "retries", "oversold",
           "doubled", "stock off");
    for (int i = 0; i < count; i++)
        print_row(&runs[i]);
    print_bars(runs, count);
}
