/*
 * report.c - the results as a table for people and as JSON for programs
 */
#include "bench.h"

#include <math.h>
#include <stdio.h>

#include <jansson.h>

#include "sqlock.h"

#define US(ns) ((ns) / 1e3)

const char *bench_clients_text(const struct bench_clients *clients,
                               char out[BENCH_CLIENTS_SIZE])
{
    if (clients->processes == 0)
        (void)snprintf(out, BENCH_CLIENTS_SIZE, "%u", clients->count);
    else if (clients->processes == clients->count)
        (void)snprintf(out, BENCH_CLIENTS_SIZE, "%up", clients->count);
    else
        (void)snprintf(out, BENCH_CLIENTS_SIZE, "%ux%u", clients->processes,
                       clients->count / clients->processes);
    return out;
}

void bench_report_head(void)
{
    printf("%71s %29s %15s %27s %14s\n", "", "latency in us", "CPU us per op",
           "bytes per op", "clients");
    printf("%-9s %7s  %-22s %8s %7s %13s %7s %9s %9s %9s %7s %7s %5s %6s %7s "
           "%6s %6s %6s  %s\n",
           "database", "clients", "case", "ops/s", "ratio", "half of them",
           "best", "p50", "p99", "longest", "client", "server", "sent", "wire",
           "log", "binlog", "vary", "in row", "ratio to");
}

/* Return what the slices of a row have counted, for each operation; NAN: not
 * known. */
static double per_operation(double count, const struct bench_result *row)
{
    return row->operations > 0 ? count / (double)row->operations : NAN;
}

static void print_count(double count, const struct bench_result *row, int width,
                        int digits)
{
    double each = per_operation(count, row);

    if (isnan(each))
        printf(" %*s", width, "-");
    else
        printf(" %*.*f", width, digits, each);
}

static void print_row(const struct bench_result *row)
{
    char half[32];
    char server[32] = "-";
    char row_of_one[16] = "-";
    char clients[BENCH_CLIENTS_SIZE];
    char name[64];

    (void)snprintf(half, sizeof half, "%.2f - %.2f", row->ratio_q1,
                   row->ratio_q3);
    (void)snprintf(name, sizeof name, "%s", row->the_case->name);
    if (row->hold_ms >= 0.0)
        (void)snprintf(name, sizeof name, "%s, %g ms", row->the_case->name,
                       row->hold_ms);
    if (row->server_us >= 0.0)
        (void)snprintf(server, sizeof server, "%.0f", row->server_us);
    if (row->the_case->takes_turns)
        (void)snprintf(row_of_one, sizeof row_of_one, "%u", row->in_a_row);
    printf("%-9s %7s  %-22s %8.0f %7.2f %13s %7.2f %9.1f %9.1f %9.0f %7.0f "
           "%7s",
           row->database, bench_clients_text(&row->clients, clients), name,
           row->per_second, row->ratio, half, row->ratio_best,
           US(bench_histogram_quantile(&row->latency, 0.50)),
           US(bench_histogram_quantile(&row->latency, 0.99)),
           US((double)row->latency.max_ns), row->client_us, server);
    print_count(row->traffic.requests, row, 5, 1);
    print_count(row->traffic.wire_bytes, row, 6, 0);
    print_count(row->traffic.log_bytes, row, 7, 0);
    print_count(row->traffic.binlog_bytes, row, 6, 0);
    printf(" %6.2f %6s  %s\n", row->variation, row_of_one,
           row->the_case == bench_case_find(row->the_case->baseline)
               ? "itself: the noise"
               : row->the_case->baseline);
}

void bench_report_rows(const struct bench_result *results, size_t count)
{
    size_t i;

    for (i = 0; i < count; i++)
        print_row(&results[i]);
    (void)fflush(stdout);
}

static json_t *json_of_server(const struct bench_server *server)
{
    return json_pack("{s:s, s:s, s:s, s:b}", "database", server->database,
                     "version", server->version, "settings", server->settings,
                     "durable", (int)server->is_durable);
}

static json_t *json_of_count(double count, const struct bench_result *row)
{
    double each = per_operation(count, row);

    return isnan(each) ? json_null() : json_real(each);
}

static json_t *json_of_result(const struct bench_result *result)
{
    const struct bench_histogram *latency = &result->latency;
    json_t *ratios = json_array();
    json_t *server_us =
        result->server_us < 0.0 ? json_null() : json_real(result->server_us);
    json_t *hold_ms =
        result->hold_ms < 0.0 ? json_null() : json_real(result->hold_ms);
    unsigned processes = result->clients.processes;
    unsigned threads = result->clients.count / (processes > 0 ? processes : 1);
    unsigned i;

    for (i = 0; i < result->repeats; i++)
        (void)json_array_append_new(ratios, json_real(result->ratios[i]));
    return json_pack(
        "{s:s, s:i, s:b, s:i, s:s, s:s, s:o, s:f, s:f, s:f, s:f, s:f, s:o, "
        "s:f, "
        "s:f, "
        "s:f, "
        "s:f, s:f, "
        "s:I, s:f, s:f, s:i, s:o, s:o, s:o, s:o, s:o}",
        "database", result->database, "clients", (int)result->clients.count,
        "processes", result->clients.processes > 0 ? 1 : 0, "threads_of_each",
        (int)threads, "case", result->the_case->name, "baseline",
        result->the_case->baseline, "server_cpu_us", server_us, "ops_per_s",
        result->per_second, "ratio", result->ratio, "ratio_q1",
        result->ratio_q1, "ratio_q3", result->ratio_q3, "ratio_best",
        result->ratio_best, "ratios", ratios, "p50_us",
        US(bench_histogram_quantile(latency, 0.50)), "p99_us",
        US(bench_histogram_quantile(latency, 0.99)), "p999_us",
        US(bench_histogram_quantile(latency, 0.999)), "max_us",
        US((double)latency->max_ns), "client_cpu_us", result->client_us,
        "operations", (json_int_t)result->operations, "turns_per_s",
        result->turns_per_second, "variation", result->variation, "in_a_row",
        (int)result->in_a_row, "hold_ms", hold_ms, "requests",
        json_of_count(result->traffic.requests, result), "wire_bytes",
        json_of_count(result->traffic.wire_bytes, result), "log_bytes",
        json_of_count(result->traffic.log_bytes, result), "binlog_bytes",
        json_of_count(result->traffic.binlog_bytes, result));
}

int bench_report_json(const struct bench_report *report, const char *path,
                      struct bench_failure *failure)
{
    json_t *servers = json_array();
    json_t *results = json_array();
    json_t *root;
    size_t i;
    int rc = 0;

    for (i = 0; i < report->server_count; i++)
        (void)json_array_append_new(servers,
                                    json_of_server(&report->servers[i]));
    for (i = 0; i < report->count; i++)
        (void)json_array_append_new(results,
                                    json_of_result(&report->results[i]));
    root = json_pack("{s:i, s:s, s:f, s:i, s:o, s:o}", "format", 1, "sqlock",
                     sqlock_version(), "seconds", report->plan->seconds,
                     "repeats", (int)report->plan->repeats, "servers", servers,
                     "results", results);
    if (root == NULL ||
        json_dump_file(root, path, JSON_INDENT(2) | JSON_REAL_PRECISION(6)) !=
            0)
        rc = bench_fail(failure, "%s: cannot be written", path);
    json_decref(root);
    return rc;
}
