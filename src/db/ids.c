/*
 * ids.c - give each text a number, which stays valid until lk_ids_clear()
 *
 * Equal texts have one number, and so share a prepared statement.
 */
#include "db/ids.h"

#include <stdlib.h>
#include <string.h>

void lk_ids_init(struct lk_ids *ids, uint32_t first, size_t most)
{
    memset(ids, 0, sizeof *ids);
    ids->first = first;
    ids->most = most;
    (void)pthread_mutex_init(&ids->mutex, NULL);
}

void lk_ids_clear(struct lk_ids *ids)
{
    for (size_t i = 0; i < ids->most; i++)
        free(ids->texts[i].text);
    (void)pthread_mutex_destroy(&ids->mutex);
}

uint32_t lk_ids_of(struct lk_ids *ids, const char *text, uint64_t types)
{
    uint32_t id = 0;

    pthread_mutex_lock(&ids->mutex);
    for (uint32_t i = 0; id == 0 && i < ids->most; i++) {
        struct lk_numbered *at = &ids->texts[i];

        if (at->text == NULL) {
            at->text = strdup(text);
            at->types = types;
        }
        if (at->text == NULL)
            break;
        if (at->types == types && strcmp(at->text, text) == 0)
            id = ids->first + i;
    }
    pthread_mutex_unlock(&ids->mutex);
    return id;
}
