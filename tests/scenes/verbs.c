/*
 * verbs.c - what the threads of a process can do: a call of the library for
 * each verb (README.md)
 */
#include "actor.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sqlock/event.h"
#include "sqlock/leader.h"
#include "sqlock/lease.h"
#include "sqlock/once.h"
#include "sqlock/operator.h"
#include "sqlock/shared.h"

void actor_refuse(struct outcome *outcome, const char *why)
{
    outcome->rc = NOT_PLAYED;
    (void)snprintf(outcome->err.message, sizeof outcome->err.message, "%s",
                   why);
}

int64_t actor_ms(const struct step *step, const char *option, int64_t otherwise)
{
    const char *value = step_option(step, option);

    if (value == NULL)
        return otherwise;
    if (strcmp(value, "ever") == 0)
        return SQLOCK_FOREVER;
    if (strcmp(value, "longest") == 0)
        return INT64_MAX;
    return SLOWNESS * strtoll(value, NULL, 10);
}

int64_t actor_number(const struct step *step, const char *option,
                     int64_t otherwise)
{
    const char *value = step_option(step, option);

    return value == NULL ? otherwise : strtoll(value, NULL, 10);
}

/* ------------------------------------------------------------ the verbs -- */

static void cancel(struct player *player)
{
    struct outcome *outcome = &player->outcome;
    sqlock_lock *lock = actor_lock(player, player->step.name);

    for (int64_t i = actor_times(&player->step); i > 0 && outcome->rc == 0;
         i--) {
        outcome->rc = sqlock_cancel(lock, &outcome->err);
        if (i > 1)
            check_sleep(2);
    }
}

static void count(struct player *player)
{
    player->outcome.rc =
        (int)sqlock_hold_count(actor_lock(player, player->step.name));
}

/* Tell whether the lock is held, with at most most=MS left.  All that can be
 * asked must fit together; the lease may end in between. */
static void hold(struct player *player)
{
    sqlock_lock *lock = actor_lock(player, player->step.name);
    int64_t before_ms = sqlock_remaining_ms(lock);
    bool is_held = sqlock_is_held(lock);
    int64_t after_ms = sqlock_remaining_ms(lock);
    uint32_t count = sqlock_hold_count(lock);
    int64_t token = sqlock_token(lock);

    player->outcome.rc =
        is_held && after_ms <= actor_ms(&player->step, "most", after_ms);
    if (is_held ? before_ms == 0 || count == 0 || token <= 0
                : after_ms != 0 || (count == 0 && token != 0))
        actor_refuse(&player->outcome, "what is told of it does not fit");
}

/* Tell whether the descriptor that tells of a loss is readable; with soon, wait
 * for that. */
static void look_for_alarm(struct player *player)
{
    struct pollfd alarm = {.events = POLLIN};
    struct outcome *outcome = &player->outcome;

    outcome->rc = sqlock_lost_fd(
        &alarm.fd, actor_lock(player, player->step.name), &outcome->err);
    if (outcome->rc == 0)
        outcome->rc =
            poll(&alarm, 1,
                 step_option(&player->step, "soon") != NULL ? PATIENCE_MS : 0);
}

/* Tell how many of the locks are held. */
static void count_held(struct player *player)
{
    struct set set;

    actor_obtain(player, &set);
    for (size_t i = 0; i < set.count; i++)
        player->outcome.rc += sqlock_is_held(set.locks[i]);
}

/* Return whether a text has the words of an option, with '_' for blanks. */
static bool has_words(const char *text, const char *words)
{
    char with_blanks[64];

    (void)snprintf(with_blanks, sizeof with_blanks, "%s", words);
    for (char *c = with_blanks; *c != '\0'; c++)
        *c = *c == '_' ? ' ' : *c;
    return text != NULL && strstr(text, with_blanks) != NULL;
}

/* Return what the row tells otherwise than the step says; NULL: nothing. */
static const char *find_difference(const struct step *step,
                                   const sqlock_info *row)
{
    const struct {
        const char *option;
        int64_t number;
        const char *text; /* or it has these words */
    } told[] = {
        {"sharers", row->sharers, NULL},  {"taken", row->taken, NULL},
        {"permits", row->permits, NULL},  {"waiters", row->waiters, NULL},
        {"holder", 0, row->holder},       {"sharer", 0, row->sharer_names},
        {"waiter", 0, row->waiter_names},
    };
    const char *none = step_option(step, "no_sharer");
    const char *text = step_option(step, "text");

    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        const char *value = step_option(step, told[i].option);

        if (value != NULL && (i < 4 ? strtoll(value, NULL, 10) != told[i].number
                                    : !has_words(told[i].text, value)))
            return told[i].option;
    }
    if (text != NULL && (row->text == NULL || strcmp(row->text, text) != 0))
        return "text";
    if (step_option(step, "no_text") != NULL && row->text != NULL)
        return row->text;
    return none != NULL && has_words(row->sharer_names, none) ? none : NULL;
}

/* Read the lock's row, as other programs do, and compare it; with `state`, tell
 * its state. */
static void show(struct player *player)
{
    const struct step *step = &player->step;
    sqlock_info *row = NULL;
    struct outcome *outcome = &player->outcome;
    const char *other = NULL;

    outcome->rc =
        sqlock_show(actor_registry(player), step->name, &row, &outcome->err);
    if (outcome->rc == 0)
        other = find_difference(step, row);
    if (other != NULL)
        outcome->rc = step_option(step, "soon") != NULL ? -1 : NOT_PLAYED;
    else if (outcome->rc == 0 && step_option(step, "state") != NULL)
        outcome->rc = (int)row->state;
    if (outcome->rc == NOT_PLAYED)
        actor_refuse(outcome, other);
    sqlock_info_free(row, row != NULL ? 1 : 0);
}

/* Break the thread's lease, as an operator does. */
static void break_own(struct player *player)
{
    const struct step *step = &player->step;
    sqlock_lock *lock = actor_lock(player, step->name);
    sqlock_break_options how = SQLOCK_BREAK_INIT;
    char client_id[SQLOCK_KEY_SIZE];

    sqlock_client_id(lock, client_id);
    how.client_id = client_id;
    how.token = sqlock_token(lock) + (step_option(step, "other_token") != NULL);
    how.reason = "a scene";
    how.now = step_option(step, "now") != NULL;
    player->outcome.rc = sqlock_break(actor_registry(player), step->name, &how,
                                      &player->outcome.err);
}

/* Turn the lock's lease into a share. */
static void downgrade(struct player *player)
{
    struct outcome *outcome = &player->outcome;

    outcome->rc =
        sqlock_downgrade(actor_lock(player, player->step.name), &outcome->err);
}

/* Let another one have the lease: actor=N. */
static void set_actor(struct player *player)
{
    sqlock_set_actor(actor_lock(player, player->step.name),
                     (uint64_t)actor_number(&player->step, "actor", 0));
}

/* Publish text=, or the lock's name, as its leader. */
static void publish(struct player *player)
{
    const struct step *step = &player->step;
    const char *text = step_option(step, "text");
    struct outcome *outcome = &player->outcome;

    outcome->rc =
        sqlock_publish(actor_lock(player, step->name),
                       text != NULL ? text : step->name, &outcome->err);
}

/* Change the lock's permits to number=. */
static void set_permits(struct player *player)
{
    struct outcome *outcome = &player->outcome;

    outcome->rc = sqlock_set_permits(
        actor_registry(player), player->step.name,
        (uint32_t)actor_number(&player->step, "number", 0), &outcome->err);
}

/* Remove the rows of free locks, however young, count= times. */
static void reap(struct player *player)
{
    struct outcome *outcome = &player->outcome;

    for (int64_t i = actor_times(&player->step); i > 0 && outcome->rc == 0; i--)
        outcome->rc =
            sqlock_reap(actor_registry(player), 0, NULL, &outcome->err);
}

/* The id of a lease, which is the message of "tells_id", and by which lease=ID
 * is renewed and released. */
static void use_id(struct player *player)
{
    struct outcome *outcome = &player->outcome;
    sqlock_registry *registry = actor_registry(player);
    const char *verb = player->step.verb;
    const char *id = step_option(&player->step, "lease");
    uint32_t ttl_ms = (uint32_t)actor_ms(&player->step, "ttl", 0);
    int64_t left_ms = 0;

    if (strcmp(verb, "tells_id") == 0) {
        char told[SQLOCK_LEASE_ID_SIZE];

        outcome->rc = sqlock_lease_id(
            told, actor_lock(player, player->step.name), ttl_ms, &outcome->err);
        if (outcome->rc == 0)
            (void)snprintf(outcome->err.message, sizeof outcome->err.message,
                           "%s", told);
    } else if (strcmp(verb, "gives_by_id") == 0) {
        outcome->rc = sqlock_lease_release(registry, id, &outcome->err);
    } else {
        outcome->rc =
            sqlock_lease_renew(registry, id, ttl_ms, &left_ms, &outcome->err);
        if (outcome->rc != 0 && left_ms != 0)
            actor_refuse(outcome, "it says that something is left");
    }
    if (left_ms > actor_ms(&player->step, "most", left_ms) ||
        left_ms < actor_ms(&player->step, "left", left_ms))
        actor_refuse(outcome, "it says that more or less is left");
}

/* Make the table of records; record that the lock's work is done, tell whether
 * it is, or remove that record. */
static void use_record(struct player *player)
{
    const char *verb = player->step.verb;
    const char *name = player->step.name;
    sqlock_registry *registry = actor_registry(player);
    sqlock_error *err = &player->outcome.err;

    if (strcmp(verb, "makes_records") == 0)
        player->outcome.rc = sqlock_once_schema_create(
            actor_plain_url(player->actor), &player->actor->options, err);
    else if (strcmp(verb, "records") == 0)
        player->outcome.rc = sqlock_once_record(actor_lock(player, name), err);
    else if (strcmp(verb, "is_recorded") == 0)
        player->outcome.rc = sqlock_once_check(registry, name, err);
    else
        player->outcome.rc = sqlock_once_forget(registry, name, err);
}

/* Open other registries with a lock that is renewed, one after the other. */
static void reopen(struct player *player)
{
    struct outcome *outcome = &player->outcome;
    sqlock_registry *other = NULL;
    sqlock_acquire_options how;
    sqlock_lock *lock;
    int fd;

    actor_read_options(player, &how);
    for (int64_t i = actor_times(&player->step); i > 0 && outcome->rc == 0;
         i--) {
        outcome->rc = actor_open_another(player->actor, &other, &outcome->err);
        if (outcome->rc == 0)
            outcome->rc =
                sqlock_obtain(&lock, other, player->step.name, &outcome->err);
        if (outcome->rc == 0)
            outcome->rc = sqlock_lost_fd(&fd, lock, &outcome->err);
        if (outcome->rc == 0)
            outcome->rc = sqlock_acquire(lock, 0, &how, &outcome->err);
        if (outcome->rc == 0 && i % 50 == 0)
            check_sleep(how.ttl_ms / 3);
        if (outcome->rc == 0)
            outcome->rc = sqlock_registry_close(other, &outcome->err);
    }
}

/* The scene's times are shorter than those of a sanitizer's build. */
static void tell_remaining(struct player *player)
{
    int64_t left_ms =
        sqlock_remaining_ms(actor_lock(player, player->step.name));

    player->outcome.rc = (int)((left_ms + SLOWNESS - 1) / SLOWNESS);
}

/* The thread ends with what it holds (actor.c). */
static void leave(struct player *player)
{
    player->has_left = true;
}

static void release_callback(struct player *player)
{
    (void)player;
    actor_let_go();
}

static void open_registry(struct player *player)
{
    player->outcome.rc =
        actor_open(player->actor, &player->step, &player->outcome.err);
}

static void close_registry(struct player *player)
{
    struct actor *actor = player->actor;
    struct outcome *outcome = &player->outcome;

    actor_close_stocks();
    outcome->rc = actor_drop_quorums(&outcome->err);
    for (size_t i = 0; i < SERVERS && outcome->rc == 0; i++) {
        if (actor->registries[i] != NULL)
            outcome->rc =
                sqlock_registry_close(actor->registries[i], &outcome->err);
        if (outcome->rc != SQLOCK_EINUSE)
            actor->registries[i] = NULL;
    }
}

void actor_perform(struct player *player)
{
    static const struct {
        const char *verb;
        void (*perform)(struct player *player);
    } verbs[] = {
        {"takes", actor_take},
        {"gives", actor_give},
        {"renews", actor_renew},
        {"cancels", cancel},
        {"drops", actor_drop},
        {"forgets", actor_forget},
        {"counts", count},
        {"has", count_held},
        {"shows", show},
        {"breaks", break_own},
        {"tells_id", use_id},
        {"downgrades", downgrade},
        {"is_had_by", set_actor},
        {"publishes", publish},
        {"permits", set_permits},
        {"reaps", reap},
        {"gives_by_id", use_id},
        {"renews_by_id", use_id},
        {"reopens", reopen},
        {"makes_records", use_record},
        {"records", use_record},
        {"is_recorded", use_record},
        {"forgets_record", use_record},
        {"holds", hold},
        {"remains", tell_remaining},
        {"turns", actor_take_turns},
        {"storms", actor_storm},
        {"asks", actor_use_request},
        {"asks_release", actor_use_request},
        {"sees", actor_use_request},
        {"finishes", actor_use_request},
        {"abandons", actor_use_request},
        {"raises", actor_use_fd},
        {"reads", actor_use_fd},
        {"hangs_up", actor_use_fd},
        {"replaces", actor_use_fd},
        {"handles", actor_use_fd},
        {"alarms", look_for_alarm},
        {"exits", leave},
        {"lets_go", release_callback},
        {"fails", actor_disturb},
        {"holds_up", actor_disturb},
        {"delays", actor_disturb},
        {"keeps_back", actor_disturb},
        {"works", actor_disturb},
        {"lets_pass", actor_disturb},
        {"lets_arrive", actor_disturb},
        {"has_met", actor_disturb},
        {"has_sent", actor_disturb},
        {"has_connections", actor_disturb},
        {"steps_clock", actor_disturb},
        {"counts_from_now", actor_disturb},
        {"opens", open_registry},
        {"closes", close_registry},
        {"closes_registry", close_registry},
    };

    if (actor_use_tx(player) || actor_use_stock(player) ||
        actor_use_quorum(player))
        return;
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(player->step.verb, verbs[i].verb) == 0) {
            verbs[i].perform(player);
            return;
        }
    actor_refuse(&player->outcome, "no such verb");
}
