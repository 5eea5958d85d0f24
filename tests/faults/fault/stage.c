/*
 * stage.c - the stage of fault.h: lock table, parties and histories
 *
 * Party A connects through the tap and, to a server, through the proxy.  Party
 * B and the connections by which tests read the table use neither.
 */
#include "fault.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "sqlock/many.h"
#include "support/server.h"

struct stage stage;

sqlock_options stage_options(void)
{
    sqlock_options options = fixture_options(&stage.fixture);

    options.ttl_ms = TTL_MS;
    options.statement_timeout_ms = STATEMENT_MS;
    options.connect_timeout_ms = CONNECT_MS;
    options.renew_period_ms = PERIOD_MS;
    options.pool_size = 1;
    return options;
}

sqlock_registry *stage_registry(const sqlock_options *options)
{
    return fixture_registry_at(&stage.fixture, stage.url, options);
}

int stage_open(const struct database *database)
{
    char url[1024];

    memset(&stage, 0, sizeof stage);
    if (fixture_open(&stage.fixture, database, SQLOCK_LAYOUT_SQLOCK) < 0)
        return -1;
    (void)snprintf(url, sizeof url, "%s", stage.fixture.url);
    if (database->bit != ON_SQLITE) {
        stage.proxy = proxy_open(database, stage.fixture.url);
        if (stage.proxy == NULL ||
            sql_open(&stage.admin, database, database_admin_url(database)) < 0)
            return -1;
        (void)proxy_url(stage.proxy, url, stage.fixture.url);
    }
    tap_install();
    (void)tap_url(stage.url, url);
    stage.a.who = PARTY_A;
    stage.a.ttl_ms = TTL_MS;
    stage.b.who = PARTY_B;
    stage.b.ttl_ms = LONG_TTL_MS;
    stage.b.registry = stage.fixture.b;
    return 0;
}

void stage_close(void)
{
    fault_heal();
    if (stage.proxy != NULL)
        proxy_heal(stage.proxy);
    sql_close(&stage.admin);
    fixture_close(&stage.fixture);
    proxy_close(stage.proxy);
}

static void open_locks(struct party *party)
{
    for (size_t i = 0; i < LOCKS; i++)
        party->locks[i] = lock_obtain(party->registry, stage.names[i]);
    memset(&party->err, 0, sizeof party->err);
}

/* Release and drop all locks of a party that the test left open. */
static void close_locks(struct party *party)
{
    for (size_t i = 0; i < LOCKS; i++) {
        if (party->locks[i] == NULL)
            continue;
        while (sqlock_hold_count(party->locks[i]) > 0)
            if (sqlock_release(party->locks[i], NULL) == SQLOCK_EOWNER)
                break;
        (void)sqlock_drop(party->locks[i], NULL);
        party->locks[i] = NULL;
    }
}

int stage_begin(void **state)
{
    sqlock_options options = stage_options();

    (void)state;
    (void)alarm(TEST_SECONDS * SLOWNESS * check_scale(1, 3));
    fixture_next(&stage.fixture);
    for (size_t i = 0; i < LOCKS; i++) {
        (void)snprintf(stage.names[i], sizeof stage.names[i], "%s/%zu",
                       stage.fixture.name, i);
        history_init(&stage.histories[i]);
    }
    /* a busy machine may need several attempts within these timeouts */
    assert_becomes_true(sqlock_registry_open(&stage.a.registry, stage.url,
                                             &options, &stage.a.err) == 0,
                        PATIENCE_MS);
    open_locks(&stage.a);
    open_locks(&stage.b);
    return 0;
}

int stage_end(void **state)
{
    (void)state;
    server_go_on();
    fault_heal();
    if (stage.proxy != NULL)
        proxy_heal(stage.proxy);
    close_locks(&stage.a);
    close_locks(&stage.b);
    (void)sqlock_registry_close(stage.a.registry, NULL);
    for (size_t i = 0; i < LOCKS; i++)
        history_clear(&stage.histories[i]);
    (void)alarm(0);
    return 0;
}

void stage_need_stopping(void)
{
    if (!server_can_stop(stage.fixture.database))
        skip_or_fail("the server is not ours to stop");
    if (fixture_gives(&stage.fixture).row_locks == SQLOCK_SUPPORT_REFUSED)
        skip_or_fail("a stopped node is put out of its cluster");
}

/* ----------------------------------------------------------- the parties -- */

static size_t first_of(int which)
{
    return which == ALL_LOCKS ? 0 : (size_t)which;
}

static size_t end_of(int which)
{
    return which == ALL_LOCKS ? LOCKS : (size_t)which + 1;
}

/* Return until when the party may rely on the lease: not later than the lease's
 * deadline, since the clock is read first. */
static int64_t belief_end(sqlock_lock *lock)
{
    int64_t now = lk_boottime_ns();

    return now + sqlock_remaining_ms(lock) * 1000000;
}

int party_acquire(struct party *party, int which, int64_t wait_ms)
{
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    int64_t asked = lk_boottime_ns();
    int rc;

    options.ttl_ms = party->ttl_ms;
    if (which == ALL_LOCKS)
        rc = sqlock_acquire_many(party->locks, LOCKS, wait_ms, &options,
                                 party->results, &party->err);
    else
        rc =
            sqlock_acquire(party->locks[which], wait_ms, &options, &party->err);
    for (size_t i = first_of(which); rc == 0 && i < end_of(which); i++)
        history_granted(&stage.histories[i], party->who, asked,
                        belief_end(party->locks[i]),
                        sqlock_token(party->locks[i]));
    return rc;
}

int party_renew(struct party *party, int which)
{
    int64_t asked = lk_boottime_ns();
    int rc;

    if (which == ALL_LOCKS)
        rc =
            sqlock_renew_many(party->locks, LOCKS, party->results, &party->err);
    else
        rc = sqlock_renew(party->locks[which], 0, &party->err);
    for (size_t i = first_of(which); rc == 0 && i < end_of(which); i++)
        history_renewed(&stage.histories[i], party->who, asked,
                        belief_end(party->locks[i]));
    return rc;
}

int party_release(struct party *party, int which)
{
    for (size_t i = first_of(which); i < end_of(which); i++)
        history_ended(&stage.histories[i], party->who);
    if (which == ALL_LOCKS)
        return sqlock_release_many(party->locks, LOCKS, party->results,
                                   &party->err);
    return sqlock_release(party->locks[which], &party->err);
}

/* Tell whether a result only says that a call was late: it took longer than
 * STATEMENT_MS, as any may on a busy machine. */
static bool is_late(int rc)
{
    return rc == SQLOCK_EUNCERTAIN || rc == SQLOCK_EUNREACHABLE ||
           rc == SQLOCK_ETIMEDOUT;
}

int party_ask(struct party *party, int which)
{
    int64_t until = check_deadline_ns(PATIENCE_MS);
    int rc;

    do
        rc = party_acquire(party, which, 0);
    while (is_late(rc) && check_pause(until));
    return rc;
}

/* EBUSY after a late call: what it left is not yet given back. */
int party_repeat(int (*calls)(struct party *, int which), struct party *party,
                 int which)
{
    int64_t until = check_deadline_ns(PATIENCE_MS);
    bool was_late = false;
    int rc;

    do {
        rc = calls(party, which);
        was_late = was_late || is_late(rc);
    } while ((is_late(rc) || (was_late && rc == SQLOCK_EBUSY)) &&
             check_pause(until));
    return rc;
}

/* On failure, nothing is left held. */
static int turn(struct party *party, int which)
{
    int rc = party_acquire(party, which, 0);

    if (rc < 0)
        return rc;
    rc = party_renew(party, which);
    if (rc == 0)
        return party_release(party, which);
    (void)party_release(party, which);
    return rc;
}

/* A statement is prepared when it is sent again.  The first claim of each lock
 * does not know the row; later ones, of a row that this process left free, are
 * another statement. */
int party_warm_up(struct party *party)
{
    static const int turns[] = {0, 0, 0, 1, ALL_LOCKS, ALL_LOCKS};
    int rc = 0;

    for (size_t i = 0; i < sizeof turns / sizeof *turns && rc == 0; i++)
        rc = party_repeat(turn, party, turns[i]);
    return rc;
}

/* ------------------------------------------------------------- the table -- */

struct row stage_row(size_t i)
{
    return fixture_row(&stage.fixture, stage.names[i]);
}

void stage_leave_expired(size_t i)
{
    struct row row = stage_row(i);
    char began[160];
    char ended[160];

    assert_true(row.exists);
    assert_int_equal(
        sql_run(&stage.fixture.sql,
                "UPDATE %s SET CLIENT_ID = "
                "'00000000-dead-4000-8000-000000000000', CREATED_DATE = %s, "
                "EXPIRED_AFTER = %s WHERE LOCK_KEY = '%s'",
                stage.fixture.table,
                fixture_time(&stage.fixture, began, -100000),
                fixture_time(&stage.fixture, ended, -50000), row.key),
        1);
}

static int run_integer(struct sql *sql, int64_t *out, const char *text)
{
    sqlock_statement statement = {.text = text};
    sqlock_result result = {0};
    int rc = sql->driver->execute(sql->connection, &statement, NULL, 0,
                                  check_deadline_ns(5000), &result, NULL);

    if (rc == 0 && result.rows == 1 && result.cells[0].type == SQLOCK_INT64)
        *out = result.cells[0].integer;
    else
        rc = -1;
    sqlock_result_clear(&result);
    return rc;
}

void end_session_of(void *context, int port)
{
    const bool on_postgres = stage.admin.database->bit == ON_POSTGRES;
    char find[160];
    char end[80];
    int64_t id = 0;

    (void)context;
    (void)snprintf(find, sizeof find,
                   on_postgres ? "SELECT pid FROM pg_stat_activity"
                                 " WHERE client_port = %d"
                               : "SELECT id FROM information_schema.processlist"
                                 " WHERE host = '127.0.0.1:%d'",
                   port);
    if (run_integer(&stage.admin, &id, find) < 0)
        return;
    (void)snprintf(end, sizeof end,
                   on_postgres ? "SELECT pg_terminate_backend(%lld)"
                               : "KILL %lld",
                   (long long)id);
    (void)sql_try(&stage.admin, NULL, "%s", end);
    if (wait_until(run_integer(&stage.admin, &id, find) < 0, 5000))
        atomic_fetch_add(&stage.sessions_ended, 1);
}
