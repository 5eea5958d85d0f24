/*
 * unqueued.c - see unqueued.h
 */
#include "lock/unqueued.h"

#include <stdlib.h>
#include <string.h>

/* Rows that are remembered: some 120 bytes each. */
#define NOTES_MAX 1024

struct lk_unqueued {
    char key[SQLOCK_KEY_SIZE];
    UT_hash_handle hh; /* in the order of their notes */
};

static void forget(sqlock_registry *registry, struct lk_unqueued *note)
{
    HASH_DEL(registry->unqueued, note);
    free(note);
}

void lk_unqueued_note(sqlock_registry *registry, const char *key)
{
    struct lk_unqueued *note = calloc(1, sizeof *note);

    if (note == NULL)
        return;
    if (HASH_COUNT(registry->unqueued) == NOTES_MAX)
        forget(registry, registry->unqueued);
    memcpy(note->key, key, sizeof note->key);
    HASH_ADD_STR(registry->unqueued, key, note);
    if (note->hh.tbl == NULL)
        free(note);
}

bool lk_unqueued_take(sqlock_registry *registry, const char *key)
{
    struct lk_unqueued *note;

    HASH_FIND_STR(registry->unqueued, key, note);
    if (note == NULL)
        return false;
    forget(registry, note);
    return true;
}

void lk_unqueued_clear(sqlock_registry *registry)
{
    while (registry->unqueued != NULL)
        forget(registry, registry->unqueued);
}
