/*
 * slots.c - keep the table of the locks that this process uses (slots.h)
 */
#include "lock/slots.h"

#include <stdlib.h>
#include <string.h>

#include "lock/slot.h"
#include "lock/overdue.h"

void lk_slots_init(struct lk_slots *all, struct lk_store *store)
{
    memset(all, 0, sizeof *all);
    all->store = store;
    lk_service_init(&all->events);
    (void)pthread_mutex_init(&all->mutex, NULL);
    lk_bell_init(&all->bell, all);
    lk_poller_init(&all->poller, all);
    lk_canceller_init(&all->canceller, all);
}

void lk_slots_stop(struct lk_slots *all)
{
    /* the poller has references to slots */
    lk_handler_stop(&all->poller.handler);
    lk_handler_stop(&all->canceller.handler);
    lk_service_stop(&all->events);
    lk_bell_stop(&all->bell);
}

static void free_slot(struct lk_slot *slot)
{
    (void)pthread_mutex_destroy(&slot->mutex);
    while (slot->overdue != NULL)
        lk_overdue_end(slot, slot->overdue);
    free(slot->name);
    free(slot);
}

void lk_slots_clear(struct lk_slots *all)
{
    struct lk_slot *slot;
    struct lk_slot *next;

    HASH_ITER(hh, all->by_key, slot, next)
    {
        HASH_DEL(all->by_key, slot);
        free_slot(slot);
    }
    (void)pthread_mutex_destroy(&all->mutex);
}

static struct lk_slot *new_slot(struct lk_slots *all, const char *key,
                                const char *name)
{
    struct lk_slot *slot = calloc(1, sizeof *slot);

    if (slot == NULL)
        return NULL;
    (void)pthread_mutex_init(&slot->mutex, NULL);
    slot->all = all;
    slot->store = all->store;
    memcpy(slot->key, key, sizeof slot->key);
    slot->name = strdup(name);
    if (slot->name != NULL)
        HASH_ADD_STR(all->by_key, key, slot);
    if (slot->name == NULL || slot->hh.tbl == NULL) {
        free_slot(slot);
        return NULL;
    }
    return slot;
}

struct lk_slot *lk_slot_of(struct lk_slots *all, const char *key,
                           const char *name)
{
    struct lk_slot *slot;

    pthread_mutex_lock(&all->mutex);
    HASH_FIND_STR(all->by_key, key, slot);
    if (slot == NULL)
        slot = new_slot(all, key, name);
    if (slot != NULL)
        slot->references++;
    pthread_mutex_unlock(&all->mutex);
    return slot;
}

void lk_slot_drop(struct lk_slot *slot)
{
    struct lk_slots *all = slot->all;

    pthread_mutex_lock(&all->mutex);
    if (--slot->references == 0) {
        HASH_DEL(all->by_key, slot);
        free_slot(slot);
    }
    pthread_mutex_unlock(&all->mutex);
}
