/*
 * stage.c - what happens to the processes of a scene from outside: the network,
 * the database, strangers and Spring services in the table, an operator, time
 */
#include "play.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/peer.h"
#include "support/server.h"

/* A performer of the stage, by its name or the beginning of that. */
struct performer {
    const char *actor;
    struct result (*perform)(struct play *play, const struct step *step);
};

static const struct result done;

static struct result is(int rc)
{
    return (struct result){.rc = rc};
}

static bool says(const struct step *step, const char *verb)
{
    return strcmp(step->verb, verb) == 0;
}

static struct result unknown(void)
{
    return (struct result){.rc = NOT_PLAYED, .message = "no such verb"};
}

static int64_t ms_of(const struct step *step, const char *option)
{
    const char *value = step_option(step, option);

    return value == NULL ? 0 : SLOWNESS * strtoll(value, NULL, 10);
}

/* ---------------------------------------------------------- the network -- */

/* Write the key of a lock of the scene to out; return out. */
static const char *key_of(const struct play *play, char out[SQLOCK_KEY_SIZE],
                          const char *name)
{
    char full[96];
    int rc = sqlock_key_of(out, play_name(play, full, name), SQLOCK_KEY_CURRENT,
                           NULL);

    assert_int_equal(rc, 0);
    return out;
}

static void need_proxy(struct play *play)
{
    if (play->proxy == NULL)
        play->proxy = proxy_open(play->f->database, play->f->url);
    assert_non_null(play->proxy);
}

static void need_pooler(struct play *play)
{
    if (database_is_pooled(play->f->database))
        skip();
    if (play->pooler.pid == 0)
        pooler_start(&play->pooler, play->f, "");
}

/* Write a URL where other functions than the built-in ones are found first, as
 * on servers that are like PostgreSQL: advisory locks are "stubs", which say
 * yes to everybody, or "refusals". */
static void stub_url(struct play *play, char url[1024], const char *which)
{
    static const char *const names[] = {"pg_try_advisory_lock",
                                        "pg_try_advisory_lock_shared",
                                        "pg_try_advisory_xact_lock"};
    static const char refuse[] =
        "RAISE EXCEPTION ''not supported'' USING ERRCODE = ''0A000'';";
    bool refuses = strcmp(which, "refusals") == 0;
    struct fixture *f = play->f;

    if (!play->has_stubs) {
        sql_run(&f->sql, "CREATE SCHEMA %s_stub", f->prefix);
        sql_run(&f->sql,
                "CREATE FUNCTION %s_stub.pg_advisory_lock(bigint) RETURNS void "
                "LANGUAGE plpgsql AS 'BEGIN %s END'",
                f->prefix, refuses ? refuse : "RETURN;");
        for (size_t i = 0; i < 3; i++)
            sql_run(&f->sql,
                    "CREATE FUNCTION %s_stub.%s(bigint) RETURNS boolean "
                    "LANGUAGE plpgsql AS 'BEGIN %s END'",
                    f->prefix, names[i],
                    refuses && i < 2 ? refuse : "RETURN true;");
    }
    play->has_stubs = true;
    (void)snprintf(url, 1024,
                   "%s%coptions=-csearch_path%%3D%s_stub,pg_catalog,public",
                   f->url, strchr(f->url, '?') != NULL ? '&' : '?', f->prefix);
}

const char *stage_url(struct play *play, char out[1024],
                      const struct step *step)
{
    const char *through = step_option(step, "through");
    char url[1024];

    (void)snprintf(url, sizeof url, "%s", play->f->url);
    if (through != NULL && strcmp(through, "network") == 0) {
        need_proxy(play);
        (void)proxy_url(play->proxy, url, play->f->url);
    } else if (through != NULL && strcmp(through, "pooler") == 0) {
        need_pooler(play);
        (void)snprintf(url, sizeof url, "%s", play->pooler.url);
    } else if (through != NULL) {
        stub_url(play, url, through);
    }
    (void)snprintf(out, 1024, "%s%.1000s",
                   step_option(step, "tapped") != NULL ? "tap+" : "", url);
    return out;
}

/* The text of the requests that a plan is for: that of text=, the name of the
 * lock at=, which only claims have, or the key of key=, which all statements
 * about the lock have.  It stays while the proxy has the plan. */
static const char *text_of(const struct play *play, const struct step *step)
{
    static char text[96];
    const char *at = step_option(step, "at");
    const char *key = step_option(step, "key");

    if (at != NULL)
        return play_name(play, text, at);
    if (key != NULL)
        return key_of(play, text, key);
    return step_option(step, "text");
}

static enum proxy_point point_of(const struct step *step)
{
    const char *when = step_option(step, "when");

    if (when != NULL && strcmp(when, "carried_out") == 0)
        return PROXY_SENT;
    if (when != NULL && strcmp(when, "answered") == 0)
        return PROXY_REPLIED;
    return PROXY_BEFORE;
}

static void arm(struct play *play, const struct step *step, enum proxy_act act)
{
    const char *nth = step_option(step, "nth");
    const struct proxy_plan plan = {
        .point = point_of(step),
        .act = act,
        .nth = nth != NULL ? (unsigned)strtoul(nth, NULL, 10)
               : says(step, "counts_from_now") ? 0
                                               : 1,
        .containing = text_of(play, step),
        .delay_ms = (unsigned)ms_of(step, "ms"),
    };

    proxy_arm(play->proxy, &plan);
}

static struct result network(struct play *play, const struct step *step)
{
    need_proxy(play);
    if (says(step, "heals"))
        proxy_heal(play->proxy);
    else if (says(step, "breaks") || says(step, "is_down"))
        proxy_down(play->proxy);
    else if (says(step, "is_silent") && step->option_count == 0)
        proxy_blackhole(play->proxy);
    else if (says(step, "is_silent"))
        arm(play, step, PROXY_BLACKHOLE);
    else if (says(step, "cuts"))
        arm(play, step, PROXY_CUT);
    else if (says(step, "swallows"))
        arm(play, step, PROXY_SWALLOW);
    else if (says(step, "delays") || says(step, "counts_from_now"))
        arm(play, step, PROXY_PASS);
    else if (says(step, "counts"))
        return (struct result){.rc = (int)proxy_times(play->proxy),
                               .is_undecided =
                                   step_option(step, "now") == NULL};
    else
        return unknown();
    if (says(step, "breaks"))
        proxy_heal(play->proxy);
    return done;
}

/* ---------------------------------------------------------- the database -- */

/* Old sessions stay read-only. */
static void make_writable(struct play *play)
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

/* "stops" stops the server's processes.  A database "is_busy" when a session of
 * another program has the SQLite file's write lock, or the lock table's. */
static struct result database(struct play *play, const struct step *step)
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
        (void)sql_run(&f->sql, "SELECT pg_terminate_backend(pid) FROM "
                               "pg_stat_activity WHERE usename = CURRENT_USER "
                               "AND pid <> pg_backend_pid()");
        play->is_readonly = true;
    } else if (says(step, "is_writable")) {
        make_writable(play);
    } else if (says(step, "lends_locks")) {
        return is(lends_locks(f));
    } else if (says(step, "commits_slowly")) {
        (void)sql_run(&f->sql,
                      "CREATE TRIGGER %s_SLOW AFTER UPDATE ON %s FOR EACH ROW "
                      "SET @slept = SLEEP(2)",
                      f->prefix, f->table);
    } else if (says(step, "commits_quickly")) {
        (void)sql_run(&f->sql, "DROP TRIGGER %s_SLOW", f->prefix);
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
    } else if (says(step, "has_its_table_back")) {
        (void)sql_run(&f->sql, "ALTER TABLE %s_AWAY RENAME TO %s", f->table,
                      f->table);
    } else {
        return unknown();
    }
    return done;
}

/* ------------------------------------------------------------- strangers -- */

/* Another program's statements on the row of a lock. */
static struct result stranger(struct play *play, const struct step *step)
{
    struct fixture *f = play->f;
    char name[96];
    char key[SQLOCK_KEY_SIZE];

    (void)play_name(play, name, step->name);
    (void)key_of(play, key, step->name);

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
    } else if (says(step, "expires")) {
        fixture_expire(f, name);
    } else if (says(step, "frees")) {
        (void)sql_run(&f->sql,
                      "UPDATE %s SET CLIENT_ID = NULL WHERE LOCK_KEY = '%s'",
                      f->table, key);
    } else if (says(step, "takes")) {
        (void)sql_run(&f->sql,
                      "UPDATE %s SET CLIENT_ID = "
                      "'00000000-0000-4000-8000-000000000001' "
                      "WHERE LOCK_KEY = '%s'",
                      f->table, key);
    } else {
        return unknown();
    }
    return done;
}

/* ------------------------------------------------------- Spring services -- */

static struct service *service_of(struct play *play, const char *id)
{
    struct service *service = play->services;

    while (service->id[0] != '\0' && strcmp(service->id, id) != 0)
        service++;
    if (service->id[0] == '\0') {
        (void)snprintf(service->id, sizeof service->id, "%s", id);
        assert_lock_ok(sql_open(&service->sql, play->f->database, play->f->url),
                       &service->sql.err);
    }
    return service;
}

static struct result spring(struct play *play, const struct step *step)
{
    struct service *service = service_of(play, step->actor);
    int64_t ttl_ms = ms_of(step, "ttl");
    const struct peer peer = {
        .fixture = play->f,
        .sql = &service->sql,
        .client = service->id,
        .ttl_ms = (uint32_t)(ttl_ms != 0 ? ttl_ms : PEER_TTL_MS),
    };
    char name[96];
    int rc;

    (void)play_name(play, name, step->name);
    if (says(step, "takes"))
        rc = peer_acquire(&peer, name);
    else if (says(step, "gives"))
        rc = peer_release(&peer, name);
    else if (says(step, "renews"))
        rc = peer_renew(&peer, name);
    else
        return unknown();
    /* The service tries again, as Spring does. */
    return (struct result){.rc = rc,
                           .message = service->sql.err.message,
                           .is_undecided = step_option(step, "soon") != NULL};
}

/* ---------------------------------------------------------- the operator -- */

/* End the present holder's lease; with `now`, free the lock at once. */
static struct result operator(struct play *play, const struct step *step)
{
    sqlock_break_options how = SQLOCK_BREAK_INIT;
    struct fixture *f = play->f;
    char name[96];
    struct row row = fixture_row(f, play_name(play, name, step->name));
    int rc;

    if (!says(step, "breaks"))
        return unknown();
    how.client_id = row.client;
    how.reason = "a scene";
    how.now = step_option(step, "now") != NULL;
    rc = sqlock_break(f->b, name, &how, &f->err);
    return (struct result){.rc = rc, .message = f->err.message};
}

/* ----------------------------------------------- what is seen, and time -- */

enum { FREE, HELD, EXPIRED };

/* A row of Spring's layouts may be deleted at any time, so each statement has
 * to give an answer without it. */
static int state_of(struct play *play, const struct step *step)
{
    struct fixture *f = play->f;
    bool is_four = f->layout == SQLOCK_LAYOUT_SPRING6;
    char before[160];
    char key[SQLOCK_KEY_SIZE];
    char name[96];

    if (fixture_is_free(f, play_name(play, name, step->name)))
        return FREE;
    (void)fixture_time(f, before, is_four ? INT64_C(-1000) * PEER_TTL_MS : 0);
    return sql_integer(&f->sql,
                       "SELECT COUNT(*) FROM %s WHERE LOCK_KEY = '%s' AND %s "
                       "< %s",
                       f->table, key_of(play, key, step->name),
                       is_four ? "CREATED_DATE" : "EXPIRED_AFTER", before) > 0
               ? EXPIRED
               : HELD;
}

/* Wait until the lease of a row ends later than it does now. */
static int await_renewal(struct fixture *f, const char *name)
{
    int64_t expires_us = fixture_row(f, name).expires_us;

    return wait_until(fixture_row(f, name).expires_us > expires_us, PATIENCE_MS)
               ? 0
               : -1;
}

/* "knows" remembers the holder that the row names, "has_another" tells whether
 * that is another one by now. */
static int compare_holder(struct play *play, const char *name)
{
    struct named *named = play_named(play, name);
    char full[96];
    struct row row = fixture_row(play->f, play_name(play, full, name));
    bool is_another = strcmp(named->client, row.client) != 0;

    (void)snprintf(named->client, sizeof named->client, "%s", row.client);
    return row.client[0] == '\0' ? NOT_PLAYED : is_another;
}

/* "shows" waits for a state, unless now=.  Tokens of sqlock's layout are not
 * less than the database's clock: "bounds" lets them not be less than the end
 * of the present lease. */
static struct result table(struct play *play, const struct step *step)
{
    char name[96];

    (void)play_name(play, name, step->name);
    if (says(step, "is_renewed"))
        return is(await_renewal(play->f, name));
    if (says(step, "bounds")) {
        play_named(play, step->name)->token =
            fixture_row(play->f, name).expires_us;
        return done;
    }
    if (says(step, "knows") || says(step, "has_another"))
        return (struct result){.rc = compare_holder(play, step->name),
                               .message = "nobody has it"};
    if (!says(step, "shows"))
        return unknown();
    return (struct result){.rc = state_of(play, step),
                           .is_undecided = step_option(step, "now") == NULL};
}

static struct result pass_time(struct play *play, const struct step *step)
{
    (void)play;
    if (!says(step, "passes"))
        return unknown();
    check_sleep(ms_of(step, "ms"));
    return is(0);
}

static const struct performer performers[] = {
    {"network", network}, {"database", database}, {"stranger", stranger},
    {"spring", spring},
    {
        "operator",
        operator},
        {"table", table},
        {"time", pass_time},
    };

static const struct performer *find(const char *actor)
{
    for (size_t i = 0; i < sizeof performers / sizeof *performers; i++)
        if (strncmp(actor, performers[i].actor, strlen(performers[i].actor)) ==
            0)
            return &performers[i];
    return NULL;
}

bool stage_has(const char *actor)
{
    return find(actor) != NULL;
}

struct result stage_perform(struct play *play, const struct step *step)
{
    return find(step->actor)->perform(play, step);
}

void stage_close(struct play *play)
{
    server_go_on();
    make_writable(play);
    if (play->stranger.connection != NULL)
        fixture_unlock_row(&play->stranger);
    for (size_t i = 0; i < PEERS_MAX; i++)
        if (play->services[i].id[0] != '\0')
            sql_close(&play->services[i].sql);
    proxy_close(play->proxy);
    if (play->pooler.pid != 0)
        pooler_end(&play->pooler);
    if (play->has_stubs)
        (void)sql_run(&play->f->sql, "DROP SCHEMA %s_stub CASCADE",
                      play->f->prefix);
}
