/*
 * network.c - how a process reaches the database, and what happens on the way
 */
#include "stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The database of one of a quorum's servers: beside one of PostgreSQL there are
 * one of MariaDB and a file of SQLite, and beside a file two others. */
static const struct database *server_database(const struct play *play,
                                              int server)
{
    unsigned own = play->f->database->bit;
    unsigned bit = server == 0                         ? own
                   : own == ON_POSTGRES && server == 1 ? ON_MYSQL
                                                       : ON_SQLITE;
    const struct database *database = databases;

    while (database->bit != bit)
        database++;
    return database;
}

/* Return the URL of a server, which has its table of locks from here on. */
static const char *server_url(struct play *play, int server)
{
    struct fixture *f = play->f;
    const struct database *database = server_database(play, server);
    sqlock_options options = fixture_options(f);
    char *url = play->servers[server];

    if (server == 0)
        return f->url;
    if (url[0] != '\0')
        return url;
    if (database->bit == ON_SQLITE)
        (void)snprintf(url, sizeof *play->servers, "sqlite:%s/server%d.db",
                       play->folder, server);
    else if (database_url(database) == NULL)
        skip_or_fail("there is no server of %s", database->name);
    else
        (void)snprintf(url, sizeof *play->servers, "%s",
                       database_url(database));
    assert_ok(
        sqlock_schema_create(url, &options, SQLOCK_LAYOUT_SQLOCK, &f->err));
    return url;
}

void stage_close_servers(struct play *play)
{
    for (int i = 0; i < SERVERS; i++) {
        const char *url = play->servers[i];
        struct sql sql;

        proxy_close(play->proxies[i]);
        play->proxies[i] = NULL;
        if (strncmp(url, "sqlite:", 7) == 0) {
            (void)unlink(url + 7);
        } else if (url[0] != '\0' &&
                   sql_open(&sql, server_database(play, i), url) == 0) {
            sql_drop_locks(&sql, play->f->prefix);
            sql_close(&sql);
        }
        play->servers[i][0] = '\0';
    }
}

static struct proxy *need_proxy(struct play *play, int server)
{
    struct proxy **proxy = &play->proxies[server];

    if (*proxy == NULL)
        *proxy =
            proxy_open(server_database(play, server), server_url(play, server));
    assert_non_null(*proxy);
    return *proxy;
}

static void need_pooler(struct play *play)
{
    if (database_is_pooled(play->f->database))
        skip();
    if (play->pooler.pid == 0)
        pooler_start(&play->pooler, play->f, "");
}

/* Write a URL where the functions of the schema @prefix_stub are found before
 * the built-in ones.  stage_close() drops it. */
static void stubs_before(struct play *play, char url[1024])
{
    struct fixture *f = play->f;

    play->has_stubs = true;
    (void)snprintf(url, 1024,
                   "%s%coptions=-csearch_path%%3D%s_stub,pg_catalog,public",
                   f->url, strchr(f->url, '?') != NULL ? '&' : '?', f->prefix);
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
    stubs_before(play, url);
}

/* Write a URL of a server whose timeline the table @prefix_stub.server has, or
 * the SQLSTATE with which it refuses to tell it. */
static void timeline_url(struct play *play, char url[1024])
{
    struct fixture *f = play->f;

    if (!play->has_stubs) {
        (void)sql_run(&f->sql, "CREATE SCHEMA %s_stub", f->prefix);
        (void)sql_run(&f->sql,
                      "CREATE TABLE %s_stub.server AS SELECT "
                      "'00000001' AS timeline, NULL::text AS failure",
                      f->prefix);
        (void)sql_run(&f->sql,
                      "CREATE FUNCTION %s_stub.pg_walfile_name(pg_lsn) RETURNS "
                      "text LANGUAGE plpgsql AS 'DECLARE s record; BEGIN "
                      "SELECT * INTO s FROM %s_stub.server; IF s.failure IS "
                      "NOT NULL THEN RAISE EXCEPTION ''not told'' USING "
                      "ERRCODE = s.failure; END IF; RETURN s.timeline; END'",
                      f->prefix, f->prefix);
    }
    stubs_before(play, url);
}

const char *stage_url(struct play *play, char out[1024],
                      const struct step *step, int server)
{
    const char *through = step_option(step, "through");
    bool is_file = server_database(play, server)->bit == ON_SQLITE;
    char url[1024];

    (void)snprintf(url, sizeof url, "%s", server_url(play, server));
    if (through != NULL && strcmp(through, "network") == 0) {
        if (!is_file)
            (void)proxy_url(need_proxy(play, server), url,
                            server_url(play, server));
    } else if (through != NULL && strcmp(through, "pooler") == 0) {
        need_pooler(play);
        (void)snprintf(url, sizeof url, "%s", play->pooler.url);
    } else if (through != NULL && strcmp(through, "timelines") == 0) {
        timeline_url(play, url);
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
        return stage_key(play, text, key);
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

static void arm(struct play *play, struct proxy *proxy, const struct step *step,
                enum proxy_act act)
{
    const char *nth = step_option(step, "nth");
    const struct proxy_plan plan = {
        .point = point_of(step),
        .act = act,
        .nth = nth != NULL ? (unsigned)strtoul(nth, NULL, 10)
               : says(step, "counts_from_now") ? 0
                                               : 1,
        .containing = text_of(play, step),
        .delay_ms = (unsigned)stage_ms(step, "ms"),
    };

    proxy_arm(proxy, &plan);
}

struct result stage_network(struct play *play, const struct step *step)
{
    const char *server = step_option(step, "server");
    struct proxy *proxy =
        need_proxy(play, server != NULL ? (int)strtol(server, NULL, 10) : 0);

    if (says(step, "heals"))
        proxy_heal(proxy);
    else if (says(step, "breaks") || says(step, "is_down"))
        proxy_down(proxy);
    else if (says(step, "is_silent") && step->option_count == 0)
        proxy_blackhole(proxy);
    else if (says(step, "is_silent"))
        arm(play, proxy, step, PROXY_BLACKHOLE);
    else if (says(step, "cuts"))
        arm(play, proxy, step, PROXY_CUT);
    else if (says(step, "swallows"))
        arm(play, proxy, step, PROXY_SWALLOW);
    else if (says(step, "delays") || says(step, "counts_from_now"))
        arm(play, proxy, step, PROXY_PASS);
    else if (says(step, "counts"))
        return (struct result){.rc = (int)proxy_times(proxy),
                               .is_undecided =
                                   step_option(step, "now") == NULL};
    else
        return unknown();
    if (says(step, "breaks"))
        proxy_heal(proxy);
    return is(0);
}
