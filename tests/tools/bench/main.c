/*
 * main.c - the benchmark: every database, every number of clients
 *
 * The program creates tables in each database, runs the rounds there and drops
 * the tables.  It prints numbers, without judging them.
 */
#include "floor.h"
#include "options.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sqlock.h"

/* Cases that are set up at the same time have a connection for each client, and
 * their baselines do. */
#define CONNECTIONS_MAX 64

/* One database while it is measured. */
struct site {
    struct bench_target target;
    char lock_prefix[32];
    char floor_prefix[32];
    struct floor_connection connection; /* to describe the server and drop the
                                           tables */
};

int bench_fail(struct bench_failure *failure, const char *format, ...)
{
    va_list arguments;
    size_t length;

    if (failure->text[0] != '\0')
        return -1;
    va_start(arguments, format);
    (void)vsnprintf(failure->text, sizeof failure->text, format, arguments);
    va_end(arguments);
    length = strlen(failure->text);
    while (length > 0 && failure->text[length - 1] == '\n')
        failure->text[--length] = '\0';
    return -1;
}

static int create_table(const char *url, const char *prefix,
                        struct bench_failure *failure)
{
    sqlock_options options = SQLOCK_OPTIONS_INIT;
    sqlock_error err = {0};
    int rc;

    options.table_prefix = prefix;
    rc = sqlock_schema_create(url, &options, SQLOCK_LAYOUT_SQLOCK, &err);
    if (rc != 0)
        return bench_fail(failure, "sqlock_schema_create: %s", err.message);
    return 0;
}

/* Create the tables, with this process id in their prefixes, so that no other
 * run of the benchmark has these tables. */
static int open_site(struct site *site, enum bench_database database,
                     const struct bench_options *options,
                     struct bench_failure *failure)
{
    const char *url = options->urls[database];
    long pid = (long)getpid();
    int rc;

    memset(site, 0, sizeof *site);
    (void)snprintf(site->lock_prefix, sizeof site->lock_prefix, "BENCH%ld_",
                   pid);
    (void)snprintf(site->floor_prefix, sizeof site->floor_prefix, "FLOOR%ld_",
                   pid);
    site->target.database = bench_database_name(database);
    site->target.url = url;
    site->target.server_pid = options->server_pids[database];
    site->target.lock_prefix = site->lock_prefix;
    site->target.floor_prefix = site->floor_prefix;
    site->target.floor = floor_driver_find(site->target.database);
    if (site->target.floor == NULL)
        return bench_fail(failure, "this build has no driver for it");
    rc = create_table(url, site->floor_prefix, failure);
    if (rc == 0)
        rc = create_table(url, site->lock_prefix, failure);
    if (rc == 0)
        rc = floor_open(&site->connection, &site->target, BENCH_CLIENTS_MAX + 1,
                        failure);
    site->target.observer = &site->connection;
    return rc;
}

static void drop(struct site *site, const char *kind, const char *prefix,
                 const char *name)
{
    struct bench_failure failure = {""};

    if (floor_run(&site->connection, &failure, "DROP %s IF EXISTS %s%s", kind,
                  prefix, name) != 0)
        (void)fprintf(stderr, "bench: %s\n", failure.text);
}

/* Drop the tables, including those of stock, which some cases have created. */
static void close_site(struct site *site)
{
    static const char *const ours[] = {
        "LOCK",  "LOCK_SERVER", "LOCK_MARK",
        "STOCK", "STOCK_ENTRY", "STOCK_RESERVATION",
    };
    static const char *const floors[] = {"LOCK", "LOCK_SERVER", "LOCK_MARK",
                                         "ITEM", "SALE"};
    size_t i;

    if (site->connection.client == NULL)
        return;
    drop(site, "VIEW", site->lock_prefix, "LOCK_NOW");
    drop(site, "VIEW", site->floor_prefix, "LOCK_NOW");
    for (i = 0; i < sizeof ours / sizeof ours[0]; i++)
        drop(site, "TABLE", site->lock_prefix, ours[i]);
    for (i = 0; i < sizeof floors / sizeof floors[0]; i++)
        drop(site, "TABLE", site->floor_prefix, floors[i]);
    floor_close(&site->connection);
}

/* Run cases, and print their rows, or that they have failed: a run is long, and
 * what it has measured is worth telling. */
static void measure_part(struct bench_report *report, const struct site *site,
                         const struct bench_clients *clients,
                         const struct bench_plan *part)
{
    struct bench_result *results = &report->results[report->count];
    struct bench_failure failure = {""};

    memset(results, 0, part->count * sizeof *results);
    if (bench_rounds_run(part, &site->target, clients, results, &failure) !=
        0) {
        (void)fprintf(stderr, "bench: %s\n", failure.text);
        report->is_incomplete = true;
        return;
    }
    bench_report_rows(results, part->count);
    report->count += part->count;
}

/* Run all cases, or those that depend on the time for which a lock is held, in
 * parts so small that the server has connections enough. */
static void measure_hold(struct bench_report *report, const struct site *site,
                         const struct bench_clients *clients,
                         bool is_first_hold)
{
    const struct bench_plan *plan = report->plan;
    struct bench_plan part = *plan;
    size_t room = CONNECTIONS_MAX / site->target.clients;
    size_t i;

    part.count = 0;
    for (i = 0; i < plan->count; i++) {
        if (is_first_hold || plan->cases[i]->takes_turns)
            part.cases[part.count++] = plan->cases[i];
        if (part.count > 0 && (part.count >= room || i + 1 == plan->count)) {
            measure_part(report, site, clients, &part);
            part.count = 0;
        }
    }
}

/* Run the cases at one number of clients. */
static void measure_clients(struct bench_report *report, struct site *site,
                            const struct bench_options *options, size_t index)
{
    const struct bench_clients *clients = &options->clients[index];
    char text[BENCH_CLIENTS_SIZE];
    size_t i;

    (void)fprintf(stderr, "bench: %s, clients: %s (%zu of %zu)\n",
                  site->target.database, bench_clients_text(clients, text),
                  index + 1, options->client_counts);
    site->target.clients = clients->count;
    for (i = 0; i < options->hold_count; i++) {
        site->target.hold_ns = (int64_t)(options->holds_ms[i] * 1e6);
        measure_hold(report, site, clients, i == 0);
    }
}

static int describe(struct bench_server *server, struct site *site,
                    struct bench_failure *failure)
{
    const struct floor_driver *floor = site->target.floor;
    char cells[FLOOR_CELLS][FLOOR_CELL_SIZE];

    if (floor->row(site->connection.client, floor->describe, cells, failure) <
        0)
        return -1;
    server->database = site->target.database;
    (void)snprintf(server->version, sizeof server->version, "%s", cells[0]);
    (void)snprintf(server->settings, sizeof server->settings, "%s", cells[1]);
    server->is_durable = strcmp(cells[2], "1") == 0;
    return 0;
}

static int measure(struct bench_report *report, struct site *site,
                   const struct bench_options *options,
                   struct bench_failure *failure)
{
    struct bench_server *server = &report->servers[report->server_count];
    size_t i;

    if (describe(server, site, failure) != 0)
        return -1;
    report->server_count++;
    printf("%s: %s, %s\n", server->database, server->version, server->settings);
    if (!server->is_durable)
        printf("%s: COMMITS ARE NOT DURABLE: the ratios say little\n",
               server->database);
    bench_report_head();
    for (i = 0; i < options->client_counts; i++)
        measure_clients(report, site, options, i);
    printf("\n");
    return 0;
}

static int run(struct bench_report *report, const struct bench_options *options,
               struct bench_failure *failure)
{
    struct site site;
    enum bench_database database;
    int rc = 0;

    for (database = 0; database < BENCH_DATABASES && rc == 0; database++) {
        if (options->urls[database] == NULL)
            continue;
        rc = open_site(&site, database, options, failure);
        if (rc == 0)
            rc = measure(report, &site, options, failure);
        close_site(&site);
    }
    return rc;
}

int main(int argc, char **argv)
{
    struct bench_options options;
    struct bench_report report = {0};
    struct bench_failure failure = {""};
    int rc;

    rc = bench_options_read(&options, argc, argv, &failure);
    if (rc == 0 && options.is_serving)
        return bench_crew_serve();
    if (rc != 0 || options.is_help)
        goto out;
    report.plan = &options.plan;
    report.results = calloc(BENCH_DATABASES * options.client_counts *
                                options.hold_count * options.plan.count,
                            sizeof *report.results);
    if (report.results == NULL) {
        rc = bench_fail(&failure, "out of memory");
        goto out;
    }
    rc = run(&report, &options, &failure);
    if (rc == 0 && options.json != NULL)
        rc = bench_report_json(&report, options.json, &failure);
out:
    if (rc != 0)
        (void)fprintf(stderr, "bench: %s\n", failure.text);
    free(report.results);
    bench_options_clear(&options);
    return rc == 0 && !report.is_incomplete ? EXIT_SUCCESS : EXIT_FAILURE;
}
