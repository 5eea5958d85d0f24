/*
 * named.c - faults that neither the matrix nor a scene has: sessions that the
 * server ends since they are idle, and a restore that arrives late (F45, F62)
 */

#include "fault.h"
#include "support/server.h"

/* Return whether the server can limit the idle time of sessions: PostgreSQL can
 * since version 14. */
static bool has_idle_limit(void)
{
    return stage.fixture.database->bit == ON_MYSQL ||
           sql_integer(&stage.admin,
                       "SELECT count(*) FROM pg_settings"
                       " WHERE name = 'idle_session_timeout'") > 0;
}

static void set_idle_limit(bool is_short)
{
    if (stage.fixture.database->bit == ON_MYSQL)
        (void)sql_try(&stage.admin, NULL, "SET GLOBAL wait_timeout = %d",
                      is_short ? 1 : 28800);
    else
        (void)sql_try(&stage.admin, NULL,
                      is_short
                          ? "ALTER ROLE ALL SET idle_session_timeout = '300ms'"
                          : "ALTER ROLE ALL RESET idle_session_timeout");
}

static bool contains(const int64_t *ids, size_t count, int64_t id)
{
    for (size_t i = 0; i < count; i++)
        if (ids[i] == id)
            return true;
    return false;
}

/* The server ends an idle session of a holder: the renewal opens another one,
 * and succeeds. */
TEST_STOPPING(test_F45_sessions_ended_for_idleness_are_replaced, ON_SERVERS)
{
    sqlock_options options = stage_options();
    int64_t others[16];
    int64_t ids[16];
    size_t other_count = tap_connections(others, 16);
    size_t ended = 0;
    sqlock_registry *registry;
    sqlock_lock *lock;
    size_t count;
    int rc;

    if (!has_idle_limit())
        skip_or_fail("no idle_session_timeout on this server");
    options.ttl_ms = LONG_TTL_MS;
    set_idle_limit(true);
    registry = stage_registry(&options);
    lock = lock_obtain(registry, stage.names[2]);
    rc = sqlock_acquire(lock, 0, NULL, &stage.a.err);
    count = tap_connections(ids, 16);
    for (size_t i = 0; i < count; i++)
        if (!contains(others, other_count, ids[i]))
            ended += wait_until(!server_has_session(&stage.admin, ids[i]),
                                PATIENCE_MS);
    set_idle_limit(false);
    assert_lock_ok(rc, &stage.a.err);
    assert_int_equal(ended, 1); /* the pool's one connection */
    assert_lock_ok(sqlock_renew(lock, 0, &stage.a.err), &stage.a.err);
    lock_give(lock);
    registry_end(registry);
}

/* The statement that frees all locks after a restore reaches the server late,
 * when the call was made again, and B holds a lock: B's row does not change. */
TEST_ON(test_F62_a_late_restore_misses_the_next_owner, ON_SERVERS, 0)
{
    const struct proxy_plan plan = {.point = PROXY_BEFORE,
                                    .act = PROXY_LATE,
                                    .nth = 1,
                                    .containing = "NULL, HOLDER = NULL"};
    struct row row;
    int rc;

    assert_lock_ok(party_warm_up(&stage.a), &stage.a.err);
    proxy_arm(stage.proxy, &plan);
    do
        rc = sqlock_after_restore(stage.a.registry, NULL, &stage.a.err);
    while (rc == SQLOCK_EUNCERTAIN || rc == SQLOCK_EUNREACHABLE);
    assert_lock_ok(rc, &stage.a.err);
    assert_int_equal(proxy_times(stage.proxy), 1);
    assert_lock_ok(party_acquire(&stage.b, 0, 0), &stage.b.err);
    row = stage_row(0);
    proxy_heal(stage.proxy); /* now the statement arrives */
    assert_true(proxy_await_quiet(stage.proxy, PATIENCE_MS));
    assert_string_equal(stage_row(0).client, row.client);
    assert_true(stage_row(0).fence == row.fence);
    assert_lock_ok(party_release(&stage.b, 0), &stage.b.err);
}
