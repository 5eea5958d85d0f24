/*
 * registry.c - queries of a registry: layout, epoch, statistics
 */
#include "locks/registry.h"

#include <string.h>

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
    if (registry == NULL || lk_store_check(&registry->store, NULL) < 0)
        return 0;
    return lk_epoch_last(&registry->store.db.epoch, epoch);
}

int sqlock_registry_stats(sqlock_registry *registry, sqlock_stats *out,
                          sqlock_error *err)
{
    sqlock_stats all = SQLOCK_STATS_INIT;
    size_t size;

    if (registry == NULL || out == NULL)
        return lk_error(err, SQLOCK_EINVAL,
                        "the registry or the stats argument is NULL");
    size = out->size;
    if (size < sizeof out->size || size > sizeof all)
        return lk_error(err, SQLOCK_EINVAL,
                        "sqlock_stats.size is %zu: begin with "
                        "SQLOCK_STATS_INIT",
                        size);
    if (lk_store_check(&registry->store, NULL) < 0)
        return lk_store_check(&registry->store, err);
    lk_stats_read(&registry->store.db.stats, &all);
    all.size = size;
    memcpy(out, &all, size);
    return 0;
}
