/*
 * registry.c - what every call on a registry needs: is it usable in this
 * process, which statement, until when.
 */
#include "locks/registry.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"

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

static bool is_outage_shared(const sqlock_registry *registry,
                             const struct lk_run *run)
{
    int64_t closing_ns = atomic_load(&registry->closing_since_ns);
    int64_t asked_ns = closing_ns != 0 ? closing_ns : run->asked_ns;

    return asked_ns != 0 &&
           atomic_load(&registry->in_vain_since_ns) >= asked_ns;
}

int lk_registry_run(sqlock_registry *registry, sqlock_statement_kind kind,
                    struct lk_run *run, sqlock_result *result,
                    sqlock_error *err)
{
    int64_t began_ns = sqlock_monotonic_ns();
    int rc;

    if (is_outage_shared(registry, run))
        return lk_error(err, SQLOCK_EUNREACHABLE,
                        "the database has not answered others in time: "
                        "nothing was sent");
    run->statement = &registry->statements[kind];
    run->is_write = is_write_statement(kind);
    rc = lk_db_run(&registry->db, run, result, err);
    if (rc == 0)
        atomic_store(&registry->in_vain_since_ns, 0);
    else if (lk_is_outage(rc) &&
             sqlock_monotonic_ns() + LK_DB_PAUSE_NS >= run->deadline_ns)
        atomic_store(&registry->in_vain_since_ns, began_ns);
    return rc;
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

sqlock_layout sqlock_registry_layout(const sqlock_registry *registry)
{
    return registry != NULL ? registry->layout : SQLOCK_LAYOUT_SQLOCK;
}

uint32_t sqlock_registry_epoch(sqlock_registry *registry,
                               char epoch[SQLOCK_EPOCH_SIZE])
{
    if (epoch == NULL)
        return 0;
    *epoch = '\0';
    if (lk_registry_check(registry, NULL) < 0)
        return 0;
    return lk_epoch_last(&registry->db.epoch, epoch);
}
