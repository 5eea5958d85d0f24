/*
 * report.c - the results as a table for people and as JSON for programs
 */
#include "bench.h"

#include <stdio.h>

#include <jansson.h>

#include "sqlock.h"

#define US(ns) ((ns) / 1e3)

void bench_report_head(void)
{
    printf("%-9s %7s  %-12s %10s %7s %15s %7s %9s %9s %8s  %s\n", "database",
           "clients", "case", "ops/s", "ratio", "half of them", "best",
           "p50 us", "p99 us", "cpu us", "ratio to");
}

void bench_report_rows(const struct bench_result *results, size_t count)
{
    const struct bench_result *at;
    char half[32];
    size_t i;

    for (i = 0; i < count; i++) {
        at = &results[i];
        (void)snprintf(half, sizeof half, "%.2f - %.2f", at->ratio_q1,
                       at->ratio_q3);
        printf(
            "%-9s %7u  %-12s %10.0f %7.2f %15s %7.2f %9.1f %9.1f %8.1f  %s\n",
            at->database, at->clients, at->the_case->name, at->per_second,
            at->ratio, half, at->ratio_best,
            US(bench_histogram_quantile(&at->latency, 0.50)),
            US(bench_histogram_quantile(&at->latency, 0.99)), at->client_us,
            at->the_case == bench_case_find(at->the_case->baseline)
                ? "itself: the noise"
                : at->the_case->baseline);
    }
    (void)fflush(stdout);
}

static json_t *json_of_server(const struct bench_server *server)
{
    return json_pack("{s:s, s:s, s:s, s:b}", "database", server->database,
                     "version", server->version, "settings", server->settings,
                     "durable", (int)server->is_durable);
}

static json_t *json_of_result(const struct bench_result *result)
{
    const struct bench_histogram *latency = &result->latency;
    json_t *ratios = json_array();
    unsigned i;

    for (i = 0; i < result->repeats; i++)
        (void)json_array_append_new(ratios, json_real(result->ratios[i]));
    return json_pack(
        "{s:s, s:i, s:s, s:s, s:f, s:f, s:f, s:f, s:f, s:o, s:f, s:f, s:f, "
        "s:f, s:f, "
        "s:I}",
        "database", result->database, "clients", (int)result->clients, "case",
        result->the_case->name, "baseline", result->the_case->baseline,
        "ops_per_s", result->per_second, "ratio", result->ratio, "ratio_q1",
        result->ratio_q1, "ratio_q3", result->ratio_q3, "ratio_best",
        result->ratio_best, "ratios", ratios, "p50_us",
        US(bench_histogram_quantile(latency, 0.50)), "p99_us",
        US(bench_histogram_quantile(latency, 0.99)), "p999_us",
        US(bench_histogram_quantile(latency, 0.999)), "max_us",
        US((double)latency->max_ns), "client_cpu_us", result->client_us,
        "operations", (json_int_t)result->operations);
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
