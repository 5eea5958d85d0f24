/*
 * session.c - a session of a test: an application with its own connection, and
 * the transaction that the library joined or began on it
 */
#include "suite.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/random.h"

void session_open(struct fixture *f, struct session *s, const char *begin)
{
    app_open(&s->app, f->database, f->url);
    if (begin != NULL)
        app_run(&s->app, "%s", begin);
    assert_ok(sqlock_tx_adopt(&s->tx, f->a, s->app.native, &f->err));
}

void session_close(struct session *s)
{
    (void)sqlock_tx_rollback(s->tx, NULL);
    app_close(&s->app);
}

void session_end(struct fixture *f, struct session *s, int code,
                 const char *file, int line)
{
    int rc = sqlock_tx_commit(s->tx, &f->err);

    s->tx = NULL;
    check_code(code, rc, &f->err, file, line);
}

void sessions_open(struct fixture *f, struct session *a, struct session *b)
{
    session_open(f, a, NULL);
    session_open(f, b, NULL);
}

void sessions_close(struct session *a, struct session *b)
{
    session_close(a);
    session_close(b);
}

sqlock_tx *tx_begin(struct fixture *f)
{
    sqlock_tx *tx = NULL;

    assert_ok(sqlock_tx_begin(&tx, f->a, &f->err));
    return tx;
}

sqlock_tx *tx_adopt(struct fixture *f, struct app *app)
{
    sqlock_tx *tx = NULL;

    assert_ok(sqlock_tx_adopt(&tx, f->a, app->native, &f->err));
    return tx;
}

int lock_one(struct session *s, const char *name, int64_t wait_ms,
             sqlock_error *err)
{
    return sqlock_tx_lock(s->tx, &name, 1, wait_ms, false, NULL, err);
}

int session_wait(struct worker *worker)
{
    struct waiter *waiter = worker->context;

    waiter->rc =
        lock_one(waiter->session, waiter->name, waiter->wait_ms, &waiter->err);
    return 0;
}

bool session_is_waiting(struct fixture *f, struct session *s)
{
    long long id = app_session(&s->app);
    struct sql admin;
    bool waits;

    if (f->database->bit == ON_POSTGRES)
        return sql_integer(&f->sql,
                           "SELECT count(*) FROM pg_locks WHERE NOT granted "
                           "AND pid = %lld",
                           id) > 0;
    /* In MySQL only an administrator sees the wait, in innodb_trx.  InnoDB
     * updates that table only if nobody has read it for 100 ms.  Other lanes
     * read it, too: so pause for a random time that is longer. */
    lk_sleep_until(sqlock_monotonic_ns() +
                   lk_random_between(120, 500) * LK_NS_PER_MS);
    assert_int_equal(
        sql_open(&admin, f->database, database_admin_url(f->database)), 0);
    waits = sql_integer(&admin,
                        "SELECT count(*) FROM information_schema.innodb_trx "
                        "WHERE trx_state = 'LOCK WAIT' "
                        "AND trx_mysql_thread_id = %lld",
                        id) > 0;
    sql_close(&admin);
    return waits;
}

void settings_compare(struct app *app, char *before)
{
    char *after = app_settings(app);
    char *rest_before = NULL;
    char *rest_after = NULL;
    const char *one = strtok_r(before, "\n", &rest_before);
    const char *other = strtok_r(after, "\n", &rest_after);

    for (; one != NULL && other != NULL;
         one = strtok_r(NULL, "\n", &rest_before),
         other = strtok_r(NULL, "\n", &rest_after))
        assert_string_equal(one, other);
    assert_true(one == NULL && other == NULL);
    free(before);
    free(after);
}
