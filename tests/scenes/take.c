/*
 * take.c - acquire, release and renew, and how a loss is told
 */
#include "actor.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "sqlock/many.h"

/* --------------------------------------------------------------- losses -- */

/* A loss is told once a lock; with told=lingers the callback does not return
 * before `lets_go`. */
static pthread_mutex_t lingering = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t may_go = PTHREAD_COND_INITIALIZER;
static bool is_let_go;

static void on_lost(void *context, sqlock_lock *lock, int code)
{
    actor_say_lost(code, lock);
    if (context == NULL)
        return;
    pthread_mutex_lock(&lingering);
    while (!is_let_go)
        (void)pthread_cond_wait(&may_go, &lingering);
    pthread_mutex_unlock(&lingering);
}

void actor_let_go(void)
{
    pthread_mutex_lock(&lingering);
    is_let_go = true;
    (void)pthread_cond_broadcast(&may_go);
    pthread_mutex_unlock(&lingering);
}

/* ----------------------------------------------------- acquire, release -- */

void actor_read_options(struct player *player, sqlock_acquire_options *how)
{
    const struct step *step = &player->step;
    const char *told = step_option(step, "told");

    *how = (sqlock_acquire_options)SQLOCK_ACQUIRE_INIT;
    how->ttl_ms = (uint32_t)actor_ms(step, "ttl", 0);
    how->max_hold_ms = (uint32_t)actor_ms(step, "hold", 0);
    how->auto_renew = step_option(step, "renewed") != NULL;
    how->fenced = step_option(step, "fenced") != NULL;
    how->fail_fast = step_option(step, "hasty") != NULL;
    how->cancel_fd = actor_fd(player, "fd");
    if (step_option(step, "shared") != NULL)
        how->mode = SQLOCK_SHARED;
    how->permits = (uint32_t)actor_number(step, "permits", 0);
    how->weight = (uint32_t)actor_number(step, "weight", 0);
    how->actor = (uint64_t)actor_number(step, "actor", 0);
    if (told != NULL) {
        how->on_lost = on_lost;
        how->lost_context = strcmp(told, "lingers") == 0 ? player : NULL;
    }
}

int64_t actor_times(const struct step *step)
{
    int64_t count = actor_number(step, "count", 1);

    return check_scale((unsigned)count,
                       (unsigned)actor_number(step, "campaign", count));
}

/* Make the file of a lock, which must not be there, or remove it. */
static void mark_inside(struct player *player, const char *name, bool is_inside)
{
    char path[512];
    int fd;

    (void)snprintf(path, sizeof path, "%s/%.*s", player->actor->folder,
                   (int)strcspn(name, "@"), name);
    if (!is_inside) {
        (void)unlink(path);
        return;
    }
    fd = open(path, O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        actor_refuse(&player->outcome, "two are inside");
    else
        (void)close(fd);
}

static void be_inside(struct player *player, const struct set *set)
{
    struct outcome *outcome = &player->outcome;
    int64_t token = sqlock_token(set->locks[0]);

    for (size_t i = 0; i < set->count; i++)
        mark_inside(player, sqlock_name(set->locks[i]), true);
    if (token <= outcome->token)
        actor_refuse(outcome, "the tokens do not rise");
    outcome->token = token;
    check_sleep(actor_number(&player->step, "held", 1));
    for (size_t i = 0; i < set->count; i++)
        mark_inside(player, sqlock_name(set->locks[i]), false);
}

/* Read sharing=, which names the one lock of the set that is shared. */
static void read_modes(const struct player *player, const struct set *set,
                       sqlock_mode *modes, sqlock_acquire_options *how)
{
    const char *name = step_option(&player->step, "sharing");

    if (name == NULL)
        return;
    for (size_t i = 0; i < set->count; i++) {
        const char *other = sqlock_name(set->locks[i]);
        size_t length = strcspn(other, "@");

        modes[i] = strlen(name) == length && strncmp(name, other, length) == 0
                       ? SQLOCK_SHARED
                       : SQLOCK_EXCLUSIVE;
    }
    how->modes = modes;
}

static int acquire(struct player *player, struct set *set, int64_t wait_ms,
                   const sqlock_acquire_options *asked)
{
    sqlock_error *err = &player->outcome.err;
    sqlock_acquire_options with_modes = *asked, *how = &with_modes;
    sqlock_mode modes[LOCKS_MAX];

    read_modes(player, set, modes, how);
    return set->is_many ? sqlock_acquire_many(set->locks, set->count, wait_ms,
                                              how, set->results, err)
                        : sqlock_acquire(set->locks[0], wait_ms, how, err);
}

static int release(struct player *player, struct set *set)
{
    sqlock_error *err = &player->outcome.err;

    return set->is_many
               ? sqlock_release_many(set->locks, set->count, set->results, err)
               : sqlock_release(set->locks[0], err);
}

/* Let the process have descriptors below fds= only, or as before. */
static void limit_fds(struct player *player, bool is_limited)
{
    static struct rlimit before;
    struct rlimit now;
    int64_t fds = actor_number(&player->step, "fds", 0);

    if (fds == 0)
        return;
    if (is_limited)
        (void)getrlimit(RLIMIT_NOFILE, &before);
    now = before;
    if (is_limited)
        now.rlim_cur = (rlim_t)fds;
    (void)setrlimit(RLIMIT_NOFILE, &now);
}

/* A claim that outlasts a short lease is made again: the machine is busy. */
void actor_take(struct player *player)
{
    struct outcome *outcome = &player->outcome;
    int64_t wait_ms = actor_ms(&player->step, "wait", 0);
    int64_t until = check_deadline_ns(PATIENCE_MS);
    sqlock_acquire_options how;
    struct set set;

    actor_obtain(player, &set);
    actor_read_options(player, &how);
    limit_fds(player, true);
    do {
        outcome->err.code = 0;
        outcome->rc = acquire(player, &set, wait_ms, &how);
    } while (wait_ms == 0 && outcome->rc == SQLOCK_ETIMEDOUT &&
             check_pause(until));
    limit_fds(player, false);
    if (outcome->rc == 0)
        outcome->token = sqlock_token(set.locks[0]);
    actor_check_each(player, set.results, set.count);
}

void actor_give(struct player *player)
{
    struct set set;

    actor_obtain(player, &set);
    player->outcome.rc = release(player, &set);
    actor_check_each(player, set.results, set.count);
}

void actor_renew(struct player *player)
{
    struct outcome *outcome = &player->outcome;
    uint32_t ttl_ms = (uint32_t)actor_ms(&player->step, "ttl", 0);
    struct set set;
    int64_t token;

    actor_obtain(player, &set);
    token = sqlock_token(set.locks[0]);
    for (int64_t i = actor_times(&player->step); i > 0 && outcome->rc == 0; i--)
        outcome->rc = set.is_many
                          ? sqlock_renew_many(set.locks, set.count, set.results,
                                              &outcome->err)
                          : sqlock_renew(set.locks[0], ttl_ms, &outcome->err);
    if (step_option(&player->step, "same_token") != NULL &&
        sqlock_token(set.locks[0]) != token)
        actor_refuse(outcome, "a renewal changes the token");
    actor_check_each(player, set.results, set.count);
}

/* Return whether a call may end so while the driver fails now and then. */
static bool is_shaky(int rc)
{
    return rc == SQLOCK_EBUSY || rc == SQLOCK_ETIMEDOUT ||
           rc == SQLOCK_EUNCERTAIN || rc == SQLOCK_EUNREACHABLE ||
           rc == SQLOCK_ERETRY || rc == SQLOCK_ERESOURCE;
}

/* Make the set one of the lock whose turn it is. */
static void rotate(struct player *player, struct set *set,
                   const struct set *all, int64_t turn)
{
    player->outcome.token = 0; /* of another lock */
    set->locks[0] = all->locks[(size_t)turn % all->count];
    set->count = 1;
    set->is_many = false;
}

/* Acquire and release count=N times, with rotate one lock at a time, each time
 * the next one; nobody else is inside meanwhile, unless it is shared.  With
 * cancelled, a wait may be, and with shaky, calls may fail as in outages, most
 * of them not. */
void actor_take_turns(struct player *player)
{
    struct outcome *outcome = &player->outcome;
    bool may_end = step_option(&player->step, "cancelled") != NULL;
    bool may_fail = step_option(&player->step, "shaky") != NULL;
    int64_t wait_ms = actor_ms(&player->step, "wait", SQLOCK_FOREVER);
    int64_t count = actor_times(&player->step);
    int64_t taken = 0;
    sqlock_acquire_options how;
    struct set all;
    struct set set;

    actor_obtain(player, &all);
    set = all;
    actor_read_options(player, &how);
    for (int64_t i = 0; i < count && outcome->rc == 0; i++) {
        int rc;

        if (step_option(&player->step, "rotate") != NULL)
            rotate(player, &set, &all, i + player->number);
        rc = acquire(player, &set, wait_ms, &how);

        if ((rc == SQLOCK_ECANCELED && may_end) || (may_fail && is_shaky(rc))) {
            outcome->err.code = 0;
            continue;
        }
        outcome->rc = rc;
        if (rc < 0)
            return;
        taken++;
        if (how.mode == SQLOCK_EXCLUSIVE)
            be_inside(player, &set);
        rc = release(player, &set);
        if (may_fail && is_shaky(rc))
            outcome->err.code = 0;
        else if (outcome->rc == 0)
            outcome->rc = rc;
    }
    if (may_fail && outcome->rc == 0 && taken <= count / 16)
        actor_refuse(outcome, "hardly any was taken");
}
