/*
 * contract.h - check that a call returns only the codes listed in its header,
 * whatever the statements below it return
 *
 * Each call of a table is made once for each code that a driver may return, for
 * all statements, or for the first call or all of them, including begin, commit
 * and open.  A code that the header does not list for the call fails the test.
 */
#ifndef TESTS_CONTRACT_H
#define TESTS_CONTRACT_H

#include "fixture.h"

/* The objects that the calls use. */
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
    /* With faults; its result is checked. */
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

/* Make all calls of the table, then fail the test if one broke its list. */
void contract_check(struct fixture *f, const struct contract_call *calls,
                    size_t count);

#endif
