/*
 * note.c - see note.h
 */
#include "lock/note.h"

#include <stdlib.h>
#include <string.h>

/* Rows that are remembered: some 120 bytes each. */
#define NOTES_MAX 1024

struct lk_note {
    char key[SQLOCK_KEY_SIZE];
    bool is_unqueued;
    bool is_contended;
    UT_hash_handle hh; /* in the order of their notes */
};

static void forget(sqlock_registry *registry, struct lk_note *note)
{
    HASH_DEL(registry->notes, note);
    free(note);
}

void lk_note_slot(const struct lk_slot *slot)
{
    sqlock_registry *registry = slot->registry;
    struct lk_note *note;

    if (!slot->is_unqueued && !slot->is_contended)
        return;
    note = calloc(1, sizeof *note);
    if (note == NULL)
        return;
    if (HASH_COUNT(registry->notes) == NOTES_MAX)
        forget(registry, registry->notes);
    memcpy(note->key, slot->key, sizeof note->key);
    note->is_unqueued = slot->is_unqueued;
    note->is_contended = slot->is_contended;
    HASH_ADD_STR(registry->notes, key, note);
    if (note->hh.tbl == NULL)
        free(note);
}

void lk_recall_slot(struct lk_slot *slot)
{
    struct lk_note *note;

    HASH_FIND_STR(slot->registry->notes, slot->key, note);
    if (note == NULL)
        return;
    slot->is_unqueued = note->is_unqueued;
    slot->is_contended = note->is_contended;
    forget(slot->registry, note);
}

void lk_notes_clear(sqlock_registry *registry)
{
    while (registry->notes != NULL)
        forget(registry, registry->notes);
}
