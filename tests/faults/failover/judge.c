/*
 * judge.c - compare the results that the writers got with the tables of the
 * promoted standby
 */
#include "failover.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct notes *judged;

static struct {
    size_t grants;
    size_t acknowledged;
    size_t lost;    /* acknowledged writes that are not there */
    size_t unknown; /* commits that got no answer */
    size_t carried; /* those of them that were carried out */
    size_t refused;
} totals;

static int by_token(const void *a, const void *b)
{
    const struct grant *left = a;
    const struct grant *right = b;

    return (left->token > right->token) - (left->token < right->token);
}

/* Return the grants of all writers, sorted by token; the caller frees them. */
static struct grant *collect(size_t *count)
{
    struct grant *grants = calloc(WRITERS * GRANTS_MAX, sizeof *grants);

    assert_non_null(grants);
    *count = 0;
    for (size_t i = 0; i < WRITERS; i++) {
        const struct writer *writer = &judged->writers[i];

        memcpy(grants + *count, writer->grants,
               writer->count * sizeof writer->grants[0]);
        *count += writer->count;
    }
    qsort(grants, *count, sizeof *grants, by_token);
    return grants;
}

void test_F57_no_token_is_given_twice(void **state)
{
    struct grant *grants = collect(&totals.grants);

    (void)state;
    for (size_t i = 1; i < totals.grants; i++)
        assert_less(grants[i - 1].token, grants[i].token);
    free(grants);
    /* No writer got a smaller token than before. */
    for (size_t i = 0; i < WRITERS; i++) {
        const struct writer *writer = &judged->writers[i];

        for (unsigned k = 1; k < writer->count; k++)
            assert_less(writer->grants[k - 1].token, writer->grants[k].token);
    }
}

static bool is_there(struct sql *sql, const struct grant *grant)
{
    return sql_integer(sql,
                       "SELECT count(*) FROM written WHERE lane = %d AND"
                       " number = %lld AND token = %lld",
                       LANE_WRITERS, (long long)grant->number,
                       (long long)grant->token) == 1;
}

/* Count the acknowledged writes that a failover lost: after the first lost one,
 * all later ones up to the failover must be lost, too. */
static void judge_acknowledged(const struct grant *grant, bool there)
{
    totals.acknowledged++;
    if (there && !grant->is_late && totals.lost > 0)
        fail_msg("a write was lost, and a later one was not");
    if (!there && grant->is_late)
        fail_msg("a write to the promoted standby is lost");
    totals.lost += !there;
}

static void judge(struct sql *sql, const struct grant *grant)
{
    bool there;

    if (grant->fate == UNWRITTEN)
        return;
    there = is_there(sql, grant);
    if (grant->fate == ACKNOWLEDGED) {
        judge_acknowledged(grant, there);
    } else {
        totals.unknown++;
        totals.carried += there;
    }
}

/* The promoted standby has all acknowledged writes; after an asynchronous
 * failover, all but the last ones before it.  It has no other writes than those
 * acknowledged, and those whose commit got no answer. */
void test_F57_acknowledged_writes_are_there(void **state)
{
    struct grant *grants;
    struct sql sql;
    size_t count;

    (void)state;
    grants = collect(&count);
    assert_lock_ok(sql_open(&sql, postgres, cluster_standby("URL")), &sql.err);
    for (size_t i = 0; i < count; i++)
        judge(&sql, &grants[i]);
    free(grants);
    assert_int_equal(sql_integer(&sql,
                                 "SELECT count(*) FROM written WHERE lane = %d",
                                 LANE_WRITERS),
                     totals.acknowledged - totals.lost + totals.carried);
    sql_close(&sql);
    if (cluster_is_synchronous())
        assert_int_equal(totals.lost, 0);
    else
        assert_true(totals.lost > 0); /* due to cluster_cut_off() */
}

void test_F57_no_write_comes_after_its_successors(void **state)
{
    struct sql sql;

    (void)state;
    assert_lock_ok(sql_open(&sql, postgres, cluster_standby("URL")), &sql.err);
    /* Tokens may be equal in the lanes of the paused holder only: there each
     * holder writes several times. */
    assert_int_equal(
        sql_integer(&sql,
                    "SELECT count(*) FROM (SELECT lane, token, lag(token) OVER"
                    " (PARTITION BY lane ORDER BY number) AS last FROM written)"
                    " AS w WHERE token < last OR (lane = %d AND token = last)",
                    LANE_WRITERS),
        0);
    assert_int_equal(sql_integer(&sql,
                                 "SELECT count(*) FROM counter AS c WHERE n <>"
                                 " (SELECT count(*) FROM written AS w"
                                 " WHERE w.lane = c.lane)"),
                     0);
    sql_close(&sql);
}

void judge_sum_up(void)
{
    const char *path = getenv("SQLOCK_TEST_SUMMARY");
    FILE *file = path != NULL ? fopen(path, "a") : NULL;

    for (size_t i = 0; i < WRITERS; i++)
        totals.refused += judged->writers[i].refused;
    print_message("%zu grants, %zu writes acknowledged, %zu of them lost; %zu"
                  " commits without an answer, %zu of them carried out; %zu"
                  " calls refused\n",
                  totals.grants, totals.acknowledged, totals.lost,
                  totals.unknown, totals.carried, totals.refused);
    if (file == NULL)
        return;
    (void)fprintf(file, "%s %zu %zu %zu %zu %zu %zu\n",
                  cluster_is_synchronous() ? "sync" : "async", totals.grants,
                  totals.acknowledged, totals.lost, totals.unknown,
                  totals.carried, totals.refused);
    (void)fclose(file);
}
