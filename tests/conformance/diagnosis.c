/*
 * diagnosis.c - see diagnosis.h
 */
#include "diagnosis.h"

#include <string.h>

struct diagnosis diagnosis_make(struct fixture *f, const char *url,
                                const sqlock_options *options)
{
    struct diagnosis found = {NULL, 0};

    assert_ok(
        sqlock_diagnose(url, options, &found.checks, &found.count, &f->err));
    return found;
}

int diagnosis_worst(const struct diagnosis *diagnosis, const char *check)
{
    int worst = -1;
    size_t i;

    for (i = 0; i < diagnosis->count; i++) {
        const sqlock_check *found = &diagnosis->checks[i];

        if (strcmp(found->check, check) == 0 && (int)found->severity > worst)
            worst = (int)found->severity;
    }
    return worst;
}

const sqlock_check *diagnosis_find(const struct diagnosis *diagnosis,
                                   const char *check)
{
    size_t i;

    for (i = 0; i < diagnosis->count; i++) {
        if (strcmp(diagnosis->checks[i].check, check) == 0)
            return &diagnosis->checks[i];
    }
    _fail(__FILE__, __LINE__);
    return NULL;
}

void diagnosis_clear(struct diagnosis *diagnosis)
{
    sqlock_checks_free(diagnosis->checks, diagnosis->count);
}
