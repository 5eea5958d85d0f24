/*
 * again.c - see again.h
 */
#include "again.h"

#include <stdio.h>

void counted_open(struct fixture *f, struct counted *c)
{
    char url[1024];

    *c = (struct counted){.f = f, .proxy = proxy_open(f->database, f->url)};
    assert_non_null(c->proxy);
    app_open(&c->app, f->database, proxy_url(c->proxy, url, f->url));
    c->lock = lock_obtain(f->a, f->name);
    lock_take(c->lock, 0);
}

void counted_open_own(struct fixture *f, struct counted *c)
{
    if (database_is_pooled(f->database))
        skip_or_fail("a pooler shares the sessions");
    counted_open(f, c);
}

void counted_open_mariadb(struct fixture *f, struct counted *c)
{
    sqlock_tx *tx;

    if (fixture_is_oracles(f))
        skip();
    counted_open_own(f, c);
    tx = tx_begin(f);
    assert_ok(sqlock_tx_guard(tx, c->lock, &f->err));
    assert_ok(sqlock_tx_rollback(tx, &f->err));
}

void counted_open_known(struct fixture *f, struct counted *c)
{
    counted_open_mariadb(f, c);
    work_often(f, &c->app, c->lock, 3);
}

void counted_close(struct counted *c)
{
    app_close(&c->app);
    proxy_close(c->proxy);
    lock_end(c->lock);
}

long long prepared_by_name(struct app *app)
{
    return app_integer(app, "SELECT VARIABLE_VALUE FROM "
                            "information_schema.SESSION_STATUS "
                            "WHERE VARIABLE_NAME = 'COM_PREPARE_SQL'");
}

sqlock_lock *take_other(struct fixture *f, sqlock_registry *registry)
{
    sqlock_lock *other;
    char name[96];

    (void)snprintf(name, sizeof name, "%s/other", f->name);
    other = lock_obtain(registry, name);
    lock_take(other, 0);
    return other;
}

void take_anew(struct counted *c)
{
    struct fixture *f = c->f;

    assert_fails(SQLOCK_ELOST, sqlock_release(c->lock, &f->err));
    lock_take(c->lock, 0);
}

unsigned trips(struct counted *c)
{
    unsigned before = c->before;

    c->before = proxy_requests(c->proxy);
    return c->before - before;
}

void change(struct fixture *f, struct app *app)
{
    app_run(app, "UPDATE %s SET a = a + 1 WHERE id = 1", stock_name(f));
}

sqlock_tx *tx_guarded(struct counted *c)
{
    struct fixture *f = c->f;
    sqlock_tx *tx = tx_adopt(f, &c->app);

    assert_ok(sqlock_tx_guard(tx, c->lock, &f->err));
    return tx;
}

void commit_guarded(struct counted *c, sqlock_tx *tx, bool is_lost)
{
    struct fixture *f = c->f;

    if (is_lost)
        assert_fails(SQLOCK_ELOST, sqlock_tx_commit(tx, &f->err));
    else
        assert_ok(sqlock_tx_commit(tx, &f->err));
}

void work(struct fixture *f, struct app *app, sqlock_lock *lock)
{
    sqlock_tx *tx = tx_adopt(f, app);

    assert_ok(sqlock_tx_guard(tx, lock, &f->err));
    change(f, app);
    assert_ok(sqlock_tx_commit(tx, &f->err));
}

void work_often(struct fixture *f, struct app *app, sqlock_lock *lock,
                unsigned times)
{
    for (unsigned i = 0; i < times; i++)
        work(f, app, lock);
}

void expect_trips(struct counted *c, unsigned adopt, unsigned guard,
                  unsigned commit)
{
    struct fixture *f = c->f;
    sqlock_tx *tx;

    (void)trips(c);
    tx = tx_adopt(f, &c->app);
    assert_int_equal(trips(c), adopt);
    assert_ok(sqlock_tx_guard(tx, c->lock, &f->err));
    assert_int_equal(trips(c), guard);
    change(f, &c->app);
    (void)trips(c);
    assert_ok(sqlock_tx_commit(tx, &f->err));
    assert_int_equal(trips(c), commit);
}
