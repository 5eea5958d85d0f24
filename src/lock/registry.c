/*
 * registry.c - return layout, epoch and statistics of a registry
 */
#include "lock/registry.h"

#include <string.h>

#include "base/check.h"
#include "base/error.h"
#include "sqlock/stats.h"

sqlock_layout sqlock_registry_layout(const sqlock_registry *registry)
{
    return registry != NULL ? registry->store.layout : SQLOCK_LAYOUT_SQLOCK;
}

uint32_t sqlock_registry_epoch(sqlock_registry *registry,
                               char epoch[SQLOCK_EPOCH_SIZE])
{
    if (epoch == NULL)
        return 0;
    *epoch = '\0';
    if (registry == NULL || lk_store_ours(&registry->store, NULL) < 0)
        return 0;
    return lk_epoch_last(&registry->store.db.epoch, epoch);
}

int sqlock_registry_stats(sqlock_registry *registry, sqlock_stats *out,
                          sqlock_error *err)
{
    static const struct lk_sized sized = {"sqlock_stats", "SQLOCK_STATS_INIT",
                                          sizeof *out};
    sqlock_stats all = SQLOCK_STATS_INIT;
    int rc = lk_sized_check(&sized, out, err);

    if (rc < 0)
        return rc;
    if (registry == NULL)
        return lk_error_null(err, "registry");
    rc = lk_store_ours(&registry->store, err);
    if (rc < 0)
        return rc;
    lk_stats_read(&registry->store.db.stats, &all);
    lk_sized_write(out, &all);
    return 0;
}
