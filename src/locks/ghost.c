/*
 * ghost.c - claims whose outcome stayed unknown.  Their rows would block the
 * key until the TTL; as soon as the database answers again they are freed by
 * their CLIENT_ID, which nobody else has.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "locks/lease.h"

void lk_ghost_add(sqlock_registry *registry, const struct lk_lease *lease,
                  int64_t sent_boot_ns)
{
    struct lk_ghost *ghost = calloc(1, sizeof *ghost);

    if (ghost == NULL)
        return; /* it runs out by itself */
    memcpy(ghost->key, lease->key, SQLOCK_KEY_SIZE);
    memcpy(ghost->client_id, lease->client_id, SQLOCK_KEY_SIZE);
    /* The statement may reach the table as late as one deadline after. */
    ghost->over_boot_ns =
        lk_after_ms(sent_boot_ns, (int64_t)lease->ttl_ms +
                                      registry->options.statement_timeout_ms);
    pthread_mutex_lock(&registry->mutex);
    ghost->next = registry->ghosts;
    registry->ghosts = ghost;
    pthread_mutex_unlock(&registry->mutex);
}

static struct lk_ghost *take_one(sqlock_registry *registry)
{
    struct lk_ghost *ghost;

    pthread_mutex_lock(&registry->mutex);
    ghost = registry->ghosts;
    if (ghost != NULL)
        registry->ghosts = ghost->next;
    pthread_mutex_unlock(&registry->mutex);
    return ghost;
}

static void put_back(sqlock_registry *registry, struct lk_ghost *ghost)
{
    struct lk_ghost **end;

    pthread_mutex_lock(&registry->mutex);
    end = &registry->ghosts;
    while (*end != NULL)
        end = &(*end)->next;
    ghost->next = NULL;
    *end = ghost;
    pthread_mutex_unlock(&registry->mutex);
}

/* True when there is nothing left to do for it. */
static bool lay(sqlock_registry *registry, const struct lk_ghost *ghost)
{
    struct lk_arguments arguments;
    struct lk_run run = {.arguments = &arguments};
    sqlock_result result = {0};
    bool done;
    int rc;

    if (lk_boottime_ns() >= ghost->over_boot_ns)
        return true;
    lk_registry_arguments(registry, ghost->key, &arguments);
    lk_argument_text(&arguments, SQLOCK_P_CLIENT, ghost->client_id);
    run.deadline_ns = lk_statement_deadline(registry);
    rc = lk_registry_run(registry, SQLOCK_SQL_RELEASE, &run, &result, NULL);
    done = rc == 0 && result.affected > 0;
    sqlock_result_clear(&result);
    return done;
}

void lk_ghosts_lay(sqlock_registry *registry)
{
    struct lk_ghost *ghost = take_one(registry);

    /* One a call: nobody's acquire pays for a long list. */
    if (ghost == NULL)
        return;
    if (lay(registry, ghost))
        free(ghost);
    else
        put_back(registry, ghost);
}
