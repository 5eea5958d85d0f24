/*
 * trio.c - a quorum's three servers, and what contenders do (trio.h)
 */
#include "trio.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sqlock/event.h"

sqlock_options trio_options(const struct trio *t)
{
    sqlock_options options = SQLOCK_OPTIONS_INIT;

    options.table_prefix = t->prefix;
    options.ownership = SQLOCK_OWNED_BY_HANDLE;
    options.connect_timeout_ms = t->limit_ms;
    options.statement_timeout_ms = t->limit_ms;
    options.renew_period_ms = PERIOD_MS;
    return options;
}

/* Lead to a server by a proxy. */
static void trio_serve(struct trio *t, unsigned i, unsigned bit)
{
    const char *url = NULL;

    for (unsigned k = 0; k < DATABASES; k++)
        if (databases[k].bit == bit)
            t->databases[i] = &databases[k];
    url = database_url(t->databases[i]);
    if (url == NULL)
        skip_or_fail("there is no server of %s", t->databases[i]->name);
    t->proxies[i] = proxy_open(t->databases[i], url);
    assert_non_null(t->proxies[i]);
    (void)proxy_url(t->proxies[i], t->urls[i], url);
}

static void trio_file(struct trio *t, unsigned i)
{
    const char *folder = getenv("SQLOCK_TEST_DIR");

    (void)snprintf(t->urls[i], sizeof t->urls[i], "sqlite:%s/quorum-%d-%u.db",
                   folder != NULL ? folder : "/tmp", (int)getpid(), i);
}

void trio_create(struct trio *t, struct fixture *f, uint32_t limit_ms)
{
    sqlock_options options;

    memset(t, 0, sizeof *t);
    t->f = f;
    (void)snprintf(t->prefix, sizeof t->prefix, "Q%d_", (int)getpid());
    if (f->database->bit == ON_SQLITE) {
        trio_file(t, 0);
        trio_file(t, 1);
    } else {
        trio_serve(t, 0, ON_POSTGRES);
        trio_serve(t, 1, ON_MYSQL);
    }
    trio_file(t, 2);
    t->limit_ms = PATIENT_MS;
    options = trio_options(t);
    t->limit_ms = limit_ms;
    for (unsigned i = 0; i < SERVERS; i++)
        assert_ok(sqlock_schema_create(t->urls[i], &options,
                                       SQLOCK_LAYOUT_SQLOCK, &f->err));
}

void trio_connect(struct trio *t, sqlock_registry *registries[SERVERS])
{
    struct fixture *f = t->f;
    sqlock_options options = trio_options(t);

    for (unsigned i = 0; i < SERVERS; i++)
        assert_ok(sqlock_registry_open(&registries[i], t->urls[i], &options,
                                       &f->err));
}

struct trio *trio_open(struct fixture *f, uint32_t limit_ms)
{
    static struct trio trio;

    trio_create(&trio, f, limit_ms);
    trio_connect(&trio, trio.a);
    trio_connect(&trio, trio.b);
    return &trio;
}

void trio_remove(struct trio *t)
{
    struct sql sql;

    for (unsigned i = 0; i < SERVERS; i++) {
        char *path = strchr(t->urls[i], ':') + 1;

        if (t->proxies[i] == NULL) {
            assert_int_equal(unlink(path), 0);
            continue;
        }
        proxy_close(t->proxies[i]);
        assert_int_equal(
            sql_open(&sql, t->databases[i], database_url(t->databases[i])), 0);
        sql_drop_locks(&sql, t->prefix);
        sql_close(&sql);
    }
}

void trio_close(struct trio *t)
{
    for (unsigned i = 0; i < SERVERS; i++) {
        if (t->proxies[i] != NULL)
            proxy_heal(t->proxies[i]);
        (void)sqlock_registry_close(t->a[i], NULL);
        (void)sqlock_registry_close(t->b[i], NULL);
    }
    trio_remove(t);
}

sqlock_quorum *quorum_obtain(struct trio *t, sqlock_registry *const *registries,
                             bool all)
{
    struct fixture *f = t->f;
    sqlock_quorum_options options = SQLOCK_QUORUM_INIT;
    sqlock_quorum *quorum = NULL;

    options.all = all;
    assert_ok(sqlock_quorum_obtain(&quorum, registries, SERVERS, f->name,
                                   &options, &f->err));
    return quorum;
}

int quorum_acquire(struct trio *t, sqlock_quorum *quorum, int64_t wait_ms,
                   int *results)
{
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;

    options.ttl_ms = LONG_TTL_MS;
    return sqlock_quorum_acquire(quorum, wait_ms, &options, results,
                                 &t->f->err);
}

void quorum_acquire_each(struct trio *t, sqlock_quorum *quorum,
                         const sqlock_acquire_options *options)
{
    struct fixture *f = t->f;
    int results[SERVERS];

    for (;;) {
        bool has_each = true;

        assert_ok(sqlock_quorum_acquire(quorum, PATIENCE_MS, options, results,
                                        &f->err));
        for (unsigned i = 0; i < SERVERS; i++)
            has_each = has_each && results[i] == 0;
        if (has_each)
            return;
        assert_ok(sqlock_quorum_release(quorum, NULL, &f->err));
    }
}

void quorum_end(struct trio *t, sqlock_quorum *quorum)
{
    struct fixture *f = t->f;

    assert_ok(sqlock_quorum_release(quorum, NULL, &f->err));
    assert_ok(sqlock_quorum_drop(quorum, &f->err));
}

sqlock_lock *trio_rival(struct trio *t, unsigned i)
{
    sqlock_lock *lock = lock_obtain(t->b[i], t->f->name);

    lock_take(lock, LONG_TTL_MS);
    return lock;
}

/* Count what a registry has acquired. */
static void note_grant(void *context, const sqlock_event *event)
{
    atomic_int *grants = context;

    if (event->kind == SQLOCK_EVENT_ACQUIRED)
        (void)atomic_fetch_add(grants, 1);
}

void trio_count_grants(struct trio *t, atomic_int *grants)
{
    struct fixture *f = t->f;
    sqlock_options options = trio_options(t);

    options.on_event = note_grant;
    options.event_context = grants;
    options.event_level = SQLOCK_LEVEL_DEBUG;
    registry_end(t->a[0]);
    assert_ok(sqlock_registry_open(&t->a[0], t->urls[0], &options, &f->err));
}

void trio_assert_free(struct trio *t, unsigned i)
{
    struct fixture *f = t->f;
    sqlock_lock *lock = lock_obtain(t->b[i], f->name);

    assert_ok(lock_try(lock, PATIENT_MS, LONG_TTL_MS, &f->err));
    lock_end(lock);
}

void trio_break(struct trio *t, unsigned i)
{
    struct fixture *f = t->f;
    sqlock_break_options how = SQLOCK_BREAK_INIT;
    sqlock_info *row = NULL;

    assert_ok(sqlock_show(t->b[i], f->name, &row, &f->err));
    how.client_id = row->client_id;
    how.now = true;
    assert_ok(sqlock_break(t->b[i], f->name, &how, &f->err));
    sqlock_info_free(row, 1);
}

static void note_loss(void *context, sqlock_lock *lock, int code)
{
    struct told *told = context;

    (void)lock;
    atomic_store(&told->code, code);
    atomic_store(&told->refused,
                 sqlock_quorum_release(told->quorum, NULL, NULL));
    (void)atomic_fetch_add(&told->times, 1);
}

sqlock_acquire_options watched(struct told *told)
{
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;

    options.ttl_ms = SHORT_TTL_MS;
    options.auto_renew = true;
    options.on_lost = note_loss;
    options.lost_context = told;
    return options;
}
