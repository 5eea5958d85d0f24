/*
 * reap.c - remove the rows of locks that have long been free or expired, one
 * range of keys at a time
 *
 * Ranges grow while they are deleted quickly, and shrink when they are not:
 * deleted rows stay locked until the statement ends, and a claim of such a row
 * waits for that.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "admin/info.h"
#include "lease/longest.h"
#include "lease/options.h"

/* So that a time of that many milliseconds fits in nanoseconds. */
#define RETENTION_MOST_MS (INT64_MAX / 1000000)

#define FIRST_PART 1000 /* rows */
#define LEAST_PART 100
#define GREATEST_PART 64000
#define SHORT_NS (10 * LK_NS_PER_MS)
#define LONG_NS (40 * LK_NS_PER_MS)

struct reaped {
    const char *region;
    const struct lk_statement *statement;
    int64_t retention_us;
    int64_t rows; /* about how many the next range has */
};

/* Return the bound that next_bound() has read; NULL: no range follows. */
static const char *bound_of(const sqlock_result *bound)
{
    return bound->rows > 0 ? lk_cell_text(&bound->cells[0]) : NULL;
}

/* Find the end of the range that begins at `from`: a key, of which a stranger
 * may have written one of any length.  The caller clears *bound. */
static int next_bound(struct lk_store *store, const struct reaped *reaped,
                      const char *from, sqlock_result *bound, sqlock_error *err)
{
    struct lk_arguments arguments;

    lk_store_arguments(store, from, &arguments);
    lk_argument_text(&arguments, SQLOCK_P_REGION, reaped->region);
    lk_argument_integer(&arguments, SQLOCK_P_LIMIT, reaped->rows);
    return lk_info_read(store, SQLOCK_SQL_REAP_BOUND, &arguments, bound, err);
}

static int reap_part(struct lk_store *store, const struct reaped *reaped,
                     const char *from, const char *bound, int64_t *removed,
                     sqlock_error *err)
{
    struct lk_arguments arguments;
    struct lk_run run = {
        .statement = reaped->statement,
        .arguments = &arguments,
        .deadline_ns = lk_store_deadline(store),
        .is_repeatable = true, /* deleting rows again does no harm */
        .is_write = true,
    };
    sqlock_result result = {0};
    int rc;

    lk_store_arguments(store, from, &arguments);
    lk_argument_text(&arguments, SQLOCK_P_REGION, reaped->region);
    lk_argument_text(&arguments, SQLOCK_P_UNTIL, bound);
    lk_argument_integer(&arguments, SQLOCK_P_AGE, reaped->retention_us);
    rc = lk_db_run(&store->db, &run, &result, err);
    if (rc == 0)
        *removed += result.affected;
    sqlock_result_clear(&result);
    return rc;
}

/* Choose the number of rows for the next range from the size and the duration
 * of the last one. */
static int64_t next_rows(int64_t rows, int64_t took_ns)
{
    if (took_ns < SHORT_NS && rows * 2 <= GREATEST_PART)
        return rows * 2;
    if (took_ns > LONG_NS && rows / 2 >= LEAST_PART)
        return rows / 2;
    return rows;
}

static int reap_region(struct lk_store *store, struct reaped *reaped,
                       int64_t *removed, sqlock_error *err)
{
    sqlock_result last = {0};
    const char *from = "";
    bool goes_on = true;
    int rc = 0;

    reaped->rows = FIRST_PART;
    while (rc == 0 && goes_on) {
        sqlock_result bound = {0};
        int64_t began_ns;

        rc = next_bound(store, reaped, from, &bound, err);
        /* a key with a NUL in it ends no range */
        goes_on = rc == 0 && bound_of(&bound) != NULL &&
                  strcmp(bound_of(&bound), from) != 0;
        began_ns = sqlock_monotonic_ns();
        if (goes_on)
            rc = reap_part(store, reaped, from, bound_of(&bound), removed, err);
        reaped->rows =
            next_rows(reaped->rows, sqlock_monotonic_ns() - began_ns);
        sqlock_result_clear(&last);
        last = bound;
        from = bound_of(&last);
    }
    sqlock_result_clear(&last);
    return rc;
}

/* Remove the rows of names that sqlock_tx_lock() made.  Such a row is never
 * renewed, so it looks old even in use; rows that a transaction has locked
 * stay. */
static int reap_names(struct lk_store *store, int64_t retention_us,
                      int64_t *removed, sqlock_error *err)
{
    char region[LK_REGION_MAX + sizeof LK_NAMES_SUFFIX];
    struct reaped names = {
        .region = region,
        .statement = &store->statements[SQLOCK_SQL_NAME_REAP],
        .retention_us = retention_us,
    };

    if (names.statement->text == NULL)
        return 0;
    (void)snprintf(region, sizeof region, "%s%s", store->region,
                   LK_NAMES_SUFFIX);
    return reap_region(store, &names, removed, err);
}

int sqlock_reap(sqlock_registry *registry, int64_t retention_ms,
                int64_t *removed, sqlock_error *err)
{
    struct lk_store *store;
    struct reaped leases;
    int64_t total = 0;
    int rc;

    rc = lk_store_of(registry, &store, err);
    if (rc < 0)
        return rc;
    if (retention_ms < 0 || retention_ms > RETENTION_MOST_MS)
        return lk_error(err, SQLOCK_EINVAL,
                        "retention_ms is %lld, but must be 0 to %lld",
                        (long long)retention_ms, (long long)RETENTION_MOST_MS);
    leases = (struct reaped){
        .region = store->region,
        .statement = &store->statements[SQLOCK_SQL_REAP],
        .retention_us = retention_ms * 1000,
    };
    rc = reap_region(store, &leases, &total, err);
    if (rc == 0)
        rc = reap_names(store, leases.retention_us, &total, err);
    if (rc == 0)
        rc = lk_longest_lower(store, err);
    if (removed != NULL)
        *removed = total;
    return rc;
}
