/*
 * arguments.c - fill in the arguments of statements about leases (arguments.h)
 */
#include "lease/arguments.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "base/writer.h"
#include "lease/bell.h"
#include "lease/ticket.h"

/* As the driver names the lock that is the bell of one (src/drivers/mysql). */
#define BELL_PREFIX "sqlock:"

/* Write the text of the column HOLDER: the CLIENT_ID, a space, and the identity
 * of this process.  A Spring peer that takes the lock over leaves HOLDER as it
 * is: then the CLIENT_ID in the text differs from that of the row, which shows
 * that the text is stale. */
static void write_holder(char holder[LK_HOLDER_SIZE],
                         const struct lk_store *store,
                         const struct lk_lease *lease)
{
    size_t length = strlen(lease->client_id);

    memcpy(holder, lease->client_id, length);
    holder[length++] = ' ';
    lk_store_shown(store, holder + length, LK_IDENTITY_SIZE, store->identity);
}

/* --- one lease --- */

/* Return whether the statement writes the columns of a new holder. */
static bool is_grant(sqlock_statement_kind kind)
{
    return kind == SQLOCK_SQL_CLAIM || kind == SQLOCK_SQL_CLAIM_UNQUEUED ||
           kind == SQLOCK_SQL_CLAIM_RESERVED || kind == SQLOCK_SQL_ENQUEUE ||
           kind == SQLOCK_SQL_HAND_OFF || kind == SQLOCK_SQL_SHARE;
}

static void add_holder(struct lk_lease_arguments *out,
                       const struct lk_store *store,
                       const struct lk_lease *lease)
{
    if (lease->name != NULL) {
        lk_store_shown(store, out->name, sizeof out->name, lease->name);
        lk_argument_text(&out->values, SQLOCK_P_NAME, out->name);
    }
    write_holder(out->holder, store, lease);
    lk_argument_text(&out->values, SQLOCK_P_HOLDER, out->holder);
}

/* Fill in what a ticket or a share says of the lease. */
static void add_shown(struct lk_lease_arguments *out,
                      const struct lk_store *store,
                      const struct lk_lease *lease)
{
    lk_ticket_holder(store, out->shown, sizeof out->shown, store->identity);
    lk_argument_text(&out->values, SQLOCK_P_SHOWN, out->shown);
    lk_argument_integer(&out->values, SQLOCK_P_WEIGHT, lease->asked.weight);
    lk_argument_integer(&out->values, SQLOCK_P_PERMITS, lease->asked.permits);
}

void lk_arguments_of_one(struct lk_lease_arguments *out,
                         const struct lk_store *store,
                         const struct lk_lease *lease,
                         sqlock_statement_kind kind)
{
    out->array = NULL;
    lk_store_arguments(store, lease->key, &out->values);
    lk_argument_text(&out->values, SQLOCK_P_CLIENT, lease->client_id);
    lk_argument_integer(&out->values, SQLOCK_P_TTL,
                        (int64_t)lease->asked.ttl_ms * 1000);
    if (is_grant(kind))
        add_holder(out, store, lease);
    if (kind == SQLOCK_SQL_ENQUEUE || kind == SQLOCK_SQL_SHARE ||
        kind == SQLOCK_SQL_DOWNGRADE || kind == SQLOCK_SQL_RELEASE_TO_PEERS)
        add_shown(out, store, lease);
    if (lease->asked.may_wait)
        lk_argument_integer(&out->values, SQLOCK_P_WAITS, 1);
    if (kind == SQLOCK_SQL_RELEASE_TO_PEERS)
        lk_argument_text(&out->values, SQLOCK_P_TICKET, lease->asked.ticket);
    if (kind == SQLOCK_SQL_CLAIM || kind == SQLOCK_SQL_ENQUEUE)
        lk_argument_text(&out->values, SQLOCK_P_QUEUE, lease->asked.queue);
    if (lease->asked.takes_bell || kind == SQLOCK_SQL_RELEASE_WITH_BELL) {
        (void)memcpy(out->bell, BELL_PREFIX, sizeof BELL_PREFIX);
        lk_bell_name_of(lease->client_id, out->bell + strlen(BELL_PREFIX));
        lk_argument_text(&out->values, SQLOCK_P_BELL, out->bell);
    }
}

/* --- many leases --- */

/* Write a lease as a JSON object: "k" key, "c" CLIENT_ID, "t" TTL in us; for a
 * claim also "n" name and "h" text of HOLDER. */
static void write_lease(FILE *out, const struct lk_store *store,
                        const struct lk_lease *lease,
                        sqlock_statement_kind kind)
{
    (void)fputs_unlocked("{\"k\":", out);
    lk_json_text(out, lease->key);
    (void)fputs_unlocked(",\"c\":", out);
    lk_json_text(out, lease->client_id);
    (void)fprintf(out, ",\"t\":%" PRId64, (int64_t)lease->asked.ttl_ms * 1000);
    if (kind == SQLOCK_SQL_CLAIM_MANY ||
        kind == SQLOCK_SQL_CLAIM_UNQUEUED_MANY) {
        char holder[LK_HOLDER_SIZE];
        char name[LK_NAME_BYTES + 1];

        write_holder(holder, store, lease);
        lk_store_shown(store, name, sizeof name, lease->name);
        (void)fputs_unlocked(",\"n\":", out);
        lk_json_text(out, name);
        (void)fputs_unlocked(",\"h\":", out);
        lk_json_text(out, holder);
    }
    (void)putc_unlocked('}', out);
}

/* Write the leases of a batch as a JSON array, and return the text, which the
 * caller frees, or NULL when out of memory. */
static char *write_array(const struct lk_store *store,
                         const struct lk_batch *batch,
                         sqlock_statement_kind kind)
{
    struct lk_writer writer;
    FILE *out = lk_writer_open(&writer);

    if (out == NULL)
        return NULL;
    for (size_t i = 0; i < batch->count; i++) {
        (void)putc_unlocked(i == 0 ? '[' : ',', out);
        write_lease(out, store, &batch->items[i].lease, kind);
    }
    (void)fputs_unlocked(batch->count == 0 ? "[]" : "]", out);
    return lk_writer_close(&writer);
}

static bool is_about_many(sqlock_statement_kind kind)
{
    return kind == SQLOCK_SQL_CLAIM_MANY || kind == SQLOCK_SQL_RENEW_MANY ||
           kind == SQLOCK_SQL_RELEASE_MANY || kind == SQLOCK_SQL_READ_MANY ||
           kind == SQLOCK_SQL_CLAIM_UNQUEUED_MANY ||
           kind == SQLOCK_SQL_RELEASE_UNQUEUED_MANY;
}

int lk_arguments_of(struct lk_lease_arguments *out,
                    const struct lk_store *store, const struct lk_batch *batch,
                    sqlock_statement_kind kind, sqlock_error *err)
{
    if (!is_about_many(kind)) {
        lk_arguments_of_one(out, store, &batch->items[0].lease, kind);
        return 0;
    }
    out->array = write_array(store, batch, kind);
    if (out->array == NULL)
        return lk_error_nomem(err);
    lk_store_arguments(store, out->array, &out->values);
    return 0;
}
