/*
 * ids.c - give each text a number, which stays valid until lk_ids_clear()
 *
 * Equal texts have one number, and so share a prepared statement.
 */
#include "db/ids.h"

#include <stdlib.h>
#include <string.h>

void lk_ids_init(struct lk_ids *ids)
{
    memset(ids, 0, sizeof *ids);
    (void)pthread_mutex_init(&ids->mutex, NULL);
}

void lk_ids_clear(struct lk_ids *ids)
{
    for (size_t i = 0; i < LK_IDS_COUNT; i++)
        free(ids->texts[i]);
    (void)pthread_mutex_destroy(&ids->mutex);
}

uint32_t lk_ids_of(struct lk_ids *ids, const char *text)
{
    uint32_t id = 0;

    pthread_mutex_lock(&ids->mutex);
    for (uint32_t i = 0; id == 0 && i < LK_IDS_COUNT; i++) {
        if (ids->texts[i] == NULL)
            ids->texts[i] = strdup(text);
        if (ids->texts[i] == NULL)
            break;
        if (strcmp(ids->texts[i], text) == 0)
            id = LK_IDS_FIRST + i;
    }
    pthread_mutex_unlock(&ids->mutex);
    return id;
}
