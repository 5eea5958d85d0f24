/*
 * contract.h - whether a call answers with the codes that its header lists,
 * whatever the statements below it answer
 *
 * Each call of a table is made once for each code that a driver may answer,
 * given to all statements, or to the first call or all of them, begin, commit
 * and open included.  A code that the header does not list for the call fails
 * the test.
 */
#ifndef TESTS_CONTRACT_H
#define TESTS_CONTRACT_H

#include "fixture.h"

/* What the calls of one cell are made with. */
struct contract {
    struct fixture *f;
    char url[1024]; /* through the tap */
    sqlock_options options;
    sqlock_registry *registry;
    sqlock_lock *locks[2]; /* names that nobody else uses */
    void *state;           /* of prepare(), for the others */
};

struct contract_call {
    const char *name;
    unsigned databases; /* ON_... */
    bool is_held;       /* both locks are, before it */
    /* Without faults; may be NULL. */
    void (*prepare)(struct contract *c);
    /* With faults, its answer. */
    int (*call)(struct contract *c, sqlock_error *err);
    /* Without faults again; may be NULL. */
    void (*finish)(struct contract *c);
    uint32_t codes; /* CODE()s besides 0 */
};

/* Of SQLOCK_EBUSY: CODE(EBUSY). */
#define CODE(name) (UINT32_C(1) << -SQLOCK_##name)

/* Errors of a database that change nothing. */
#define CODES_NOT_APPLIED                                                      \
    (CODE(EUNREACHABLE) | CODE(EBUSY) | CODE(EACCESS) | CODE(ESCHEMA) |        \
     CODE(EREADONLY) | CODE(ERESOURCE) | CODE(EDATABASE) | CODE(ENOMEM))

/* Fails the test after all calls of the table have been made. */
void contract_check(struct fixture *f, const struct contract_call *calls,
                    size_t count);

#endif
