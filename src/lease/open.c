/*
 * open.c - open a store (open.h)
 */
#include "lease/open.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/command_line.h"
#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "lease/grace.h"
#include "lease/layout.h"

/* The longest wait of a statement about locks for a row that a transaction has
 * locked; after that the attempt returns EBUSY. */
#define LOCK_TIMEOUT_MS 1000u

/* Write "user@host pid command line (note)" to store->identity, truncated to
 * fit. */
static void describe_holder(struct lk_store *store)
{
    const char *note = store->options.holder_note;
    char process[512];
    char raw[1024];
    size_t length;

    lk_process_show(process, sizeof process);
    (void)snprintf(raw, sizeof raw, "%s%s%s%s", process,
                   note[0] != '\0' ? " (" : "", note,
                   note[0] != '\0' ? ")" : "");
    lk_text_escape(store->identity, sizeof store->identity, raw);
    /* An escape sequence may be truncated, but not a character. */
    length = lk_utf8_prefix(store->identity, sizeof store->identity - 1);
    store->identity[length] = '\0';
}

static int copy_options(struct lk_store *store, const sqlock_options *options,
                        sqlock_error *err)
{
    int rc;

    rc = lk_options_complete(&store->options, options, err);
    if (rc < 0)
        return rc;
    store->region = strdup(store->options.region);
    store->prefix = strdup(store->options.table_prefix);
    if (store->region == NULL || store->prefix == NULL)
        return lk_error_nomem(err);
    describe_holder(store);
    /* The application's strings are not kept. */
    store->options.region = store->region;
    store->options.table_prefix = store->prefix;
    store->options.holder_note = "";
    return 0;
}

static void note_epoch(void *context, const char *before, const char *now)
{
    lk_store_tell(context, &(sqlock_event){.kind = SQLOCK_EVENT_EPOCH},
                  "the database has changed, to %s from %s: a standby was "
                  "promoted, another server answers, or the file was replaced; "
                  "the locks granted last may be lost",
                  now, before);
}

/* Tell of settings by which a crash loses commits, unless nothing is granted
 * after it until the leases among these are over. */
static void note_forgetful(void *context, const char *settings)
{
    if (lk_grace_sees_crashes(context))
        return;
    lk_store_tell(
        context, &(sqlock_event){.kind = SQLOCK_EVENT_FORGETFUL},
        "if the server or its machine crashes, it may lose granted locks and "
        "grant them again: %s; `sqlock doctor` says what to set",
        settings);
}

static int open_database(struct lk_store *store, const char *url,
                         sqlock_error *err)
{
    struct lk_pool_options pool = {
        .size = store->options.pool_size,
        .connect_timeout_ms = store->options.connect_timeout_ms,
        .statement_timeout_ms = store->options.statement_timeout_ms,
        .lock_timeout_ms = store->options.statement_timeout_ms / 2,
        .idle_ms = lk_idle_ms(store->options.ttl_ms),
    };
    int rc;

    store->together.places = store->options.pool_size;
    /* A renewal may connect for a quarter of a lease, so that two attempts fit
     * into the rest. */
    pool.renewal_connect_ms = store->options.ttl_ms / 4;
    if (pool.renewal_connect_ms < pool.statement_timeout_ms)
        pool.renewal_connect_ms = pool.statement_timeout_ms;
    if (pool.renewal_connect_ms > pool.connect_timeout_ms)
        pool.renewal_connect_ms = pool.connect_timeout_ms;
    if (pool.lock_timeout_ms > LOCK_TIMEOUT_MS)
        pool.lock_timeout_ms = LOCK_TIMEOUT_MS;
    rc = lk_db_init(&store->db, url, &pool, err);
    if (rc < 0)
        return rc;
    store->db.epoch.changed = note_epoch;
    store->db.epoch.context = store;
    return lk_table_from_prefix(&store->table, store->options.table_prefix,
                                store->db.driver->dialect, err);
}

static int find_table(struct lk_store *store, sqlock_error *err)
{
    int64_t deadline =
        lk_after_ms(sqlock_monotonic_ns(), store->options.connect_timeout_ms);

    return lk_layout_require(&store->db, &store->table, deadline,
                             &store->layout, err);
}

/* Write the quoted name of the lock table with that behind it. */
static void name_beside(const struct lk_store *store, const char *behind,
                        char *out, size_t size)
{
    const char *quoted = store->table.quoted;
    size_t length = strlen(quoted) - 1;

    (void)snprintf(out, size, "%.*s%s%c", (int)length, quoted, behind,
                   quoted[length]);
}

static int render_statements(struct lk_store *store, sqlock_error *err)
{
    const sqlock_dialect *dialect = store->db.driver->dialect;
    char server[sizeof store->table.quoted + 8];
    char mark[sizeof server];
    struct lk_table done;
    const struct lk_name names[] = {{"INT_LOCK", store->table.quoted},
                                    {"INT_LOCK_SERVER", server},
                                    {"INT_LOCK_MARK", mark},
                                    {"INT_DONE", done.quoted},
                                    {NULL, NULL}};
    int rc = lk_table_named(&done, store->options.table_prefix, "DONE", dialect,
                            err);

    if (rc < 0)
        return rc;
    name_beside(store, dialect->folds_to_lower ? "_server" : "_SERVER", server,
                sizeof server);
    name_beside(store, dialect->folds_to_lower ? "_mark" : "_MARK", mark,
                sizeof mark);
    for (uint32_t kind = 0; kind < SQLOCK_SQL_KINDS; kind++) {
        rc = lk_statement_of_kind(&store->statements[kind], dialect,
                                  store->layout, (sqlock_statement_kind)kind,
                                  names, kind + 1);
        if (rc < 0 && rc != SQLOCK_ENOTSUP)
            return lk_error_nomem(err);
    }
    return 0;
}

int lk_store_open(struct lk_store *store, const char *url,
                  const sqlock_options *options, sqlock_error *err)
{
    int rc = copy_options(store, options, err);

    if (rc == 0)
        rc = open_database(store, url, err);
    if (rc == 0)
        rc = find_table(store, err);
    if (rc == 0)
        rc = render_statements(store, err);
    if (rc == 0)
        rc = lk_grace_begin(store, err);
    store->db.epoch.forgets = note_forgetful;
    if (rc == 0 && store->db.epoch.settings[0] != '\0')
        note_forgetful(store, store->db.epoch.settings);
    return rc;
}

void lk_store_init(struct lk_store *store)
{
    char number[SQLOCK_KEY_SIZE];

    memset(store, 0, sizeof *store);
    store->pid = getpid();
    lk_random_uuid(number);
    memcpy(store->number, number, sizeof store->number - 1);
    (void)pthread_mutex_init(&store->mutex, NULL);
    lk_service_init(&store->background);
    lk_grace_init(&store->grace);
    lk_resolver_init(&store->resolver, store);
    lk_crew_init(&store->together, 1, LK_TOGETHER_CROWD);
}

void lk_store_clear(struct lk_store *store)
{
    lk_service_stop(&store->background);
    lk_resolver_clear(&store->resolver);
    lk_crew_clear(&store->together);
    for (size_t kind = 0; kind < SQLOCK_SQL_KINDS; kind++)
        lk_statement_clear(&store->statements[kind]);
    lk_db_clear(&store->db);
    lk_grace_clear(&store->grace);
    (void)pthread_mutex_destroy(&store->mutex);
    free(store->region);
    free(store->prefix);
    free(store->database_identity);
}
