/*
 * checks.c - the results of sqlock_diagnose(): a list that grows while checks
 * are made, and is handed out as one block that one call frees
 */
#include "admin/checks.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define LINE_SIZE 512

void lk_check(struct lk_checks *checks, const char *check,
              sqlock_severity severity, const char *advice, const char *format,
              ...)
{
    sqlock_check found = {.check = check, .severity = severity};
    sqlock_check *grown;
    char raw[LINE_SIZE];
    char line[LINE_SIZE];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(raw, sizeof raw, format, arguments);
    va_end(arguments);
    lk_text_escape(line, sizeof line, raw);

    grown = realloc(checks->list, (checks->count + 1) * sizeof *grown);
    found.found = strdup(line);
    if (advice != NULL)
        found.advice = strdup(advice);
    if (grown != NULL)
        checks->list = grown;
    if (grown == NULL || found.found == NULL ||
        (advice != NULL && found.advice == NULL)) {
        free(found.found);
        free(found.advice);
        checks->is_short = true;
        return;
    }
    grown[checks->count++] = found;
}

void lk_checks_clear(struct lk_checks *checks)
{
    for (size_t i = 0; i < checks->count; i++) {
        free(checks->list[i].found);
        free(checks->list[i].advice);
    }
    free(checks->list);
    *checks = (struct lk_checks){0};
}

static char *copy_line(char **at, const char *line)
{
    size_t size = strlen(line) + 1;
    char *copy = memcpy(*at, line, size);

    *at += size;
    return copy;
}

sqlock_check *lk_checks_copy(const struct lk_checks *checks)
{
    size_t size = (checks->count + 1) * sizeof(sqlock_check);
    sqlock_check *copies;
    char *at;

    for (size_t i = 0; i < checks->count; i++) {
        const sqlock_check *one = &checks->list[i];

        size += strlen(one->found) + 1;
        size += one->advice != NULL ? strlen(one->advice) + 1 : 0;
    }
    copies = calloc(1, size);
    if (copies == NULL)
        return NULL;
    at = (char *)&copies[checks->count];
    for (size_t i = 0; i < checks->count; i++) {
        const sqlock_check *one = &checks->list[i];

        copies[i] = *one;
        copies[i].found = copy_line(&at, one->found);
        if (one->advice != NULL)
            copies[i].advice = copy_line(&at, one->advice);
    }
    return copies;
}

void sqlock_checks_free(sqlock_check *checks, size_t count)
{
    (void)count;
    free(checks);
}
