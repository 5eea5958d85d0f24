/*
 * cases.c - the table of the cases
 *
 * A case that is its own baseline shows the noise: how much slices of one case
 * differ.
 */
#include "cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POOL_MAX 64 /* largest pool_size (sqlock.h) */

static const struct bench_case lock_cases[] = {
    {
        .name = "floor",
        .what = "two prepared autocommit UPDATEs of one row, no sqlock",
        .baseline = "floor",
        .setup = floor_setup,
        .operation = floor_two_updates,
        .teardown = floor_teardown,
    },
    {
        .name = "pair",
        .what = "acquire and release, every client a lock of its own",
        .baseline = "floor",
        .setup = lock_setup,
        .operation = lock_pair,
        .teardown = lock_teardown,
    },
    {
        .name = "pooled",
        .what = "pair, with the default pool_size",
        .baseline = "floor",
        .setup = pooled_setup,
        .operation = lock_pair,
        .teardown = lock_teardown,
    },
    {
        .name = "fast",
        .what = "pair, with durability=fast on PostgreSQL",
        .baseline = "floor",
        .setup = fast_setup,
        .operation = lock_pair,
        .teardown = lock_teardown,
    },
    {
        .name = "fresh",
        .what = "pooled, with a handle for each pair, dropped after it",
        .baseline = "floor",
        .setup = pooled_setup,
        .operation = fresh_pair,
        .teardown = lock_teardown,
    },
    {
        .name = "redis-always",
        .what = "pair, in a Redis that flushes each change to the disk",
        .baseline = "floor",
        .is_elsewhere = true,
        .needs = BENCH_REDIS,
        .setup = redis_always_setup,
        .operation = redis_pair,
        .teardown = redis_teardown,
    },
    {
        .name = "redis-everysec",
        .what = "the same, flushed once a second",
        .baseline = "floor",
        .is_elsewhere = true,
        .needs = BENCH_REDIS,
        .setup = redis_everysec_setup,
        .operation = redis_pair,
        .teardown = redis_teardown,
    },
    {
        .name = "shared",
        .what = "pair, in shared mode",
        .baseline = "pair",
        .setup = shared_setup,
        .operation = shared_pair,
        .teardown = lock_teardown,
    },
    {
        .name = "permit",
        .what = "pair, of one of three permits",
        .baseline = "pair",
        .setup = permit_setup,
        .operation = permit_pair,
        .teardown = lock_teardown,
    },
    {
        .name = "readers",
        .what = "shared, all clients the same lock",
        .baseline = "pair",
        .setup = readers_setup,
        .operation = shared_pair,
        .teardown = lock_teardown,
    },
    {
        .name = "unguarded",
        .what = "a transaction that updates a row, every client its own row",
        .baseline = "floor",
        .setup = tx_setup,
        .operation = tx_unguarded,
        .teardown = tx_teardown,
    },
    {
        .name = "guarded",
        .what = "the same, guarded by a lease that the client holds",
        .baseline = "unguarded",
        .setup = tx_guarded_setup,
        .operation = tx_guarded,
        .teardown = tx_teardown,
    },
    {
        .name = "bare",
        .what = "BEGIN, a prepared UPDATE, COMMIT, no sqlock",
        .baseline = "bare",
        .setup = floor_setup,
        .operation = floor_transaction,
        .teardown = floor_teardown,
    },
    {
        .name = "adopted",
        .what = "that UPDATE, guarded, the connection adopted each time",
        .baseline = "bare",
        .setup = adopted_setup,
        .operation = adopted_transaction,
        .teardown = adopted_teardown,
    },
    {.name = NULL},
};

static const struct bench_case waiting_cases[] = {
    {
        .name = "row-queue",
        .what = "all clients one row, locked FOR UPDATE for --hold",
        .baseline = "row-queue",
        .takes_turns = true,
        .setup = row_setup,
        .operation = row_turn,
        .teardown = row_teardown,
    },
    {
        .name = "handoff",
        .what = "all clients one lock, held for --hold",
        .baseline = "row-queue",
        .takes_turns = true,
        .setup = queue_setup,
        .operation = queue_turn,
        .teardown = queue_teardown,
    },
    {
        .name = "fast-handoff",
        .what = "handoff, with durability=fast on PostgreSQL",
        .baseline = "row-queue",
        .takes_turns = true,
        .setup = fast_queue_setup,
        .operation = queue_turn,
        .teardown = queue_teardown,
    },
    {
        .name = "crowded",
        .what = "handoff, while 200 others wait for other locks",
        .baseline = "handoff",
        .takes_turns = true,
        .setup = crowded_setup,
        .begin = crowded_begin,
        .end = crowded_end,
        .operation = crowded_turn,
        .teardown = crowded_teardown,
    },
    {
        .name = "permits",
        .what = "all clients a lock with three permits, held for --hold",
        .baseline = "row-queue",
        .takes_turns = true,
        .setup = permits_setup,
        .operation = permits_turn,
        .teardown = queue_teardown,
    },
    {
        .name = "poller",
        .what = "handoff, tried every 100 ms, as Spring does",
        .baseline = "poller",
        .takes_turns = true,
        .setup = poller_setup,
        .operation = poller_turn,
        .teardown = queue_teardown,
    },
    {
        .name = "thread-queue",
        .what = "a queue of threads, one UPDATE for each turn",
        .baseline = "thread-queue",
        .takes_turns = true,
        .is_in_process = true,
        .setup = row_setup,
        .operation = local_turn,
        .teardown = row_teardown,
    },
    {.name = NULL},
};

const struct bench_group bench_groups[] = {
    {"locks", "leases, and transactions with them", lock_cases},
    {"stock", "sales of one hot item", bench_stock_cases},
    {"waiting", "one lock, many clients", waiting_cases},
    {NULL, NULL, NULL},
};

const struct bench_group *bench_group_find(const char *name)
{
    const struct bench_group *at;

    for (at = bench_groups; at->name != NULL; at++) {
        if (strcmp(at->name, name) == 0)
            return at;
    }
    return NULL;
}

const struct bench_case *bench_case_find(const char *name)
{
    const struct bench_group *group;
    const struct bench_case *at;

    for (group = bench_groups; group->name != NULL; group++) {
        for (at = group->cases; at->name != NULL; at++) {
            if (strcmp(at->name, name) == 0)
                return at;
        }
    }
    return NULL;
}

bool bench_case_is_there(const struct bench_case *the_case)
{
    const char *from = getenv("PATH");
    char path[4096];
    size_t length;

    if (the_case->needs == NULL)
        return true;
    for (; from != NULL && *from != '\0';
         from += length + (from[length] == ':')) {
        length = strcspn(from, ":");
        (void)snprintf(path, sizeof path, "%.*s/%s", (int)length, from,
                       the_case->needs);
        if (access(path, X_OK) == 0)
            return true;
    }
    return false;
}

int bench_make_fast(struct bench_fast *fast, const struct bench_target *target,
                    struct bench_failure *failure)
{
    const char *tail = strchr(target->url, '?') == NULL ? "?durability=fast"
                                                        : "&durability=fast";
    int length;

    if (strcmp(target->database, "postgres") != 0)
        tail = "";
    fast->target = *target;
    fast->target.url = fast->url;
    length = snprintf(fast->url, sizeof fast->url, "%s%s", target->url, tail);
    return length < (int)sizeof fast->url
               ? 0
               : bench_fail(failure, "the URL is too long");
}

unsigned bench_pool_size(const struct bench_target *target)
{
    return target->clients < POOL_MAX ? target->clients : POOL_MAX;
}

int bench_fail_call(struct bench_failure *failure, const char *what, int rc,
                    const sqlock_error *err)
{
    return bench_fail(failure, "%s: %s (%d): %s", what, sqlock_strerror(rc), rc,
                      err->message);
}
