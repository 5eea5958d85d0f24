/*
 * cmd_metrics.c - `sqlock metrics`: print numbers of locks, by region, in the
 * text format of Prometheus
 */
#include "cli.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The totals of the locks of one region. */
struct region {
    char *label; /* as it is printed between quotes */
    size_t held;
    size_t expired;
    size_t shared;  /* of those that are held */
    size_t sharers; /* of these */
    size_t waiting;
    bool is_waiting_known; /* the waiters of all its locks are known */
    int64_t longest_ms;    /* how long a lock has been held, at most */
};

struct regions {
    struct region *items;
    size_t count;
};

/* Return @p text as the value of a label, to be printed between quotes: with
 * quotes, backslashes and control characters escaped.  The caller frees the
 * value; NULL: out of memory. */
static char *label_of(const char *text)
{
    char *shown = cli_escape(text);
    char *label = shown != NULL ? malloc(2 * strlen(shown) + 1) : NULL;
    char *end = label;

    for (const char *at = shown; label != NULL && *at != '\0'; at++) {
        if (*at == '\\' || *at == '"')
            *end++ = '\\';
        *end++ = *at;
    }
    if (label != NULL)
        *end = '\0';
    free(shown);
    return label;
}

static int by_region(const void *one, const void *other)
{
    const sqlock_info *a = *(const sqlock_info *const *)one;
    const sqlock_info *b = *(const sqlock_info *const *)other;

    return strcmp(a->region, b->region);
}

static void count_row(struct region *region, const sqlock_info *row)
{
    region->held += row->state == SQLOCK_HELD;
    region->expired += row->state == SQLOCK_EXPIRED;
    region->shared += row->state == SQLOCK_HELD && row->mode == SQLOCK_SHARED;
    region->sharers += (size_t)row->sharers;
    if (row->waiters < 0)
        region->is_waiting_known = false;
    else
        region->waiting += (size_t)row->waiters;
    if (row->state == SQLOCK_HELD && row->held_ms > region->longest_ms)
        region->longest_ms = row->held_ms;
}

static bool begin_region(struct regions *regions, const char *name)
{
    struct region *region = &regions->items[regions->count];

    region->label = label_of(name);
    region->is_waiting_known = true;
    regions->count += region->label != NULL;
    return region->label != NULL;
}

static void clear(struct regions *regions)
{
    for (size_t i = 0; i < regions->count; i++)
        free(regions->items[i].label);
    free(regions->items);
}

/* Sum up the rows of each region.  Return false if out of memory. */
static bool gather(struct regions *regions, const sqlock_info *rows,
                   size_t count)
{
    const sqlock_info **sorted = calloc(count + 1, sizeof(const void *));
    bool is_whole = sorted != NULL;
    size_t i;

    regions->items = calloc(count + 1, sizeof *regions->items);
    is_whole = is_whole && regions->items != NULL;
    for (i = 0; is_whole && i < count; i++)
        sorted[i] = &rows[i];
    if (is_whole && count > 0)
        qsort(sorted, count, sizeof *sorted, by_region);
    for (i = 0; is_whole && i < count; i++) {
        if (i == 0 || strcmp(sorted[i]->region, sorted[i - 1]->region) != 0)
            is_whole = begin_region(regions, sorted[i]->region);
        if (is_whole)
            count_row(&regions->items[regions->count - 1], sorted[i]);
    }
    free(sorted);
    return is_whole;
}

static void begin_metric(const char *name, const char *help)
{
    printf("# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
}

static void print_sharing(const struct regions *regions)
{
    const struct region *end = regions->items + regions->count;
    const struct region *region;

    begin_metric("sqlock_shared_locks", "Locks held that are shared.");
    for (region = regions->items; region < end; region++)
        printf("sqlock_shared_locks{region=\"%s\"} %zu\n", region->label,
               region->shared);
    begin_metric("sqlock_sharers", "Leases that share these.");
    for (region = regions->items; region < end; region++)
        printf("sqlock_sharers{region=\"%s\"} %zu\n", region->label,
               region->sharers);
}

static void print_metrics(const struct regions *regions)
{
    const struct region *end = regions->items + regions->count;
    const struct region *region;

    begin_metric("sqlock_locks", "Locks whose lease runs (held), or has run "
                                 "out unreleased (expired).");
    for (region = regions->items; region < end; region++)
        printf("sqlock_locks{region=\"%s\",state=\"held\"} %zu\n"
               "sqlock_locks{region=\"%s\",state=\"expired\"} %zu\n",
               region->label, region->held, region->label, region->expired);
    print_sharing(regions);
    begin_metric("sqlock_longest_hold_seconds",
                 "How long the lock that is held for longest has been held.");
    for (region = regions->items; region < end; region++)
        printf("sqlock_longest_hold_seconds{region=\"%s\"} %" PRId64
               ".%03" PRId64 "\n",
               region->label, region->longest_ms / 1000,
               region->longest_ms % 1000);
    begin_metric("sqlock_waiting",
                 "Processes that wait for these locks, where that is known.");
    for (region = regions->items; region < end; region++)
        if (region->is_waiting_known)
            printf("sqlock_waiting{region=\"%s\"} %zu\n", region->label,
                   region->waiting);
}

/* Print the numbers of each region.  If a region was given, it is printed even
 * if it has no held or expired locks. */
static int print_rows(const cli *app, const sqlock_info *rows, size_t count)
{
    struct regions regions = {0};
    bool is_whole = gather(&regions, rows, count);

    if (is_whole && count == 0 && app->settings[CLI_REGION] != NULL) {
        is_whole = begin_region(&regions, cli_region(app));
        regions.items[0].is_waiting_known =
            sqlock_registry_layout(app->registry) == SQLOCK_LAYOUT_SQLOCK;
    }
    if (is_whole)
        print_metrics(&regions);
    else
        cli_error("out of memory");
    clear(&regions);
    return is_whole ? CLI_OK : CLI_SYSTEM;
}

static void print_grace(const cli *app)
{
    int64_t left_ms = sqlock_registry_grace_ms(app->registry);

    begin_metric("sqlock_grace_seconds",
                 "For how long the server grants nothing, since it may have "
                 "forgotten leases.");
    printf("sqlock_grace_seconds %" PRId64 ".%03" PRId64 "\n", left_ms / 1000,
           left_ms % 1000);
}

static int run_metrics(cli *app)
{
    sqlock_find_options options = SQLOCK_FIND_INIT;
    sqlock_info *rows = NULL;
    sqlock_error err = {0};
    size_t count = 0;
    int status;

    options.all_regions = app->settings[CLI_REGION] == NULL;
    if (sqlock_find(app->registry, &options, &rows, &count, &err) < 0)
        return cli_fail(&err);
    status = print_rows(app, rows, count);
    if (status == CLI_OK)
        print_grace(app);
    sqlock_info_free(rows, count);
    return status;
}

const cli_command cli_metrics = {
    .name = "metrics",
    .summary = "print numbers of locks for Prometheus",
    .prints_no_data = true,
    .opens = true,
    .run = run_metrics,
};
