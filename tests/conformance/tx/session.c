/*
 * session.c - a session of a test: an application with its own connection, and
 * the transaction that we joined or began on it
 */
#include "suite.h"

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
    /* Only an administrator sees it in MySQL, in a table that is made anew when
     * nobody has looked at it for 100 ms: other lanes do, at random times. */
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

bool keeps_its_snapshot(struct fixture *f)
{
    char value[64];

    if (f->database->bit != ON_MYSQL)
        return f->database->bit == ON_POSTGRES;
    return sql_text(&f->sql, value, sizeof value,
                    "SHOW VARIABLES WHERE Variable_name ="
                    " 'innodb_snapshot_isolation' AND Value = 'ON'");
}
