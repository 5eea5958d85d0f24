/*
 * open.c - opening a registry, and closing it with all that is held.
 */
#include <errno.h>
#include <limits.h>
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

static void note_epoch(void *context, const char *before, const char *now)
{
    lk_registry_log(context,
                    "the database is another than before, %s and no longer %s: "
                    "a standby was promoted, or another server answers; locks "
                    "that were acknowledged last may be gone",
                    now, before);
}

static void note_forgetful(void *context, const char *settings)
{
    lk_registry_log(
        context,
        "the server may forget locks that it has granted, and grant "
        "them again, when it or its machine crashes: %s; `sqlock "
        "doctor` says what to set",
        settings);
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

    /* Two attempts of a renewal fit into what is left of a lease. */
    pool.renewal_connect_ms = registry->options.ttl_ms / 4;
    if (pool.renewal_connect_ms < pool.statement_timeout_ms)
        pool.renewal_connect_ms = pool.statement_timeout_ms;
    if (pool.renewal_connect_ms > pool.connect_timeout_ms)
        pool.renewal_connect_ms = pool.connect_timeout_ms;
    if (pool.lock_timeout_ms > LOCK_TIMEOUT_MS)
        pool.lock_timeout_ms = LOCK_TIMEOUT_MS;
    rc = lk_db_init(&registry->db, url, &pool, err);
    if (rc < 0)
        return rc;
    registry->db.epoch.changed = note_epoch;
    registry->db.epoch.forgets = note_forgetful;
    registry->db.epoch.context = registry;
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
    if (registry->options.observe_before_steal &&
        registry->statements[SQLOCK_SQL_CLAIM_OBSERVED].text == NULL)
        return lk_error(err, SQLOCK_ENOTSUP,
                        "the driver %s cannot claim what was observed: leave "
                        "observe_before_steal out",
                        registry->db.driver->name);
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
    lk_resolver_stop(&registry->resolver);
    for (size_t kind = 0; kind < SQLOCK_SQL_KINDS; kind++)
        lk_statement_clear(&registry->statements[kind]);
    if (registry->db.driver != NULL)
        lk_db_clear(&registry->db);
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
    lk_resolver_init(&registry->resolver, registry);
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
    atomic_store(&registry->closing_since_ns, sqlock_monotonic_ns());
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
    free_registry(registry);
    return rc;
}
