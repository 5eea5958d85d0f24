/*
 * findings.c - the list that sqlock_diagnose() fills, and the drivers' rules
 * about settings applied to what a server says
 */
#include "admin/findings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define LINE_SIZE 512

void lk_finding(struct lk_findings *findings, const char *check,
                sqlock_severity severity, const char *advice,
                const char *format, ...)
{
    sqlock_finding finding = {.check = check, .severity = severity};
    sqlock_finding *grown;
    char raw[LINE_SIZE];
    char line[LINE_SIZE];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(raw, sizeof raw, format, arguments);
    va_end(arguments);
    lk_text_escape(line, sizeof line, raw);

    grown = realloc(findings->list, (findings->count + 1) * sizeof *grown);
    finding.found = strdup(line);
    if (advice != NULL)
        finding.advice = strdup(advice);
    if (grown != NULL)
        findings->list = grown;
    if (grown == NULL || finding.found == NULL ||
        (advice != NULL && finding.advice == NULL)) {
        free(finding.found);
        free(finding.advice);
        findings->is_short = true;
        return;
    }
    grown[findings->count++] = finding;
}

void sqlock_findings_free(sqlock_finding *findings, size_t count)
{
    if (findings == NULL)
        return;
    for (size_t i = 0; i < count; i++) {
        free(findings[i].found);
        free(findings[i].advice);
    }
    free(findings);
}

/* --- rules --- */

const char *lk_setting(const sqlock_result *settings, const char *name)
{
    for (size_t row = 0; row < settings->rows; row++) {
        const sqlock_value *cells = &settings->cells[row * settings->columns];

        if (settings->columns >= 2 && cells[0].type == SQLOCK_TEXT &&
            cells[1].type == SQLOCK_TEXT &&
            strcasecmp(cells[0].text, name) == 0)
            return cells[1].text;
    }
    return NULL;
}

/* "log_bin=ON" */
static bool applies(const char *when, const sqlock_result *settings)
{
    size_t length;
    const char *value;
    char name[64];

    if (when == NULL)
        return true;
    length = strcspn(when, "=");
    (void)snprintf(name, sizeof name, "%.*s", (int)length, when);
    value = lk_setting(settings, name);
    return value != NULL && when[length] == '=' &&
           lk_text_matches(value, when + length + 1);
}

/* 0 stands for no limit. */
static bool is_none_or_from(int64_t least, const char *text)
{
    int64_t number = 0;

    for (; *text >= '0' && *text <= '9' && number < least; text++)
        number = number * 10 + (*text - '0');
    return number == 0 || number >= least;
}

void lk_findings_of_rules(struct lk_findings *findings,
                          const sqlock_rule *rules,
                          const sqlock_result *settings)
{
    for (; rules->setting != NULL; rules++) {
        const char *value = lk_setting(settings, rules->setting);
        bool is_good;

        if (value == NULL || !applies(rules->when, settings))
            continue;
        is_good = rules->good != NULL ? lk_text_matches(value, rules->good)
                                      : is_none_or_from(rules->least, value);
        lk_finding(findings, rules->check,
                   is_good ? SQLOCK_FINE : rules->otherwise,
                   is_good ? NULL : rules->advice, "%s = %s", rules->setting,
                   *value != '\0' ? value : "\"\"");
    }
}
