/*
 * numbers.c - read words of the command line as numbers, durations and choices
 *
 * A word of which only a part is understood is refused.
 */
#include "cli.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *const cli_layouts[] = {"sqlock", "spring7", "spring6", NULL};

static const struct {
    const char *name;
    int64_t ms;
} units[] = {
    {"d", 86400000}, {"h", 3600000}, {"m", 60000},
    {"s", 1000},     {"ms", 1},      {"", 1000},
};

/* Read a duration as milliseconds: "90", "1.5", "250ms", "10m", "2h", "1d";
 * without a unit, seconds.  Return false if it is none, or too long; *ms is
 * then undefined. */
static bool parse_duration(const char *text, int64_t *ms)
{
    size_t whole = strspn(text, "0123456789");
    size_t digits = 0;
    const char *fraction = "";
    const char *unit = text + whole;
    int64_t sum = 0;
    int64_t part = 0;
    int64_t scale = 1;
    size_t which = 0;
    size_t i;

    if (*unit == '.') {
        fraction = unit + 1;
        digits = strspn(fraction, "0123456789");
        unit = fraction + digits;
    }
    while (which < sizeof units / sizeof units[0] &&
           strcmp(units[which].name, unit) != 0)
        which++;
    if (whole + digits == 0 || which == sizeof units / sizeof units[0])
        return false;
    for (i = 0; i < whole; i++) {
        if (__builtin_mul_overflow(sum, (int64_t)10, &sum) ||
            __builtin_add_overflow(sum, (int64_t)(text[i] - '0'), &sum))
            return false;
    }
    if (__builtin_mul_overflow(sum, units[which].ms, &sum))
        return false;
    /* Digits after the ninth are less than a millisecond in every unit. */
    for (i = 0; i < digits && i < 9; i++) {
        part = part * 10 + (fraction[i] - '0');
        scale *= 10;
    }
    return !__builtin_add_overflow(sum, part * units[which].ms / scale, ms);
}

/* ---------------------------------------------------------------- values -- */

/* Write a bound of an option, a time in its largest unit that fits. */
static const char *bound(char out[CLI_NUMBER_SIZE], const cli_option *option,
                         int64_t value)
{
    size_t i = 0;

    if (option->ms == NULL)
        return cli_number_text(out, value);
    while (value % units[i].ms != 0)
        i++;
    (void)snprintf(out, CLI_NUMBER_SIZE, "%" PRId64 "%s", value / units[i].ms,
                   units[i].name);
    return out;
}

/* Write which values an option takes: "a time from 1s to 7d", "name or
 * held". */
static void describe(char *out, size_t size, const cli_option *option)
{
    const char *kind = option->ms != NULL ? "a time" : "a number";
    char least[CLI_NUMBER_SIZE];
    char most[CLI_NUMBER_SIZE];
    size_t used = 0;
    size_t i;

    for (i = 0; option->words != NULL && option->words[i] != NULL; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s",
                                 i == 0                         ? ""
                                 : option->words[i + 1] != NULL ? ", "
                                                                : " or ",
                                 option->words[i]);
    if (option->words != NULL)
        return;
    (void)bound(least, option, option->least);
    (void)bound(most, option, option->most);
    if (option->most != 0)
        (void)snprintf(out, size, "%s from %s to %s", kind, least, most);
    else if (option->least != 0)
        (void)snprintf(out, size, "%s, at least %s", kind, least);
    else
        (void)snprintf(out, size, "%s, such as 30, 1.5 or 10m", kind);
}

/* Set option->word to the word that is given.  Return false if it is none. */
static bool read_word(const cli_option *option, const char *text)
{
    int i = 0;

    while (option->words[i] != NULL && strcmp(option->words[i], text) != 0)
        i++;
    if (option->words[i] == NULL)
        return false;
    *option->word = i;
    return true;
}

static bool read_number(const cli_option *option, const char *text)
{
    int64_t value;

    if (!(option->ms != NULL ? parse_duration : lk_text_integer)(text,
                                                                 &value) ||
        value < option->least || (option->most != 0 && value > option->most))
        return false;
    *(option->ms != NULL ? option->ms : option->number) = value;
    return true;
}

bool cli_read_value(const cli_option *option, const char *command,
                    const char *text)
{
    char allowed[128];

    if (option->text != NULL)
        *option->text = text;
    if (option->text != NULL ||
        (option->words != NULL ? read_word(option, text)
                               : read_number(option, text)))
        return true;
    describe(allowed, sizeof allowed, option);
    cli_error("%s%s--%s must be %s", command != NULL ? command : "",
              command != NULL ? ": " : "", option->name, allowed);
    return false;
}
