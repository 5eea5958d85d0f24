/*
 * database.c - what happens to the database, and to rows by other programs
 */
#include "stage.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/app_table.h"
#include "support/server.h"

/* End all sessions of the database but the test's own; return how many. */
static size_t end_sessions(struct fixture *f)
{
    struct sql admin;
    int64_t ids[64];
    size_t count = 0;
    int rc = sql_open(&admin, f->database, database_admin_url(f->database));

    assert_lock_ok(rc, &admin.err);
    while (count < 64) {
        int64_t last = count == 0 ? 0 : ids[count - 1];

        ids[count] = sql_integer(
            &f->sql,
            f->database->bit == ON_POSTGRES
                ? "SELECT COALESCE(MIN(pid), 0) FROM pg_stat_activity WHERE "
                  "usename = CURRENT_USER AND pid <> pg_backend_pid() AND pid "
                  "> %lld"
                : "SELECT COALESCE(MIN(ID), 0) FROM "
                  "information_schema.PROCESSLIST WHERE DB = DATABASE() AND ID "
                  "<> CONNECTION_ID() AND ID > %lld",
            (long long)last);
        if (ids[count] == 0)
            break;
        count++;
    }
    (void)server_end_some(&admin, ids, count);
    sql_close(&admin);
    return count;
}

/* Rename the file of an SQLite database to another name, or back. */
static void move_file(const struct fixture *f, bool is_back)
{
    const char *path = f->url + strlen("sqlite:");
    char name[512];
    char away[512];

    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(path, "?"), path);
    (void)snprintf(away, sizeof away, "%.500s.away", name);
    assert_int_equal(is_back ? rename(away, name) : rename(name, away), 0);
}

/* Let each renewal have its row locked for some time. */
static void renew_slowly(struct fixture *f)
{
    if (f->database->bit != ON_POSTGRES) {
        (void)sql_run(&f->sql,
                      "CREATE TRIGGER %s_SLOW AFTER UPDATE ON %s FOR EACH ROW "
                      "SET @slept = "
                      "IF(OLD.CLIENT_ID <=> NEW.CLIENT_ID, SLEEP(0.04), 0)",
                      f->prefix, f->table);
        return;
    }
    (void)sql_run(&f->sql,
                  "CREATE FUNCTION %s_slow() RETURNS trigger LANGUAGE plpgsql "
                  "AS 'BEGIN PERFORM pg_sleep(0.04); RETURN NEW; END'",
                  f->prefix);
    (void)sql_run(&f->sql,
                  "CREATE TRIGGER %s_SLOW AFTER UPDATE ON %s FOR EACH ROW WHEN "
                  "(OLD.CLIENT_ID = NEW.CLIENT_ID) EXECUTE FUNCTION %s_slow()",
                  f->prefix, f->table, f->prefix);
}

static void renew_quickly(struct fixture *f)
{
    if (f->database->bit == ON_POSTGRES)
        (void)sql_run(&f->sql, "DROP FUNCTION %s_slow() CASCADE", f->prefix);
    else
        (void)sql_run(&f->sql, "DROP TRIGGER %s_SLOW", f->prefix);
}

void stage_mend(struct play *play)
{
    if (play->is_readonly)
        (void)sql_run(&play->f->sql, "ALTER ROLE CURRENT_USER RESET "
                                     "default_transaction_read_only");
    play->is_readonly = false;
}

/* Return whether some session keeps an advisory lock while it is idle, or waits
 * for one: a pooler would lend that session to another client.  A claim has one
 * for an instant, until it ends. */
static int lends_locks(struct fixture *f)
{
    for (int i = 0; i < 50; i++) {
        if (sql_integer(&f->sql, "SELECT count(*) FROM pg_locks "
                                 "JOIN pg_stat_activity USING (pid) "
                                 "WHERE locktype = 'advisory' AND (NOT granted "
                                 "OR state = 'idle' AND state_change < "
                                 "clock_timestamp() - interval '50 ms')") != 0)
            return 1;
        check_sleep(2);
    }
    return 0;
}

/* Return whether a transaction above READ COMMITTED is refused what was changed
 * after its snapshot. */
static bool keeps_snapshots(struct fixture *f)
{
    char value[64];

    if (f->database->bit != ON_MYSQL)
        return f->database->bit == ON_POSTGRES;
    return sql_text(&f->sql, value, sizeof value,
                    "SHOW VARIABLES WHERE Variable_name ="
                    " 'innodb_snapshot_isolation' AND Value = 'ON'");
}

/* With `cleanly`, a stop that waits for no session. */
static int restart_signal(const struct fixture *f, const struct step *step)
{
    if (step_option(step, "cleanly") == NULL)
        return SIGKILL;
    return f->database->bit == ON_POSTGRES ? SIGINT : SIGTERM;
}

/* "stops" stops the server's processes.  A database "is_busy" when a session of
 * another program has the SQLite file's write lock, or the lock table's. */
struct result stage_database(struct play *play, const struct step *step)
{
    struct fixture *f = play->f;

    if (says(step, "stops")) {
        if (!server_can_stop(f->database))
            skip_or_fail("the server cannot be stopped");
        server_stop(f->database);
    } else if (says(step, "goes_on")) {
        server_go_on();
    } else if (says(step, "is_busy")) {
        fixture_lock_row(f, &play->stranger, NULL);
        if (f->database->bit != ON_SQLITE)
            (void)sql_run(&play->stranger,
                          f->database->bit == ON_POSTGRES
                              ? "LOCK TABLE %s"
                              : "LOCK TABLES %s WRITE",
                          f->table);
    } else if (says(step, "is_idle")) {
        fixture_unlock_row(&play->stranger);
    } else if (says(step, "is_readonly")) {
        /* Old sessions end, so that new ones are. */
        (void)sql_run(&f->sql, "ALTER ROLE CURRENT_USER SET "
                               "default_transaction_read_only = on");
        (void)end_sessions(f);
        play->is_readonly = true;
    } else if (says(step, "keeps_snapshots") ||
               says(step, "forgets_snapshots")) {
        play->is_left_out = keeps_snapshots(f) != says(step, "keeps_snapshots");
    } else if (says(step, "restarts")) {
        if (!server_can_restart(f->database))
            skip_or_fail("the server is not ours to restart");
        server_restart(&f->sql, f->url, restart_signal(f, step));
    } else if (says(step, "ends_sessions")) {
        if (!wait_until(end_sessions(f) > 0, PATIENCE_MS))
            play_fail(play, "there is none");
    } else if (says(step, "is_writable")) {
        stage_mend(play);
    } else if (says(step, "lends_locks")) {
        return is(lends_locks(f));
    } else if (says(step, "commits_slowly")) {
        (void)sql_run(&f->sql,
                      "CREATE TRIGGER %s_SLOW AFTER UPDATE ON %s FOR EACH ROW "
                      "SET @slept = "
                      "IF(OLD.CLIENT_ID <=> NEW.CLIENT_ID, 0, SLEEP(2))",
                      f->prefix, f->table);
    } else if (says(step, "commits_quickly")) {
        (void)sql_run(&f->sql, "DROP TRIGGER %s_SLOW", f->prefix);
    } else if (says(step, "renews_slowly")) {
        renew_slowly(f);
    } else if (says(step, "renews_quickly")) {
        renew_quickly(f);
    } else if (says(step, "builds_an_index")) {
        /* Fails by the session's time limit if a waiter keeps a snapshot. */
        (void)sql_run(&f->sql, "CREATE TABLE %s_cic (a int)", f->prefix);
        (void)sql_run(&f->sql,
                      "CREATE INDEX CONCURRENTLY %s_cic_a ON %s_cic (a)",
                      f->prefix, f->prefix);
        (void)sql_run(&f->sql, "DROP TABLE %s_cic", f->prefix);
    } else if (says(step, "loses_its_table")) {
        (void)sql_run(&f->sql, "ALTER TABLE %s RENAME TO %s_AWAY", f->table,
                      f->table);
    } else if (says(step, "loses_its_file") ||
               says(step, "has_its_file_back")) {
        move_file(f, says(step, "has_its_file_back"));
    } else if (says(step, "has_its_table_back")) {
        (void)sql_run(&f->sql, "ALTER TABLE %s_AWAY RENAME TO %s", f->table,
                      f->table);
    } else {
        return unknown();
    }
    return is(0);
}

/* Give the row another holder; or the one that the scene knows (`table knows`).
 * Its lease ends ms from now. */
static void change_row(struct play *play, const struct step *step)
{
    struct fixture *f = play->f;
    const struct named *named = play_named(play, step->name);
    char key[SQLOCK_KEY_SIZE];
    char ends[160];

    (void)sql_run(&f->sql,
                  "UPDATE %s SET CLIENT_ID = '%s', EXPIRED_AFTER = %s "
                  "WHERE LOCK_KEY = '%s'",
                  f->table,
                  says(step, "borrows") ? "nobody" : named->row.client,
                  fixture_time(f, ends, 1000 * stage_ms(step, "ms")),
                  stage_key(play, key, step->name));
}

/* Return the SQL of how long the present transaction may be idle, in ms. */
static const char *idle_ms(struct fixture *f)
{
    if (f->database->bit == ON_POSTGRES)
        return "CAST(extract(epoch FROM current_setting("
               "'idle_in_transaction_session_timeout')::interval) * 1000 "
               "AS bigint)";
    return fixture_is_oracles(f)
               ? "CAST(@@wait_timeout * 1000 AS SIGNED)"
               : "CAST(@@idle_transaction_timeout * 1000 AS SIGNED)";
}

size_t stage_statement(struct play *play, char *out, size_t size,
                       const char *statement)
{
    static const char *const words[] = {"@stock", "@locks", "@scene",
                                        "@idle_ms", "@prefix"};
    size_t at = 0;

    while (*statement != '\0' && at + 1 < size) {
        size_t i = 0;

        while (i < 5 && strncmp(statement, words[i], strlen(words[i])) != 0)
            i++;
        if (i == 5) {
            out[at++] = *statement++;
            continue;
        }
        at += (size_t)snprintf(out + at, size - at, "%s",
                               i == 0   ? stage_stock(play)
                               : i == 1 ? play->f->table
                               : i == 2 ? play->f->name
                               : i == 3 ? idle_ms(play->f)
                                        : play->f->prefix);
        statement += strlen(words[i]);
    }
    at = at < size ? at : size - 1;
    out[at] = '\0';
    return at;
}

/* "moves O of=TABLE.COLUMN hours=N": move a time of an order in one of sqlock's
 * tables of stock. */
static void move_time(struct play *play, const struct step *step)
{
    const struct fixture *f = play->f;
    const char *of = step_option(step, "of");
    long hours = strtol(step_option(step, "hours"), NULL, 10);
    int length = (int)strcspn(of, ".");
    char by[64];

    if (f->database->bit == ON_POSTGRES)
        (void)snprintf(by, sizeof by, "%s + interval '%ld hours'",
                       of + length + 1, hours);
    else if (f->database->bit == ON_MYSQL)
        (void)snprintf(by, sizeof by, "TIMESTAMPADD(HOUR, %ld, %s)", hours,
                       of + length + 1);
    else
        (void)snprintf(by, sizeof by, "%s + %ld000000", of + length + 1,
                       hours * 3600);
    (void)sql_run(&play->f->sql,
                  "UPDATE %s%.*s SET %s = %s WHERE ORDER_ID LIKE '%s@%s%%'",
                  f->prefix, length, of, of + length + 1, by, step->name,
                  f->name);
}

/* "runs:" and "sees: -> N": any statement. */
static struct result run_statement(struct play *play, const struct step *step)
{
    char text[1024];

    (void)stage_statement(play, text, sizeof text, step->statement);
    if (says(step, "sees"))
        return (struct result){.rc =
                                   (int)sql_integer(&play->f->sql, "%s", text),
                               .is_undecided = true};
    (void)sql_run(&play->f->sql, "%s", text);
    return is(0);
}

/* "is_bounded id=N from=A to=B", "is_unbounded": a CHECK of the application's
 * table; on SQLite, where none can be added, a trigger. */
static void bound_stock(struct play *play, const struct step *step)
{
    struct fixture *f = play->f;
    const char *table = stage_stock(play);
    bool is_sqlite = f->database->bit == ON_SQLITE;

    if (says(step, "is_unbounded"))
        (void)sql_run(&f->sql,
                      is_sqlite ? "DROP TRIGGER %s_bound"
                                : "ALTER TABLE %s DROP CONSTRAINT %s_bound",
                      table, table);
    else if (is_sqlite)
        (void)sql_run(&f->sql,
                      "CREATE TRIGGER %s_bound BEFORE UPDATE ON %s WHEN NEW.id "
                      "= %s AND NEW.a NOT BETWEEN %s AND %s BEGIN SELECT "
                      "RAISE(ABORT, 'out of bounds'); END",
                      table, table, step_option(step, "id"),
                      step_option(step, "from"), step_option(step, "to"));
    else
        (void)sql_run(&f->sql,
                      "ALTER TABLE %s ADD CONSTRAINT %s_bound CHECK (id <> %s "
                      "OR a BETWEEN %s AND %s)",
                      table, table, step_option(step, "id"),
                      step_option(step, "from"), step_option(step, "to"));
}

/* The rows of the application's table. */
struct result stage_of_stock(struct play *play, const struct step *step)
{
    const char *id = step_option(step, "id");

    (void)stage_stock(play);
    if (says(step, "is_untouched"))
        return is(stock_is_untouched(play->f));
    if (says(step, "is_bounded") || says(step, "is_unbounded")) {
        bound_stock(play, step);
        return is(0);
    }
    if (!says(step, "has"))
        return unknown();
    return is(
        (int)stock_value(play->f, id != NULL ? (int)strtol(id, NULL, 10) : 1));
}

const char *stage_stock(struct play *play)
{
    if (!play->has_stock) {
        stock_create(play->f);
        stock_fill(play->f);
    }
    play->has_stock = true;
    return stock_name(play->f);
}

/* Another program's statements on the row of a lock. */
struct result stage_stranger(struct play *play, const struct step *step)
{
    struct fixture *f = play->f;
    char name[96];
    char key[SQLOCK_KEY_SIZE];

    if (step->statement != NULL)
        return run_statement(play, step);
    (void)play_name(play, name, step->name);
    (void)stage_key(play, key, step->name);
    if (says(step, "locks")) {
        fixture_lock_row(f, &play->stranger, NULL);
        assert_int_equal(sql_run(&play->stranger,
                                 "UPDATE %s SET REGION = REGION "
                                 "WHERE LOCK_KEY = '%s'",
                                 f->table, key) >= 0,
                         1);
    } else if (says(step, "unlocks")) {
        fixture_unlock_row(&play->stranger);
    } else if (says(step, "deletes")) {
        fixture_delete(f, name);
    } else if (says(step, "sets_back")) {
        fixture_set_back(f, key);
    } else if (says(step, "expires")) {
        fixture_expire(f, name);
    } else if (says(step, "adds_up")) {
        return is((int)sql_integer(&f->sql,
                                   "SELECT COALESCE(SUM(DELTA), 0) FROM "
                                   "%sSTOCK_ENTRY WHERE ITEM = '%s'",
                                   f->prefix, name));
    } else if (says(step, "moves")) {
        move_time(play, step);
    } else if (says(step, "frees")) {
        (void)sql_run(&f->sql,
                      "UPDATE %s SET CLIENT_ID = NULL WHERE LOCK_KEY = '%s'",
                      f->table, key);
    } else if (says(step, "borrows") || says(step, "returns")) {
        change_row(play, step);
    } else if (says(step, "ages")) {
        (void)sql_run(&f->sql,
                      "UPDATE %s SET QUEUE = replace(QUEUE, '\"e\":1', "
                      "'\"e\":0') WHERE LOCK_KEY = '%s'",
                      f->table, key);
    } else if (says(step, "writes")) {
        (void)sql_run(&f->sql,
                      "UPDATE %s SET QUEUE = '%s' WHERE LOCK_KEY = '%s'",
                      f->table, step_option(step, "queue"), key);
    } else if (says(step, "takes")) {
        (void)sql_run(&f->sql,
                      "UPDATE %s SET CLIENT_ID = "
                      "'00000000-0000-4000-8000-000000000001' "
                      "WHERE LOCK_KEY = '%s'",
                      f->table, key);
    } else {
        return unknown();
    }
    return is(0);
}
