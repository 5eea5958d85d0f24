/*
 * diagnosis.c - see diagnosis.h
 */
#include "diagnosis.h"

#include <string.h>

int diagnosis_worst(const struct diagnosis *diagnosis, const char *check)
{
    int worst = -1;
    size_t i;

    for (i = 0; i < diagnosis->count; i++) {
        const sqlock_finding *finding = &diagnosis->findings[i];

        if (strcmp(finding->check, check) == 0 &&
            (int)finding->severity > worst)
            worst = (int)finding->severity;
    }
    return worst;
}

const sqlock_finding *diagnosis_find(const struct diagnosis *diagnosis,
                                     const char *check)
{
    size_t i;

    for (i = 0; i < diagnosis->count; i++) {
        if (strcmp(diagnosis->findings[i].check, check) == 0)
            return &diagnosis->findings[i];
    }
    _fail(__FILE__, __LINE__);
    return NULL;
}

void diagnosis_clear(struct diagnosis *diagnosis)
{
    sqlock_findings_free(diagnosis->findings, diagnosis->count);
}
