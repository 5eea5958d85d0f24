/*
 * tx.c - transactions of a thread: on a connection of the registry, or on one
 * that the application has opened with its own client library
 */
#include "actor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sqlock/many.h"

static const struct database *database_of(const char *url)
{
    const struct database *database = databases;

    while (database + 1 < databases + DATABASES &&
           strncmp(url, database->name, strlen(database->name)) != 0)
        database++;
    return database;
}

const char *actor_plain_url(const struct actor *actor)
{
    return actor->url + (strncmp(actor->url, "tap+", 4) == 0 ? 4 : 0);
}

static void connect_app(struct player *player)
{
    struct session *session = &player->session;
    const char *url = actor_plain_url(player->actor);

    if (step_option(&player->step, "counting_found") != NULL)
        app_open_counting_found(&session->app, database_of(url), url);
    else
        app_open(&session->app, database_of(url), url);
    if (step_option(&player->step, "unusual") != NULL) {
        app_change_settings(&session->app);
        session->settings = app_settings(&session->app);
    }
}

static sqlock_table table_of(const struct step *step)
{
    const char *column = step_option(step, "of");
    sqlock_table table = SQLOCK_TABLE_INIT;

    table.name = step_option(step, "table");
    table.key_column = "id";
    table.version_column = column != NULL ? column : "version";
    if (column != NULL && strcmp(column, "moment") == 0)
        table.version_kind = SQLOCK_VERSION_TIMESTAMP;
    if (column != NULL && strcmp(column, "state") == 0)
        table.version_kind = SQLOCK_VERSION_STATE;
    table.fence_column = "fence";
    table.fence_owner_column = "owner";
    return table;
}

/* --------------------------------------------------------- begin and end -- */

static int begin(struct player *player, sqlock_error *err)
{
    return sqlock_tx_begin(&player->session.tx, actor_registry(player), err);
}

static int adopt(struct player *player, sqlock_error *err)
{
    return sqlock_tx_adopt(&player->session.tx, actor_registry(player),
                           player->session.app.native, err);
}

static int end(struct player *player, sqlock_error *err)
{
    const char *verb = player->step.verb;
    sqlock_tx *tx = player->session.tx;
    int rc;

    if (strcmp(verb, "leaves") == 0) {
        rc = sqlock_tx_leave(tx, err);
        if (rc == SQLOCK_EINVAL)
            return rc; /* nothing was done */
    } else if (strcmp(verb, "commits") == 0) {
        rc = sqlock_tx_commit(tx, err);
    } else if (strcmp(verb, "rolls_back") == 0) {
        rc = sqlock_tx_rollback(tx, err);
    } else {
        rc = sqlock_tx_abandon(tx, err);
    }
    player->session.tx = NULL;
    return rc;
}

/* ------------------------------------------------------------ statements -- */

/* "runs:" gives 0, or -1 if the statement fails; "reads:" the first cell. */
static int run(struct player *player, sqlock_error *err)
{
    struct app *app = &player->session.app;
    int rc = app_try(app, "%s", player->step.statement);

    if (rc < 0) {
        (void)snprintf(err->message, sizeof err->message, "%.200s", app->error);
        return rc;
    }
    return strcmp(player->step.verb, "reads") == 0 ? (int)app_number(app) : 0;
}

/* Write a statement to out, with a new line where it has \n. */
static const char *with_lines(char out[1024], const char *statement)
{
    size_t at = 0;

    for (; *statement != '\0' && at + 1 < 1024; statement++) {
        bool is_line = strncmp(statement, "\\n", 2) == 0;

        out[at++] = is_line ? '\n' : *statement;
        statement += is_line;
    }
    out[at] = '\0';
    return out;
}

static int execute(struct player *player, sqlock_error *err)
{
    sqlock_result result = {0};
    char text[1024];
    int rc = sqlock_tx_execute(player->session.tx,
                               with_lines(text, player->step.statement), NULL,
                               0, &result, err);

    if (rc == 0 && strcmp(player->step.verb, "fetches") == 0 && result.rows > 0)
        rc = (int)(result.cells[0].type == SQLOCK_TEXT
                       ? strtoll(result.cells[0].text, NULL, 10)
                       : result.cells[0].integer);
    sqlock_result_clear(&result);
    return rc;
}

static int is_in_tx(struct player *player, sqlock_error *err)
{
    (void)err;
    return app_in_transaction(&player->session.app);
}

/* Tell whether the application's session has the settings that it had. */
static int compare_settings(struct player *player, sqlock_error *err)
{
    struct session *session = &player->session;
    char *now = app_settings(&session->app);
    bool is_same = strcmp(now, session->settings) == 0;

    (void)err;
    free(now);
    return is_same;
}

/* The number of the application's session. */
static int tell_session(struct player *player, sqlock_error *err)
{
    (void)err;
    return (int)app_session(&player->session.app);
}

static int begin_at(struct player *player, sqlock_error *err)
{
    (void)err;
    app_begin_at(&player->session.app,
                 app_levels[actor_number(&player->step, "level", 0)]);
    return 0;
}

static int set_charset(struct player *player, sqlock_error *err)
{
    (void)err;
    app_set_utf8(&player->session.app,
                 strcmp(player->step.verb, "speaks_utf8") == 0);
    return 0;
}

static int forget_session(struct player *player, sqlock_error *err)
{
    (void)err;
    app_forget(&player->session.app, false);
    return 0;
}

/* ------------------------------------------------ guards, names and rows -- */

static int guard(struct player *player, sqlock_error *err)
{
    return sqlock_tx_guard(player->session.tx,
                           actor_lock(player, player->step.name), err);
}

/* For ms=, or count=: one guarded transaction after the other, on the
 * application's connection. */
static int guard_often(struct player *player, sqlock_error *err)
{
    int64_t until = check_deadline_ns(actor_ms(&player->step, "ms", 0));
    int64_t left = actor_number(&player->step, "count", 1);
    int rc;

    do {
        rc = adopt(player, err);
        if (rc == 0)
            rc = guard(player, err);
        if (rc == 0)
            rc = sqlock_tx_commit(player->session.tx, err);
        player->session.tx = NULL;
        left--;
    } while (rc == 0 && (left > 0 || check_pause(until)));
    return rc;
}

static int give_up(struct player *player, sqlock_error *err)
{
    static struct set set;
    int rc;

    actor_obtain(player, &set);
    rc = set.is_many
             ? sqlock_abandon_many(set.locks, set.count, set.results, err)
             : sqlock_abandon(set.locks[0], err);
    actor_check_each(player, set.results, set.count);
    return rc;
}

#define LOCKED_MAX 16

struct names {
    char text[LOCKED_MAX][96];
    const char *all[LOCKED_MAX];
    size_t count;
};

static void add_name(void *context, const char *name)
{
    struct names *names = context;

    if (names->count == LOCKED_MAX)
        return;
    (void)snprintf(names->text[names->count], 96, "%s", name);
    names->all[names->count] = names->text[names->count];
    names->count++;
}

static int lock_names(struct player *player, sqlock_error *err)
{
    struct names names = {.count = 0};
    int results[LOCKED_MAX];
    int rc;

    actor_each_name(&player->step, add_name, &names);
    rc = sqlock_tx_lock(player->session.tx, names.all, names.count,
                        actor_ms(&player->step, "wait", 0),
                        step_option(&player->step, "skip") != NULL, results,
                        err);
    actor_check_each(player, results, names.count);
    return rc;
}

static int lock_row(struct player *player, sqlock_error *err)
{
    const struct step *step = &player->step;
    sqlock_table table = table_of(step);
    sqlock_value key = sqlock_integer(actor_number(step, "id", 1));

    return sqlock_tx_lock_row(player->session.tx, &table, &key,
                              step_option(step, "share") != NULL,
                              actor_ms(step, "wait", 0), err);
}

static int fence(struct player *player, sqlock_error *err)
{
    const struct step *step = &player->step;
    sqlock_table table = table_of(step);
    sqlock_value key = sqlock_integer(actor_number(step, "id", 1));

    return sqlock_tx_fence(player->session.tx, &table, &key,
                           actor_number(step, "token", 0),
                           step_option(step, "by"), err);
}

/* ------------------------------------------------------- compare-and-set -- */

/* Remember the version of a row. */
static int read_version(struct player *player, sqlock_error *err)
{
    const struct step *step = &player->step;
    sqlock_table table = table_of(step);
    sqlock_value key = sqlock_integer(actor_number(step, "id", 1));
    struct session *session = &player->session;

    return sqlock_tx_version(session->tx, &table, &key, &session->seen, err);
}

/* Update a row that has the version which was remembered, or version=; the new
 * one has to be greater, and is remembered unless `forgotten`.  `to`: give the
 * row that id. */
static int update(struct player *player, sqlock_error *err)
{
    const struct step *step = &player->step;
    const char *version = step_option(step, "version");
    const char *state = step_option(step, "state");
    struct session *session = &player->session;
    sqlock_table table = table_of(step);
    sqlock_value key = sqlock_integer(actor_number(step, "id", 1));
    sqlock_assignment set[3];
    size_t count = 0;
    sqlock_row_version next = {.type = SQLOCK_NULL};
    int rc;

    if (step_option(step, "a") != NULL)
        set[count++] = (sqlock_assignment){
            "a", sqlock_integer(actor_number(step, "a", 0))};
    if (state != NULL)
        set[count++] = (sqlock_assignment){"state", sqlock_text(state)};
    if (step_option(step, "to") != NULL)
        set[count++] = (sqlock_assignment){
            "id", sqlock_integer(actor_number(step, "to", 0))};
    if (version != NULL && table.version_kind == SQLOCK_VERSION_STATE) {
        session->seen = (sqlock_row_version){.type = SQLOCK_TEXT};
        (void)snprintf(session->seen.text, sizeof session->seen.text, "%s",
                       version);
    } else if (version != NULL) {
        session->seen = (sqlock_row_version){
            .type = SQLOCK_INT64, .integer = strtoll(version, NULL, 10)};
    }
    rc = sqlock_tx_update(session->tx, &table, &key, &session->seen, set, count,
                          &next, err);
    if (rc == 0 && next.type == SQLOCK_INT64 &&
        next.integer <=
            session->seen.integer + 1000000 * actor_number(step, "later", 0))
        return NOT_PLAYED;
    if (rc == 0 && step_option(step, "forgotten") == NULL)
        session->seen = next;
    return rc;
}

/* ------------------------------------------------------------- the verbs -- */

bool actor_use_tx(struct player *player)
{
    static const struct {
        const char *verb;
        int (*perform)(struct player *player, sqlock_error *err);
    } verbs[] = {
        {"begins", begin},
        {"adopts", adopt},
        {"commits", end},
        {"rolls_back", end},
        {"leaves", end},
        {"abandons_tx", end},
        {"runs", run},
        {"reads", run},
        {"executes", execute},
        {"fetches", execute},
        {"is_in_tx", is_in_tx},
        {"has_its_settings", compare_settings},
        {"begins_at", begin_at},
        {"tells_session", tell_session},
        {"guards_often", guard_often},
        {"forgets_session", forget_session},
        {"speaks_utf8", set_charset},
        {"speaks_latin1", set_charset},
        {"guards", guard},
        {"gives_up", give_up},
        {"locks", lock_names},
        {"locks_row", lock_row},
        {"fences", fence},
        {"reads_version", read_version},
        {"updates", update},
    };
    struct session *session = &player->session;
    const char *verb = player->step.verb;

    if (strcmp(verb, "connects") == 0) {
        connect_app(player);
        return true;
    }
    if (strcmp(verb, "disconnects") == 0) {
        app_close(&session->app);
        free(session->settings);
        session->settings = NULL;
        return true;
    }
    if (strcmp(verb, "reads") == 0 && player->step.statement == NULL)
        return false; /* of a descriptor */
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(verb, verbs[i].verb) == 0) {
            player->outcome.rc = verbs[i].perform(player, &player->outcome.err);
            return true;
        }
    return false;
}
