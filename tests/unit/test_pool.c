/*
 * test_pool.c - which idle connection of a pool is taken, and how many are lent
 *
 * The connections are SQLite's, which needs no server.  Without that driver the
 * suite is empty.
 */
#include "unit.h"

#include <stdlib.h>
#include <unistd.h>

#ifdef SQLOCK_WITH_SQLITE

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "db/db.h"
#include "db/drivers.h"

#define CONNECTIONS 3

struct pooled {
    struct lk_db db;
    char path[64];
};

static struct lk_connection *take(struct pooled *pooled, uint64_t preferred)
{
    struct lk_connection *connection = NULL;
    const struct lk_wish wish = {
        .preferred = preferred,
        .wait_until_ns = sqlock_monotonic_ns() + PATIENCE_MS * LK_NS_PER_MS,
        .latest_ns = sqlock_monotonic_ns() + PATIENCE_MS * LK_NS_PER_MS,
    };
    sqlock_error err = {0};
    int rc = lk_pool_take_as(&pooled->db.pool, &wish, &connection, &err);

    assert_lock_ok(rc, &err);
    return connection;
}

static int open_pool(void **state)
{
    static struct pooled pooled;
    const struct lk_pool_options options = {
        .size = CONNECTIONS,
        .connect_timeout_ms = PATIENCE_MS,
        .statement_timeout_ms = PATIENCE_MS,
        .lock_timeout_ms = PATIENCE_MS,
    };
    struct lk_connection *taken[CONNECTIONS];
    char url[80];
    int fd;

    (void)snprintf(pooled.path, sizeof pooled.path, "/tmp/sqlock-pool.XXXXXX");
    fd = mkstemp(pooled.path);
    assert_int_not_equal(fd, -1);
    (void)close(fd);
    (void)snprintf(url, sizeof url, "sqlite:%s", pooled.path);
    assert_int_equal(lk_db_init(&pooled.db, url, &options, NULL), 0);
    for (int i = 0; i < CONNECTIONS; i++)
        taken[i] = take(&pooled, 0);
    for (int i = 0; i < CONNECTIONS; i++)
        lk_pool_give(&pooled.db.pool, taken[i]);
    *state = &pooled;
    return 0;
}

static int close_pool(void **state)
{
    struct pooled *pooled = *state;

    lk_db_clear(&pooled->db);
    (void)unlink(pooled->path);
    return 0;
}

static void test_the_connection_used_last_is_taken_first(void **state)
{
    struct pooled *pooled = *state;
    struct lk_connection *one = take(pooled, 0);
    struct lk_connection *other = take(pooled, 0);

    lk_pool_give(&pooled->db.pool, other);
    lk_pool_give(&pooled->db.pool, one);
    assert_ptr_equal(take(pooled, 0), one);
    assert_ptr_equal(take(pooled, 0), other);
    lk_pool_give(&pooled->db.pool, other);
    lk_pool_give(&pooled->db.pool, one);
}

static int borrow(struct pooled *pooled, int64_t deadline_ns,
                  struct lk_connection **out, sqlock_error *err)
{
    const struct lk_wish wish = {
        .wait_until_ns = deadline_ns,
        .latest_ns = lk_after_ms(deadline_ns, PATIENCE_MS),
        .is_lent = true,
    };

    return lk_pool_take_as(&pooled->db.pool, &wish, out, err);
}

/* While as many connections are lent as the pool's size, the pool has one more
 * for calls, which is never lent. */
static void test_calls_get_a_connection_when_all_are_lent(void **state)
{
    struct pooled *pooled = *state;
    int64_t deadline_ns = sqlock_monotonic_ns() + PATIENCE_MS * LK_NS_PER_MS;
    const struct lk_wish at_once = {.latest_ns = deadline_ns};
    struct lk_connection *lent[CONNECTIONS];
    struct lk_connection *other = NULL;
    struct lk_connection *more;
    sqlock_error err = {0};
    int rc;

    for (int i = 0; i < CONNECTIONS; i++) {
        rc = borrow(pooled, deadline_ns, &lent[i], &err);
        assert_lock_ok(rc, &err);
    }
    more = take(pooled, 0);
    rc = lk_pool_take_as(&pooled->db.pool, &at_once, &other, &err);
    assert_code(SQLOCK_ERESOURCE, rc, &err);
    lk_pool_give(&pooled->db.pool, more);
    rc = borrow(pooled, sqlock_monotonic_ns(), &other, &err);
    assert_code(SQLOCK_ERESOURCE, rc, &err);
    assert_ptr_equal(take(pooled, 0), more);
    lk_pool_discard(&pooled->db.pool, lent[0]);
    rc = borrow(pooled, sqlock_monotonic_ns(), &lent[0], &err);
    assert_code(SQLOCK_ERESOURCE, rc, &err);
    lk_pool_give(&pooled->db.pool, more);
    rc = borrow(pooled, deadline_ns, &lent[0], &err);
    assert_lock_ok(rc, &err);
    for (int i = 0; i < CONNECTIONS; i++)
        lk_pool_give(&pooled->db.pool, lent[i]);
}

/* A driver whose statements conflict, and which takes until late_ns to say that
 * a connection can be used again after that. */
static struct {
    unsigned executed;
    unsigned looked_at;
    int64_t late_ns;
} conflicts;

static bool is_alive_late(void *connection)
{
    (void)connection;
    /* at the return of the connection, and before the next attempt */
    if (conflicts.executed > 0 && ++conflicts.looked_at == 2)
        lk_sleep_until(conflicts.late_ns);
    return true;
}

static int conflict(void *connection, const sqlock_statement *statement,
                    const sqlock_value *parameters, size_t count,
                    int64_t deadline_ns, sqlock_result *result,
                    sqlock_error *err)
{
    (void)connection;
    (void)statement;
    (void)parameters;
    (void)count;
    (void)deadline_ns;
    (void)result;
    conflicts.executed++;
    return lk_error(err, SQLOCK_ERETRY, "a conflict");
}

/* The last attempt finds the time over: that is no database out of reach. */
static void test_conflicts_until_the_deadline_are_told(void **state)
{
    struct pooled *pooled = *state;
    const sqlock_driver *own = pooled->db.driver;
    sqlock_driver other = *own;
    static char text[] = "SELECT 1";
    struct lk_statement statement = {.text = text};
    struct lk_arguments arguments = {0};
    sqlock_result result = {0};
    sqlock_error err = {0};
    struct lk_run run = {.statement = &statement, .arguments = &arguments};
    int rc;

    other.is_alive = is_alive_late;
    other.execute = conflict;
    memset(&conflicts, 0, sizeof conflicts);
    run.deadline_ns = lk_after_ms(sqlock_monotonic_ns(), 500);
    conflicts.late_ns = run.deadline_ns;
    pooled->db.driver = &other;
    rc = lk_db_run(&pooled->db, &run, &result, &err);
    pooled->db.driver = own;
    assert_code(SQLOCK_EBUSY, rc, &err);
    assert_string_equal(err.message, "a conflict");
}

static void test_what_could_not_be_set_up_may_be_cleared(void **state)
{
    const struct lk_pool_options options = {.size = 1};
    sqlock_error err = {0};
    struct lk_db db;
    int rc = lk_db_init(&db, "sqlite:?no_such=1", &options, &err);

    (void)state;
    assert_code(SQLOCK_EINVAL, rc, &err);
    assert_null(db.driver);
    lk_db_clear(&db);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(
        test_calls_get_a_connection_when_all_are_lent, open_pool, close_pool),
    cmocka_unit_test_setup_teardown(
        test_the_connection_used_last_is_taken_first, open_pool, close_pool),
    cmocka_unit_test_setup_teardown(test_conflicts_until_the_deadline_are_told,
                                    open_pool, close_pool),
    cmocka_unit_test(test_what_could_not_be_set_up_may_be_cleared),
};
const struct suite suite_pool = SUITE("pool", tests);

#else

const struct suite suite_pool = {"pool", NULL, 0};

#endif
