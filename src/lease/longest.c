/*
 * longest.c - see longest.h
 */
#include "lease/longest.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"

/* How long a process relies on what it has read of how long leases may be:
 * SHORTEN_GRACE lets five minutes pass. */
#define RELIED_ON_NS (60000 * LK_NS_PER_MS)

/* How often a process looks that waits for the standbys. */
#define STANDBYS_NS (20 * LK_NS_PER_MS)

void lk_longest_note(struct lk_grace *grace, int64_t allowed_ms)
{
    atomic_store(&grace->allowed_ms, allowed_ms);
    atomic_store(&grace->allowed_at_ns, lk_boottime_ns());
}

/* A change of the longest TTL. */
struct change {
    struct lk_store *store;
    int64_t ttl_ms;
    int64_t deadline_ns;
    int standbys_part; /* the part of the time that the standbys have */
    bool is_reserved;  /* as in struct lk_run */
    /* out: the last statement met a locked row, or got no answer in time */
    bool is_held_up;
};

static int run_change(struct change *change, sqlock_statement_kind kind,
                      const char *position, sqlock_result *result,
                      sqlock_error *err)
{
    struct lk_arguments arguments = {0};
    struct lk_run run = {
        .arguments = &arguments,
        .deadline_ns = change->deadline_ns,
        .is_reserved = change->is_reserved,
        .is_repeatable = true,
        .waits_for_row = true,
        .grants = kind == SQLOCK_SQL_SHORTEN_GRACE,
    };
    sqlock_error own = {0};
    int rc;

    lk_argument_integer(&arguments, SQLOCK_P_TTL, change->ttl_ms * 1000);
    lk_argument_text(&arguments, SQLOCK_P_NAME, position);
    rc = lk_store_run(change->store, kind, &run, result, &own);
    change->is_held_up = rc == SQLOCK_EBUSY || rc == SQLOCK_EUNCERTAIN;
    if (rc == SQLOCK_EUNCERTAIN)
        rc = lk_error(&own, SQLOCK_EUNREACHABLE,
                      "the database did not confirm in time that leases may be "
                      "as long as this one");
    return lk_error_pass(err, &own, run.is_held_back ? 0 : rc);
}

/* Write one.  Return 1 if it was made, 0 if the row did not let it, or an
 * error. */
static int write_change(struct change *change, sqlock_statement_kind kind,
                        sqlock_error *err)
{
    sqlock_result result = {0};
    int rc = run_change(change, kind, NULL, &result, err);

    if (rc == 0)
        rc = result.affected > 0;
    sqlock_result_clear(&result);
    return rc;
}

/* The answer to STANDBYS, but for how long leases may be, which is noted. */
struct standbys {
    char position[32]; /* in the log, for which they are asked; "": not yet */
    int64_t hidden;    /* how many this login may not ask */
    int64_t behind;
};

static int ask_standbys(struct change *change, struct standbys *out,
                        sqlock_error *err)
{
    sqlock_result result = {0};
    const char *position = out->position[0] != '\0' ? out->position : NULL;
    int rc = run_change(change, SQLOCK_SQL_STANDBYS, position, &result, err);

    if (rc == 0 && (result.rows != 1 || result.columns < 4))
        rc = lk_error(err, SQLOCK_ESCHEMA, "%s_SERVER must have one row",
                      change->store->table.plain);
    if (rc == 0) {
        lk_longest_note(&change->store->grace, result.cells[0].integer);
        if (position == NULL && result.cells[1].type == SQLOCK_TEXT)
            (void)snprintf(out->position, sizeof out->position, "%s",
                           lk_cell_text(&result.cells[1]));
        out->hidden = result.cells[2].integer;
        out->behind = result.cells[3].integer;
    }
    sqlock_result_clear(&result);
    return rc;
}

/* Wait until the connected standbys have what was written, for a part of the
 * time: one that was promoted would let go of a longer lease too early. */
static int await_standbys(struct change *change, sqlock_error *err)
{
    struct standbys standbys = {.behind = 0};
    int64_t now_ns = sqlock_monotonic_ns();
    int64_t until_ns =
        now_ns + (change->deadline_ns - now_ns) / change->standbys_part;
    int rc = ask_standbys(change, &standbys, err);

    while (rc == 0 && standbys.hidden == 0 && standbys.behind > 0 &&
           sqlock_monotonic_ns() < until_ns) {
        lk_sleep_until(lk_after_ns(sqlock_monotonic_ns(), STANDBYS_NS));
        rc = ask_standbys(change, &standbys, err);
    }
    if (rc == 0 && standbys.hidden + standbys.behind > 0)
        rc = lk_error(err, SQLOCK_EINVAL,
                      "ttl_ms is %lld, but leases may have %lld ms, and %s: "
                      "run `sqlock init --longest-ttl %lld` once",
                      (long long)change->ttl_ms,
                      (long long)atomic_load(&change->store->grace.allowed_ms),
                      standbys.hidden > 0
                          ? "this login may not see whether the standbys know "
                            "of longer ones (pg_read_all_stats)"
                          : "a standby does not know of longer ones in time",
                      (long long)(change->ttl_ms + 999) / 1000);
    return rc;
}

/* Let leases be as long.  From then on they may be for five minutes at least,
 * whoever lowers that again. */
static int raise_to(struct change *change, sqlock_error *err)
{
    int rc = write_change(change, SQLOCK_SQL_LENGTHEN_GRACE, err);

    if (rc >= 0)
        rc = await_standbys(change, err);
    if (rc == 0)
        rc = write_change(change, SQLOCK_SQL_ALLOW_GRACE, err);
    if (rc == 0)
        return lk_error(err, SQLOCK_EUNREACHABLE,
                        "%s_SERVER lacks a longest TTL that was just written: "
                        "another server answers",
                        change->store->table.plain);
    if (rc > 0)
        lk_longest_note(&change->store->grace, change->ttl_ms);
    return rc < 0 ? rc : 0;
}

/* Return whether leases may be as long, as it was read last. */
static bool was_allowed(const struct lk_grace *grace, int64_t ttl_ms)
{
    return ttl_ms <= atomic_load(&grace->allowed_ms);
}

/* Return whether nothing need be asked about leases of that TTL. */
static bool is_allowed(const struct lk_grace *grace, int64_t ttl_ms)
{
    return !grace->is_written ||
           (was_allowed(grace, ttl_ms) &&
            lk_boottime_ns() - atomic_load(&grace->allowed_at_ns) <
                RELIED_ON_NS);
}

/* Read how long leases may be, and raise that if it is too short. */
static int raise_if_shorter(struct change *change, sqlock_error *err)
{
    struct standbys standbys = {.behind = 0};
    int rc = ask_standbys(change, &standbys, err);

    return rc < 0 || was_allowed(&change->store->grace, change->ttl_ms)
               ? rc
               : raise_to(change, err);
}

/* Let leases have that TTL. */
static int let(struct change *change, sqlock_error *err)
{
    return is_allowed(&change->store->grace, change->ttl_ms)
               ? 0
               : raise_if_shorter(change, err);
}

/* Return that code, with the text that is there. */
static int recode(int rc, sqlock_error *err)
{
    if (err != NULL)
        err->code = rc;
    return rc;
}

int lk_longest_raise(struct lk_store *store, int64_t ttl_ms,
                     int64_t deadline_ns, bool is_reserved, sqlock_error *err)
{
    struct change change = {
        .store = store,
        .ttl_ms = ttl_ms,
        .deadline_ns = deadline_ns,
        .standbys_part = 2,
        .is_reserved = is_reserved,
    };
    int rc = let(&change, err);

    /* EBUSY would say that another owner has the lock. */
    return rc == SQLOCK_EBUSY ? recode(SQLOCK_ETIMEDOUT, err) : rc;
}

int lk_longest_keep(struct lk_store *store, int64_t ttl_ms, int64_t deadline_ns,
                    bool is_reserved, sqlock_error *err)
{
    int64_t now_ns = sqlock_monotonic_ns();
    struct change change = {
        .store = store,
        .ttl_ms = ttl_ms,
        .deadline_ns = now_ns + (deadline_ns - now_ns) / 2,
        .standbys_part = is_reserved ? 4 : 1,
        .is_reserved = is_reserved,
    };
    sqlock_error own = {0};
    int rc = let(&change, &own);

    if (was_allowed(&store->grace, ttl_ms))
        rc = 0;
    else if (rc < 0 && change.is_held_up && is_reserved)
        rc = recode(SQLOCK_EINVAL, &own);
    return lk_error_pass(err, &own, rc);
}

uint32_t lk_longest_allowed(const struct lk_store *store, uint32_t ttl_ms)
{
    int64_t allowed_ms = atomic_load(&store->grace.allowed_ms);

    return !store->grace.is_written || was_allowed(&store->grace, ttl_ms) ||
                   allowed_ms <= lk_margin_ms(&store->options, ttl_ms)
               ? ttl_ms
               : (uint32_t)allowed_ms;
}

int lk_longest_lower(struct lk_store *store, sqlock_error *err)
{
    struct change change = {
        .store = store,
        .deadline_ns = lk_store_deadline(store),
    };
    sqlock_result longer = {0};
    int rc;

    if (!store->grace.is_written)
        return 0;
    rc = run_change(&change, SQLOCK_SQL_LONGER, NULL, &longer, err);
    if (rc == 0 && longer.rows == 0)
        rc = write_change(&change, SQLOCK_SQL_SHORTEN_GRACE, err);
    sqlock_result_clear(&longer);
    return rc < 0 ? rc : 0;
}

int lk_longest_missing(const struct lk_store *store, sqlock_error *err)
{
    return lk_error(err, SQLOCK_ENOTSUP,
                    "there is no table %s_SERVER that this login may use, so "
                    "the server grants at any time",
                    store->table.plain);
}

int lk_longest_set(struct lk_store *store, int64_t ttl_ms, sqlock_error *err)
{
    struct change change = {
        .store = store,
        .ttl_ms = ttl_ms,
        .deadline_ns = lk_store_deadline(store),
    };
    static const sqlock_statement_kind kinds[] = {SQLOCK_SQL_LEAST_GRACE,
                                                  SQLOCK_SQL_LENGTHEN_GRACE,
                                                  SQLOCK_SQL_ALLOW_GRACE};
    int rc = 0;

    if (!store->grace.is_written)
        return lk_longest_missing(store, err);
    for (size_t i = 0; rc >= 0 && i < sizeof kinds / sizeof *kinds; i++)
        rc = write_change(&change, kinds[i], err);
    return rc < 0 ? rc : lk_longest_lower(store, err);
}
