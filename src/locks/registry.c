/*
 * registry.c - opening and closing a registry, and what every call on it needs:
 * is it usable in this process, which statement, until when.
 */
#include "locks/registry.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "locks/batch.h"
#include "locks/entry.h"
#include "locks/layout.h"
#include "locks/request.h"

/* The longest a lock statement may wait for a row that a transaction has
 * locked: an attempt answers "busy" then. */
#define LOCK_TIMEOUT_MS 1000u

int lk_registry_check(const sqlock_registry *registry, sqlock_error *err)
{
    if (registry == NULL)
        return lk_error(err, SQLOCK_EINVAL, "the registry is NULL");
    if (registry->pid != getpid())
        return lk_error(err, SQLOCK_EFORK,
                        "this registry belongs to process %ld, which opened "
                        "it: open another one in the child",
                        (long)registry->pid);
    return 0;
}

int lk_lock_check(const sqlock_lock *lock, sqlock_error *err)
{
    if (lock == NULL)
        return lk_error(err, SQLOCK_EINVAL, "the lock is NULL");
    return lk_registry_check(lock->registry, err);
}

uint64_t lk_owner_id(void)
{
    static atomic_uint_fast64_t last;

    return atomic_fetch_add(&last, 1) + 1;
}

uint64_t lk_thread_id(void)
{
    static _Thread_local uint64_t id;

    if (id == 0)
        id = lk_owner_id();
    return id;
}

/* FNV-1a.  Two keys of one number ring for each other: time lost, no more. */
static uint64_t hash_on(uint64_t hash, const char *text)
{
    do {
        hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
    } while (*text++ != '\0');
    return hash;
}

int64_t lk_bell_number(const sqlock_registry *registry, const char *key)
{
    uint64_t hash = UINT64_C(14695981039346656037);

    hash = hash_on(hash, registry->table.quoted);
    hash = hash_on(hash, registry->region);
    hash = hash_on(hash, key);
    return (int64_t)(hash & UINT64_C(0x3ffffffffffffffe));
}

void lk_registry_arguments(const sqlock_registry *registry, const char *key,
                           struct lk_arguments *out)
{
    memset(out, 0, sizeof *out);
    lk_argument_text(out, SQLOCK_P_KEY, key);
    lk_argument_text(out, SQLOCK_P_REGION, registry->region);
    lk_argument_integer(out, SQLOCK_P_BELL, lk_bell_number(registry, key));
    lk_argument_integer(out, SQLOCK_P_PEER_TTL_US,
                        (int64_t)registry->options.peer_ttl_ms * 1000);
}

int64_t lk_statement_deadline(const sqlock_registry *registry)
{
    return lk_after_ms(sqlock_monotonic_ns(),
                       registry->options.statement_timeout_ms);
}

static bool is_write_statement(sqlock_statement_kind kind)
{
    return kind != SQLOCK_SQL_READ && kind != SQLOCK_SQL_LIST &&
           kind != SQLOCK_SQL_REAP_BOUND && kind != SQLOCK_SQL_READ_MANY;
}

int lk_registry_run(sqlock_registry *registry, sqlock_statement_kind kind,
                    struct lk_run *run, sqlock_result *result,
                    sqlock_error *err)
{
    run->statement = &registry->statements[kind];
    run->is_write = is_write_statement(kind);
    return lk_db_run(&registry->db, run, result, err);
}

/* "host pid program note", as far as it fits. */
static int describe_holder(sqlock_registry *registry)
{
    char host[HOST_NAME_MAX + 1] = "";
    char raw[1024];
    size_t length;

    (void)gethostname(host, sizeof host - 1);
    (void)snprintf(raw, sizeof raw, "%s %ld %s%s%s", host, (long)registry->pid,
                   program_invocation_short_name,
                   registry->options.holder_note[0] != '\0' ? " " : "",
                   registry->options.holder_note);
    lk_text_escape(registry->who, sizeof registry->who, raw);
    /* An escape sequence may have been cut; whole characters never are. */
    length = lk_utf8_prefix(registry->who, sizeof registry->who - 1);
    registry->who[length] = '\0';
    return 0;
}

void lk_registry_log(const sqlock_registry *registry, const char *format, ...)
{
    char raw[512];
    char line[512];
    va_list arguments;

    if (registry->options.log == NULL)
        return;
    va_start(arguments, format);
    (void)vsnprintf(raw, sizeof raw, format, arguments);
    va_end(arguments);
    lk_text_escape(line, sizeof line, raw);
    registry->options.log(registry->options.log_context, line);
}

static int copy_options(sqlock_registry *registry,
                        const sqlock_options *options, sqlock_error *err)
{
    int rc;

    rc = lk_options_complete(&registry->options, options, err);
    if (rc < 0)
        return rc;
    registry->region = strdup(registry->options.region);
    if (registry->region == NULL)
        return lk_error_nomem(err);
    rc = describe_holder(registry);
    /* The caller's strings are not kept. */
    registry->options.region = registry->region;
    registry->options.holder_note = "";
    return rc;
}

static int open_database(sqlock_registry *registry, const char *url,
                         sqlock_error *err)
{
    struct lk_pool_options pool = {
        .size = registry->options.pool_size,
        .connect_timeout_ms = registry->options.connect_timeout_ms,
        .statement_timeout_ms = registry->options.statement_timeout_ms,
        .lock_timeout_ms = registry->options.statement_timeout_ms / 2,
    };
    int rc;

    if (pool.lock_timeout_ms > LOCK_TIMEOUT_MS)
        pool.lock_timeout_ms = LOCK_TIMEOUT_MS;
    rc = lk_db_init(&registry->db, url, &pool, err);
    if (rc < 0)
        return rc;
    return lk_table_from_prefix(&registry->table,
                                registry->options.table_prefix,
                                registry->db.driver->dialect, err);
}

static int find_table(sqlock_registry *registry, sqlock_error *err)
{
    int64_t deadline = lk_after_ms(sqlock_monotonic_ns(),
                                   registry->options.connect_timeout_ms);
    int rc;

    rc = lk_layout_detect(&registry->db, &registry->table, deadline,
                          &registry->layout, err);
    if (rc == SQLOCK_ENOTFOUND)
        rc = lk_error(err, SQLOCK_ESCHEMA,
                      "there is no table %s in this database: create it with "
                      "`sqlock init`",
                      registry->table.plain);
    return rc;
}

static int render_statements(sqlock_registry *registry, sqlock_error *err)
{
    const sqlock_dialect *dialect = registry->db.driver->dialect;

    for (uint32_t kind = 0; kind < SQLOCK_SQL_KINDS; kind++) {
        const sqlock_template *template =
            &dialect->statements[registry->layout][kind];
        int rc;

        if (template->text == NULL)
            continue;
        rc = lk_statement_render(&registry->statements[kind], dialect, template,
                                 registry->table.quoted, kind + 1);
        if (rc < 0)
            return lk_error(err, rc, "statement %u of the driver %s: %s", kind,
                            registry->db.driver->name, sqlock_strerror(rc));
    }
    return 0;
}

/* A look at a key that nobody uses: may this login read the table at all? */
static int check_access(sqlock_registry *registry, sqlock_error *err)
{
    struct lk_row row;

    return lk_lease_read(registry, "sqlock-open",
                         lk_statement_deadline(registry), &row, err);
}

static void free_registry(sqlock_registry *registry)
{
    if (registry == NULL)
        return;
    lk_keeper_stop(&registry->keeper);
    lk_sentinel_stop(&registry->sentinel);
    lk_lookout_stop(&registry->lookout);
    lk_canceller_stop(&registry->canceller);
    for (size_t kind = 0; kind < SQLOCK_SQL_KINDS; kind++)
        lk_statement_clear(&registry->statements[kind]);
    if (registry->db.driver != NULL)
        lk_db_clear(&registry->db);
    while (registry->ghosts != NULL) {
        struct lk_ghost *next = registry->ghosts->next;

        free(registry->ghosts);
        registry->ghosts = next;
    }
    lk_runner_stop(&registry->runner);
    (void)pthread_mutex_destroy(&registry->mutex);
    free(registry->region);
    free(registry->identity);
    free(registry);
}

int sqlock_registry_open(sqlock_registry **out, const char *url,
                         const sqlock_options *options, sqlock_error *err)
{
    sqlock_registry *registry;
    int rc;

    if (out == NULL)
        return lk_error(err, SQLOCK_EINVAL, "no place for the registry");
    *out = NULL;
    registry = calloc(1, sizeof *registry);
    if (registry == NULL)
        return lk_error_nomem(err);
    registry->pid = getpid();
    (void)pthread_mutex_init(&registry->mutex, NULL);
    lk_sentinel_init(&registry->sentinel);
    lk_keeper_init(&registry->keeper, registry);
    lk_lookout_init(&registry->lookout, registry);
    lk_canceller_init(&registry->canceller, registry);
    lk_runner_init(&registry->runner);
    rc = copy_options(registry, options, err);
    if (rc == 0)
        rc = open_database(registry, url, err);
    if (rc == 0)
        rc = find_table(registry, err);
    if (rc == 0)
        rc = render_statements(registry, err);
    if (rc == 0)
        rc = check_access(registry, err);
    if (rc == 0) {
        *out = registry;
        registry = NULL;
    }
    free_registry(registry);
    return rc;
}

/* The next leases that somebody still holds, from *next on, as many as go into
 * one statement. */
static void collect_held(struct lk_batch *batch, sqlock_lock **next)
{
    sqlock_lock *lock = *next;

    batch->count = 0;
    for (; lock != NULL && batch->count < LK_BATCH_MAX; lock = lock->hh.next) {
        if (lock->phase == LK_OCCUPIED)
            lk_copy_lease(lock, &batch->items[batch->count++].lease);
    }
    *next = lock;
}

static int release_batch(sqlock_registry *registry, struct lk_batch *batch,
                         sqlock_error *err)
{
    int rc;

    lk_batch_sort(batch);
    batch->deadline_ns = lk_statement_deadline(registry);
    rc = lk_batch_release(registry, batch, err);
    for (size_t i = 0; rc == 0 && i < batch->count; i++) {
        rc = batch->items[i].rc;
        if (rc < 0)
            rc = lk_error(err, rc, "%s: %s", batch->items[i].lease.key,
                          sqlock_strerror(rc));
    }
    return rc;
}

/* Give back what is still held; the first error. */
static int release_held(sqlock_registry *registry, sqlock_error *err)
{
    size_t room = HASH_COUNT(registry->locks);
    sqlock_lock *next = registry->locks;
    struct lk_batch batch = {0};
    int result = 0;

    if (room == 0)
        return 0;
    if (room > LK_BATCH_MAX)
        room = LK_BATCH_MAX;
    batch.items = calloc(room, sizeof *batch.items);
    if (batch.items == NULL)
        return lk_error_nomem(err);
    while (next != NULL) {
        int rc = 0;

        collect_held(&batch, &next);
        if (batch.count > 0)
            rc = release_batch(registry, &batch, result == 0 ? err : NULL);
        if (result == 0)
            result = rc;
    }
    free(batch.items);
    return result;
}

int sqlock_registry_close(sqlock_registry *registry, sqlock_error *err)
{
    sqlock_lock *lock;
    sqlock_lock *next;
    int rc;

    if (registry == NULL)
        return 0;
    rc = lk_registry_check(registry, err);
    if (rc < 0)
        return rc;
    lk_requests_end(registry); /* with all that serves them there yet */
    lk_keeper_stop(&registry->keeper);
    lk_sentinel_stop(&registry->sentinel);
    lk_lookout_stop(&registry->lookout); /* it has locks pinned */
    rc = release_held(registry, err);
    HASH_ITER(hh, registry->locks, lock, next)
    {
        HASH_DEL(registry->locks, lock);
        lk_lock_free(lock);
    }
    if (rc == 0)
        lk_ghosts_lay(registry);
    free_registry(registry);
    return rc;
}

sqlock_layout sqlock_registry_layout(const sqlock_registry *registry)
{
    return registry != NULL ? registry->layout : SQLOCK_LAYOUT_SQLOCK;
}
