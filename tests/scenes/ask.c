/*
 * ask.c - requests: asks, asks_release, sees, finishes, abandons
 */
#include "actor.h"

#include <stdio.h>
#include <string.h>

/* Return the request of that name, or a new one.  Its name is as=..., or the
 * lock's. */
static struct asked *asked_of(struct player *player, const char *name)
{
    const char *as = step_option(&player->step, "as");
    struct asked *asked = player->actor->asked;
    struct asked *unused = NULL;

    if (as == NULL)
        as = name;
    if (as == NULL)
        return NULL;
    for (; asked < player->actor->asked + REQUESTS_MAX; asked++) {
        if (strcmp(asked->as, as) == 0)
            return asked;
        if (asked->as[0] == '\0' && unused == NULL)
            unused = asked;
    }
    if (unused != NULL)
        (void)snprintf(unused->as, sizeof unused->as, "%s", as);
    return unused;
}

static bool has_ended(const struct asked *asked)
{
    sqlock_request_state state = sqlock_request_status(asked->request);

    return state != SQLOCK_REQUEST_FETCHING &&
           state != SQLOCK_REQUEST_RELEASING;
}

static int ask(struct player *player, struct asked *asked, const char *name)
{
    sqlock_lock *lock = actor_lock(player, name);
    sqlock_acquire_options how;
    int rc;

    actor_read_options(player, &how);
    asked->is_release = strcmp(player->step.verb, "asks") != 0;
    rc = !asked->is_release
             ? sqlock_request_acquire(
                   &asked->request, lock, actor_ms(&player->step, "wait", 0),
                   &how, actor_fd(player, "done"), &player->outcome.err)
             : sqlock_request_release(&asked->request, lock,
                                      actor_fd(player, "done"),
                                      &player->outcome.err);
    if (rc < 0)
        asked->as[0] = '\0';
    return rc;
}

/* Wait until the request has ended, unless now=, and finish it. */
static int finish(struct player *player, struct asked *asked, const char *name)
{
    int64_t until = check_deadline_ns(2 * PATIENCE_MS);
    int rc;

    while (step_option(&player->step, "now") == NULL && !has_ended(asked) &&
           check_pause(until))
        ;
    rc = sqlock_request_finish(asked->request, &player->outcome.err);
    if (rc != SQLOCK_EINUSE)
        asked->as[0] = '\0';
    if (rc == 0 && !asked->is_release && name != NULL)
        player->outcome.token = sqlock_token(actor_lock(player, name));
    return rc;
}

static void use_one(void *context, const char *name)
{
    struct player *player = context;
    struct outcome *outcome = &player->outcome;
    const char *verb = player->step.verb;
    struct asked *asked;
    int rc;

    pthread_mutex_lock(&player->actor->mutex);
    asked = asked_of(player, name);
    pthread_mutex_unlock(&player->actor->mutex);
    if (asked == NULL) {
        actor_refuse(outcome, "too many requests, or one without a name");
        return;
    }
    if (strcmp(verb, "asks") == 0 || strcmp(verb, "asks_release") == 0)
        rc = ask(player, asked, name);
    else if (strcmp(verb, "sees") == 0)
        rc = (int)sqlock_request_status(asked->request);
    else if (strcmp(verb, "finishes") == 0)
        rc = finish(player, asked, name);
    else {
        rc = sqlock_request_abandon(asked->request, &outcome->err);
        asked->as[0] = '\0';
    }
    if (outcome->rc == 0)
        outcome->rc = rc;
}

void actor_use_request(struct player *player)
{
    if (player->step.name == NULL)
        use_one(player, NULL);
    else
        actor_each_name(&player->step, use_one, player);
}

/* Begin a request, and abandon it soon, at once, or when it has ended. */
static int ask_in_vain(struct player *player, sqlock_lock *lock,
                       const sqlock_acquire_options *how, int64_t i)
{
    int64_t until = check_deadline_ns(PATIENCE_MS);
    struct asked asked = {.as = ""};
    int rc = sqlock_request_acquire(&asked.request, lock,
                                    i % 3 == 0 ? i % 4 : SQLOCK_FOREVER, how, 0,
                                    &player->outcome.err);

    if (rc < 0)
        return rc;
    for (int64_t k = 0; k < i % 7; k++)
        (void)check_pause(INT64_MAX);
    while (i % 2 == 0 && how->ttl_ms != 0 && !has_ended(&asked) &&
           check_pause(until))
        ;
    return sqlock_request_abandon(asked.request, &player->outcome.err);
}

/* With taken=, each abandoned request is followed by an acquire with other
 * options, which must begin anew. */
void actor_storm(struct player *player)
{
    struct outcome *outcome = &player->outcome;
    sqlock_lock *lock = actor_lock(player, player->step.name);
    bool is_taken = step_option(&player->step, "taken") != NULL;
    sqlock_acquire_options how;

    actor_read_options(player, &how);
    for (int64_t i = actor_times(&player->step); i > 0 && outcome->rc == 0;
         i--) {
        if (is_taken)
            how.ttl_ms = LONG_TTL_MS + 1000;
        how.auto_renew = is_taken && i % 2 == 0;
        outcome->rc = ask_in_vain(player, lock, &how, i);
        if (!is_taken || outcome->rc != 0)
            continue;
        how.ttl_ms = LONG_TTL_MS + 2000;
        how.auto_renew = i % 2 != 0;
        outcome->rc = sqlock_acquire(lock, PATIENCE_MS, &how, &outcome->err);
        if (outcome->rc == 0 && sqlock_hold_count(lock) != 1)
            actor_refuse(outcome, "it is counted twice");
        if (outcome->rc == 0)
            outcome->rc = sqlock_release(lock, &outcome->err);
    }
}
