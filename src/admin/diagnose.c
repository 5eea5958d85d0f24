/*
 * diagnose.c - the checks that a DBA should run before relying on locks
 *
 * Each promise of sqlock.h rests on something that is checked here.  The rules
 * about the server's settings are in sql/DATABASE/doctor.sql; the rest is tried
 * out in the same way on every database.
 */
#include <stddef.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "db/columns.h"
#include "db/db.h"
#include "db/transaction.h"
#include "admin/diagnose.h"
#include "lease/layout.h"
#include "lease/options.h"

#define PROBE_REGION "sqlock-doctor"
#define PROBE_NAME "probe"
#define PROBE_TTL_MS 10000
#define PROBE_WAIT_MS 5000 /* for another doctor to finish */

/* The database under test, and the checks made so far. */
struct subject {
    const char *url;
    sqlock_options options;
    struct lk_table table;
    struct lk_db db;
    int64_t deadline_ns;
    struct lk_connection *connection;
    sqlock_description description;
    sqlock_layout layout;
    struct lk_checks checks;
};

/* --- the connection --- */

static const char *remedy_of(int rc)
{
    switch (rc) {
    case SQLOCK_EACCESS:
        return "check the user, its password, and whether the server lets it "
               "in from here";
    case SQLOCK_ERESOURCE:
        return "make room for what is used up, and try again";
    default:
        return "check the URL, and that the server runs and can be reached "
               "from here";
    }
}

/* Take the session under test. */
static int take_session(struct subject *subject, sqlock_error *err)
{
    int rc;

    rc = lk_db_not_applied(lk_pool_take(&subject->db.pool, subject->deadline_ns,
                                        &subject->connection, err),
                           err);
    if (rc < 0)
        lk_check(&subject->checks, "connection", SQLOCK_FAILURE, remedy_of(rc),
                 "%s", err->message);
    else
        subject->db.driver->describe(subject->connection->state,
                                     &subject->description);
    return rc;
}

/* It is given back to the pool: where there is no room for a second session,
 * because of a limit of the server or of this process, a check would wait for
 * one until the deadline. */
static int connect_to(struct subject *subject, sqlock_error *err)
{
    int64_t start_ns = sqlock_monotonic_ns();
    int rc = take_session(subject, err);

    if (rc < 0)
        return rc;
    lk_check(&subject->checks, "connection", SQLOCK_FINE, NULL,
             "%s, by %s, open after %.1f ms", subject->description.server,
             subject->description.client,
             (double)(sqlock_monotonic_ns() - start_ns) / LK_NS_PER_MS);
    lk_pool_return(&subject->db.pool, subject->connection);
    return 0;
}

/* --- poolers between client and server --- */

static int64_t session_number(struct subject *subject,
                              struct lk_connection *connection)
{
    sqlock_result result = {0};
    int64_t number = 0;
    int rc = lk_db_ask(&subject->db, connection,
                       subject->db.driver->dialect->session,
                       subject->deadline_ns, &result, NULL);

    if (rc == 0 && result.rows == 1 && result.cells[0].type == SQLOCK_INT64)
        number = result.cells[0].integer;
    sqlock_result_clear(&result);
    return number;
}

/* Whether our session was moved. */
struct move {
    int64_t before; /* the server's session number; 0: not known */
    int64_t after;
};

/* Find out whether a pooler moves sessions between server connections.  Such a
 * pooler gives the server connection that was used last to the client that asks
 * next.  So a second session begins a transaction, which takes that connection,
 * and the session under test then finds itself on a different one.  If the
 * pooler gives them by turns, this happens after the second session has used
 * one more. */
static struct move try_to_move(struct subject *subject, bool by_turns)
{
    struct lk_pool *pool = &subject->db.pool;
    struct lk_transaction other = {0};
    struct lk_connection *second;
    struct move move = {0};

    move.before = session_number(subject, subject->connection);
    if (lk_pool_take(pool, subject->deadline_ns, &second, NULL) < 0)
        return (struct move){0};
    if (by_turns)
        (void)session_number(subject, second);
    lk_pool_return(pool, second);
    if (lk_transaction_begin(&other, &subject->db, false, subject->deadline_ns,
                             NULL) < 0)
        return (struct move){0};
    (void)session_number(subject, other.connection);
    move.after = session_number(subject, subject->connection);
    lk_transaction_rollback(&other, subject->deadline_ns);
    return move;
}

static void look_for_pooler(struct subject *subject)
{
    struct move move = {0};

    if (subject->db.driver->dialect->session == NULL)
        return;
    for (int i = 0; i < 4 && move.before == move.after; i++)
        move = try_to_move(subject, i % 2 == 1);
    if (move.before == 0 || move.after == 0)
        lk_check(&subject->checks, "pooler", SQLOCK_WARNING,
                 "allow sqlock at least two connections to the server, and run "
                 "doctor again",
                 "unknown: a second connection could not be opened");
    else if (move.before != move.after)
        lk_check(
            &subject->checks, "pooler", SQLOCK_FAILURE,
            "connect to the server directly, or make the pooler keep each "
            "session on one server connection (PgBouncer: pool_mode = session)",
            "there is a pooler, and it moves our session from one server "
            "connection to another");
    else if (move.before != subject->description.connection_id)
        lk_check(&subject->checks, "pooler", SQLOCK_WARNING,
                 "make sure that it keeps each session on one server "
                 "connection, also when it is busy",
                 "there is a pooler or proxy; it kept our session on one "
                 "server connection");
    else
        lk_check(&subject->checks, "pooler", SQLOCK_FINE, NULL,
                 "there is no pooler or proxy");
}

/* --- the table --- */

/* Report which peers may share a table of this layout. */
static void report_layout(struct subject *subject)
{
    static const struct {
        sqlock_severity severity;
        const char *advice, *found;
    } layouts[SQLOCK_LAYOUTS] = {
        [SQLOCK_LAYOUT_SQLOCK] =
            {SQLOCK_FINE, NULL,
             "sqlock's own layout: Spring Integration 7 may share it, earlier "
             "versions must not"},
        [SQLOCK_LAYOUT_SPRING7] =
            {SQLOCK_FINE, NULL,
             "Spring Integration 7's layout: earlier versions must not share "
             "it; tokens come from the clock alone, names are not stored"},
        [SQLOCK_LAYOUT_SPRING6] =
            {SQLOCK_WARNING,
             "in this layout the contender's TTL decides what has expired: set "
             "peer_ttl_ms (--peer-ttl) to the TTL of the Spring services; with "
             "Spring Integration 7 use a table with another layout",
             "the layout of Spring Integration 5.4 to 6.5: tokens and names "
             "are not stored"},
    };

    lk_check(&subject->checks, "layout", layouts[subject->layout].severity,
             layouts[subject->layout].advice, "%s has %s",
             subject->table.quoted, /* with its schema */
             layouts[subject->layout].found);
}

/* Say where the lock table is, and whether another program with this URL may
 * use another one. */
static void report_place(struct subject *subject)
{
    sqlock_result place = {0};
    const char *in = NULL;
    const char *others = NULL;

    if (lk_columns_place(&place, &subject->db, &subject->table,
                         subject->deadline_ns)) {
        in = lk_cell_text(&place.cells[0]);
        others = lk_cell_text(&place.cells[1]);
    }
    if (others != NULL)
        lk_check(&subject->checks, "place", SQLOCK_WARNING,
                 "give all programs one table prefix, spelt as the table is, "
                 "on PostgreSQL with its schema, such as app.INT_, and drop "
                 "the table that none uses",
                 "%s is in %s, where there is %s, too: a program that finds "
                 "that by the same URL does not exclude others",
                 subject->table.quoted, in, others);
    else if (in != NULL)
        lk_check(&subject->checks, "place", SQLOCK_FINE, NULL,
                 "%s is in %s, and no other one of that name is seen there",
                 subject->table.quoted, in);
    sqlock_result_clear(&place);
}

/* Find out the layout of the lock table, and append the check "layout", or
 * "failover" if the server is read-only.  Return whether the table can be
 * used. */
static bool look_at_layout(struct subject *subject)
{
    sqlock_error err = {0};
    int rc = lk_layout_detect(&subject->db, &subject->table,
                              subject->deadline_ns, &subject->layout, &err);

    if (rc == 0) {
        report_layout(subject);
        report_place(subject);
    } else if (rc == SQLOCK_ENOTFOUND &&
               lk_columns_check_others(&subject->db, &subject->table,
                                       subject->deadline_ns, SQLOCK_ESCHEMA,
                                       &err) < 0)
        lk_check(&subject->checks, "layout", SQLOCK_FAILURE, NULL, "%s",
                 err.message);
    else if (rc == SQLOCK_ENOTFOUND)
        lk_check(&subject->checks, "layout", SQLOCK_FAILURE,
                 "create it: `sqlock init`, or give the SQL of `sqlock init "
                 "--print` to a DBA",
                 "there is no table %s, or this login may not see it",
                 subject->table.plain);
    else
        lk_check(&subject->checks,
                 rc == SQLOCK_EREADONLY ? "failover" : "layout", SQLOCK_FAILURE,
                 NULL, "%s", err.message);
    return rc == 0;
}

/* Say whether a server waits until what it may have forgotten is over, where
 * the database can say that of itself.  The nodes of Galera, and of a group
 * with several primaries, have no epoch. */
static void look_at_grace(struct subject *subject)
{
    bool can_be_kept = subject->layout == SQLOCK_LAYOUT_SQLOCK &&
                       lk_sql_find(subject->db.driver->dialect->statements,
                                   SQLOCK_SQL_GRACE, LK_SQLOCK_QUEUE) != NULL;

    if (!can_be_kept)
        return;
    if (lk_url_is_fast(&subject->db.url))
        lk_check(&subject->checks, "durability", SQLOCK_FINE, NULL,
                 "locks do not wait for the disk, nor for standbys "
                 "(durability=fast): after a crash nothing is granted until "
                 "what it may have forgotten is over");
    if (subject->table.beside == 0)
        lk_check(&subject->checks, "failover", SQLOCK_WARNING,
                 "run upgrade-server.sql, which makes the table, and the "
                 "grants-*.sql of the roles",
                 "there is no table %s_SERVER that this login may read: a "
                 "server that takes the place of another one grants locks at "
                 "once, also those that it may have forgotten",
                 subject->table.plain);
    else if (subject->table.beside == 1)
        lk_check(&subject->checks, "failover", SQLOCK_WARNING,
                 "if this login takes locks, grant it UPDATE with "
                 "grants-application.sql",
                 "this login may read %s_SERVER only, so it cannot note a "
                 "lease that is longer than all before, nor a promotion",
                 subject->table.plain);
    else if (subject->description.epoch[0] == '\0' &&
             strcmp(subject->db.driver->name, "postgres") != 0)
        return;
    else if (subject->description.epoch[0] == '\0')
        lk_check(&subject->checks, "failover", SQLOCK_WARNING,
                 "let this login execute pg_control_system() and "
                 "pg_walfile_name()",
                 "the server does not tell this login whether it was promoted, "
                 "so locks that it may have forgotten are granted at once");
    else
        lk_check(&subject->checks, "failover", SQLOCK_FINE, NULL,
                 "a server that takes the place of another one grants nothing "
                 "until the longest lease that it may have forgotten is over");
}

/* Say whether there is the view for those who look by SQL.  Nothing else needs
 * it. */
static void look_at_view(struct subject *subject)
{
    sqlock_result columns = {0};
    sqlock_error err = {0};
    struct lk_table view;
    int rc;

    if (subject->layout != SQLOCK_LAYOUT_SQLOCK)
        return;
    rc = lk_table_named(&view, subject->options.table_prefix, "LOCK_NOW",
                        subject->db.driver->dialect, &err);
    if (rc == 0)
        rc = lk_columns_read(&columns, &subject->db, &view,
                             subject->deadline_ns, &err);
    if (rc < 0)
        lk_check(&subject->checks, "view", SQLOCK_WARNING, NULL, "%s",
                 err.message);
    else if (columns.rows == 0)
        lk_check(&subject->checks, "view", SQLOCK_FINE,
                 "if somebody is to look by SQL, run now.sql beside the "
                 "schema, which makes it, and the grants-*.sql of the roles",
                 "there is no view %s, or this login may not see it",
                 view.plain);
    else
        lk_check(&subject->checks, "view", SQLOCK_FINE, NULL,
                 "the view %s shows by SQL who has and awaits locks",
                 view.plain);
    sqlock_result_clear(&columns);
}

/* --- rights, by using a lock --- */

/* Take, renew and release a lock, then remove its row.  `*what` names the last
 * step tried. */
static int use_a_lock(sqlock_registry *registry, const char **what,
                      sqlock_error *err)
{
    sqlock_lock *lock = NULL;
    int released;
    int rc;

    *what = "acquire a lock";
    rc = sqlock_obtain(&lock, registry, PROBE_NAME, err);
    if (rc == 0)
        rc = sqlock_acquire(lock, PROBE_WAIT_MS, NULL, err);
    if (rc == 0) {
        *what = "renew it";
        rc = sqlock_renew(lock, 0, err);
        released = sqlock_release(lock, rc == 0 ? err : NULL);
        if (rc == 0) {
            *what = "release it";
            rc = released;
        }
    }
    if (rc == 0) {
        *what = "remove its row";
        rc = sqlock_reap(registry, 0, NULL, err);
    }
    (void)sqlock_drop(lock, NULL);
    return rc;
}

static void look_at_rights(struct subject *subject)
{
    sqlock_options options = subject->options;
    sqlock_registry *registry = NULL;
    const char *what = "open the table";
    sqlock_error err = {0};
    int rc;

    options.region = PROBE_REGION;
    options.pool_size = 1;
    options.key_rule = SQLOCK_KEY_CURRENT;
    options.ttl_ms = PROBE_TTL_MS;
    options.margin_ms = 0;
    options.renew_period_ms = 0;
    options.on_event = NULL; /* the checks report everything */
    rc = sqlock_registry_open(&registry, subject->url, &options, &err);
    if (rc == 0)
        rc = use_a_lock(registry, &what, &err);
    (void)sqlock_registry_close(registry, NULL);
    if (rc == 0)
        lk_check(
            &subject->checks, "rights", SQLOCK_FINE, NULL,
            "a lock was acquired, renewed and released, and its row removed");
    else if (strcmp(what, "remove its row") == 0)
        lk_check(&subject->checks, "rights", SQLOCK_WARNING,
                 rc == SQLOCK_EACCESS
                     ? "`sqlock reap` needs DELETE: grant it to the user who "
                       "reaps; grants-reaper.sql beside the schema does so"
                     : NULL,
                 "locks work, but old rows cannot be removed: %s", err.message);
    else
        lk_check(&subject->checks, "rights", SQLOCK_FAILURE,
                 rc == SQLOCK_EACCESS
                     ? "grant SELECT, INSERT and UPDATE on the table; "
                       "grants-application.sql beside the schema does so"
                     : NULL,
                 "cannot %s: %s", what, err.message);
}

/* --- all of it --- */

/* Not with the caller's error: the checks quote what they got. */
static int examine(struct subject *subject, sqlock_error *err)
{
    int rc = connect_to(subject, err);
    bool has_layout;

    if (rc < 0)
        return rc;
    has_layout = look_at_layout(subject);
    rc = take_session(subject, err);
    if (rc < 0)
        return rc;
    rc = lk_diagnose_settings(&subject->checks, &subject->db,
                              subject->connection, &subject->description,
                              subject->table.beside == 2 &&
                                  subject->description.epoch[0] != '\0',
                              subject->deadline_ns, err);
    if (rc == 0)
        look_for_pooler(subject);
    if (rc == 0)
        rc = lk_diagnose_clocks(
            &subject->checks, &subject->db, subject->connection,
            lk_margin_ms(&subject->options, subject->options.ttl_ms),
            subject->deadline_ns, err);
    lk_pool_discard(&subject->db.pool, subject->connection);
    if (rc < 0)
        return rc;
    if (has_layout) {
        look_at_grace(subject);
        look_at_view(subject);
        look_at_rights(subject);
        lk_diagnose_tables(&subject->checks, &subject->db, &subject->options,
                           subject->deadline_ns);
        lk_diagnose_waiting(&subject->checks, &subject->db, subject->layout,
                            subject->deadline_ns);
        lk_diagnose_rows(&subject->checks, subject->url, &subject->options);
    }
    return 0;
}

/* Give the checks to the application.  Return rc, or ENOMEM if a check is
 * missing. */
static int hand_out(struct lk_checks *made, int rc, sqlock_check **checks,
                    size_t *count, size_t size, sqlock_error *err)
{
    bool is_short = made->is_short;

    if (made->count > 0)
        *checks = lk_checks_copy(made);
    if (*checks != NULL)
        *count = made->count;
    is_short = is_short || *count < made->count;
    lk_rows_pack(*checks, *count, sizeof **checks, size);
    lk_checks_clear(made);
    return rc == 0 && is_short ? lk_error_nomem(err) : rc;
}

int sqlock_diagnose_sized(const char *url, const sqlock_options *options,
                          sqlock_check **checks, size_t *count, size_t size,
                          sqlock_error *err)
{
    static const struct lk_row_size row = {
        "sqlock_check", offsetof(sqlock_check, severity), sizeof(sqlock_check)};
    struct lk_pool_options pool = {.size = 2};
    struct subject subject = {.url = url};
    sqlock_error own = {0};
    int rc;

    if (checks == NULL || count == NULL)
        return lk_error_null(err, "checks and count");
    *checks = NULL;
    *count = 0;
    rc = lk_row_check(&row, size, err);
    if (rc == 0)
        rc = lk_options_complete(&subject.options, options, err);
    if (rc < 0)
        return rc;
    pool.connect_timeout_ms = subject.options.connect_timeout_ms;
    pool.statement_timeout_ms = subject.options.connect_timeout_ms;
    pool.lock_timeout_ms = subject.options.connect_timeout_ms;
    rc = lk_db_init(&subject.db, url, &pool, err);
    if (rc < 0)
        return rc;
    rc = lk_table_from_prefix(&subject.table, subject.options.table_prefix,
                              subject.db.driver->dialect, err);
    subject.deadline_ns = lk_after_ms(
        sqlock_monotonic_ns(), 4 * (int64_t)subject.options.connect_timeout_ms);
    if (rc == 0)
        rc = lk_error_pass(err, &own, examine(&subject, &own));
    lk_db_clear(&subject.db);
    return hand_out(&subject.checks, rc, checks, count, size, err);
}
