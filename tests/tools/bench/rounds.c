/*
 * rounds.c - interleave slices of cases and their baselines
 *
 * In each round every case runs for one slice, between two slices of its
 * baseline.  The case's ratio in this round is its rate divided by the mean
 * rate of these two slices.  The median over the rounds is reported.
 */
#include "bench.h"
#include "turns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A case that is set up: one in the plan, or the baseline of one. */
struct actor {
    const struct bench_case *the_case;
    void *state;
    uint64_t operations; /* in all slices */
};

struct stage {
    const struct bench_plan *plan;
    const struct bench_target *target;
    struct bench_target own; /* as *target, with clients of this process */
    struct bench_crew *crew; /* NULL: the clients are threads */
    struct actor actors[2 * BENCH_CASES_MAX];
    size_t count;
    const struct actor *last; /* the actor whose slice ran last */
    struct bench_slice slice; /* that slice */
};

/* The measured values of one case, by round. */
struct samples {
    double own[BENCH_REPEATS_MAX];
    double baseline[2 * BENCH_REPEATS_MAX];
    double client_us[BENCH_REPEATS_MAX];
    double server_us[BENCH_REPEATS_MAX];
    double turns[BENCH_REPEATS_MAX];
    double variation[BENCH_REPEATS_MAX];
};

static int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;

    return (a > b) - (a < b);
}

/* Return the value below which the fraction @p part of the values lies,
   interpolated between neighbours. */
static double quantile(const double *values, size_t count, double part)
{
    double sorted[BENCH_REPEATS_MAX];
    double at = part * (double)(count - 1);
    size_t below = (size_t)at;
    size_t above = below + 1 < count ? below + 1 : below;

    memcpy(sorted, values, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_doubles);
    return sorted[below] +
           (sorted[above] - sorted[below]) * (at - (double)below);
}

static double median(const double *values, size_t count)
{
    return quantile(values, count, 0.5);
}

static double best_two(const double *values, size_t count)
{
    double first = 0.0;
    double second = 0.0;
    size_t i;

    for (i = 0; i < count; i++) {
        if (values[i] > first) {
            second = first;
            first = values[i];
        } else if (values[i] > second) {
            second = values[i];
        }
    }
    return count > 1 ? (first + second) / 2.0 : first;
}

static struct actor *find_actor(struct stage *stage,
                                const struct bench_case *the_case)
{
    size_t i;

    for (i = 0; i < stage->count; i++) {
        if (stage->actors[i].the_case == the_case)
            return &stage->actors[i];
    }
    return NULL;
}

static const struct bench_target *target_of(const struct stage *stage,
                                            const struct bench_case *the_case)
{
    return the_case->is_in_process ? stage->target : &stage->own;
}

static int add_actor(struct stage *stage, const struct bench_case *the_case,
                     struct bench_failure *failure)
{
    struct actor *actor;

    if (find_actor(stage, the_case) != NULL)
        return 0;
    actor = &stage->actors[stage->count];
    actor->the_case = the_case;
    stage->count++;
    return the_case->setup(&actor->state, target_of(stage, the_case), failure);
}

static int run_clients(struct stage *stage, struct actor *actor, double seconds,
                       struct bench_histogram *latency,
                       struct bench_failure *failure)
{
    if (stage->crew != NULL && !actor->the_case->is_in_process)
        return bench_crew_slice(stage->crew, (size_t)(actor - stage->actors),
                                seconds, &stage->slice, latency, failure);
    return bench_slice_run(actor->the_case, actor->state,
                           target_of(stage, actor->the_case), seconds,
                           &stage->slice, latency, failure);
}

static int run_slice(struct stage *stage, struct actor *actor, double seconds,
                     struct bench_histogram *latency,
                     struct bench_failure *failure)
{
    struct bench_traffic before;
    struct bench_traffic after;
    int rc = 0;

    if (actor->the_case->takes_turns) {
        rc = bench_turns_open(failure);
        if (rc != 0)
            return rc;
        (void)bench_turns_take();
    }
    if (actor->the_case->begin != NULL)
        rc = actor->the_case->begin(actor->state, failure);
    if (rc == 0)
        rc = bench_traffic_of_server(&before, stage->target, failure);
    if (rc == 0)
        rc = run_clients(stage, actor, seconds, latency, failure);
    if (rc == 0)
        rc = bench_traffic_of_server(&after, stage->target, failure);
    if (actor->the_case->end != NULL)
        actor->the_case->end(actor->state);
    if (rc != 0)
        return rc;
    before = bench_traffic_between(&before, &after);
    bench_traffic_complete(&stage->slice.traffic, &before);
    if (actor->the_case->is_elsewhere) {
        stage->slice.server_us = -1.0;
        stage->slice.traffic.log_bytes = NAN;
        stage->slice.traffic.binlog_bytes = NAN;
    }
    actor->operations += stage->slice.operations;
    bench_slice_turns(&stage->slice, actor->the_case);
    return 0;
}

static int run_actor(struct stage *stage, struct actor *actor,
                     struct bench_histogram *latency,
                     struct bench_failure *failure)
{
    stage->last = actor;
    return run_slice(stage, actor, stage->plan->seconds, latency, failure);
}

/* Start the client processes, if any, and let each case warm up: connections
   are opened and statements prepared at first use. */
static int start_clients(struct stage *stage,
                         const struct bench_clients *clients,
                         struct bench_failure *failure)
{
    const struct bench_case *cases[2 * BENCH_CASES_MAX];
    double seconds = stage->plan->seconds < 0.2 ? stage->plan->seconds : 0.2;
    size_t i;
    int rc = 0;

    for (i = 0; i < stage->count; i++)
        cases[i] = stage->actors[i].the_case;
    if (clients->processes > 0)
        rc = bench_crew_start(&stage->crew, stage->target, clients, cases,
                              stage->count, failure);
    for (i = 0; i < stage->count && rc == 0; i++)
        rc = run_slice(stage, &stage->actors[i], seconds, NULL, failure);
    return rc;
}

static int verify(const struct stage *stage, struct bench_failure *failure)
{
    const struct actor *at;
    size_t i;
    int rc = 0;

    for (i = 0; i < stage->count && rc == 0; i++) {
        at = &stage->actors[i];
        if (at->the_case->verify != NULL)
            rc = at->the_case->verify(at->state, at->operations, failure);
    }
    return rc;
}

/* Return the rate that ratios compare: turns or operations.  A single client
   takes no turns with another. */
static double rate_of(const struct stage *stage, const struct actor *actor)
{
    return actor->the_case->takes_turns && stage->target->clients > 1
               ? stage->slice.turns_per_second
               : stage->slice.per_second;
}

static int run_case(struct stage *stage, size_t round,
                    struct bench_result *result, struct samples *samples,
                    struct bench_failure *failure)
{
    struct actor *own = find_actor(stage, result->the_case);
    struct actor *baseline =
        find_actor(stage, bench_case_find(result->the_case->baseline));
    double *around = &samples->baseline[2 * round];
    int rc;

    /* A slice of the baseline that ran just now, for the case before, is used
       again. */
    if (stage->last != baseline) {
        rc = run_actor(stage, baseline, NULL, failure);
        if (rc != 0)
            return rc;
    }
    around[0] = rate_of(stage, baseline);
    rc = run_actor(stage, own, &result->latency, failure);
    if (rc != 0)
        return rc;
    samples->own[round] = rate_of(stage, own);
    samples->turns[round] = stage->slice.turns_per_second;
    samples->variation[round] = stage->slice.variation;
    if (stage->slice.in_a_row > result->in_a_row)
        result->in_a_row = stage->slice.in_a_row;
    samples->client_us[round] = stage->slice.client_us;
    samples->server_us[round] = stage->slice.server_us;
    result->operations += stage->slice.operations;
    bench_traffic_add(&result->traffic, &stage->slice.traffic);
    rc = run_actor(stage, baseline, NULL, failure);
    if (rc != 0)
        return rc;
    around[1] = rate_of(stage, baseline);
    result->ratios[round] = samples->own[round] * 2.0 / (around[0] + around[1]);
    return 0;
}

static void summarize(struct bench_result *result,
                      const struct samples *samples)
{
    size_t count = result->repeats;

    result->per_second = median(samples->own, count);
    result->client_us = median(samples->client_us, count);
    result->turns_per_second = median(samples->turns, count);
    result->variation = median(samples->variation, count);
    result->server_us = median(samples->server_us, count);
    result->ratio = median(result->ratios, count);
    result->ratio_q1 = quantile(result->ratios, count, 0.25);
    result->ratio_q3 = quantile(result->ratios, count, 0.75);
    result->ratio_best =
        best_two(samples->own, count) / best_two(samples->baseline, 2 * count);
}

static double seconds_now(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Run the rounds, but begin none when the cases have had their time: a slice
 * lasts longer than it should where an operation does. */
static int run_rounds(struct stage *stage, struct bench_result *results,
                      struct samples *samples, struct bench_failure *failure)
{
    const struct bench_plan *plan = stage->plan;
    double end = seconds_now() + plan->limit * (double)plan->count;
    unsigned round;
    size_t i;
    int rc;

    for (round = 0;
         round < plan->repeats && (round == 0 || seconds_now() < end);
         round++) {
        for (i = 0; i < plan->count; i++) {
            rc = run_case(stage, round, &results[i], &samples[i], failure);
            if (rc != 0)
                return rc;
            results[i].repeats = round + 1;
        }
    }
    return 0;
}

int bench_rounds_run(const struct bench_plan *plan,
                     const struct bench_target *target,
                     const struct bench_clients *clients,
                     struct bench_result *results,
                     struct bench_failure *failure)
{
    struct stage stage = {.plan = plan, .target = target, .own = *target};
    struct samples *samples = NULL;
    size_t i;
    int rc = 0;

    samples = calloc(plan->count, sizeof *samples);
    if (samples == NULL)
        return bench_fail(failure, "out of memory");
    if (clients->processes > 0)
        stage.own.clients = 1; /* for setup and verify */
    for (i = 0; i < plan->count && rc == 0; i++) {
        results[i].database = target->database;
        results[i].clients = *clients;
        results[i].the_case = plan->cases[i];
        results[i].hold_ms =
            plan->cases[i]->takes_turns ? (double)target->hold_ns / 1e6 : -1.0;
        rc = add_actor(&stage, bench_case_find(plan->cases[i]->baseline),
                       failure);
        if (rc == 0)
            rc = add_actor(&stage, plan->cases[i], failure);
    }
    if (rc == 0)
        rc = start_clients(&stage, clients, failure);
    if (rc == 0)
        rc = run_rounds(&stage, results, samples, failure);
    bench_crew_stop(stage.crew);
    if (rc == 0)
        rc = verify(&stage, failure);
    for (i = 0; i < plan->count && rc == 0; i++)
        summarize(&results[i], &samples[i]);
    for (i = 0; i < stage.count; i++)
        stage.actors[i].the_case->teardown(stage.actors[i].state);
    free(samples);
    return rc;
}
