/*
 * exhaust.h - run an experiment with the library's first call failing, then
 * with its second, and so on, until no call is left that could fail
 */
#ifndef TESTS_EXHAUST_EXHAUST_H
#define TESTS_EXHAUST_EXHAUST_H

#include "inject.h"
#include "support/suite_main.h"

/* An experiment: three functions, called in this order in each run. */
struct experiment {
    /* Called before the failure is armed; NULL: nothing is to be prepared. */
    void (*prepare)(struct fixture *f, void *state);
    /* Called while it is armed: makes calls of the public interface, and passes
     * each result to exhaust_expect(). */
    void (*act)(struct fixture *f, void *state);
    /* Called when nothing fails any more: checks what the calls have left. */
    void (*check)(struct fixture *f, void *state);
    size_t state_bytes; /* size of `state`, which is zeros at the beginning of
                           each run, and never NULL */
};

/* Run the experiment for each kind of failure at each call of that kind, and
 * for each allocation with all later ones failing, too.  Fail the test if that
 * leaves descriptors or threads behind. */
void exhaust_all(struct fixture *f, const struct experiment *experiment);

/* In act(): check that rc is 0, or negative with a message of one line in *err;
 * return whether it is 0. */
#define exhaust_expect(rc, err)                                                \
    exhaust_expect_at((rc), (err), #rc, __FILE__, __LINE__)
bool exhaust_expect_at(int rc, const sqlock_error *err, const char *call,
                       const char *file, int line);

/* Return whether, in this run, all calls after the failing one fail, too: the
 * library then cannot clean up. */
bool exhaust_is_lasting(void);

/* Acquire a lock that is free.  A ticket that a wait could not take out of the
 * row, since all failed, keeps it for a second. */
void exhaust_take(sqlock_lock *lock);

/* Disarm, and print the failure that was armed if the last test has failed
 * during a run.  Called before each test, and at the end. */
void exhaust_report(void);

/* Return the options of the registries of this suite. */
sqlock_options exhaust_options(const struct fixture *f);

#endif
