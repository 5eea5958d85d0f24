/*
 * actor.h - a process of a scene: it makes the calls that it reads from its
 * standard input, each in the thread with that number
 */
#ifndef TESTS_SCENES_ACTOR_H
#define TESTS_SCENES_ACTOR_H

#include <pthread.h>
#include <semaphore.h>

#include "result.h"
#include "scene.h"
#include "sqlock/async.h"
#include "sqlock/lease.h"
#include "sqlock/quorum.h"
#include "sqlock/tx.h"
#include "support/app.h"

#define LOCKS_MAX 10100
#define REQUESTS_MAX 100
#define FDS_MAX 6

/* An acquire or release by a request. */
struct asked {
    char as[96]; /* "": not in use */
    sqlock_request *request;
    bool is_release;
};

/* The locks of a name at a server; of one thread, where each handle is an
 * owner. */
struct handle {
    char name[96];
    int thread;
    int server;
    sqlock_lock *lock;
};

/* A descriptor that ends waits: an eventfd, or a pipe's end. */
struct cancel {
    char name[32];
    int fd;
    int writer; /* the pipe's other end, or as fd */
};

struct actor {
    sqlock_registry *registries[SERVERS]; /* all but the first only of those
                                             that open with `servers` */
    sqlock_ownership ownership;
    char url[1024];
    sqlock_options options;
    char prefix[64]; /* this and the next two: of the options */
    char region[128];
    char note[256];
    char folder[256]; /* with a file for each lock that somebody is inside of */
    pthread_mutex_t mutex; /* guards the following arrays */
    struct handle handles[LOCKS_MAX];
    struct asked asked[REQUESTS_MAX];
    struct cancel cancels[FDS_MAX];
};

/* The results of a call. */
struct outcome {
    int rc;
    int64_t token;
    sqlock_error err;
};

/* The transaction of a thread, and the application's own connection. */
struct session {
    sqlock_tx *tx; /* NULL: it has ended */
    struct app app;
    char *settings; /* of the connection, when it was made with `unusual` */
    sqlock_row_version seen;
};

/* A thread of the actor, at most one call of which is made at a time. */
struct player {
    struct actor *actor;
    int number;
    struct step step;
    struct outcome outcome;
    struct session session;
    bool has_left; /* the thread is to end */
};

void actor_refuse(struct outcome *outcome, const char *why);

/* Perform the player's step. */
void actor_perform(struct player *player);

/* The words of a step: open the registry, or close it. */
int actor_open(struct actor *actor, const struct step *step, sqlock_error *err);

/* Return its URL past its tap: applications use no driver of ours. */
const char *actor_plain_url(const struct actor *actor);

/* Open another registry as the first one. */
int actor_open_another(const struct actor *actor, sqlock_registry **registry,
                       sqlock_error *err);

/* Return the number of the server of a step, server=N or member=N; 0 without
 * it; and the registry there. */
int actor_server(const struct step *step);
sqlock_registry *actor_registry(struct player *player);

/* Return a duration of the step: in ms, or "ever"; `otherwise` without it.  A
 * sanitizer makes everything slower. */
int64_t actor_ms(const struct step *step, const char *option,
                 int64_t otherwise);

/* Return a number of the step; `otherwise` without it. */
int64_t actor_number(const struct step *step, const char *option,
                     int64_t otherwise);

/* How often a step repeats something: count=, and campaign= in a campaign. */
int64_t actor_times(const struct step *step);

/* Return the thread's lock of a name, which is obtained once; with member=N the
 * quorum's. */
sqlock_lock *actor_lock(struct player *player, const char *name);

/* Call the function for each lock of the step's names, "L,M", and of "L*3": L1,
 * L2 and L3. */
void actor_each_name(const struct step *step,
                     void (*call)(void *context, const char *name),
                     void *context);

/* The locks of a step. */
struct set {
    sqlock_lock *locks[LOCKS_MAX];
    int results[LOCKS_MAX];
    size_t count;
    bool is_many; /* to be passed to the functions for many */
};
void actor_obtain(struct player *player, struct set *set);

/* Return whether the results of a call for many are those of each=, with ","
 * between; refuse the step if they are not. */
bool actor_fits_each(const struct step *step, const int *results, size_t count);
void actor_check_each(struct player *player, const int *results, size_t count);

/* The verbs of locks.c, take.c and fds.c. */
void actor_drop(struct player *player);
void actor_forget(struct player *player);
void actor_take(struct player *player);
void actor_give(struct player *player);
void actor_renew(struct player *player);
void actor_take_turns(struct player *player);
void actor_use_fd(struct player *player);

/* Let callbacks that linger return. */
void actor_let_go(void);

/* Read the options of an acquisition from the player's step. */
void actor_read_options(struct player *player, sqlock_acquire_options *how);

/* Perform a step with a request. */
void actor_use_request(struct player *player);

/* Perform a step about a quorum; return false if it is none.  Return the lock
 * of the member that a step names.  Drop the quorums. */
bool actor_use_quorum(struct player *player);
sqlock_lock *actor_member(struct player *player, const char *name);
int actor_drop_quorums(sqlock_error *err);

/* Perform a step about a transaction; return false if it is none. */
bool actor_use_tx(struct player *player);

/* Perform a step about stock; return false if it is none.  Close what such
 * steps have opened. */
bool actor_use_stock(struct player *player);
void actor_close_stocks(void);

/* Begin and abandon requests, count= times, at different moments. */
void actor_storm(struct player *player);

/* actor_disturb(): perform a step with what goes wrong in the driver.
 * disturb_begin(): tap the driver; before the registry opens.
 * disturb_by_player(): the present thread is one that plays steps. */
void actor_disturb(struct player *player);
void disturb_begin(struct actor *actor);
void disturb_by_player(void);

/* Return the descriptor that an option names: 0 without it. */
int actor_fd(struct player *player, const char *option);

/* Return the descriptor of a name, "stop" for an eventfd, "pipe:stop" for a
 * pipe, which is made when it is first named. */
struct cancel *actor_cancel(struct actor *actor, const char *name);

/* Say to the player: a lease of that lock was told lost. */
void actor_say_lost(int code, sqlock_lock *lock);

/* Read steps until standard input ends. */
int actor_main(void);

#endif
