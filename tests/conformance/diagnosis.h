/*
 * diagnosis.h - findings of sqlock_diagnose()
 */
#ifndef TESTS_DIAGNOSIS_H
#define TESTS_DIAGNOSIS_H

#include "conformance.h"

struct diagnosis {
    sqlock_check *checks;
    size_t count;
};

/* Call sqlock_diagnose(), and fail the test if it does not return 0.  Free the
 * findings with diagnosis_clear(). */
struct diagnosis diagnosis_make(struct fixture *f, const char *url,
                                const sqlock_options *options);

/* Return the worst severity that the check has found; -1: it found nothing. */
int diagnosis_worst(const struct diagnosis *diagnosis, const char *check);

/* Return the first finding of the check, valid until diagnosis_clear().  Fail
 * the test if there is none. */
const sqlock_check *diagnosis_find(const struct diagnosis *diagnosis,
                                   const char *check);

void diagnosis_clear(struct diagnosis *diagnosis);

#endif
