/*
 * exhaust.h - an experiment is repeated with its first call failing, then its
 * second, until none is left that could fail
 */
#ifndef TESTS_EXHAUST_EXHAUST_H
#define TESTS_EXHAUST_EXHAUST_H

#include "inject.h"
#include "support/suite_main.h"

/* An experiment: it is repeated for each failure of each of its calls. */
struct experiment {
    /* Before a call is made to fail. */
    void (*prepare)(struct fixture *f, void *state);
    /* While it does: calls of the public interface, each judged with
     * exhaust_expect(), whose failure is to be told truly. */
    void (*act)(struct fixture *f, void *state);
    /* After it: what there is now. */
    void (*check)(struct fixture *f, void *state);
    size_t state_bytes; /* of what the three are given, zeros before each time;
                           it is not NULL */
};

/* Each kind of failure at each of the experiment's calls, and memory that stays
 * away; no descriptor and no thread may be left behind. */
void exhaust_all(struct fixture *f, const struct experiment *experiment);

/* rc is 0 or a failure that is told in one line: then false.  In act(). */
#define exhaust_expect(rc, err)                                                \
    exhaust_expect_at((rc), (err), #rc, __FILE__, __LINE__)
bool exhaust_expect_at(int rc, const sqlock_error *err, const char *call,
                       const char *file, int line);

/* Whether what fails now goes on failing: nothing can be cleaned up. */
bool exhaust_is_lasting(void);

/* Say where the test that failed was at; before the next one. */
void exhaust_report(void);

/* The options of the registries of this suite. */
sqlock_options exhaust_options(const struct fixture *f);

extern const struct topic topic_open;
extern const struct topic topic_lock;
extern const struct topic topic_many;
extern const struct topic topic_transaction;
extern const struct topic topic_background;
extern const struct topic topic_stock;
extern const struct topic topic_waiting;

#endif
