/*
 * again.c - see again.h
 */
#include "again.h"

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

void counted_close(struct counted *c)
{
    app_close(&c->app);
    proxy_close(c->proxy);
    lock_end(c->lock);
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
