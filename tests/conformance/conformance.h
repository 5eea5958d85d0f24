/*
 * conformance.h - the topics of this suite
 *
 * A test runs once for each database and table layout that it names.
 */
#ifndef TESTS_CONFORMANCE_H
#define TESTS_CONFORMANCE_H

#include "support/fixture.h"

struct test {
    const char *name;
    CMUnitTestFunction function;
    unsigned databases; /* ON_... */
    unsigned layouts;   /* IN_... */
};

struct topic {
    const struct test *tests;
    size_t count;
};

#define TEST(function_)                                                        \
    {                                                                          \
#function_, function_, ON_ALL, IN_ALL                                  \
    }
#define TEST_ON(function_, databases_, layouts_)                               \
    {                                                                          \
#function_, function_, (databases_), (layouts_)                        \
    }
#define TOPIC(tests_)                                                          \
    {                                                                          \
        (tests_), sizeof(tests_) / sizeof(tests_)[0]                           \
    }

extern const struct topic topic_exclusion;
extern const struct topic topic_lease;
extern const struct topic topic_lost;
extern const struct topic topic_waiting;
extern const struct topic topic_ownership;
extern const struct topic topic_handles;
extern const struct topic topic_keys;
extern const struct topic topic_tokens;
extern const struct topic topic_statements;
extern const struct topic topic_spring;
extern const struct topic topic_admin;
extern const struct topic topic_reap;
extern const struct topic topic_schema;
extern const struct topic topic_access;
extern const struct topic topic_fork;
extern const struct topic topic_faults;
extern const struct topic topic_clocks;
extern const struct topic topic_races;

#endif
