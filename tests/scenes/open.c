/*
 * open.c - the registry of an actor, with the options of its step
 */
#include "actor.h"

#include <stdio.h>
#include <string.h>

static sqlock_ownership ownership_of(const struct step *step)
{
    const char *owner = step_option(step, "owner");

    if (owner != NULL && strcmp(owner, "registry") == 0)
        return SQLOCK_OWNED_BY_REGISTRY;
    if ((owner != NULL && strcmp(owner, "handle") == 0) ||
        step_option(step, "servers") != NULL)
        return SQLOCK_OWNED_BY_HANDLE;
    return SQLOCK_OWNED_BY_THREAD;
}

/* Pause between reads of a row: none comes where the registry is patient. */
static uint32_t patience(const struct step *step)
{
    return step_option(step, "patient") != NULL
               ? 3600000
               : (uint32_t)actor_ms(step, "poll", 5);
}

/* Longer than any step is waited for: whatever ends does so because it was
 * told, and not because a lease has run out. */
#define SCENE_TTL_MS (4 * PATIENCE_MS)

/* On a busy machine an attempt to open may exceed a short time limit. */
static int open_one(sqlock_registry **registry, const struct step *step,
                    const char *url, const sqlock_options *options,
                    sqlock_error *err)
{
    int64_t until = check_deadline_ns(PATIENCE_MS);
    int rc;

    do
        rc = sqlock_registry_open(registry, url, options, err);
    while (rc == SQLOCK_EUNREACHABLE && step_option(step, "now") == NULL &&
           check_pause(until));
    return rc;
}

/* Copy a text of a step, which later ones need, too; return the copy, or NULL
 * without the text. */
static const char *keep(char *copy, size_t size, const char *text)
{
    (void)snprintf(copy, size, "%s", text != NULL ? text : "");
    return text != NULL ? copy : NULL;
}

int actor_open(struct actor *actor, const struct step *step, sqlock_error *err)
{
    const char *waiting = step_option(step, "waiting");
    char prefix[sizeof actor->prefix];
    sqlock_options options = SQLOCK_OPTIONS_INIT;
    int rc = 0;

    (void)snprintf(actor->prefix, sizeof actor->prefix, "%s",
                   step_option(step, "prefix"));
    options.table_prefix = actor->prefix;
    options.region =
        keep(actor->region, sizeof actor->region, step_option(step, "region"));
    options.ttl_ms = (uint32_t)actor_ms(step, "ttl", SCENE_TTL_MS);
    options.margin_ms = (uint32_t)actor_ms(step, "margin", 0);
    options.peer_ttl_ms = (uint32_t)actor_ms(step, "peer_ttl", PEER_TTL_MS);
    options.poll_ms = patience(step);
    options.pool_size = (uint32_t)actor_number(step, "pool", 0);
    options.renew_period_ms = (uint32_t)actor_ms(step, "period", 0);
    options.statement_timeout_ms = (uint32_t)actor_ms(step, "statement", 0);
    options.connect_timeout_ms = (uint32_t)actor_ms(step, "connect", 0);
    options.holder_note =
        keep(actor->note, sizeof actor->note, step_option(step, "note"));
    options.detect_deadlocks = actor_number(step, "deadlocks", 0) != 0;
    options.no_peers = step_option(step, "services") == NULL;
    options.ownership = ownership_of(step);
    if (waiting != NULL && strcmp(waiting, "poll") == 0)
        options.waiting = SQLOCK_WAITING_POLL;
    actor->ownership = options.ownership;
    actor->options = options;
    (void)snprintf(actor->folder, sizeof actor->folder, "%s",
                   step_option(step, "folder"));
    (void)snprintf(actor->url, sizeof actor->url, "%s",
                   step_option(step, "url"));
    if (strncmp(actor->url, "tap+", 4) == 0)
        disturb_begin(actor);
    /* The application changes its texts as soon as the registry is open. */
    memcpy(prefix, actor->prefix, sizeof prefix);
    options.table_prefix = prefix;
    for (size_t i = 0; i < SERVERS && rc == 0; i++) {
        static const char *const urls[SERVERS] = {"url", "url1", "url2"};
        const char *url = step_option(step, urls[i]);

        if (url != NULL)
            rc = open_one(&actor->registries[i], step, url, &options, err);
    }
    memset(prefix, 'x', sizeof prefix - 1);
    return rc;
}

int actor_open_another(const struct actor *actor, sqlock_registry **registry,
                       sqlock_error *err)
{
    return sqlock_registry_open(registry, actor->url, &actor->options, err);
}
