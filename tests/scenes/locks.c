/*
 * locks.c - the locks of an actor, each obtained once
 */
#include "actor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int actor_server(const struct step *step)
{
    int64_t server =
        actor_number(step, "member", actor_number(step, "server", 0));

    return server >= 0 && server < SERVERS ? (int)server : 0;
}

sqlock_registry *actor_registry(struct player *player)
{
    return player->actor->registries[actor_server(&player->step)];
}

/* Return the place of a thread's lock (0: any thread's) in the array: where it
 * is, or an empty one; NULL: the array is full.  The caller holds the mutex. */
static struct handle *place_of(struct actor *actor, const char *name,
                               int thread, int server)
{
    struct handle *empty = NULL;

    for (size_t i = 0; i < LOCKS_MAX; i++) {
        struct handle *handle = &actor->handles[i];

        if (handle->lock == NULL)
            empty = empty == NULL ? handle : empty;
        else if (strcmp(handle->name, name) == 0 && handle->thread == thread &&
                 handle->server == server)
            return handle;
    }
    return empty;
}

sqlock_lock *actor_lock(struct player *player, const char *name)
{
    struct actor *actor = player->actor;
    int thread =
        actor->ownership == SQLOCK_OWNED_BY_HANDLE ? player->number : 0;
    int server = actor_server(&player->step);
    struct handle *handle;
    sqlock_lock *lock = NULL;

    if (step_option(&player->step, "member") != NULL)
        return actor_member(player, name);
    pthread_mutex_lock(&actor->mutex);
    handle = place_of(actor, name, thread, server);
    if (handle != NULL && handle->lock == NULL) {
        handle->thread = thread;
        handle->server = server;
        (void)snprintf(handle->name, sizeof handle->name, "%s", name);
        player->outcome.rc = sqlock_obtain(
            &handle->lock, actor_registry(player), name, &player->outcome.err);
    }
    if (handle != NULL)
        lock = handle->lock;
    pthread_mutex_unlock(&actor->mutex);
    return lock;
}

/* Drop the thread's lock of a name. */
void actor_drop(struct player *player)
{
    struct actor *actor = player->actor;
    sqlock_lock *lock = actor_lock(player, player->step.name);
    int rc;

    pthread_mutex_lock(&actor->mutex);
    rc = sqlock_drop(lock, &player->outcome.err);
    for (size_t i = 0; rc == 0 && i < LOCKS_MAX; i++)
        if (actor->handles[i].lock == lock)
            actor->handles[i].lock = NULL;
    pthread_mutex_unlock(&actor->mutex);
    player->outcome.rc = rc;
}

/* Drop all locks that nobody holds or waits for; no other call is under way. */
void actor_forget(struct player *player)
{
    struct handle *handles = player->actor->handles;

    for (size_t i = 0; i < LOCKS_MAX; i++)
        if (sqlock_drop(handles[i].lock, NULL) == 0)
            handles[i].lock = NULL;
}

bool actor_fits_each(const struct step *step, const int *results, size_t count)
{
    const char *each = step_option(step, "each");
    bool fits = true;

    for (size_t i = 0; each != NULL && i < count; i++) {
        char expected[64];

        (void)snprintf(expected, sizeof expected, "%.*s",
                       (int)strcspn(each, ","), each);
        fits = fits && result_is(expected, results[i]);
        each += strcspn(each, ",");
        each += *each == ',';
    }
    return fits;
}

void actor_check_each(struct player *player, const int *results, size_t count)
{
    if (!actor_fits_each(&player->step, results, count))
        actor_refuse(&player->outcome, "the result of a lock is another");
}

void actor_each_name(const struct step *step,
                     void (*call)(void *context, const char *name),
                     void *context)
{
    char names[512];
    char *save = NULL;

    (void)snprintf(names, sizeof names, "%s",
                   step->name != NULL ? step->name : "");
    for (char *name = strtok_r(names, ",", &save); name != NULL;
         name = strtok_r(NULL, ",", &save)) {
        size_t length = strcspn(name, "*");
        char *rest = name + length;
        unsigned long count = *rest == '*' ? strtoul(rest + 1, &rest, 10) : 0;
        char one[96];

        if (count == 0)
            call(context, name);
        for (unsigned long i = 1; i <= count; i++) {
            (void)snprintf(one, sizeof one, "%.*s%lu%s", (int)length, name, i,
                           rest);
            call(context, one);
        }
    }
}

struct obtaining {
    struct player *player;
    struct set *set;
};

static void obtain_one(void *context, const char *name)
{
    struct obtaining *to = context;

    if (to->set->count < LOCKS_MAX)
        to->set->locks[to->set->count++] = actor_lock(to->player, name);
}

void actor_obtain(struct player *player, struct set *set)
{
    struct obtaining to = {player, set};

    memset(set, 0, sizeof *set);
    actor_each_name(&player->step, obtain_one, &to);
    set->is_many = set->count > 1 || step_option(&player->step, "many") != NULL;
}
