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

/* The worst that a check has found; -1: nothing at all. */
int diagnosis_worst(const struct diagnosis *diagnosis, const char *check);

/* The first that a check has found; fails the test when there is none. */
const sqlock_check *diagnosis_find(const struct diagnosis *diagnosis,
                                   const char *check);

void diagnosis_clear(struct diagnosis *diagnosis);

#endif
