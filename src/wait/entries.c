/*
 * entries.c - keep the table of the locks that this process uses (entries.h)
 */
#include "wait/entries.h"

#include <stdlib.h>
#include <string.h>

#include "wait/entry.h"
#include "wait/overdue.h"

void lk_entries_init(struct lk_entries *all, struct lk_store *store)
{
    memset(all, 0, sizeof *all);
    all->store = store;
    lk_service_init(&all->events);
    (void)pthread_mutex_init(&all->mutex, NULL);
    lk_bell_init(&all->bell, all);
    lk_poller_init(&all->poller, all);
    lk_canceller_init(&all->canceller, all);
}

void lk_entries_stop(struct lk_entries *all)
{
    /* the poller has references to entries */
    lk_handler_stop(&all->poller.handler);
    lk_handler_stop(&all->canceller.handler);
    lk_service_stop(&all->events);
    lk_bell_stop(&all->bell);
}

static void free_entry(struct lk_entry *entry)
{
    (void)pthread_mutex_destroy(&entry->mutex);
    while (entry->overdue != NULL)
        lk_overdue_end(entry, entry->overdue);
    free(entry->name);
    free(entry);
}

void lk_entries_clear(struct lk_entries *all)
{
    struct lk_entry *entry;
    struct lk_entry *next;

    HASH_ITER(hh, all->by_key, entry, next)
    {
        HASH_DEL(all->by_key, entry);
        free_entry(entry);
    }
    (void)pthread_mutex_destroy(&all->mutex);
}

static struct lk_entry *new_entry(struct lk_entries *all, const char *key,
                                  const char *name)
{
    struct lk_entry *entry = calloc(1, sizeof *entry);

    if (entry == NULL)
        return NULL;
    (void)pthread_mutex_init(&entry->mutex, NULL);
    entry->all = all;
    entry->store = all->store;
    memcpy(entry->key, key, sizeof entry->key);
    entry->name = strdup(name);
    if (entry->name != NULL)
        HASH_ADD_STR(all->by_key, key, entry);
    if (entry->name == NULL || entry->hh.tbl == NULL) {
        free_entry(entry);
        return NULL;
    }
    return entry;
}

struct lk_entry *lk_entry_of(struct lk_entries *all, const char *key,
                             const char *name)
{
    struct lk_entry *entry;

    pthread_mutex_lock(&all->mutex);
    HASH_FIND_STR(all->by_key, key, entry);
    if (entry == NULL)
        entry = new_entry(all, key, name);
    if (entry != NULL)
        entry->references++;
    pthread_mutex_unlock(&all->mutex);
    return entry;
}

void lk_entry_drop(struct lk_entry *entry)
{
    struct lk_entries *all = entry->all;

    pthread_mutex_lock(&all->mutex);
    if (--entry->references == 0) {
        HASH_DEL(all->by_key, entry);
        free_entry(entry);
    }
    pthread_mutex_unlock(&all->mutex);
}
