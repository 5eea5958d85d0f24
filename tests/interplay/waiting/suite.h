/*
 * suite.h - the topics of this suite: waiting for a lock, and being next
 *
 * Each test runs on each database that the environment names; those of a
 * statement also on Spring's layouts.  They assert orders and outcomes, never
 * how long something took.
 */
#ifndef TESTS_WAITING_SUITE_H
#define TESTS_WAITING_SUITE_H

#include "support/suite_main.h"
#include "sqlock/async.h"
#include "support/workers.h"

extern const struct topic topic_handoff;
extern const struct topic topic_cancel;
extern const struct topic topic_queue;
extern const struct topic topic_crowd;
extern const struct topic topic_request;
extern const struct topic topic_standstill;
extern const struct topic topic_hollow;
extern const struct topic topic_stranger;
extern const struct topic topic_silence;
extern const struct topic topic_outage;
extern const struct topic topic_late;

/* Another process that holds ("--hold") the fixture's lock by now, or is about
 * to wait for it ("--wait"); and what it runs. */
pid_t process_start(struct fixture *f, const char *role, uint32_t ttl_ms);
int be_process(char **arguments, bool holds);

/* PgBouncer in transaction mode before the fixture's server; its URL, or the
 * running test is skipped. */
struct pooler {
    pid_t pid;
    char folder[64];
    char url[512];
};
void pooler_start(struct pooler *pooler, struct fixture *f);
void pooler_end(struct pooler *pooler);

/* Somebody else of this process who wants a lock. */
struct contender {
    struct worker worker;
    sqlock_registry *registry; /* its own; NULL: another's */
    sqlock_lock *lock;
    const sqlock_acquire_options *options;
    sqlock_lock *const *many; /* in place of the one */
    size_t many_count;
    int64_t wait_ms;
    atomic_int rc; /* of its acquire; 1: not yet */
    atomic_bool may_release;
    int released; /* what its release gave */
    int64_t token;
    int64_t remaining_ms;
};

/* Give it a registry with that period of looking, as if it were of another
 * process, and the fixture's lock there; and close that. */
void contender_open(struct contender *contender, struct fixture *f,
                    uint32_t poll_ms);
void contender_close(struct contender *contender);

/* Start to acquire it; and wait until it sleeps: in the queue of its process,
 * or between two looks at the row. */
void contender_start(struct contender *contender, sqlock_lock *lock,
                     int64_t wait_ms);
void contender_queue(struct contender *contender, sqlock_lock *lock,
                     int64_t wait_ms);

/* Whether somebody waits in a queue, as the server sees it. */
bool queue_is_waited_at(struct fixture *f);

/* Wait until it has it. */
void contender_await(struct contender *contender);

/* Let it release, and check what that gave. */
void contender_end(struct contender *contender, int expected);

/* Both: wait until it has it, and let it release without an error. */
void contender_finish(struct contender *contender);

/* Wait until its wait has ended, without the lock and with that code. */
void contender_expect(struct contender *contender, int code);

/* A lock that the fixture's first registry has had once, so that its row is
 * there, and a contender of another registry. */
struct relay {
    sqlock_lock *held;
    struct contender next;
};
void relay_open(struct relay *relay, struct fixture *f, uint32_t poll_ms);
/* When the contender has had its turn. */
void relay_close(struct relay *relay);

/* Several threads that take turns on a lock: one at a time, with tokens that
 * rise. */
struct turns {
    unsigned each; /* turns of one thread */
    atomic_int inside;
    atomic_uint taken;
    _Atomic int64_t token; /* the last */
};
struct party {
    sqlock_lock *lock;
    struct turns *turns;
};

/* A worker's: its context is an array of parties, its own by its index. */
int take_turns(struct worker *worker);

/* A request that is under way; whether it is over; that it is so, once it is;
 * and nobody wants it any longer. */
sqlock_request *request_ask(struct fixture *f, sqlock_lock *lock,
                            int64_t wait_ms,
                            const sqlock_acquire_options *options, int done_fd);
bool request_is_over(sqlock_request *request);
void request_expect(struct fixture *f, sqlock_request *request,
                    sqlock_request_state state, int rc);
void request_give_up(struct fixture *f, sqlock_request *request);

#endif
