/*
 * quorum.c - a lock that is held while most of three servers hold it, or each
 * of them: what a thread does with a quorum
 */
#include "actor.h"

#include <stdatomic.h>
#include <string.h>

/* The quorums of the process, of one name, for all its threads: of most, and of
 * all. */
static sqlock_quorum *quorums[2];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int releases; /* calls that have released one */

/* Return the quorum of a step, with `all` that of all, which is obtained
 * once. */
static sqlock_quorum *quorum_of(struct player *player, const char *name)
{
    sqlock_quorum_options options = SQLOCK_QUORUM_INIT;
    sqlock_quorum *quorum;

    options.all = step_option(&player->step, "all") != NULL;
    pthread_mutex_lock(&mutex);
    if (quorums[options.all] == NULL &&
        sqlock_quorum_obtain(&quorums[options.all], player->actor->registries,
                             SERVERS, name, &options, &player->outcome.err) < 0)
        actor_refuse(&player->outcome, player->outcome.err.message);
    quorum = quorums[options.all];
    pthread_mutex_unlock(&mutex);
    return quorum;
}

sqlock_lock *actor_member(struct player *player, const char *name)
{
    return sqlock_quorum_lock(quorum_of(player, name),
                              (size_t)actor_server(&player->step));
}

int actor_drop_quorums(sqlock_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < 2 && rc == 0; i++) {
        rc = sqlock_quorum_drop(quorums[i], err);
        if (rc == 0)
            quorums[i] = NULL;
    }
    return rc;
}

/* In this callback the quorum cannot be released. */
static void on_lost(void *context, sqlock_lock *lock, int code)
{
    int rc = sqlock_quorum_release(context, NULL, NULL);

    actor_say_lost(rc == SQLOCK_EINUSE ? code : NOT_PLAYED, lock);
}

/* A server that is slow does not count, though it was to: then it is acquired
 * again. */
static void take(struct player *player, sqlock_quorum *quorum)
{
    const struct step *step = &player->step;
    struct outcome *outcome = &player->outcome;
    int64_t wait_ms = actor_ms(step, "wait", 0);
    int64_t until = check_deadline_ns(PATIENCE_MS);
    sqlock_acquire_options how;
    int results[SERVERS];

    actor_read_options(player, &how);
    if (how.on_lost != NULL) {
        how.on_lost = on_lost;
        how.lost_context = quorum;
    }
    for (;;) {
        outcome->rc = sqlock_quorum_acquire(quorum, wait_ms, &how, results,
                                            &outcome->err);
        if (outcome->rc < 0 || actor_fits_each(step, results, SERVERS) ||
            !check_pause(until) ||
            sqlock_quorum_release(quorum, NULL, &outcome->err) < 0)
            break;
    }
    actor_check_each(player, results, SERVERS);
}

/* With at_once, as soon as the call of another thread that acquires it has
 * returned, unless it was released meanwhile: then once more. */
static void give(struct player *player, sqlock_quorum *quorum)
{
    struct outcome *outcome = &player->outcome;
    bool is_eager = step_option(&player->step, "at_once") != NULL;
    int64_t until = check_deadline_ns(PATIENCE_MS);
    int results[SERVERS] = {0};
    bool is_late;

    do {
        is_late = atomic_load(&releases) > 0;
        outcome->err.code = 0;
        outcome->rc = sqlock_quorum_release(quorum, results, &outcome->err);
        if (is_eager && outcome->rc == SQLOCK_EOWNER)
            check_sleep(1); /* nobody has begun to acquire it */
    } while (is_eager && !is_late && check_deadline_ns(0) < until &&
             (outcome->rc == SQLOCK_EOWNER || outcome->rc == SQLOCK_EINUSE));
    if (outcome->rc == 0)
        atomic_fetch_add(&releases, 1);
    actor_check_each(player, results, SERVERS);
}

/* Tell how many calls have released it. */
static void count(struct player *player, sqlock_quorum *quorum)
{
    (void)quorum;
    player->outcome.rc = atomic_load(&releases);
}

/* Tell whether it is held, with from left=MS to most=MS left. */
static void ask(struct player *player, sqlock_quorum *quorum)
{
    int64_t left_ms = sqlock_quorum_remaining_ms(quorum);

    player->outcome.rc = left_ms > 0 &&
                         left_ms >= actor_ms(&player->step, "left", left_ms) &&
                         left_ms <= actor_ms(&player->step, "most", left_ms);
}

bool actor_use_quorum(struct player *player)
{
    static const struct {
        const char *verb;
        void (*perform)(struct player *player, sqlock_quorum *quorum);
    } verbs[] = {{"takes_most", take},
                 {"gives_most", give},
                 {"gave_most", count},
                 {"has_most", ask}};

    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        sqlock_quorum *quorum;

        if (strcmp(player->step.verb, verbs[i].verb) != 0)
            continue;
        quorum = quorum_of(player, player->step.name);
        if (quorum != NULL)
            verbs[i].perform(player, quorum);
        return true;
    }
    return false;
}
