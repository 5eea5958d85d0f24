/*
 * verbs.c - what the threads of a process can do: a call of the library for
 * each verb (README.md)
 */
#include "actor.h"

#include <fcntl.h>
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

static int64_t number(const struct step *step, const char *option,
                      int64_t otherwise)
{
    const char *value = step_option(step, option);

    return value == NULL ? otherwise : strtoll(value, NULL, 10);
}

/* ------------------------------------------------------------- the locks -- */

/* Return the thread's lock of a name, which is obtained once. */
static sqlock_lock *lock_of(struct player *player, const char *name)
{
    struct actor *actor = player->actor;
    bool own = actor->ownership == SQLOCK_OWNED_BY_HANDLE;
    sqlock_lock *lock = NULL;

    pthread_mutex_lock(&actor->mutex);
    for (size_t i = 0; i < LOCKS_MAX && lock == NULL; i++) {
        struct handle *handle = &actor->handles[i];

        if (handle->lock == NULL) {
            handle->thread = own ? player->number : 0;
            (void)snprintf(handle->name, sizeof handle->name, "%s", name);
            player->outcome.rc = sqlock_obtain(&handle->lock, actor->registry,
                                               name, &player->outcome.err);
            lock = handle->lock;
            break;
        }
        if (strcmp(handle->name, name) == 0 &&
            (!own || handle->thread == player->number))
            lock = handle->lock;
    }
    pthread_mutex_unlock(&actor->mutex);
    return lock;
}

/* Drop the thread's lock of a name. */
static void drop(struct player *player)
{
    struct actor *actor = player->actor;
    sqlock_lock *lock = lock_of(player, player->step.name);
    int rc;

    pthread_mutex_lock(&actor->mutex);
    rc = sqlock_drop(lock, &player->outcome.err);
    for (size_t i = 0; rc == 0 && i < LOCKS_MAX; i++)
        if (actor->handles[i].lock == lock) {
            size_t rest = LOCKS_MAX - 1 - i;

            memmove(&actor->handles[i], &actor->handles[i + 1],
                    rest * sizeof *actor->handles);
            memset(&actor->handles[LOCKS_MAX - 1], 0, sizeof *actor->handles);
            break;
        }
    pthread_mutex_unlock(&actor->mutex);
    player->outcome.rc = rc;
}

/* The locks of a step: of the names in its name, with "," between. */
struct set {
    sqlock_lock *locks[LOCKS_MAX];
    size_t count;
    bool is_many; /* to be passed to the functions for many */
};

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
        set->locks[set->count++] = lock_of(player, name);
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

/* Return the descriptor that an option names: 0 without it. */
static int fd_of(struct player *player, const char *option)
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

static void read_options(struct player *player, sqlock_acquire_options *how)
{
    const struct step *step = &player->step;
    const char *told = step_option(step, "told");

    *how = (sqlock_acquire_options)SQLOCK_ACQUIRE_INIT;
    how->ttl_ms = (uint32_t)actor_ms(step, "ttl", 0);
    how->max_hold_ms = (uint32_t)actor_ms(step, "hold", 0);
    how->auto_renew = step_option(step, "renewed") != NULL;
    how->fail_fast = step_option(step, "hasty") != NULL;
    how->cancel_fd = fd_of(player, "fd");
    if (told != NULL) {
        how->on_lost = on_lost;
        how->lost_context = strcmp(told, "lingers") == 0 ? player : NULL;
    }
}

/* How often a step repeats something: count=, and campaign= in a campaign. */
static int64_t times(const struct step *step)
{
    int64_t count = number(step, "count", 1);

    return check_scale((unsigned)count,
                       (unsigned)number(step, "campaign", count));
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
    check_sleep(number(&player->step, "held", 0));
    for (size_t i = 0; i < set->count; i++)
        mark_inside(player, sqlock_name(set->locks[i]), false);
}

static int acquire(struct player *player, const struct set *set,
                   int64_t wait_ms, const sqlock_acquire_options *how)
{
    sqlock_error *err = &player->outcome.err;

    return set->is_many ? sqlock_acquire_many(set->locks, set->count, wait_ms,
                                              how, NULL, err)
                        : sqlock_acquire(set->locks[0], wait_ms, how, err);
}

static int release(struct player *player, const struct set *set)
{
    sqlock_error *err = &player->outcome.err;

    return set->is_many ? sqlock_release_many(set->locks, set->count, NULL, err)
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
    read_options(player, &how);
    do
        outcome->rc = acquire(player, &set, wait_ms, &how);
    while (wait_ms == 0 && outcome->rc == SQLOCK_ETIMEDOUT &&
           check_pause(until));
    if (outcome->rc == 0)
        outcome->token = sqlock_token(set.locks[0]);
}

static void give(struct player *player)
{
    struct set set;

    obtain(player, &set);
    player->outcome.rc = release(player, &set);
}

static void renew(struct player *player)
{
    struct outcome *outcome = &player->outcome;
    uint32_t ttl_ms = (uint32_t)actor_ms(&player->step, "ttl", 0);
    struct set set;

    obtain(player, &set);
    outcome->rc =
        set.is_many
            ? sqlock_renew_many(set.locks, set.count, NULL, &outcome->err)
            : sqlock_renew(set.locks[0], ttl_ms, &outcome->err);
}

/* Acquire and release count=N times; with cancelled, a wait may be. */
static void take_turns(struct player *player)
{
    struct outcome *outcome = &player->outcome;
    bool may_end = step_option(&player->step, "cancelled") != NULL;
    struct set set;

    obtain(player, &set);
    for (int64_t i = times(&player->step); i > 0 && outcome->rc == 0; i--) {
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

/* ------------------------------------------------------------- requests -- */

/* Return the request of that name, or a new one.  Its name is as=..., or the
 * lock's. */
static struct asked *asked_of(struct player *player)
{
    const char *as = step_option(&player->step, "as");
    struct asked *asked = player->actor->asked;
    struct asked *unused = NULL;

    if (as == NULL)
        as = player->step.name;
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

static int ask(struct player *player, struct asked *asked)
{
    sqlock_lock *lock = lock_of(player, player->step.name);
    sqlock_acquire_options how;
    int rc;

    read_options(player, &how);
    asked->is_release = strcmp(player->step.verb, "asks") != 0;
    rc = !asked->is_release
             ? sqlock_request_acquire(
                   &asked->request, lock, actor_ms(&player->step, "wait", 0),
                   &how, fd_of(player, "done"), &player->outcome.err)
             : sqlock_request_release(&asked->request, lock,
                                      fd_of(player, "done"),
                                      &player->outcome.err);
    if (rc < 0)
        asked->as[0] = '\0';
    return rc;
}

/* Wait until the request has ended, unless now=, and finish it. */
static int finish(struct player *player, struct asked *asked)
{
    int64_t until = check_deadline_ns(2 * PATIENCE_MS);
    int rc;

    while (step_option(&player->step, "now") == NULL && !has_ended(asked) &&
           check_pause(until))
        ;
    rc = sqlock_request_finish(asked->request, &player->outcome.err);
    if (rc != SQLOCK_EINUSE)
        asked->as[0] = '\0';
    if (rc == 0 && !asked->is_release && player->step.name != NULL)
        player->outcome.token =
            sqlock_token(lock_of(player, player->step.name));
    return rc;
}

static void use_request(struct player *player)
{
    struct outcome *outcome = &player->outcome;
    const char *verb = player->step.verb;
    struct asked *asked;

    pthread_mutex_lock(&player->actor->mutex);
    asked = asked_of(player);
    pthread_mutex_unlock(&player->actor->mutex);
    if (asked == NULL)
        actor_refuse(outcome, "too many requests");
    else if (strcmp(verb, "asks") == 0 || strcmp(verb, "asks_release") == 0)
        outcome->rc = ask(player, asked);
    else if (strcmp(verb, "sees") == 0)
        outcome->rc = (int)sqlock_request_status(asked->request);
    else if (strcmp(verb, "finishes") == 0)
        outcome->rc = finish(player, asked);
    else {
        outcome->rc = sqlock_request_abandon(asked->request, &outcome->err);
        asked->as[0] = '\0';
    }
}

/* ------------------------------------------------------------ the verbs -- */

static void cancel(struct player *player)
{
    struct outcome *outcome = &player->outcome;
    sqlock_lock *lock = lock_of(player, player->step.name);

    for (int64_t i = times(&player->step); i > 0 && outcome->rc == 0; i--) {
        outcome->rc = sqlock_cancel(lock, &outcome->err);
        if (i > 1)
            check_sleep(2);
    }
}

static void count(struct player *player)
{
    player->outcome.rc =
        (int)sqlock_hold_count(lock_of(player, player->step.name));
}

static void hold(struct player *player)
{
    player->outcome.rc = sqlock_is_held(lock_of(player, player->step.name));
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
        {"counts", count},
        {"holds", hold},
        {"turns", take_turns},
        {"asks", use_request},
        {"asks_release", use_request},
        {"sees", use_request},
        {"finishes", use_request},
        {"abandons", use_request},
        {"raises", use_descriptor},
        {"reads", use_descriptor},
        {"hangs_up", use_descriptor},
        {"replaces", use_descriptor},
        {"handles", use_descriptor},
        {"lets_go", release_callback},
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

/* ---------------------------------------------------------- the registry -- */

static sqlock_ownership ownership_of(const struct step *step)
{
    const char *owner = step_option(step, "owner");

    if (owner != NULL && strcmp(owner, "registry") == 0)
        return SQLOCK_OWNED_BY_REGISTRY;
    if (owner != NULL && strcmp(owner, "handle") == 0)
        return SQLOCK_OWNED_BY_HANDLE;
    return SQLOCK_OWNED_BY_THREAD;
}

/* On a busy machine an attempt to open may exceed a short time limit. */
int actor_open(struct actor *actor, const struct step *step, sqlock_error *err)
{
    const char *waiting = step_option(step, "waiting");
    sqlock_options options = SQLOCK_OPTIONS_INIT;
    int64_t until = check_deadline_ns(PATIENCE_MS);
    int rc;

    options.table_prefix = step_option(step, "prefix");
    options.ttl_ms = (uint32_t)actor_ms(step, "ttl", LONG_TTL_MS);
    options.margin_ms = (uint32_t)actor_ms(step, "margin", 0);
    options.peer_ttl_ms = PEER_TTL_MS;
    options.poll_ms = (uint32_t)actor_ms(step, "poll", 5);
    options.pool_size = (uint32_t)number(step, "pool", 0);
    options.handoff_limit = (uint32_t)number(step, "handoffs", 0);
    options.statement_timeout_ms = (uint32_t)actor_ms(step, "statement", 0);
    options.connect_timeout_ms = (uint32_t)actor_ms(step, "connect", 0);
    options.ownership = ownership_of(step);
    if (waiting != NULL && strcmp(waiting, "poll") == 0)
        options.waiting = SQLOCK_WAITING_POLL;
    actor->ownership = options.ownership;
    (void)snprintf(actor->folder, sizeof actor->folder, "%s",
                   step_option(step, "folder"));
    do
        rc = sqlock_registry_open(&actor->registry, step_option(step, "url"),
                                  &options, err);
    while (rc == SQLOCK_EUNREACHABLE && check_pause(until));
    return rc;
}
