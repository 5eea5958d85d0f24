/*
 * diagnose_rows.c - find, from the rows of a region, holders that do not run
 * sqlock
 */
#include <string.h>

#include "admin/diagnose.h"

static void report_peers(struct lk_checks *checks, const sqlock_info *rows,
                         size_t count, sqlock_layout layout, const char *region)
{
    size_t held = 0;
    size_t peers = 0;

    for (size_t i = 0; i < count; i++) {
        held += rows[i].state == SQLOCK_HELD;
        peers += rows[i].state != SQLOCK_FREE && rows[i].holder != NULL &&
                 strcmp(rows[i].holder, "peer") == 0;
    }
    if (peers > 0)
        lk_check(checks, "peers", SQLOCK_WARNING,
                 "make sure that they are Spring Integration 7 or later: with "
                 "earlier versions a lock can have two holders in this table; "
                 "Spring holders have no tokens and use their own clocks",
                 "%zu of the %zu locks of region %s held by other programs "
                 "than sqlock",
                 peers, count, region);
    else if (layout == SQLOCK_LAYOUT_SQLOCK)
        lk_check(
            checks, "peers", SQLOCK_FINE, NULL,
            "all %zu locks of region %s, %zu of them held, belong to sqlock",
            count, region, held);
    else
        lk_check(checks, "peers", SQLOCK_FINE, NULL,
                 "unknown, since Spring's layouts do not store it: %zu locks "
                 "in region %s, %zu held",
                 count, region, held);
}

void lk_diagnose_rows(struct lk_checks *checks, const char *url,
                      const sqlock_options *options)
{
    sqlock_find_options all = SQLOCK_FIND_INIT;
    sqlock_options own = *options;
    sqlock_registry *registry = NULL;
    sqlock_info *rows = NULL;
    sqlock_error err = {0};
    size_t count = 0;
    int rc;

    all.free_too = true;
    own.pool_size = 1;
    own.on_event = NULL; /* the checks report everything */
    rc = sqlock_registry_open(&registry, url, &own, &err);
    if (rc == 0)
        rc = sqlock_find(registry, &all, &rows, &count, &err);
    if (rc == 0)
        report_peers(checks, rows, count, sqlock_registry_layout(registry),
                     own.region);
    else
        lk_check(checks, "peers", SQLOCK_FAILURE, NULL,
                 "the locks cannot be listed: %s", err.message);
    sqlock_info_free(rows, count);
    (void)sqlock_registry_close(registry, NULL);
}
