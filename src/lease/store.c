/*
 * store.c - open a store, and run its statements
 */
#include "lease/store.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/callback.h"
#include "base/clock.h"
#include "base/command_line.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/owner.h"
#include "base/random.h"
#include "base/text.h"
#include "lease/layout.h"

/* The longest wait of a statement about locks for a row that a transaction has
 * locked; after that the attempt returns EBUSY. */
#define LOCK_TIMEOUT_MS 1000u

void lk_store_shown(const struct lk_store *store, char *out, size_t size,
                    const char *text)
{
    size_t length;

    if (atomic_load(&store->db.pool.is_narrow)) {
        lk_text_to_ascii(out, size, text);
        return;
    }
    length = lk_utf8_prefix(text, size - 1);
    memcpy(out, text, length);
    out[length] = '\0';
}

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
    if (store->options.acts_for != NULL) {
        memcpy(store->acts_for, store->options.acts_for,
               sizeof store->acts_for);
        store->options.acts_for = store->acts_for;
    }
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

static void note_forgetful(void *context, const char *settings)
{
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
    store->db.epoch.forgets = note_forgetful;
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

static int render_statements(struct lk_store *store, sqlock_error *err)
{
    const sqlock_dialect *dialect = store->db.driver->dialect;
    struct lk_table done;
    const struct lk_name names[] = {{"INT_LOCK", store->table.quoted},
                                    {"INT_DONE", done.quoted},
                                    {NULL, NULL}};
    int rc = lk_table_named(&done, store->options.table_prefix, "DONE", dialect,
                            err);

    if (rc < 0)
        return rc;
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
    lk_looks_init(&store->looks);
    lk_service_init(&store->background);
    lk_resolver_init(&store->resolver, store);
    lk_together_init(&store->together);
}

void lk_store_clear(struct lk_store *store)
{
    lk_service_stop(&store->background);
    lk_resolver_clear(&store->resolver);
    lk_together_clear(&store->together);
    for (size_t kind = 0; kind < SQLOCK_SQL_KINDS; kind++)
        lk_statement_clear(&store->statements[kind]);
    lk_db_clear(&store->db);
    lk_looks_clear(&store->looks);
    (void)pthread_mutex_destroy(&store->mutex);
    free(store->region);
    free(store->prefix);
    free(store->database_identity);
}

int lk_store_ours(const struct lk_store *store, sqlock_error *err)
{
    if (store->pid != getpid())
        return lk_error(err, SQLOCK_EFORK,
                        "this registry belongs to process %ld, which opened "
                        "it: open another one in the child",
                        (long)store->pid);
    return 0;
}

int lk_store_check(const struct lk_store *store, sqlock_error *err)
{
    int rc = lk_store_ours(store, err);

    if (rc == 0 && lk_callback_of_event(store))
        rc = lk_error(err, SQLOCK_EINUSE,
                      "on_event of this registry runs in this thread: call the "
                      "library after it has returned");
    return rc;
}

int lk_store_of(sqlock_registry *registry, struct lk_store **out,
                sqlock_error *err)
{
    *out = (struct lk_store *)registry;
    if (registry == NULL)
        return lk_error_null(err, "registry");
    return lk_store_check(*out, err);
}

int lk_store_key(sqlock_registry *registry, const char *name,
                 struct lk_store **out, char key[SQLOCK_KEY_SIZE],
                 sqlock_error *err)
{
    int rc = lk_store_of(registry, out, err);

    return rc < 0 ? rc
                  : sqlock_key_of(key, name, (*out)->options.key_rule, err);
}

int64_t lk_lock_number(const struct lk_store *store, const char *key)
{
    const char *const parts[] = {store->table.quoted, store->region, key};
    uint64_t hash = LK_HASH_NOTHING;

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        hash = lk_hash_on(hash, parts[i], strlen(parts[i]) + 1);
    return (int64_t)(hash & UINT64_C(0x3ffffffffffffffe));
}

void lk_store_arguments(const struct lk_store *store, const char *key,
                        struct lk_arguments *out)
{
    memset(out, 0, sizeof *out);
    lk_argument_text(out, SQLOCK_P_KEY, key);
    lk_argument_text(out, SQLOCK_P_REGION, store->region);
    lk_argument_integer(out, SQLOCK_P_PEER_TTL,
                        (int64_t)store->options.peer_ttl_ms * 1000);
}

/* Where a UUID has its version, and where its last twelve and nine digits
 * begin. */
#define VERSION_AT 14
#define MARK_AT 24
#define TTL_AT 27

static const char hex[] = "0123456789abcdef";

void lk_store_client_id(struct lk_store *store, uint64_t owner,
                        char out[SQLOCK_KEY_SIZE])
{
    /* Threads share what a registry owns: none of them waits for another. */
    if (store->options.ownership == SQLOCK_OWNED_BY_REGISTRY)
        owner = lk_owner_id();
    lk_random_uuid(out);
    memcpy(out, store->number, sizeof store->number - 1);
    if (store->layout != SQLOCK_LAYOUT_SPRING6) {
        /* The counter tells leases apart that are handed off in a row. */
        (void)snprintf(out + MARK_AT, SQLOCK_KEY_SIZE - MARK_AT, "%08x%04x",
                       lk_store_mark(store, owner),
                       atomic_fetch_add(&store->client_ids, 1) & 0xffff);
        return;
    }
    out[VERSION_AT] = '8';
    (void)snprintf(out + TTL_AT, SQLOCK_KEY_SIZE - TTL_AT, "%09u",
                   store->options.peer_ttl_ms);
}

uint32_t lk_client_id_mark(const char *client_id)
{
    uint32_t mark = 0;

    for (size_t i = MARK_AT; i < MARK_AT + 8; i++) {
        const char *digit = strchr(hex, client_id[i]);

        mark = mark << 4 | (digit != NULL ? (uint32_t)(digit - hex) & 15 : 0);
    }
    return mark;
}

uint32_t lk_store_mark(const struct lk_store *store, uint64_t owner)
{
    uint64_t hash;

    if (store->options.acts_for != NULL)
        return lk_client_id_mark(store->options.acts_for);
    hash = lk_hash_on(LK_HASH_NOTHING, store->number, sizeof store->number);
    return (uint32_t)lk_hash_on(hash, &owner, sizeof owner);
}

bool lk_client_id_has_ttl(const char *client_id)
{
    return strlen(client_id) == SQLOCK_KEY_SIZE - 1 &&
           client_id[VERSION_AT] == '8';
}

void lk_store_client_id_like(char out[SQLOCK_KEY_SIZE], const char *from)
{
    lk_random_uuid(out);
    if (!lk_client_id_has_ttl(from))
        return;
    out[VERSION_AT] = '8';
    (void)snprintf(out + TTL_AT, SQLOCK_KEY_SIZE - TTL_AT, "%s", from + TTL_AT);
}

int64_t lk_store_deadline(const struct lk_store *store)
{
    return lk_after_ms(sqlock_monotonic_ns(),
                       store->options.statement_timeout_ms);
}

bool lk_store_is_write(sqlock_statement_kind kind)
{
    return kind != SQLOCK_SQL_READ && kind != SQLOCK_SQL_FIND &&
           kind != SQLOCK_SQL_FIND_PAGE && kind != SQLOCK_SQL_REAP_BOUND &&
           kind != SQLOCK_SQL_READ_MANY && kind != SQLOCK_SQL_WAITS;
}

static bool is_outage_shared(const struct lk_store *store,
                             const struct lk_run *run)
{
    int64_t closing_ns = atomic_load(&store->closing_since_ns);
    int64_t asked_ns = closing_ns != 0 ? closing_ns : run->asked_ns;

    return asked_ns != 0 && atomic_load(&store->in_vain_since_ns) >= asked_ns;
}

int lk_store_run(struct lk_store *store, sqlock_statement_kind kind,
                 struct lk_run *run, sqlock_result *result, sqlock_error *err)
{
    int64_t began_ns = sqlock_monotonic_ns();
    int rc;

    if (is_outage_shared(store, run))
        return lk_error(err, SQLOCK_EUNREACHABLE,
                        "the database did not answer other calls in time, so "
                        "nothing was sent");
    run->statement = &store->statements[kind];
    run->is_write = lk_store_is_write(kind);
    rc = lk_db_run(&store->db, run, result, err);
    if (rc == 0)
        atomic_store(&store->in_vain_since_ns, 0);
    else if (lk_is_outage(rc) &&
             sqlock_monotonic_ns() + LK_DB_PAUSE_NS >= run->deadline_ns)
        atomic_store(&store->in_vain_since_ns, began_ns);
    return rc;
}

/* Name and level of each kind of event. */
static const struct {
    const char *name;
    sqlock_level level;
} kinds[] = {
#define SQLOCK_X(kind, event_name, event_level)                                \
    [SQLOCK_EVENT_##                                                           \
        kind] = {.name = (event_name), .level = SQLOCK_LEVEL_##event_level},
    SQLOCK_EVENTS(SQLOCK_X)
#undef SQLOCK_X
};

void lk_store_tell(const struct lk_store *store, const sqlock_event *event,
                   const char *format, ...)
{
    sqlock_event told = *event;
    char raw[512];
    char line[512];
    struct lk_callback callback;
    va_list arguments;

    if (store->options.on_event == NULL ||
        kinds[event->kind].level < store->options.event_level)
        return;
    va_start(arguments, format);
    (void)vsnprintf(raw, sizeof raw, format, arguments);
    va_end(arguments);
    lk_text_escape(line, sizeof line, raw);
    told.size = sizeof told;
    told.name = kinds[event->kind].name;
    told.level = kinds[event->kind].level;
    told.text = line;
    lk_callback_begin(&callback, store, NULL);
    store->options.on_event(store->options.event_context, &told);
    lk_callback_end(&callback);
}
