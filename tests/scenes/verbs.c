/*
 * verbs.c - what the threads of a process can do: a call of the library for
 * each verb (README.md)
 */
#include "actor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "sqlock/many.h"

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

/* ------------------------------------------------------------- the locks -- */

/* Return the place of a thread's lock (0: any thread's) in the array: where it
 * is, or an empty one; NULL: the array is full.  The caller holds the mutex. */
static struct handle *place_of(struct actor *actor, const char *name,
                               int thread)
{
    struct handle *empty = NULL;

    for (size_t i = 0; i < LOCKS_MAX; i++) {
        struct handle *handle = &actor->handles[i];

        if (handle->lock == NULL)
            empty = empty == NULL ? handle : empty;
        else if (strcmp(handle->name, name) == 0 && handle->thread == thread)
            return handle;
    }
    return empty;
}

sqlock_lock *actor_lock(struct player *player, const char *name)
{
    struct actor *actor = player->actor;
    int thread =
        actor->ownership == SQLOCK_OWNED_BY_HANDLE ? player->number : 0;
    struct handle *handle;
    sqlock_lock *lock = NULL;

    pthread_mutex_lock(&actor->mutex);
    handle = place_of(actor, name, thread);
    if (handle != NULL && handle->lock == NULL) {
        handle->thread = thread;
        (void)snprintf(handle->name, sizeof handle->name, "%s", name);
        player->outcome.rc = sqlock_obtain(&handle->lock, actor->registry, name,
                                           &player->outcome.err);
    }
    if (handle != NULL)
        lock = handle->lock;
    pthread_mutex_unlock(&actor->mutex);
    return lock;
}

/* Drop the thread's lock of a name. */
static void drop(struct player *player)
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
static void forget(struct player *player)
{
    struct handle *handles = player->actor->handles;

    for (size_t i = 0; i < LOCKS_MAX; i++)
        if (sqlock_drop(handles[i].lock, NULL) == 0)
            handles[i].lock = NULL;
}

/* The locks of a step: of the names in its name, with "," between. */
struct set {
    sqlock_lock *locks[LOCKS_MAX];
    int results[LOCKS_MAX];
    size_t count;
    bool is_many; /* to be passed to the functions for many */
};

/* Check the results of a call for many: those of each=, with "," between. */
static void check_each(struct player *player, const struct set *set)
{
    const char *each = step_option(&player->step, "each");

    for (size_t i = 0; each != NULL && i < set->count; i++) {
        char expected[64];

        (void)snprintf(expected, sizeof expected, "%.*s",
                       (int)strcspn(each, ","), each);
        if (!result_is(expected, set->results[i]))
            actor_refuse(&player->outcome, "the result of a lock is another");
        each += strcspn(each, ",");
        each += *each == ',';
    }
}

static void obtain(struct player *player, struct set *set)
{
    char names[512];
    char *save = NULL;

    memset(set, 0, sizeof *set);
    (void)snprintf(names, sizeof names, "%s",
                   player->step.name != NULL ? player->step.name : "");
    for (char *name = strtok_r(names, ",", &save);
         name != NULL && set->count < LOCKS_MAX;
         name = strtok_r(NULL, ",", &save))
        set->locks[set->count++] = actor_lock(player, name);
    set->is_many = set->count > 1 || step_option(&player->step, "many") != NULL;
}

/* ---------------------------------------------------------- descriptors -- */

struct cancel *actor_cancel(struct actor *actor, const char *name)
{
    struct cancel *cancel = actor->cancels;

    pthread_mutex_lock(&actor->mutex);
    while (cancel->name[0] != '\0' && strcmp(cancel->name, name) != 0)
        cancel++;
    if (cancel->name[0] == '\0') {
        (void)snprintf(cancel->name, sizeof cancel->name, "%s", name);
        if (strncmp(name, "pipe:", 5) == 0) {
            int ends[2] = {-1, -1};

            (void)!pipe2(ends, O_CLOEXEC);
            cancel->fd = ends[0];
            cancel->writer = ends[1];
        } else {
            cancel->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
            cancel->writer = cancel->fd;
        }
    }
    pthread_mutex_unlock(&actor->mutex);
    return cancel;
}

int actor_fd(struct player *player, const char *option)
{
    const char *fd = step_option(&player->step, option);

    if (fd == NULL)
        return 0;
    return strcmp(fd, "negative") == 0 ? -1
                                       : actor_cancel(player->actor, fd)->fd;
}

static volatile sig_atomic_t handler_fd;

static void write_to_fd(int signal_number)
{
    uint64_t one = 1;

    (void)signal_number;
    (void)!write(handler_fd, &one, sizeof one);
}

/* Write to the descriptor fd=, read it, close it, or give its number away. */
static int use_fd(struct player *player)
{
    const char *verb = player->step.verb;
    struct cancel *cancel =
        actor_cancel(player->actor, step_option(&player->step, "fd"));
    uint64_t one = 1;
    int another;

    if (strcmp(verb, "raises") == 0)
        return write(cancel->writer, &one, sizeof one) == sizeof one ? 0 : -1;
    if (strcmp(verb, "reads") == 0) /* how often it was raised */
        return read(cancel->fd, &one, sizeof one) == sizeof one ? (int)one : 0;
    if (strcmp(verb, "hangs_up") == 0)
        return close(cancel->writer);
    if (strcmp(verb, "handles") == 0) {
        handler_fd = cancel->writer;
        return signal(SIGUSR2, write_to_fd) == SIG_ERR ? -1 : 0;
    }
    /* replaces: the number belongs to another eventfd from now on. */
    another = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (dup3(another, cancel->fd, O_CLOEXEC) < 0)
        return -1;
    return close(another);
}

/* --------------------------------------------------------------- losses -- */

/* A loss is told once a lock; with told=lingers the callback does not return
 * before `lets_go`. */
static pthread_mutex_t lingering = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t may_go = PTHREAD_COND_INITIALIZER;
static bool is_let_go;

static void on_lost(void *context, sqlock_lock *lock, int code)
{
    actor_say_lost(code, sqlock_name(lock));
    if (context == NULL)
        return;
    pthread_mutex_lock(&lingering);
    while (!is_let_go)
        (void)pthread_cond_wait(&may_go, &lingering);
    pthread_mutex_unlock(&lingering);
}

static void let_go(void)
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
    check_sleep(actor_number(&player->step, "held", 0));
    for (size_t i = 0; i < set->count; i++)
        mark_inside(player, sqlock_name(set->locks[i]), false);
}

static int acquire(struct player *player, struct set *set, int64_t wait_ms,
                   const sqlock_acquire_options *how)
{
    sqlock_error *err = &player->outcome.err;

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

/* A claim that outlasts a short lease is made again: the machine is busy. */
static void take(struct player *player)
{
    struct outcome *outcome = &player->outcome;
    int64_t wait_ms = actor_ms(&player->step, "wait", 0);
    int64_t until = check_deadline_ns(PATIENCE_MS);
    sqlock_acquire_options how;
    struct set set;

    obtain(player, &set);
    actor_read_options(player, &how);
    do
        outcome->rc = acquire(player, &set, wait_ms, &how);
    while (wait_ms == 0 && outcome->rc == SQLOCK_ETIMEDOUT &&
           check_pause(until));
    if (outcome->rc == 0)
        outcome->token = sqlock_token(set.locks[0]);
    check_each(player, &set);
}

static void give(struct player *player)
{
    struct set set;

    obtain(player, &set);
    player->outcome.rc = release(player, &set);
    check_each(player, &set);
}

static void renew(struct player *player)
{
    struct outcome *outcome = &player->outcome;
    uint32_t ttl_ms = (uint32_t)actor_ms(&player->step, "ttl", 0);
    struct set set;

    obtain(player, &set);
    outcome->rc = set.is_many
                      ? sqlock_renew_many(set.locks, set.count, set.results,
                                          &outcome->err)
                      : sqlock_renew(set.locks[0], ttl_ms, &outcome->err);
    check_each(player, &set);
}

/* Acquire and release count=N times; with cancelled, a wait may be. */
static void take_turns(struct player *player)
{
    struct outcome *outcome = &player->outcome;
    bool may_end = step_option(&player->step, "cancelled") != NULL;
    struct set set;

    obtain(player, &set);
    for (int64_t i = actor_times(&player->step); i > 0 && outcome->rc == 0;
         i--) {
        int rc = acquire(player, &set, SQLOCK_FOREVER, NULL);

        if (rc == SQLOCK_ECANCELED && may_end)
            continue;
        outcome->rc = rc;
        if (rc < 0)
            return;
        be_inside(player, &set);
        rc = release(player, &set);
        if (outcome->rc == 0)
            outcome->rc = rc;
    }
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

static void tell_remaining(struct player *player)
{
    player->outcome.rc =
        (int)sqlock_remaining_ms(actor_lock(player, player->step.name));
}

/* The thread ends with what it holds (actor.c). */
static void leave(struct player *player)
{
    player->has_left = true;
}

static void use_descriptor(struct player *player)
{
    player->outcome.rc = use_fd(player);
}

static void release_callback(struct player *player)
{
    (void)player;
    let_go();
}

static void open_registry(struct player *player)
{
    player->outcome.rc =
        actor_open(player->actor, &player->step, &player->outcome.err);
}

static void close_registry(struct player *player)
{
    player->outcome.rc =
        sqlock_registry_close(player->actor->registry, &player->outcome.err);
    player->actor->registry = NULL;
}

void actor_perform(struct player *player)
{
    static const struct {
        const char *verb;
        void (*perform)(struct player *player);
    } verbs[] = {
        {"takes", take},
        {"gives", give},
        {"renews", renew},
        {"cancels", cancel},
        {"drops", drop},
        {"forgets", forget},
        {"counts", count},
        {"holds", hold},
        {"remains", tell_remaining},
        {"turns", take_turns},
        {"storms", actor_storm},
        {"asks", actor_use_request},
        {"asks_release", actor_use_request},
        {"sees", actor_use_request},
        {"finishes", actor_use_request},
        {"abandons", actor_use_request},
        {"raises", use_descriptor},
        {"reads", use_descriptor},
        {"hangs_up", use_descriptor},
        {"replaces", use_descriptor},
        {"handles", use_descriptor},
        {"alarms", look_for_alarm},
        {"exits", leave},
        {"lets_go", release_callback},
        {"fails", actor_disturb},
        {"holds_up", actor_disturb},
        {"delays", actor_disturb},
        {"keeps_back", actor_disturb},
        {"works", actor_disturb},
        {"lets_arrive", actor_disturb},
        {"has_met", actor_disturb},
        {"has_sent", actor_disturb},
        {"counts_from_now", actor_disturb},
        {"opens", open_registry},
        {"closes", close_registry},
    };

    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(player->step.verb, verbs[i].verb) == 0) {
            verbs[i].perform(player);
            return;
        }
    actor_refuse(&player->outcome, "no such verb");
}
