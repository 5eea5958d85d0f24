/*
 * sharers.c - tell who shares a lock (sharers.h)
 */
#include "admin/sharers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/info.h"
#include "admin/waiters.h"
#include "base/writer.h"
#include "lease/row.h"
#include "lease/sharer.h"

static double seconds(int64_t us)
{
    return us > 0 ? (double)us / 1e6 : 0;
}

static void write_sharer(FILE *out, const struct lk_sharer *sharer,
                         int64_t now_us)
{
    const struct lk_ticket *as = &sharer->as;

    (void)fprintf(out, "%.*s", (int)as->holder_length, as->holder);
    lk_write_weight(out, as->weight);
    (void)fprintf(out, ", token %" PRId64, sharer->token);
    if (as->ends_at_us < now_us)
        (void)fprintf(out, ", for %.1f s, expired",
                      seconds(as->ends_at_us - as->since_us));
    else
        (void)fprintf(out, ", for %.1f s, %.1f s left",
                      seconds(now_us - as->since_us),
                      seconds(as->ends_at_us - now_us));
}

/* Take the sharer for the one who has the lock for longest, if it is: they are
 * in the order in which they came. */
static int choose(struct lk_sharing *out, const struct lk_sharer *sharer)
{
    const struct lk_ticket *as = &sharer->as;

    if (out->holder != NULL &&
        (!lk_holder_is_break(out->holder) || lk_holder_is_break(as->holder)))
        return 0;
    free(out->holder);
    out->holder = strndup(as->holder, as->holder_length);
    out->since_us = as->since_us;
    return out->holder != NULL ? 0 : SQLOCK_ENOMEM;
}

static int write_all(struct lk_sharing *out, FILE *lines, const char *sharers,
                     sqlock_state state, int64_t now_us)
{
    struct lk_sharer sharer;
    int rc = 0;

    while (rc == 0 && lk_sharer_next(&sharers, &sharer)) {
        bool is_over = sharer.as.ends_at_us < now_us;

        if (is_over && state == SQLOCK_HELD)
            continue;
        if (out->holder != NULL)
            (void)putc_unlocked('\n', lines);
        write_sharer(lines, &sharer, now_us);
        out->count += !is_over;
        out->taken += is_over ? 0 : sharer.as.weight;
        rc = choose(out, &sharer);
    }
    return rc;
}

int lk_sharing_read(struct lk_sharing *out, const char *sharers,
                    const char *client_id, sqlock_state state, int64_t now_us)
{
    struct lk_writer writer;
    FILE *lines;
    int rc;

    memset(out, 0, sizeof *out);
    out->permits = lk_sharers_permits(sharers);
    out->is_shared = lk_sharers_have(sharers, client_id);
    if (!out->is_shared)
        return 0;
    lines = lk_writer_open(&writer);
    if (lines == NULL)
        return SQLOCK_ENOMEM;
    rc = write_all(out, lines, sharers, state, now_us);
    out->names = lk_writer_close(&writer);
    if (rc == 0 && out->names == NULL)
        rc = SQLOCK_ENOMEM;
    if (rc < 0)
        lk_sharing_clear(out);
    if (rc == 0 && out->holder == NULL) {
        free(out->names);
        out->names = NULL;
    }
    return rc;
}

void lk_sharing_clear(struct lk_sharing *sharing)
{
    free(sharing->holder);
    free(sharing->names);
    sharing->holder = NULL;
    sharing->names = NULL;
}
