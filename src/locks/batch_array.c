/*
 * batch_array.c - a batch as the JSON array that its statement reads
 */
#include <jansson.h>
#include <stdio.h>

#include "base/text.h"
#include "locks/batch.h"
#include "locks/bell.h"

#define NAME_BYTES 255 /* LOCK_NAME VARCHAR(255) */

/* {"k": key, "c": client id, "t": ttl in us} and, for a claim, "n" and "h", for a
 * release "b". */
static json_t *json_of(const sqlock_registry *registry,
                       const struct lk_lease *lease, sqlock_statement_kind kind)
{
    char holder[LK_HOLDER_SIZE];
    json_t *object;

    object = json_pack("{s:s, s:s, s:I}", "k", lease->key, "c",
                       lease->client_id, "t", (json_int_t)lease->ttl_ms * 1000);
    if (object != NULL && kind == SQLOCK_SQL_RELEASE_MANY &&
        json_object_set_new(
            object, "b", json_integer(lk_bell_number(registry, lease->key))) <
            0) {
        json_decref(object);
        return NULL;
    }
    if (object == NULL || kind != SQLOCK_SQL_CLAIM_MANY)
        return object;
    (void)snprintf(holder, sizeof holder, "%s %s", lease->client_id,
                   registry->who);
    if (json_object_set_new(object, "h", json_string(holder)) < 0 ||
        json_object_set_new(
            object, "n",
            json_stringn(lease->name,
                         lk_utf8_prefix(lease->name, NAME_BYTES))) < 0) {
        json_decref(object);
        return NULL;
    }
    return object;
}

char *lk_batch_array(const sqlock_registry *registry,
                     const struct lk_batch *batch, sqlock_statement_kind kind)
{
    json_t *array = json_array();
    char *text = NULL;
    size_t i = 0;

    for (; array != NULL && i < batch->count; i++) {
        const struct lk_lease *lease = &batch->items[i].lease;

        /* Takes the object over, also when it is NULL. */
        if (json_array_append_new(array, json_of(registry, lease, kind)) < 0)
            break;
    }
    if (array != NULL && i == batch->count)
        text = json_dumps(array, JSON_COMPACT);
    json_decref(array);
    return text;
}
