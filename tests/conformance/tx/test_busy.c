/*
 * test_busy.c - a lock that is refused leaves the transaction as it was: it
 * keeps no row or gap locked that others would wait for, and undoes nothing
 *
 * Under REPEATABLE READ, InnoDB locks gaps, too: a search that skips a locked
 * row goes on, and would lock the gap behind that row.
 */
#include "suite.h"

#include <stdio.h>
#include <string.h>

#define NEIGHBOURS 8

static void open_session(struct fixture *f, struct session *s)
{
    app_open(&s->app, f->database, f->url);
    app_begin_at(&s->app, "REPEATABLE READ");
    assert_ok(sqlock_tx_adopt(&s->tx, f->a, s->app.native, &f->err));
}

/* Make a name of this test whose key follows that of `name` closely: the first
 * two digits are equal.  With the few rows that there are, no other row is
 * between the two.  *serial counts up from call to call. */
static void name_behind(const struct fixture *f, const char *name, char out[96],
                        unsigned *serial)
{
    char key[SQLOCK_KEY_SIZE];
    char other[SQLOCK_KEY_SIZE];

    assert_int_equal(sqlock_key_of(key, name, SQLOCK_KEY_CURRENT, NULL), 0);
    do {
        (void)snprintf(out, 96, "%s/behind/%u", f->name, ++*serial);
        assert_int_equal(sqlock_key_of(other, out, SQLOCK_KEY_CURRENT, NULL),
                         0);
    } while (strncmp(key, other, 2) != 0 || strcmp(key, other) > 0);
}

/* Assert that rows can be inserted behind that of `name`, for leases and for
 * names. */
static void assert_no_gap_is_locked(struct fixture *f, const char *name)
{
    unsigned serial = 0;

    for (unsigned i = 0; i < NEIGHBOURS; i++) {
        char behind[96];
        const char *text = behind;
        sqlock_lock *lock;
        sqlock_tx *tx;

        name_behind(f, name, behind, &serial);
        lock = lock_obtain(f->b, behind);
        lock_take(lock, 0);
        lock_end(lock);
        assert_ok(sqlock_tx_begin(&tx, f->b, &f->err));
        assert_ok(sqlock_tx_lock(tx, &text, 1, 0, false, NULL, &f->err));
        assert_ok(sqlock_tx_rollback(tx, &f->err));
    }
}

TEST_OF_ROWS(test_a_busy_name_locks_no_gap, ON_SERVERS, IN_SQLOCK)
{
    const char *name = f->name;
    struct session a;
    struct session b;

    open_session(f, &a);
    assert_ok(lock_one(&a, name, 0, &f->err));
    open_session(f, &b);
    assert_fails(SQLOCK_EBUSY, lock_one(&b, name, 0, &f->err));
    assert_fails(SQLOCK_EBUSY,
                 sqlock_tx_lock(b.tx, &name, 1, 0, true, NULL, &f->err));
    assert_fails(SQLOCK_ETIMEDOUT, lock_one(&b, name, 1100, &f->err));
    assert_no_gap_is_locked(f, name);
    sessions_close(&a, &b);
}

TEST_OF_ROWS(test_a_busy_lease_locks_no_gap_for_its_guard, ON_MYSQL, IN_ALL)
{
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    struct sql dba;
    struct session s;

    lock_take(lock, 0);
    fixture_lock_row(f, &dba, lock);
    open_session(f, &s);
    assert_fails(SQLOCK_EBUSY, sqlock_tx_guard(s.tx, lock, &f->err));
    assert_no_gap_is_locked(f, f->name);
    session_close(&s);
    fixture_unlock_row(&dba);
    lock_end(lock);
}

static bool rolls_back_on_timeout(struct fixture *f)
{
    return f->database->bit == ON_MYSQL &&
           sql_integer(&f->sql, "SELECT @@innodb_rollback_on_timeout") != 0;
}

/* EBUSY undoes nothing that the transaction has written.  A server with
 * innodb_rollback_on_timeout rolls back the whole transaction: then each call
 * returns ERETRY. */
TEST_OF_ROWS(test_F21_busy_undoes_nothing_in_silence, ON_SERVERS, IN_SQLOCK)
{
    const char *name = f->name;
    struct session a;
    struct session b;
    int expected = rolls_back_on_timeout(f) ? SQLOCK_ERETRY : SQLOCK_EBUSY;
    int rc;

    open_session(f, &a);
    assert_ok(lock_one(&a, name, 0, &f->err));
    open_session(f, &b);
    app_run(&b.app, "UPDATE %s SET a = 5 WHERE id = 1", stock_name(f));
    rc = lock_one(&b, name, 0, &f->err);
    assert_code(expected, rc, &f->err);
    if (expected == SQLOCK_ERETRY) {
        assert_false(app_in_transaction(&b.app));
        assert_fails(SQLOCK_ERETRY, sqlock_tx_execute(b.tx, "SELECT 1", NULL, 0,
                                                      NULL, &f->err));
        assert_fails(SQLOCK_ERETRY, sqlock_tx_commit(b.tx, &f->err));
    } else {
        assert_true(app_in_transaction(&b.app));
        assert_ok(sqlock_tx_commit(b.tx, &f->err));
    }
    b.tx = NULL;
    assert_int_equal(stock_value(f, 1), expected == SQLOCK_EBUSY ? 5 : 100);
    sessions_close(&a, &b);
}
