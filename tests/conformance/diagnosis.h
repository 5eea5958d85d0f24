/*
 * diagnosis.h - what sqlock_diagnose() has found
 */
#ifndef TESTS_DIAGNOSIS_H
#define TESTS_DIAGNOSIS_H

#include "conformance.h"

struct diagnosis {
    sqlock_check *checks;
    size_t count;
};

/* Call sqlock_diagnose(), which must succeed; the result is to be cleared. */
struct diagnosis diagnosis_make(struct fixture *f, const char *url,
                                const sqlock_options *options);

/* The worst that a check has found; -1: nothing at all. */
int diagnosis_worst(const struct diagnosis *diagnosis, const char *check);

/* The first that a check has found; fails the test when there is none. */
const sqlock_check *diagnosis_find(const struct diagnosis *diagnosis,
                                   const char *check);

void diagnosis_clear(struct diagnosis *diagnosis);

#endif
