/*
 * stage.c - what happens to the processes of a scene from outside: the network,
 * the database, strangers and Spring services in the table, an operator, time
 */
#include "stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/app_table.h"
#include "support/peer.h"
#include "support/server.h"

/* A performer of the stage, by its name or the beginning of that. */
struct performer {
    const char *actor;
    struct result (*perform)(struct play *play, const struct step *step);
};

int64_t stage_ms(const struct step *step, const char *option)
{
    const char *value = step_option(step, option);

    return value == NULL ? 0 : SLOWNESS * strtoll(value, NULL, 10);
}

const char *stage_key(const struct play *play, char out[SQLOCK_KEY_SIZE],
                      const char *name)
{
    char full[96];
    int rc = sqlock_key_of(out, play_name(play, full, name), SQLOCK_KEY_CURRENT,
                           NULL);

    assert_int_equal(rc, 0);
    return out;
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
    int64_t ttl_ms = stage_ms(step, "ttl");
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

/* End the lease of the present holder; with `last`, of the greatest token; with
 * of=nobody, of a client that there is not; with `wrong`, with a token that it
 * does not have.  With `now`, free the lock at once. */
static struct result break_lease(struct play *play, const struct step *step)
{
    sqlock_break_options how = SQLOCK_BREAK_INIT;
    struct fixture *f = play->f;
    char name[96];
    struct row row = fixture_row(f, play_name(play, name, step->name));
    int rc;

    if (!says(step, "breaks"))
        return unknown();
    if (step_option(step, "last") != NULL)
        how.token = play_named(play, step->name)->token;
    if (step_option(step, "wrong") != NULL)
        how.token = row.fence + 1;
    if (step_option(step, "of") != NULL)
        how.client_id = "22222222-aaaa-4aaa-8aaa-222222222222";
    else if (step_option(step, "last") == NULL)
        how.client_id = row.client;
    how.who = step_option(step, "who");
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
                       f->table, stage_key(play, key, step->name),
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

/* "knows" remembers the row; "has_another" tells whether its holder is another
 * one by now, "has_moved" whether its lease ends at another time. */
static struct result compare_row(struct play *play, const struct step *step)
{
    struct named *named = play_named(play, step->name);
    struct row before = named->row;
    char name[96];

    named->row = fixture_row(play->f, play_name(play, name, step->name));
    if (says(step, "has_moved"))
        return is(named->row.expires_us != before.expires_us);
    if (named->row.client[0] == '\0')
        return (struct result){.rc = NOT_PLAYED, .message = "nobody has it"};
    return is(says(step, "has_another") &&
              strcmp(named->row.client, before.client) != 0);
}

/* "lasts L most=MS [longer_than=MS] [soon]": the lease ends so long from
 * now. */
static struct result measure_row(struct play *play, const struct step *step,
                                 const char *name)
{
    int64_t left_us =
        fixture_row(play->f, name).expires_us - sql_now_us(&play->f->sql);
    const char *least = step_option(step, "longer_than");
    bool is_other =
        left_us > 1000 * stage_ms(step, "most") + 1000 ||
        (least != NULL && left_us < 1000 * stage_ms(step, "longer_than"));

    if (is_other && step_option(step, "soon") == NULL)
        play_fail(play, "it lasts %lld us", (long long)left_us);
    return (struct result){.rc = is_other,
                           .message =
                               is_other ? "it lasts for another time" : NULL};
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
    if (says(step, "lasts"))
        return measure_row(play, step, name);
    if (says(step, "bounds")) {
        play_named(play, step->name)->token =
            fixture_row(play->f, name).expires_us;
        return is(0);
    }
    if (says(step, "knows") || says(step, "has_another") ||
        says(step, "has_moved"))
        return compare_row(play, step);
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
    check_sleep(stage_ms(step, "ms"));
    return is(0);
}

static const struct performer performers[] = {
    {"network", stage_network},
    {"database", stage_database},
    {"stranger", stage_stranger},
    {"stock", stage_of_stock},
    {"spring", spring},
    {"operator", break_lease},
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
    stage_mend(play);
    if (play->stranger.connection != NULL)
        fixture_unlock_row(&play->stranger);
    for (size_t i = 0; i < PEERS_MAX; i++)
        sql_close(&play->services[i].sql);
    stage_close_servers(play);
    if (play->pooler.pid != 0)
        pooler_end(&play->pooler);
    play->pooler.pid = 0;
    if (play->has_stubs)
        (void)sql_run(&play->f->sql, "DROP SCHEMA %s_stub CASCADE",
                      play->f->prefix);
    play->has_stubs = false;
    if (play->has_stock)
        stock_drop(play->f);
    play->has_stock = false;
}
