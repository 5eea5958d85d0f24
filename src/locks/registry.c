/*
 * registry.c - what a registry knows of its table and its server
 */
#include "locks/registry.h"

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
