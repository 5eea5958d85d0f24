/*
 * info.c - rows of the lock table as words and as JSON.  The JSON members and
 * their types are a contract: members may be added, none goes away.
 */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jansson.h>

#include "base/json.h"

const char *cli_state_colour(sqlock_state state)
{
    switch (state) {
    case SQLOCK_HELD:
        return "\033[32m";
    case SQLOCK_EXPIRED:
        return "\033[31m";
    default:
        return NULL;
    }
}

const char *cli_state_name(sqlock_state state)
{
    switch (state) {
    case SQLOCK_FREE:
        return "free";
    case SQLOCK_HELD:
        return "held";
    case SQLOCK_EXPIRED:
        return "expired";
    }
    return "unknown";
}

/* Write the number as "%0*llu" would, in a fraction of the time: a list of a
 * million locks has four numbers and times a row.  Returns the end. */
static char *put_digits(char *at, uint64_t number, int width)
{
    char digits[20];
    int count = 0;

    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    while (width-- > count)
        *at++ = '0';
    while (count > 0)
        *at++ = digits[--count];
    *at = '\0';
    return at;
}

/* Write the day, "2026-11-22", and remember it: the times of a list are of
 * few days.  False: no such day. */
static bool put_day(char **at, int64_t day)
{
    static _Thread_local int64_t known = -1;
    static _Thread_local char text[16];
    static _Thread_local size_t length;
    time_t seconds = (time_t)(day * 86400);
    struct tm utc;

    if (day != known) {
        if (gmtime_r(&seconds, &utc) == NULL)
            return false;
        length = strftime(text, sizeof text, "%Y-%m-%d", &utc);
        known = day;
    }
    memcpy(*at, text, length);
    *at += length;
    return length > 0;
}

const char *cli_time_text(char out[CLI_NUMBER_SIZE], int64_t at_us, bool exact)
{
    int64_t seconds = at_us / 1000000;
    uint64_t of_day = (uint64_t)(seconds % 86400);
    char *at = out;

    if (at_us <= 0 || !put_day(&at, seconds / 86400))
        return NULL;
    *at++ = exact ? 'T' : ' ';
    at = put_digits(at, of_day / 3600, 2);
    *at++ = ':';
    at = put_digits(at, of_day / 60 % 60, 2);
    *at++ = ':';
    at = put_digits(at, of_day % 60, 2);
    if (exact) {
        *at++ = '.';
        at = put_digits(at, (uint64_t)(at_us % 1000000), 6);
    }
    *at++ = 'Z';
    *at = '\0';
    return out;
}

const char *cli_duration_text(char out[CLI_NUMBER_SIZE], int64_t ms)
{
    uint64_t rest = ms > 0 ? (uint64_t)ms : 0;
    char *at;

    if (ms < 60000) {
        at = put_digits(out, rest / 1000, 1);
        *at++ = '.';
        at = put_digits(at, rest % 1000 / 100, 1);
        *at++ = 's';
    } else if (ms < 3600000) {
        at = put_digits(out, rest / 60000, 1);
        *at++ = 'm';
        at = put_digits(at, rest / 1000 % 60, 2);
        *at++ = 's';
    } else {
        at = put_digits(out, rest / 3600000, 1);
        *at++ = 'h';
        at = put_digits(at, rest / 60000 % 60, 2);
        *at++ = 'm';
    }
    *at = '\0';
    return out;
}

const char *cli_number_text(char out[CLI_NUMBER_SIZE], int64_t number)
{
    char *at = out;

    if (number < 0)
        *at++ = '-';
    (void)put_digits(at, number < 0 ? 0 - (uint64_t)number : (uint64_t)number,
                     1);
    return out;
}

json_t *cli_json_text(const char *text)
{
    json_t *value;
    char *escaped;

    if (text == NULL)
        return json_null();
    value = json_string(text);
    if (value != NULL)
        return value;
    /* No UTF-8: the table is not written by us alone. */
    escaped = cli_escape(text);
    value = escaped != NULL ? json_string(escaped) : NULL;
    free(escaped);
    return value;
}

/* --- a row as JSON --- */

/* Write a text in ASCII, as cli_print_json() does. */
static bool write_text(FILE *out, const char *text)
{
    json_t *value;
    bool is_whole;

    if (text == NULL)
        return fputs_unlocked("null", out) >= 0;
    if (cli_is_plain(text)) {
        lk_json_text(out, text);
        return true;
    }
    value = cli_json_text(text);
    is_whole = value != NULL &&
               json_dumpf(value, out, JSON_ENSURE_ASCII | JSON_ENCODE_ANY) == 0;
    json_decref(value);
    return is_whole;
}

static bool write_member(FILE *out, const char *name, const char *text)
{
    (void)fputs_unlocked(name, out);
    return write_text(out, text);
}

static void write_number(FILE *out, const char *name, int64_t number)
{
    char digits[CLI_NUMBER_SIZE];

    (void)fputs_unlocked(name, out);
    (void)fputs_unlocked(cli_number_text(digits, number), out);
}

/* Write a row without a tree of values, which took most of the time of a
 * long list. */
bool cli_info_write(FILE *out, const sqlock_info *row)
{
    bool has_client = row->client_id[0] != '\0';
    char time[CLI_NUMBER_SIZE];
    bool is_whole =
        write_member(out, "{\"key\": ", row->key) &&
        write_member(out, ", \"name\": ", row->name) &&
        write_member(out, ", \"state\": ", cli_state_name(row->state)) &&
        write_member(out, ", \"holder\": ", row->holder) &&
        write_member(out,
                     ", \"client_id\": ", has_client ? row->client_id : NULL);

    if (row->token != 0)
        write_number(out, ", \"token\": ", row->token);
    else
        (void)fputs_unlocked(", \"token\": null", out);
    is_whole = is_whole &&
               write_member(out, ", \"acquired_at\": ",
                            cli_time_text(time, row->acquired_at_us, true)) &&
               write_member(out, ", \"expires_at\": ",
                            cli_time_text(time, row->expires_at_us, true));
    write_number(out, ", \"remaining_ms\": ", row->remaining_ms);
    write_number(out, ", \"ahead_ms\": ", row->ahead_ms);
    write_number(out, ", \"held_ms\": ", row->held_ms);
    if (row->waiters >= 0)
        write_number(out, ", \"waiters\": ", row->waiters);
    else
        (void)fputs_unlocked(", \"waiters\": null", out);
    is_whole = is_whole &&
               write_member(out, ", \"waiter_names\": ", row->waiter_names) &&
               write_member(out, ", \"last_holder\": ", row->last_holder) &&
               write_member(out, ", \"region\": ", row->region);
    (void)fputs_unlocked("}", out);
    return is_whole;
}

json_t *cli_info_json(const sqlock_info *row)
{
    json_t *value = NULL;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    bool is_whole = out != NULL && cli_info_write(out, row);

    if (out != NULL && fclose(out) == 0 && is_whole)
        value = json_loads(text, 0, NULL);
    free(text);
    return value;
}

int cli_print_json(json_t *value)
{
    int rc;

    if (value == NULL) {
        cli_error("out of memory");
        return CLI_SYSTEM;
    }
    /* ASCII: no terminal obeys it, no locale changes it. */
    rc = json_dumpf(value, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
    json_decref(value);
    if (rc != 0 || fputc('\n', stdout) == EOF) {
        cli_error("cannot write the output");
        return CLI_OUTPUT;
    }
    return CLI_OK;
}
