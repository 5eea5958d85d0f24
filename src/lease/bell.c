/*
 * bell.c - name the bells of a store (bell.h)
 */
#include "lease/bell.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/writer.h"

#define ALL_LENGTH 13 /* "xxxxxxxx-xxxx", the registry's part */

const sqlock_bell *lk_bell_of(const struct lk_store *store)
{
    if (store->layout != SQLOCK_LAYOUT_SQLOCK ||
        store->options.waiting == SQLOCK_WAITING_POLL)
        return NULL;
    return store->db.driver->bell;
}

/* Copy the digits among the first bytes of a CLIENT_ID. */
static void copy_digits(char name[LK_BELL_SIZE], const char *client_id,
                        size_t length)
{
    size_t count = 0;

    for (size_t i = 0; i < length && client_id[i] != '\0'; i++)
        if (client_id[i] != '-')
            name[count++] = client_id[i];
    name[count] = '\0';
}

void lk_bell_name(const struct lk_store *store, char name[LK_BELL_SIZE])
{
    copy_digits(name, store->number, ALL_LENGTH);
}

void lk_bell_name_of(const char *client_id, char name[LK_BELL_SIZE])
{
    copy_digits(name, client_id, LK_BELL_PREFIX);
}

void lk_bell_client_id(struct lk_store *store, uint64_t owner,
                       const char *before, char client_id[SQLOCK_KEY_SIZE])
{
    const sqlock_bell *bell = lk_bell_of(store);

    lk_store_client_id(store, owner, client_id);
    if (bell != NULL && bell->is_of_one)
        memcpy(client_id, before, LK_BELL_PREFIX);
}

int lk_bell_call_begin(struct lk_store *store, struct lk_connection *connection,
                       const char *name, int64_t until_ns, int64_t deadline_ns,
                       sqlock_error *err)
{
    return lk_bell_of(store)->begin(connection->state, name, until_ns,
                                    deadline_ns, err);
}

int lk_place_run(struct lk_store *store, const struct lk_place *place,
                 struct lk_run *run, sqlock_result *result, sqlock_error *err)
{
    if (!lk_pool_is_usable(place->connection))
        return lk_error(err, SQLOCK_EUNREACHABLE,
                        "the session with the lease's bell is broken");
    return lk_db_run_on(&store->db, place->connection, run, result, err);
}

/* End hearing and ringing on a session that is given back.  Return the driver's
 * result. */
static int end_bell(struct lk_store *store, struct lk_connection *connection)
{
    return store->db.driver->bell->end(connection->state,
                                       lk_store_deadline(store), NULL);
}

bool lk_place_end(struct lk_store *store, struct lk_place *place, bool has_rung,
                  bool is_outage)
{
    struct lk_connection *connection = place->connection;

    place->connection = NULL;
    if (connection == NULL)
        return is_outage;
    if (!has_rung && !is_outage)
        is_outage = end_bell(store, connection) < 0;
    if (!has_rung && is_outage)
        lk_pool_discard(&store->db.waiting, connection);
    else
        lk_pool_return(&store->db.waiting, connection);
    return is_outage;
}

void lk_bell_ask_to_look(struct lk_store *store, const char *const *keys,
                         size_t count, int64_t deadline_ns)
{
    struct lk_run run = {.is_repeatable = true, .deadline_ns = deadline_ns};
    struct lk_arguments arguments;
    struct lk_writer writer;
    FILE *out;
    char *items;

    if (count == 0 || store->statements[SQLOCK_SQL_ASK_TO_LOOK].text == NULL)
        return;
    out = lk_writer_open(&writer);
    for (size_t i = 0; out != NULL && i < count; i++) {
        (void)fputs(i == 0 ? "[" : ",", out);
        lk_json_text(out, keys[i]);
    }
    if (out != NULL)
        (void)fputs("]", out);
    items = lk_writer_close(&writer);
    if (items != NULL) {
        lk_store_arguments(store, items, &arguments);
        (void)lk_store_change(store, SQLOCK_SQL_ASK_TO_LOOK, &arguments, &run,
                              NULL);
    }
    free(items);
}

void lk_bell_tell(struct lk_store *store, const char *key, int64_t deadline_ns)
{
    struct lk_run run = {.is_repeatable = true, .deadline_ns = deadline_ns};
    struct lk_arguments arguments;

    if (store->statements[SQLOCK_SQL_TELL].text == NULL)
        return;
    lk_store_arguments(store, key, &arguments);
    (void)lk_store_change(store, SQLOCK_SQL_TELL, &arguments, &run, NULL);
}
