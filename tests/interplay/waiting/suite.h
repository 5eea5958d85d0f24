/*
 * suite.h - the topics of this suite: waiting for a lock, and being next
 *
 * A test runs on each database of the environment, or on those that its line in
 * the table of tests names; a test of one statement also runs on Spring's
 * layouts.  The tests assert orders and outcomes; only a few assert a duration
 * or processor time.
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
extern const struct topic topic_outage;
extern const struct topic topic_late;
extern const struct topic topic_abandon;

/* A thread of the test's process that acquires a lock, and releases it when the
 * test tells it to. */
struct contender {
    struct worker worker;
    sqlock_registry *registry; /* of contender_open(); else NULL */
    sqlock_lock *lock;
    const sqlock_acquire_options *options;
    /* NULL, or locks to acquire instead of `lock`; only `lock` is released */
    sqlock_lock *const *many;
    size_t many_count;
    int64_t wait_ms;
    atomic_int rc; /* of the acquire; 1: not ended yet */
    atomic_bool may_release;
    int released; /* result of the release */
    int64_t token;
    int64_t remaining_ms;
};

/* Open a registry for the contender, with that poll_ms, which stands for
 * another process, and obtain the fixture's lock there.  contender_close()
 * drops the lock and closes the registry. */
void contender_open(struct contender *contender, struct fixture *f,
                    uint32_t poll_ms);
void contender_close(struct contender *contender);

/* contender_start(): start a thread that acquires the lock, or `many`, with
 * that wait.  contender_queue(): also wait until the thread sleeps, in the
 * FIFO, in the database's queue or between two reads of the row; fail the test
 * if the acquire has failed by then. */
void contender_start(struct contender *contender, sqlock_lock *lock,
                     int64_t wait_ms);
void contender_queue(struct contender *contender, sqlock_lock *lock,
                     int64_t wait_ms);

/* Return whether any session waits in a queue of the database, as the server
 * sees it.  For PostgreSQL and MySQL only. */
bool queue_is_waited_at(struct fixture *f);

/* Wait until the contender has the lock; fail the test if its acquire fails. */
void contender_await(struct contender *contender);

/* Let the contender release the lock, wait for its thread's end, and check the
 * result of the release. */
void contender_end(struct contender *contender, int expected);

/* Wait until the contender has the lock, and let it release the lock without an
 * error. */
void contender_finish(struct contender *contender);

/* Wait until the contender's acquire has failed, with that code, and its thread
 * has ended. */
void contender_expect(struct contender *contender, int code);

/* A lock that the fixture's first registry has acquired and released once, so
 * that the row exists, and a contender of another registry. */
struct relay {
    sqlock_lock *held;
    struct contender next;
};
void relay_open(struct relay *relay, struct fixture *f, uint32_t poll_ms);
/* Wait until the contender, which has been started, has acquired and released
 * the lock; then close both. */
void relay_close(struct relay *relay);

/* Counts of threads that acquire and release one lock again and again: only one
 * of them may hold it at a time, and tokens must rise. */
struct turns {
    unsigned each; /* acquisitions by each thread */
    atomic_int inside;
    atomic_uint taken;
    _Atomic int64_t token; /* of the last acquisition */
};
struct party {
    sqlock_lock *lock;
    struct turns *turns;
};

/* Body of a worker: acquire and release party->lock turns->each times, and
 * check `inside` and the token each time.  The worker's context is an array of
 * parties, one for each worker by its index. */
int take_turns(struct worker *worker);

/* request_ask(): begin to acquire the lock by a request.  request_is_over():
 * return whether the request has ended.  request_expect(): wait until it has
 * ended, check its state and result, and finish it.  request_give_up(): abandon
 * it.  A failure fails the test. */
sqlock_request *request_ask(struct fixture *f, sqlock_lock *lock,
                            int64_t wait_ms,
                            const sqlock_acquire_options *options, int done_fd);
bool request_is_over(sqlock_request *request);
void request_expect(struct fixture *f, sqlock_request *request,
                    sqlock_request_state state, int rc);
void request_give_up(struct fixture *f, sqlock_request *request);

#endif
