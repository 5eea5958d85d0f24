/*
 * batch_array.c - a batch as the JSON array that its statement reads
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/text.h"
#include "lease/batch.h"
#include "lease/queue.h"

#define NAME_BYTES 255 /* LOCK_NAME VARCHAR(255) */

/* For a claim: the name, as far as it fits the column, and the holder. */
static void write_holder(FILE *out, const struct lk_store *store,
                         const struct lk_lease *lease)
{
    char holder[LK_HOLDER_SIZE];

    (void)snprintf(holder, sizeof holder, "%s %s", lease->client_id,
                   store->identity);
    (void)fputs_unlocked(",\"n\":", out);
    lk_json_prefix(out, lease->name, lk_utf8_prefix(lease->name, NAME_BYTES));
    (void)fputs_unlocked(",\"h\":", out);
    lk_json_text(out, holder);
}

/* {"k": key, "c": client id, "t": ttl in us} and, for a claim, "n" and "h", for
 * a release "b". */
static void write_lease(FILE *out, const struct lk_store *store,
                        const struct lk_lease *lease,
                        sqlock_statement_kind kind)
{
    (void)fputs_unlocked("{\"k\":", out);
    lk_json_text(out, lease->key);
    (void)fputs_unlocked(",\"c\":", out);
    lk_json_text(out, lease->client_id);
    (void)fprintf(out, ",\"t\":%" PRId64, (int64_t)lease->ttl_ms * 1000);
    if (kind == SQLOCK_SQL_CLAIM_MANY)
        write_holder(out, store, lease);
    else if (kind == SQLOCK_SQL_RELEASE_MANY)
        (void)fprintf(out, ",\"b\":%" PRId64,
                      lk_queue_number(store, lease->key));
    (void)putc_unlocked('}', out);
}

char *lk_batch_array(const struct lk_store *store, const struct lk_batch *batch,
                     sqlock_statement_kind kind)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    if (out == NULL)
        return NULL;
    for (size_t i = 0; i < batch->count; i++) {
        (void)putc_unlocked(i == 0 ? '[' : ',', out);
        write_lease(out, store, &batch->items[i].lease, kind);
    }
    (void)fputs_unlocked(batch->count == 0 ? "[]" : "]", out);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
