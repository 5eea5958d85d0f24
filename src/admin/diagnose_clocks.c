/*
 * diagnose_clocks.c - the clock of the server, and those of all hosts to which
 * a failover may lead
 *
 * Only the database's clock decides when a lease ends.  On a promoted server
 * whose clock is ahead, leases end early; on one whose clock is behind, late.
 */
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "admin/diagnose.h"

/* The clocks that are compared. */
struct clocks {
    struct lk_checks *checks;
    struct lk_db *db;
    int64_t margin_us;
};

/* A clock, as this machine's shows it. */
struct offset {
    int64_t us;
    int64_t known_us; /* no better than the query's round trip takes */
};

static int64_t host_now_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int read_clock(const struct clocks *clocks,
                      struct lk_connection *connection, int64_t deadline_ns,
                      struct offset *out, sqlock_error *err)
{
    const struct lk_sql *server =
        lk_sql_find(clocks->db->driver->dialect->statements, SQLOCK_SQL_SERVER,
                    LK_SQLOCK_QUEUE);
    int64_t start_us = host_now_us();
    sqlock_result result = {0};
    int64_t end_us;
    int rc = lk_db_ask(clocks->db, connection, server->text, deadline_ns,
                       &result, err);

    end_us = host_now_us();
    if (rc == 0 && (result.rows != 1 || result.columns < 3))
        rc = lk_error(err, SQLOCK_EDATABASE,
                      "the server's answer to the query for its version and "
                      "clock is incomplete");
    if (rc == 0) {
        out->us = result.cells[1].integer - (start_us + end_us) / 2;
        out->known_us = end_us - start_us;
    }
    sqlock_result_clear(&result);
    return rc;
}

/* As read_clock(), on a session of its own. */
static int read_clock_at(const struct clocks *clocks, const struct lk_url *url,
                         int64_t deadline_ns, struct offset *out,
                         sqlock_error *err)
{
    const sqlock_driver *driver = clocks->db->driver;
    uint32_t limit_ms = clocks->db->pool.options.statement_timeout_ms;
    const sqlock_connect how = {
        .deadline_ns = deadline_ns,
        .dog = &clocks->db->dog,
        .statement_timeout_ms = lk_server_timeout_ms(limit_ms),
        .lock_timeout_ms = limit_ms,
    };
    struct lk_connection connection = {.state =
                                           calloc(1, driver->connection_bytes)};
    int rc;

    if (connection.state == NULL)
        return lk_error_nomem(err);
    rc = driver->open(connection.state, url, &how, err);
    if (rc == 0)
        rc = read_clock(clocks, &connection, deadline_ns, out, err);
    driver->close(connection.state);
    free(connection.state);
    return rc;
}

static bool are_apart(const struct clocks *clocks, int64_t apart_us,
                      int64_t known_us)
{
    return llabs(apart_us) > clocks->margin_us + known_us;
}

/* Compare the clock of a host of the URL with that of the server in use. */
static void compare(const struct clocks *clocks, size_t index,
                    const struct offset *used, int64_t deadline_ns)
{
    struct lk_url url;
    struct offset offset = {0};
    sqlock_error err = {0};
    char *host;
    char *port;
    int rc = SQLOCK_ENOMEM;

    if (lk_url_at_host(&url, &clocks->db->url, index, &host, &port))
        rc = read_clock_at(clocks, &url, deadline_ns, &offset, &err);
    else
        (void)lk_error_nomem(&err);
    if (rc < 0)
        lk_check(clocks->checks, "clock", SQLOCK_WARNING,
                 "see that it runs, and that its address is right: a failover "
                 "may lead there",
                 "host %zu of the URL, %s, does not tell its clock: %s",
                 index + 1, host != NULL ? host : "", err.message);
    else if (are_apart(clocks, offset.us - used->us,
                       offset.known_us + used->known_us))
        lk_check(clocks->checks, "clock", SQLOCK_WARNING,
                 "synchronize the clocks of all hosts (NTP): after a failover "
                 "to one whose clock is ahead, leases end too early",
                 "the clock of host %zu of the URL, %s, differs by %+.3f s "
                 "from that of the server in use",
                 index + 1, host, (double)(offset.us - used->us) / 1e6);
    else
        lk_check(clocks->checks, "clock", SQLOCK_FINE, NULL,
                 "the clock of host %zu of the URL, %s, differs by %+.3f s "
                 "from that of the server in use",
                 index + 1, host, (double)(offset.us - used->us) / 1e6);
    free(host);
    free(port);
}

int lk_diagnose_clocks(struct lk_checks *checks, struct lk_db *db,
                       struct lk_connection *connection, uint32_t margin_ms,
                       int64_t deadline_ns, sqlock_error *err)
{
    const struct clocks clocks = {checks, db, margin_ms * INT64_C(1000)};
    size_t hosts = lk_url_hosts(&db->url);
    struct offset offset = {0};
    int rc = read_clock(&clocks, connection, deadline_ns, &offset, err);

    if (rc < 0)
        lk_check(checks, "clock", SQLOCK_FAILURE, NULL, "%s", err->message);
    else if (are_apart(&clocks, offset.us, offset.known_us))
        lk_check(checks, "clock", SQLOCK_WARNING,
                 "synchronize the clocks of all machines (NTP): sqlock uses "
                 "only the database's clock, but a step of that clock ends "
                 "leases, and Spring peers use their own clocks",
                 "the database's clock differs by %+.3f s from this machine's",
                 (double)offset.us / 1e6);
    else
        lk_check(checks, "clock", SQLOCK_FINE, NULL,
                 "the database's clock differs by %+.3f s from this machine's",
                 (double)offset.us / 1e6);
    for (size_t i = 0; rc == 0 && hosts > 1 && i < hosts; i++) {
        int64_t now = sqlock_monotonic_ns();

        compare(&clocks, i, &offset,
                now + (deadline_ns - now) / (int64_t)(2 * (hosts - i)));
    }
    return rc;
}
