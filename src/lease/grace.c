/*
 * grace.c - see grace.h
 */
#include "lease/grace.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "lease/batch.h"
#include "lease/longest.h"
#include "lease/sharer.h"

/* How often a process that is refused looks whether an operator has ended the
 * grace. */
#define LOOK_NS (1000 * LK_NS_PER_MS)

/* How often a session writes the row, while others write it, too. */
#define WRITES 8

/* By how much the time may differ at which one server is said to have been
 * started. */
#define STARTED_S 2

void lk_grace_init(struct lk_grace *grace)
{
    (void)pthread_mutex_init(&grace->mutex, NULL);
}

void lk_grace_clear(struct lk_grace *grace)
{
    (void)pthread_mutex_destroy(&grace->mutex);
}

int64_t lk_grace_left_ns(const struct lk_store *store)
{
    return lk_epoch_held_ns(&store->db.epoch);
}

bool lk_grace_sees_crashes(const struct lk_store *store)
{
    return atomic_load(&store->grace.sees_crashes);
}

/* --- the row --- */

/* The columns of GRACE. */
enum { SERVERS_EPOCH, EPOCH, LEFT_US, LONGEST_MS, ALLOWED_MS, SINCE_US, CELLS };

/* Run one of the statements about the row on a connection. */
static int run_on(struct lk_store *store, struct lk_connection *connection,
                  sqlock_statement_kind kind, struct lk_arguments *arguments,
                  int64_t deadline_ns, sqlock_result *result, sqlock_error *err)
{
    struct lk_run run = {
        .statement = &store->statements[kind],
        .arguments = arguments,
        .deadline_ns = deadline_ns,
    };
    int rc = lk_db_run_on(&store->db, connection, &run, result, err);

    /* The claim behind it was not sent, and the next one repeats it. */
    return rc == SQLOCK_EUNCERTAIN
               ? lk_error(err, SQLOCK_EUNREACHABLE,
                          "the database did not answer in time")
               : rc;
}

/* Return whether an epoch of the row changes with a crash, too: behind the name
 * of the server it has when that was started, or a mark. */
static bool tells_crashes(const char *epoch)
{
    return strchr(epoch, ' ') != NULL;
}

static bool is_epoch_known(const sqlock_result *row)
{
    return row->cells[SERVERS_EPOCH].type == SQLOCK_TEXT;
}

static bool is_of_server(const sqlock_result *row)
{
    return is_epoch_known(row) && row->cells[EPOCH].type == SQLOCK_TEXT &&
           strcmp(row->cells[EPOCH].text, row->cells[SERVERS_EPOCH].text) == 0;
}

static int read_row(struct lk_store *store, struct lk_connection *connection,
                    int64_t deadline_ns, sqlock_result *row, sqlock_error *err)
{
    struct lk_arguments none = {0};
    int rc;

    sqlock_result_clear(row);
    rc = run_on(store, connection, SQLOCK_SQL_GRACE, &none, deadline_ns, row,
                err);
    if (rc == SQLOCK_ESCHEMA)
        rc = lk_error(err, rc,
                      "%s_SERVER is of an earlier version: run "
                      "upgrade-server.sql",
                      store->table.plain);
    if (rc == SQLOCK_EACCESS)
        rc = lk_error(err, rc,
                      "this login may not read %s_SERVER, or what is beside "
                      "it: grant it what the grants-*.sql grant",
                      store->table.plain);
    if (rc == 0 && (row->rows != 1 || row->columns < CELLS))
        rc = lk_error(err, SQLOCK_ESCHEMA,
                      "%s_SERVER must have one row: `sqlock init --print` "
                      "shows how it is made",
                      store->table.plain);
    return rc;
}

/* Run one that writes, and read the row anew. */
static int write_row(struct lk_store *store, struct lk_connection *connection,
                     sqlock_statement_kind kind, int64_t deadline_ns,
                     sqlock_result *row, sqlock_error *err)
{
    struct lk_arguments arguments = {0};
    sqlock_result none = {0};
    int rc;

    lk_argument_text(&arguments, SQLOCK_P_NAME,
                     lk_cell_text(&row->cells[SERVERS_EPOCH]));
    lk_argument_text(&arguments, SQLOCK_P_OLD_EPOCH,
                     lk_cell_text(&row->cells[EPOCH]));
    rc = run_on(store, connection, kind, &arguments, deadline_ns, &none, err);
    sqlock_result_clear(&none);
    return rc < 0 ? rc : read_row(store, connection, deadline_ns, row, err);
}

/* Return whether the row has to be written, and how: a session that does not
 * wait for the disk needs an epoch that tells crashes, and whoever may write
 * notes another one. */
static bool is_to_be_written(const struct lk_store *store,
                             const sqlock_result *row,
                             sqlock_statement_kind *kind)
{
    const char *epoch = lk_cell_text(&row->cells[SERVERS_EPOCH]);

    *kind = SQLOCK_SQL_MARK;
    if (!store->grace.is_written || epoch == NULL)
        return false;
    if (lk_url_is_fast(&store->db.url) && !tells_crashes(epoch))
        return true;
    *kind = SQLOCK_SQL_BEGIN_GRACE;
    return !is_of_server(row);
}

/* Read the row, after it was written if it has to be. */
static int find_row(struct lk_store *store, struct lk_connection *connection,
                    int64_t deadline_ns, sqlock_result *row, sqlock_error *err)
{
    sqlock_statement_kind kind;
    int rc = read_row(store, connection, deadline_ns, row, err);

    for (int i = 0;
         rc == 0 && is_to_be_written(store, row, &kind) && i < WRITES; i++)
        rc = write_row(store, connection, kind, deadline_ns, row, err);
    if (rc == 0 && lk_url_is_fast(&store->db.url) && !is_of_server(row))
        rc = lk_error(err, SQLOCK_EBUSY,
                      "%s_SERVER does not keep the epoch that is written there",
                      store->table.plain);
    return rc;
}

/* Return whether the row was last read on a server of that epoch. */
static bool has_seen(struct lk_store *store, const char *epoch)
{
    struct lk_grace *grace = &store->grace;
    bool is_same;

    pthread_mutex_lock(&grace->mutex);
    is_same = strcmp(grace->epoch, epoch) == 0;
    pthread_mutex_unlock(&grace->mutex);
    return is_same;
}

/* Return whether two epochs of the row are the same: what is behind a blank is
 * when the server was started, in seconds, which is told by its age; or a
 * mark. */
static bool is_same(const char *a, const char *b)
{
    size_t length = strcspn(a, " ");
    const char *of_a = a + length + 1;
    const char *of_b = b + length + 1;
    int64_t apart_s;

    if (length != strcspn(b, " ") || strncmp(a, b, length) != 0 ||
        a[length] != b[length])
        return false;
    if (a[length] == '\0')
        return true;
    apart_s = lk_text_digits(&of_a) - lk_text_digits(&of_b);
    return apart_s >= -STARTED_S && apart_s <= STARTED_S;
}

/* Return whether the server with that row is the one that was seen last, and
 * note it. */
static bool was_there(struct lk_grace *grace, const char *server)
{
    bool was_same;

    pthread_mutex_lock(&grace->mutex);
    was_same = is_same(grace->server, server);
    if (!was_same)
        (void)snprintf(grace->server, sizeof grace->server, "%s", server);
    pthread_mutex_unlock(&grace->mutex);
    return was_same;
}

/* Return for how many us nothing is granted.  A login that may not write the
 * row cannot note a new epoch: for it the grace begins when it first sees
 * that. */
static int64_t left_us_of(struct lk_store *store, const sqlock_result *row)
{
    bool was_seen;
    const sqlock_value *cells = row->cells;

    /* Nobody has used the table yet, or nobody can say what happened. */
    if (cells[EPOCH].type != SQLOCK_TEXT || !is_epoch_known(row))
        return 0;
    was_seen = was_there(&store->grace, cells[SERVERS_EPOCH].text);
    if (is_of_server(row))
        return cells[LEFT_US].integer;
    return was_seen ? lk_grace_left_ns(store) / 1000
                    : cells[LONGEST_MS].integer * 1000;
}

/* Return whether an epoch is that of an old primary of PostgreSQL, which
 * another server of its cluster has followed: it has a smaller timeline. */
static bool has_older_timeline(const char *epoch, const char *newest)
{
    size_t length = strcspn(epoch, "/");

    return epoch[length] == '/' && strncmp(epoch, newest, length) == 0 &&
           strcmp(epoch, newest) < 0;
}

/* Note that the row was read on a server of that epoch.  Return until when
 * nothing is granted there whatever the row says: an old primary that has come
 * back, or a backup, knows no lease of what has followed it.  It shows by its
 * row, which lacks what was written there; or by its timeline, where nobody may
 * write the row. */
static int64_t note_epoch(struct lk_grace *grace,
                          const char epoch[SQLOCK_EPOCH_SIZE],
                          const sqlock_result *row, int64_t now_ns)
{
    int64_t since_us = row->cells[SINCE_US].integer;
    int64_t longest_ms = row->cells[LONGEST_MS].integer;
    int64_t before_ms = atomic_load(&grace->longest_ms);
    int64_t until_ns = 0;

    pthread_mutex_lock(&grace->mutex);
    if (since_us >= grace->newest_us &&
        !has_older_timeline(epoch, grace->newest)) {
        grace->newest_us = since_us;
        memcpy(grace->newest, epoch, sizeof grace->newest);
    } else {
        if (since_us != grace->since_us || strcmp(epoch, grace->epoch) != 0)
            grace->older_until_ns = lk_after_ms(
                now_ns, longest_ms > before_ms ? longest_ms : before_ms);
        until_ns = grace->older_until_ns;
    }
    grace->since_us = since_us;
    memcpy(grace->epoch, epoch, sizeof grace->epoch);
    pthread_mutex_unlock(&grace->mutex);
    return until_ns;
}

static void note_row(struct lk_store *store,
                     const char epoch[SQLOCK_EPOCH_SIZE],
                     const sqlock_result *row)
{
    struct lk_grace *grace = &store->grace;
    const sqlock_value *cells = row->cells;
    int64_t longest_ms = cells[LONGEST_MS].integer;
    int64_t left_us = left_us_of(store, row);
    int64_t now_ns = lk_boottime_ns();
    int64_t until_ns = note_epoch(grace, epoch, row, now_ns);
    bool was_held = lk_grace_left_ns(store) > 0;

    if (left_us > 0 && until_ns < lk_after_ns(now_ns, left_us * 1000))
        until_ns = lk_after_ns(now_ns, left_us * 1000);
    atomic_store(&grace->longest_ms, longest_ms);
    lk_longest_note(grace, cells[ALLOWED_MS].integer);
    atomic_store(&grace->looked_ns, now_ns);
    atomic_store(&grace->sees_crashes,
                 is_epoch_known(row) &&
                     tells_crashes(cells[SERVERS_EPOCH].text));
    lk_epoch_hold_back(&store->db.epoch, until_ns);
    if (until_ns > now_ns && !was_held)
        lk_store_tell(store, &(sqlock_event){.kind = SQLOCK_EVENT_EPOCH},
                      "the server may have forgotten leases, since it was "
                      "promoted, restored or has crashed: it grants nothing "
                      "for another %lld ms",
                      (long long)((until_ns - now_ns) / LK_NS_PER_MS) + 1);
}

/* Return whether the row has said for that epoch that nothing is granted, and
 * need not be read again now. */
static bool is_refused(struct lk_store *store, const char *epoch)
{
    struct lk_grace *grace = &store->grace;

    return has_seen(store, epoch) && lk_grace_left_ns(store) > 0 &&
           lk_boottime_ns() - atomic_load(&grace->looked_ns) < LOOK_NS;
}

/* Return whether another server has answered since a session of that epoch was
 * opened.  Two servers are never used side by side. */
static bool is_left(struct lk_store *store, const char *epoch)
{
    char last[SQLOCK_EPOCH_SIZE];

    (void)lk_epoch_last(&store->db.epoch, last);
    return strcmp(epoch, last) != 0;
}

/* Refuse a session whose server was left. */
static int check_left(struct lk_store *store, const char *epoch,
                      sqlock_error *err)
{
    return is_left(store, epoch)
               ? lk_error(err, SQLOCK_EUNREACHABLE,
                          "another server answers since the session was opened")
               : 0;
}

/* Refuse durability=fast where a crash would not be noticed. */
static int refuse_fast(const struct lk_store *store, sqlock_error *err)
{
    return lk_error(err, SQLOCK_ENOTSUP,
                    "durability=fast needs the tables %s_SERVER and "
                    "%s_MARK, which this login may write, and the right to "
                    "call pg_control_system(): without them a lock that a "
                    "crash forgets would be granted again",
                    store->table.plain, store->table.plain);
}

static int look(struct lk_store *store, struct lk_connection *connection,
                int64_t deadline_ns, sqlock_error *err)
{
    sqlock_description found = {.connection_id = 0};
    sqlock_result row = {0};
    int rc;

    store->db.driver->describe(connection->state, &found);
    if (found.is_standby)
        return lk_error(err, SQLOCK_EREADONLY,
                        "the server was a standby when the session was opened: "
                        "another one is opened before a lock is granted");
    if (found.epoch[0] == '\0')
        return lk_url_is_fast(&store->db.url) ? refuse_fast(store, err) : 0;
    rc = check_left(store, found.epoch, err);
    if (rc < 0 || is_refused(store, found.epoch))
        return rc;
    rc = find_row(store, connection, deadline_ns, &row, err);
    if (rc == 0) /* what it says counts for the server that answers now */
        rc = check_left(store, found.epoch, err);
    if (rc == 0)
        note_row(store, found.epoch, &row);
    sqlock_result_clear(&row);
    return rc;
}

static int check(void *context, struct lk_connection *connection,
                 int64_t deadline_ns, sqlock_error *err)
{
    struct lk_store *store = context;
    uint32_t changes = atomic_load(&store->db.epoch.changes);
    /* Then the row may not be read now, and so not on this session. */
    bool was_held = lk_grace_left_ns(store) > 0;
    int rc = look(store, connection, deadline_ns, err);

    connection->is_checked =
        rc == 0 && !was_held && lk_grace_left_ns(store) == 0;
    connection->changes = changes;
    return rc;
}

/* --- claims, renewals --- */

bool lk_grace_refuses(const struct lk_store *store, struct lk_batch *batch,
                      int rc)
{
    int64_t left_ns = rc == SQLOCK_EBUSY ? lk_grace_left_ns(store) : 0;

    for (size_t i = 0; left_ns > 0 && i < batch->count; i++) {
        batch->items[i].is_left_out = true;
        batch->items[i].row = (struct lk_row){
            .exists = true,
            .is_taken = true,
            .remaining_us = left_ns / 1000 + 1,
            .place = -1,
            .permits = LK_NO_LIMIT,
        };
    }
    return left_ns > 0;
}

int lk_grace_error(const struct lk_store *store, int rc, sqlock_error *err)
{
    return lk_epoch_error(&store->db.epoch, rc, err);
}

/* --- the first look, and the last word --- */

/* Check a connection of the pool, unless that is known to grant. */
static int check_one(struct lk_store *store, int64_t deadline_ns,
                     sqlock_error *err)
{
    struct lk_connection *connection = NULL;
    int rc = lk_pool_take(&store->db.pool, deadline_ns, &connection, err);

    if (rc < 0)
        return rc;
    if (!connection->is_checked || lk_grace_left_ns(store) > 0)
        rc = check(store, connection, deadline_ns, err);
    lk_db_finish(&store->db, connection, rc);
    return rc;
}

void lk_grace_refresh(struct lk_store *store)
{
    if (store->grace.is_kept)
        (void)check_one(store, lk_store_deadline(store), NULL);
}

int lk_grace_begin(struct lk_store *store, sqlock_error *err)
{
    int64_t deadline_ns =
        lk_after_ms(sqlock_monotonic_ns(), store->options.connect_timeout_ms);
    int rc;

    if (store->layout != SQLOCK_LAYOUT_SQLOCK)
        store->table.beside = 0;
    if (store->table.beside != 2 && lk_url_is_fast(&store->db.url))
        return refuse_fast(store, err);
    if (store->table.beside == 0)
        return 0;
    store->grace.is_kept = true;
    store->grace.is_written = store->table.beside == 2;
    rc = lk_db_of_reading(check_one(store, deadline_ns, err), err);
    store->db.epoch.check = check;
    return rc;
}

int lk_grace_end(struct lk_store *store, const char *reason, sqlock_error *err)
{
    char note[LK_HOLDER_SIZE];
    struct lk_arguments arguments = {0};
    struct lk_run run = {
        .arguments = &arguments,
        .deadline_ns = lk_store_deadline(store),
        .waits_for_row = true,
    };
    sqlock_result result = {0};
    char raw[2 * LK_HOLDER_SIZE];
    int rc;

    if (!store->grace.is_kept)
        return lk_longest_missing(store, err);
    (void)snprintf(raw, sizeof raw, "%s: %s", store->identity, reason);
    lk_store_shown(store, note, sizeof note, raw);
    lk_argument_text(&arguments, SQLOCK_P_HOLDER, note);
    rc = lk_store_run(store, SQLOCK_SQL_END_GRACE, &run, &result, err);
    if (rc == 0) {
        rc = result.affected > 0 || lk_grace_left_ns(store) > 0 ? 1 : 0;
        pthread_mutex_lock(&store->grace.mutex);
        store->grace.older_until_ns = 0;
        pthread_mutex_unlock(&store->grace.mutex);
        lk_epoch_hold_back(&store->db.epoch, 0);
    }
    sqlock_result_clear(&result);
    return rc;
}
