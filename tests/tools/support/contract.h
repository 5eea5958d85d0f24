/*
 * contract.h - check that a call returns only the codes listed in its header,
 * whatever the statements below it return
 *
 * Each call of a table is made with each code that a driver may return, as the
 * result of all statements; of the first driver call, which may also be open,
 * begin or commit; and of all driver calls.  If the call returns a code that
 * the header does not list for it, the test fails.
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
    sqlock_lock *locks[2]; /* of names that only this call uses */
    void *state;           /* set by prepare(), for call() and finish() */
};

struct contract_call {
    const char *name;
    unsigned databases; /* ON_... */
    bool is_held;       /* both locks are acquired before it */
    /* Called before call(), without faults; may be NULL. */
    void (*prepare)(struct contract *c);
    /* Called with faults; its result is checked. */
    int (*call)(struct contract *c, sqlock_error *err);
    /* Called after call(), without faults; may be NULL. */
    void (*finish)(struct contract *c);
    uint32_t codes; /* those listed besides 0: CODE()s */
};

/* The bit of a code in `codes`: CODE(EBUSY) for SQLOCK_EBUSY. */
#define CODE(name) (UINT32_C(1) << -SQLOCK_##name)

/* Errors of a database after which nothing has changed. */
#define CODES_NOT_APPLIED                                                      \
    (CODE(EUNREACHABLE) | CODE(EBUSY) | CODE(EACCESS) | CODE(ESCHEMA) |        \
     CODE(EREADONLY) | CODE(ERESOURCE) | CODE(EDATABASE) | CODE(ENOMEM))

/* Make all calls of the table; then fail the test if one of them returned a
 * code that is not in its list. */
void contract_check(struct fixture *f, const struct contract_call *calls,
                    size_t count);

#endif
