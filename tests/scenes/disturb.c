/*
 * disturb.c - what goes wrong between an actor and its database: a tap in its
 * driver (support/tap.h) fails, delays or keeps chosen calls, and counts them
 *
 * Statements are chosen by what they are for, never by their texts, so that
 * scenes do not depend on how many statements there are of a kind.
 */
#include "actor.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lock/registry.h"
#include "support/tap.h"

#define RULES_MAX 6

/* Beside enum tap_call, of stock, whose statements have no names: what makes a
 * change last, a COMMIT or an UPDATE that commits by itself; what begins one;
 * and the reading of an order's answer. */
enum { OF_SALES = TAP_CALLS + 1, OF_WRITES, OF_ANSWERS };

/* The meaning of a word: calls of a kind, or those of some statements. */
struct kind {
    const char *word;
    int call;          /* an enum tap_call, or of those above */
    int statements[7]; /* up to the first -1 */
};

static const struct kind kinds[] = {
    {"any", TAP_CALLS, {-1}},
    {"opening", TAP_OPEN, {-1}},
    {"statement", TAP_EXECUTE, {-1}},
    {"begin", TAP_BEGIN, {-1}},
    {"commit", TAP_COMMIT, {-1}},
    {"rollback", TAP_ROLLBACK, {-1}},
    {"sale", OF_SALES, {-1}},
    {"write", OF_WRITES, {-1}},
    {"answer", OF_ANSWERS, {-1}},
    {"claim",
     TAP_EXECUTE,
     {SQLOCK_SQL_CLAIM, SQLOCK_SQL_CLAIM_UNQUEUED, SQLOCK_SQL_CLAIM_RESERVED,
      SQLOCK_SQL_CLAIM_MANY, SQLOCK_SQL_ENQUEUE, SQLOCK_SQL_SHARE, -1}},
    {"short_claim", TAP_EXECUTE, {SQLOCK_SQL_CLAIM_UNQUEUED, -1}},
    {"renewal",
     TAP_EXECUTE,
     {SQLOCK_SQL_RENEW, SQLOCK_SQL_RENEW_MANY, SQLOCK_SQL_RENEW_SHARE, -1}},
    {"release",
     TAP_EXECUTE,
     {SQLOCK_SQL_RELEASE, SQLOCK_SQL_RELEASE_UNQUEUED, SQLOCK_SQL_RELEASE_MANY,
      SQLOCK_SQL_RELEASE_WITH_BELL, SQLOCK_SQL_RELEASE_SHARE, -1}},
    {"downgrade", TAP_EXECUTE, {SQLOCK_SQL_DOWNGRADE, -1}},
    {"publishing", TAP_EXECUTE, {SQLOCK_SQL_PUBLISH, -1}},
    {"hand_off", TAP_EXECUTE, {SQLOCK_SQL_HAND_OFF, -1}},
    {"reading",
     TAP_EXECUTE,
     {SQLOCK_SQL_READ, SQLOCK_SQL_READ_MANY, SQLOCK_SQL_ONCE_READ, -1}},
    {"record", TAP_EXECUTE, {SQLOCK_SQL_ONCE_RECORD, -1}},
    {"circle", TAP_EXECUTE, {SQLOCK_SQL_WAITS, -1}},
    {"guard", TAP_EXECUTE, {SQLOCK_SQL_GUARD, -1}},
};
#define KINDS (sizeof kinds / sizeof *kinds)

enum act { FAIL, HOLD, DELAY, KEEP };

struct rule {
    enum act act;
    const struct kind *kind;
    bool is_after; /* the database has carried it out */
    int code;
    int64_t ms;
    int64_t skipped; /* so many pass before */
    int64_t times;   /* so many are hit; -1: all */
    int64_t every;   /* of those, each so many-th */
    int64_t seen;
    bool by_players; /* only calls of the scene's own threads */
    bool by_others;  /* only those of the library's threads */
    bool from_begin; /* only since a transaction has begun, or before */
    bool until_begin;
    uint64_t since; /* only on connections from this number on */
    int server;     /* only there; -1: anywhere */
    char key[96];   /* of a lock, or the id of an order; "": any */
};

/* A statement that was not sent when it should have been. */
struct kept {
    const char *text;
    sqlock_value values[LK_PLACES_MAX];
    size_t count;
};

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t opened;
    struct actor *actor;
    struct rule rules[RULES_MAX];
    size_t count;
    unsigned generation; /* of the rules: what an old one holds may pass */
    int64_t met;         /* how often the last rule was met */
    int64_t sent[KINDS];
    bool has_begun;  /* a transaction, since the last rule was made */
    int64_t step_us; /* of the database's clock */
    struct kept kept;
} tap = {.mutex = PTHREAD_MUTEX_INITIALIZER,
         .opened = PTHREAD_COND_INITIALIZER};

static _Thread_local bool is_player;

void disturb_by_player(void)
{
    is_player = true;
}

/* ------------------------------------------------------------ the choice -- */

static bool is_about_stock(int call, const struct tap_event *event)
{
    bool is_statement = event->call == TAP_EXECUTE && event->text != NULL;
    bool is_update = is_statement && strstr(event->text, "UPDATE ") != NULL;

    if (call == OF_ANSWERS)
        return is_statement && strstr(event->text, "BALANCE FROM ") != NULL;
    if (call == OF_WRITES)
        return event->call == TAP_BEGIN || is_update;
    return event->call == TAP_COMMIT || (is_update && !tap.has_begun);
}

/* Return whether the text is that of a statement at this server. */
static bool is_sent_to(const struct tap_event *event, int server, int statement)
{
    const sqlock_registry *registry = tap.actor->registries[server];

    return registry != NULL &&
           registry->store.statements[statement].sent.text == event->text;
}

/* A server of -1 stands for each. */
static bool is_of_kind(const struct kind *kind, const struct tap_event *event,
                       int server)
{
    if (kind->call == TAP_CALLS)
        return event->call != TAP_ABORT && event->call != TAP_OPEN;
    if (kind->call > TAP_CALLS)
        return is_about_stock(kind->call, event);
    if ((int)event->call != kind->call)
        return false;
    if (kind->statements[0] < 0)
        return true;
    for (int at = 0; at < SERVERS; at++)
        for (size_t i = 0; kind->statements[i] >= 0; i++)
            if ((server < 0 || server == at) &&
                is_sent_to(event, at, kind->statements[i]))
                return true;
    return false;
}

static bool has_key(const struct tap_event *event, const char *key)
{
    for (size_t i = 0; i < event->count; i++)
        if (event->parameters[i].type == SQLOCK_TEXT &&
            memmem(event->parameters[i].text, event->parameters[i].length, key,
                   strlen(key)) != NULL)
            return true;
    return key[0] == '\0';
}

/* Return whether the rule is for this call, and counts it. */
static bool hits(struct rule *rule, const struct tap_event *event,
                 bool is_after)
{
    if (rule->is_after != is_after ||
        !is_of_kind(rule->kind, event, rule->server) ||
        (rule->by_players && !is_player) || (rule->by_others && is_player) ||
        (rule->from_begin && !tap.has_begun) ||
        (rule->until_begin && tap.has_begun) || event->session < rule->since ||
        !has_key(event, rule->key))
        return false;
    if (++rule->seen <= rule->skipped ||
        (rule->seen - rule->skipped - 1) % rule->every != 0 || rule->times == 0)
        return false;
    if (rule->times > 0)
        rule->times--;
    return true;
}

/* ---------------------------------------------------------- what is done -- */

static void keep(const struct tap_event *event)
{
    tap.kept = (struct kept){.text = event->text, .count = event->count};
    for (size_t i = 0; i < event->count && i < LK_PLACES_MAX; i++) {
        tap.kept.values[i] = event->parameters[i];
        if (event->parameters[i].type == SQLOCK_TEXT)
            tap.kept.values[i].text = strdup(event->parameters[i].text);
    }
}

/* Hold the call up until the rules are others, but not for ever. */
static void hold_up(void)
{
    unsigned generation = tap.generation;
    struct timespec until;

    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_MS / 1000;
    while (tap.generation == generation &&
           pthread_cond_timedwait(&tap.opened, &tap.mutex, &until) == 0)
        ;
}

/* Do what the rules have for the call.  Return the result that it gets, or
 * rc. */
static int obey(const struct tap_event *event, bool is_after, int rc)
{
    for (size_t i = 0; i < tap.count; i++) {
        struct rule *rule = &tap.rules[i];
        struct rule met = *rule;

        if ((is_after && rc != 0) || !hits(rule, event, is_after))
            continue;
        if (i + 1 == tap.count)
            tap.met++;
        if (met.act == KEEP)
            keep(event);
        if (met.act == HOLD)
            hold_up();
        if (met.ms > 0) {
            pthread_mutex_unlock(&tap.mutex);
            check_sleep(met.ms);
            pthread_mutex_lock(&tap.mutex);
        }
        return met.code != 0 ? met.code : rc;
    }
    return rc;
}

static int before(void *context, const struct tap_event *event)
{
    int rc;

    (void)context;
    pthread_mutex_lock(&tap.mutex);
    for (size_t i = 0; i < KINDS; i++)
        tap.sent[i] += is_of_kind(&kinds[i], event, -1);
    rc = obey(event, false, 0);
    tap.has_begun = tap.has_begun || event->call == TAP_BEGIN;
    pthread_mutex_unlock(&tap.mutex);
    return rc;
}

/* Let the answer to a renewal of the background tell a clock that was set. */
static void step_clock(const struct tap_event *event)
{
    sqlock_result *result = event->result;

    if (result == NULL || !is_sent_to(event, 0, SQLOCK_SQL_RENEW_MANY))
        return;
    for (size_t row = 0; row < result->rows; row++)
        result->cells[row * result->columns + (result->columns > 1)].integer +=
            tap.step_us;
}

static int after(void *context, const struct tap_event *event, int rc)
{
    (void)context;
    pthread_mutex_lock(&tap.mutex);
    step_clock(event);
    rc = obey(event, true, rc);
    pthread_mutex_unlock(&tap.mutex);
    return rc;
}

/* ------------------------------------------------------------- the verbs -- */

static const struct kind *kind_of(const struct step *step)
{
    for (size_t i = 0; i < KINDS; i++)
        for (size_t k = 0; k < step->option_count; k++)
            if (strcmp(step->options[k], kinds[i].word) == 0)
                return &kinds[i];
    return &kinds[0];
}

static bool has(const struct step *step, const char *option)
{
    return step_option(step, option) != NULL;
}

static int add_rule(struct player *player, enum act act)
{
    const struct step *step = &player->step;
    const char *code = step_option(step, "code");
    const char *order = step_option(step, "order");
    struct rule *rule = &tap.rules[tap.count];

    if (tap.count == RULES_MAX)
        return NOT_PLAYED;
    *rule = (struct rule){
        .act = act,
        .kind = kind_of(step),
        .is_after = has(step, "after"),
        .code = code != NULL ? result_number(code, strlen(code)) : 0,
        .ms = actor_ms(step, "ms", 0),
        .skipped = actor_number(step, "skip", 0),
        .times =
            actor_number(step, "times", act == HOLD || act == KEEP ? 1 : -1),
        .every = actor_number(step, "every", 1),
        .by_players = has(step, "own"),
        .by_others = has(step, "background"),
        .from_begin = has(step, "from_begin"),
        .until_begin = has(step, "until_begin"),
        .since = has(step, "new") ? tap_count(TAP_OPEN) + 1 : 0,
        .server = (int)actor_number(step, "server", -1),
    };
    tap.count++;
    tap.met = 0;
    tap.has_begun = false;
    if (order != NULL)
        (void)snprintf(rule->key, sizeof rule->key, "%s", order);
    return step->name == NULL
               ? 0
               : sqlock_key_of(rule->key, step->name, SQLOCK_KEY_CURRENT, NULL);
}

/* Let pass what is held up. */
static int let_pass(void)
{
    tap.generation++;
    (void)pthread_cond_broadcast(&tap.opened);
    return 0;
}

/* Send the statement that was kept back, over a session of its own.  It is to
 * change a row, or to come too late for that. */
static int let_arrive(struct outcome *outcome, bool is_in_vain)
{
    const sqlock_statement statement = {.text = tap.kept.text};
    sqlock_result result = {0};
    struct sql sql;
    int rc;

    pthread_mutex_unlock(&tap.mutex);
    rc = sql_open(&sql, NULL, tap.actor->url + strlen("tap+"));
    if (rc == 0)
        rc = sql.driver->execute(sql.connection, &statement, tap.kept.values,
                                 tap.kept.count, check_deadline_ns(PATIENCE_MS),
                                 &result, &outcome->err);
    if (rc == 0 && (result.affected == 0 && result.rows == 0) != is_in_vain)
        rc = NOT_PLAYED;
    sqlock_result_clear(&result);
    sql_close(&sql);
    pthread_mutex_lock(&tap.mutex);
    return rc;
}

static int disturb(struct player *player, const char *verb)
{
    int64_t ids[64];

    if (strcmp(verb, "fails") == 0)
        return add_rule(player, FAIL);
    if (strcmp(verb, "holds_up") == 0)
        return add_rule(player, HOLD);
    if (strcmp(verb, "delays") == 0)
        return add_rule(player, DELAY);
    if (strcmp(verb, "keeps_back") == 0)
        return add_rule(player, KEEP);
    if (strcmp(verb, "works") == 0)
        tap.count = 0;
    if (strcmp(verb, "works") == 0 || strcmp(verb, "lets_pass") == 0)
        return let_pass();
    if (strcmp(verb, "lets_arrive") == 0)
        return let_arrive(&player->outcome, has(&player->step, "in_vain"));
    if (strcmp(verb, "steps_clock") == 0) {
        tap.step_us = 1000 * actor_ms(&player->step, "ms", 0);
        return 0;
    }
    if (strcmp(verb, "has_connections") == 0)
        return (int)tap_connections(ids, 64);
    if (strcmp(verb, "has_met") == 0)
        return (int)tap.met;
    if (strcmp(verb, "has_sent") == 0)
        return (int)tap.sent[kind_of(&player->step) - kinds];
    memset(tap.sent, 0, sizeof tap.sent); /* counts_from_now */
    return 0;
}

void disturb_begin(struct actor *actor)
{
    if (tap.actor != NULL)
        return;
    tap.actor = actor;
    tap_install();
    tap_hooks(before, after, NULL);
}

void actor_disturb(struct player *player)
{
    pthread_mutex_lock(&tap.mutex);
    disturb_begin(player->actor);
    player->outcome.rc = disturb(player, player->step.verb);
    pthread_mutex_unlock(&tap.mutex);
}
