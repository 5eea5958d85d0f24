/*
 * waits.c - read who waits for whom, and look for a circle (waits.h)
 */
#include "lease/waits.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "lease/ticket.h"

bool lk_waits_add(struct lk_waits *waits, const struct lk_wait *wait)
{
    if (waits->count == waits->room) {
        size_t room = waits->room != 0 ? 2 * waits->room : 16;
        struct lk_wait *all = realloc(waits->all, room * sizeof *all);

        if (all == NULL)
            return false;
        waits->all = all;
        waits->room = room;
    }
    waits->all[waits->count++] = *wait;
    return true;
}

void lk_waits_clear(struct lk_waits *waits)
{
    free(waits->all);
    *waits = (struct lk_waits){.all = NULL};
}

/* Add the waits for one lock. */
static bool add_queue(struct lk_waits *waits, const char *holder,
                      const char *queue)
{
    uint32_t before = lk_client_id_mark(holder);
    struct lk_ticket ticket;

    while (lk_ticket_next(&queue, &ticket)) {
        const struct lk_wait wait = {.waiter =
                                         lk_client_id_mark(ticket.client_id),
                                     .awaited = before,
                                     .since_us = ticket.since_us};

        if (!lk_waits_add(waits, &wait))
            return false;
        before = wait.waiter;
    }
    return true;
}

int lk_waits_read(struct lk_store *store, struct lk_waits *waits,
                  sqlock_error *err)
{
    struct lk_arguments arguments;
    struct lk_run run = {
        .arguments = &arguments,
        .deadline_ns = lk_store_deadline(store),
        .is_repeatable = true,
    };
    sqlock_result result = {0};
    int rc;

    lk_store_arguments(store, "", &arguments);
    rc = lk_store_run(store, SQLOCK_SQL_WAITS, &run, &result, err);
    for (size_t i = 0; rc == 0 && i < result.rows; i++) {
        const sqlock_value *cells = &result.cells[i * result.columns];

        if (cells[0].type == SQLOCK_TEXT && cells[1].type == SQLOCK_TEXT &&
            strlen(cells[0].text) == SQLOCK_KEY_SIZE - 1 &&
            !add_queue(waits, cells[0].text, cells[1].text))
            rc = lk_error_nomem(err);
    }
    sqlock_result_clear(&result);
    return rc;
}

/* Return when the last wait of that owner began; INT64_MAX: it has no
 * ticket. */
static int64_t since_of(const struct lk_waits *waits, uint32_t owner)
{
    int64_t since_us = 0;

    for (size_t i = 0; i < waits->count; i++)
        if (waits->all[i].waiter == owner && waits->all[i].since_us > since_us)
            since_us = waits->all[i].since_us;
    return since_us != 0 ? since_us : INT64_MAX;
}

/* Note whom the waiters in reached[] wait for, among those whose waits began by
 * `latest_us`.  Return whether there was a new one. */
static bool go_on(const struct lk_waits *waits, bool *reached, uint32_t self,
                  int64_t latest_us)
{
    bool is_more = false;

    for (size_t i = 0; i < waits->count; i++) {
        const struct lk_wait *wait = &waits->all[i];
        bool is_start = wait->waiter == self;

        for (size_t k = 0; !is_start && k < waits->count; k++)
            is_start = reached[k] && waits->all[k].awaited == wait->waiter;
        if (!is_start || reached[i] || wait->since_us > latest_us ||
            wait->waiter == wait->awaited)
            continue;
        reached[i] = true;
        is_more = true;
    }
    return is_more;
}

bool lk_waits_are_closed(const struct lk_waits *waits, uint32_t self)
{
    bool *reached = calloc(waits->count + 1, sizeof *reached);
    int64_t latest_us = since_of(waits, self);
    bool is_closed = false;

    if (reached == NULL)
        return false;
    while (go_on(waits, reached, self, latest_us))
        ;
    for (size_t i = 0; i < waits->count; i++)
        is_closed = is_closed || (reached[i] && waits->all[i].awaited == self);
    free(reached);
    return is_closed;
}
