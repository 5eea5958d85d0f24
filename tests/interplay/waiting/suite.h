/*
 * suite.h - the topics of this suite: waiting for a lock, and being next
 *
 * tests/scenes says what waiters may expect.  Here is what cannot be seen from
 * outside.
 */
#ifndef TESTS_WAITING_SUITE_H
#define TESTS_WAITING_SUITE_H

#include "support/suite_main.h"
#include "sqlock/async.h"
#include "support/workers.h"

extern const struct topic topic_cancel;
extern const struct topic topic_crowd;
extern const struct topic topic_steps;

/* A thread of the test's process that acquires a lock, and releases it when the
 * test tells it to. */
struct contender {
    struct worker worker;
    sqlock_registry *registry; /* of contender_open(); else NULL */
    sqlock_lock *lock;
    int64_t wait_ms;
    atomic_int rc; /* of the acquire; 1: not ended yet */
    atomic_bool may_release;
    int released; /* result of the release */
};

/* Open a registry for the contender, with that poll_ms, which stands for
 * another process, and obtain the fixture's lock there.  contender_close()
 * drops the lock and closes the registry. */
void contender_open(struct contender *contender, struct fixture *f,
                    uint32_t poll_ms);
void contender_close(struct contender *contender);

/* contender_start(): start a thread that acquires the lock, or `many`, with
 * that wait.  contender_queue(): also wait until the thread sleeps, in the
 * FIFO, with a ticket or between two reads of the row; fail the test
 * if the acquire has failed by then. */
void contender_start(struct contender *contender, sqlock_lock *lock,
                     int64_t wait_ms);
void contender_queue(struct contender *contender, sqlock_lock *lock,
                     int64_t wait_ms);

/* Wait until the contender has the lock; fail the test if its acquire fails. */
void contender_await(struct contender *contender);

/* Let the contender release the lock, wait for its thread's end, and check the
 * result of the release. */
void contender_end(struct contender *contender, int expected);

/* Wait until the contender has the lock, and let it release the lock without an
 * error. */
void contender_finish(struct contender *contender);

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

#endif
