/*
 * numbers.c - read words of the command line as numbers, durations and choices
 *
 * A word of which only a part is understood is refused.
 */
#include "cli.h"

#include <string.h>

bool cli_parse_int64(const char *text, int64_t *number)
{
    const char *at = text;
    bool is_negative = *at == '-';
    int64_t sum = 0;

    if (is_negative)
        at++;
    if (*at == '\0')
        return false;
    for (; *at != '\0'; at++) {
        if (*at < '0' || *at > '9')
            return false;
        if (__builtin_mul_overflow(sum, (int64_t)10, &sum) ||
            __builtin_add_overflow(sum, (int64_t)(*at - '0'), &sum))
            return false;
    }
    *number = is_negative ? -sum : sum;
    return true;
}

static bool unit_ms(const char *text, int64_t *ms)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {
        {"", 1000},   {"ms", 1},      {"s", 1000},
        {"m", 60000}, {"h", 3600000}, {"d", 86400000},
    };
    size_t i;

    for (i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(units[i].name, text) == 0) {
            *ms = units[i].ms;
            return true;
        }
    }
    return false;
}

bool cli_parse_duration(const char *text, int64_t *ms)
{
    size_t whole = strspn(text, "0123456789");
    size_t digits = 0;
    const char *fraction = "";
    const char *unit = text + whole;
    int64_t per_unit;
    int64_t sum = 0;
    int64_t part = 0;
    int64_t scale = 1;
    size_t i;

    if (*unit == '.') {
        fraction = unit + 1;
        digits = strspn(fraction, "0123456789");
        unit = fraction + digits;
    }
    if (whole + digits == 0 || !unit_ms(unit, &per_unit))
        return false;
    for (i = 0; i < whole; i++) {
        if (__builtin_mul_overflow(sum, (int64_t)10, &sum) ||
            __builtin_add_overflow(sum, (int64_t)(text[i] - '0'), &sum))
            return false;
    }
    if (__builtin_mul_overflow(sum, per_unit, &sum))
        return false;
    /* Digits after the ninth are less than a millisecond in every unit. */
    for (i = 0; i < digits && i < 9; i++) {
        part = part * 10 + (fraction[i] - '0');
        scale *= 10;
    }
    return !__builtin_add_overflow(sum, part * per_unit / scale, ms);
}

static const char *const layouts[] = {"sqlock", "spring7", "spring6"};

bool cli_parse_layout(const char *text, sqlock_layout *layout)
{
    size_t i;

    for (i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        if (strcmp(layouts[i], text) == 0) {
            *layout = (sqlock_layout)i;
            return true;
        }
    }
    return false;
}

const char *cli_layout_name(sqlock_layout layout)
{
    size_t i = (size_t)layout;

    return i < sizeof layouts / sizeof layouts[0] ? layouts[i] : "unknown";
}

bool cli_parse_rule(const char *text, sqlock_key_rule *rule)
{
    static const char *const rules[] = {"current", "legacy", "raw"};
    size_t i;

    for (i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (strcmp(rules[i], text) == 0) {
            *rule = (sqlock_key_rule)i;
            return true;
        }
    }
    return false;
}

bool cli_parse_sort(const char *text, sqlock_sort *sort)
{
    static const char *const names[] = {"name", "held", "ttl", "token"};
    static const sqlock_sort sorts[] = {SQLOCK_SORT_NAME, SQLOCK_SORT_HELD,
                                        SQLOCK_SORT_REMAINING,
                                        SQLOCK_SORT_TOKEN};
    size_t i;

    for (i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], text) == 0) {
            *sort = sorts[i];
            return true;
        }
    }
    return false;
}

bool cli_parse_count(const char *text, uint32_t *count)
{
    int64_t number;

    if (!cli_parse_int64(text, &number) || number < 1 || number > UINT32_MAX)
        return false;
    *count = (uint32_t)number;
    return true;
}
