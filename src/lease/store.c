/*
 * store.c - run the statements of a store, and make its CLIENT_IDs
 */
#include "lease/store.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/callback.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/owner.h"
#include "base/random.h"
#include "base/text.h"

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

int lk_store_unshared(const struct lk_store *store, sqlock_error *err)
{
    return lk_error(err, SQLOCK_ENOTSUP,
                    "%s has a layout of Spring's, on which locks cannot be "
                    "shared: see `sqlock init` for a table of sqlock's own",
                    store->table.plain);
}

bool lk_store_has_tickets(const struct lk_store *store)
{
    return store->statements[SQLOCK_SQL_ENQUEUE].text != NULL;
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

    if (store->acts_for[0] != '\0')
        return lk_client_id_mark(store->acts_for);
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
    run->is_write = !run->statement->is_read;
    rc = lk_db_run(&store->db, run, result, err);
    if (rc == 0)
        atomic_store(&store->in_vain_since_ns, 0);
    else if (lk_is_outage(rc) &&
             sqlock_monotonic_ns() + LK_DB_PAUSE_NS >= run->deadline_ns)
        atomic_store(&store->in_vain_since_ns, began_ns);
    return rc;
}

int lk_store_change(struct lk_store *store, sqlock_statement_kind kind,
                    const struct lk_arguments *arguments, struct lk_run *run,
                    sqlock_error *err)
{
    struct lk_run usual = {.is_repeatable = true};
    sqlock_result result = {0};
    int rc;

    if (run == NULL)
        run = &usual;
    if (run->deadline_ns == 0)
        run->deadline_ns = lk_store_deadline(store);
    run->arguments = arguments;
    rc = lk_store_run(store, kind, run, &result, err);
    run->arguments = NULL;
    if (rc == 0)
        rc = (int)result.affected;
    sqlock_result_clear(&result);
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
