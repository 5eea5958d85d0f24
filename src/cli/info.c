/*
 * info.c - write rows of the lock table as words and as JSON
 *
 * The JSON members and their types are a contract: members may be added, none
 * is removed.
 */
#include "cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jansson.h>

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

const char *cli_name_in(const char *const *names, size_t which)
{
    while (*names != NULL && which-- > 0)
        names++;
    return *names != NULL ? *names : "unknown";
}

const char *cli_state_name(sqlock_state state)
{
    static const char *const names[] = {"free", "held", "expired", NULL};

    return cli_name_in(names, state);
}

/* Write the number as "%0*llu" would, in a fraction of the time: a list of a
 * million locks has four numbers and times per row.  Return the end. */
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

/* Write a day, given as a number of days since 1970, as "2026-11-22", and move
 * *at to its end.  The text is kept for the next call, because the times of a
 * list fall on few days.  Return false if the day is too far ahead. */
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
    /* The text is not UTF-8: other programs write to the table, too. */
    escaped = cli_escape(text);
    value = escaped != NULL ? json_string(escaped) : NULL;
    free(escaped);
    return value;
}

json_t *cli_json_append(json_t *list, json_t *item)
{
    if (json_array_append_new(list, item) == 0)
        return list;
    json_decref(list);
    return NULL;
}

json_t *cli_json_number(int64_t number, bool is_known)
{
    return is_known ? json_integer((json_int_t)number) : json_null();
}

static json_t *json_time(int64_t at_us)
{
    char text[CLI_NUMBER_SIZE];

    return cli_json_text(cli_time_text(text, at_us, true));
}

char *cli_next_line(const char **at)
{
    size_t length = *at != NULL ? strcspn(*at, "\n") : 0;
    char *line = *at != NULL ? strndup(*at, length) : NULL;

    if (line != NULL)
        *at = (*at)[length] == '\n' ? *at + length + 1 : NULL;
    return line;
}

/* An array of the lines. */
static json_t *lines_json(const char *lines)
{
    json_t *list = json_array();
    const char *at = lines;

    while (at != NULL && list != NULL) {
        char *line = cli_next_line(&at);

        list = cli_json_append(list, line != NULL ? cli_json_text(line) : NULL);
        free(line);
    }
    return list;
}

int64_t cli_token(const sqlock_info *row)
{
    bool is_peer = row->holder != NULL && strcmp(row->holder, "peer") == 0;

    return row->state == SQLOCK_HELD && is_peer ? 0 : row->token;
}

json_t *cli_info_json(const cli *app, const sqlock_info *row)
{
    bool has_client = row->client_id[0] != '\0';
    const char *region = row->region != NULL ? row->region : cli_region(app);

    return json_pack(
        "{s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:o, s:o, "
        "s:o, s:o, s:s, s:I, s:I, s:I, s:o, s:o}",
        "key", cli_json_text(row->key), "name", cli_json_text(row->name),
        "state", cli_state_name(row->state), "holder",
        cli_json_text(row->holder), "client_id",
        cli_json_text(has_client ? row->client_id : NULL), "token",
        cli_json_number(cli_token(row), cli_token(row) != 0), "acquired_at",
        row->acquired_at_us != 0 ? json_time(row->acquired_at_us) : json_null(),
        "expires_at", json_time(row->expires_at_us), "remaining_ms",
        (json_int_t)row->remaining_ms, "held_ms",
        cli_json_number(row->held_ms, row->held_ms >= 0), "waiters",
        cli_json_number(row->waiters, row->waiters >= 0), "waiter_names",
        row->waiters >= 0 ? lines_json(row->waiter_names) : json_null(),
        "last_holder", cli_json_text(row->last_holder), "region",
        cli_json_text(region), "mode",
        row->mode == SQLOCK_SHARED ? "shared" : "exclusive", "permits",
        (json_int_t)row->permits, "taken", (json_int_t)row->taken, "sharers",
        (json_int_t)row->sharers, "sharer_names", lines_json(row->sharer_names),
        "text", cli_json_text(row->text));
}

bool cli_write_json(json_t *value, bool is_indented)
{
    /* In ASCII no character controls a terminal or depends on a locale.
     * Seconds are written as 0.101, not as 0.10100000000000001. */
    const size_t flags = JSON_ENSURE_ASCII | JSON_ENCODE_ANY |
                         JSON_REAL_PRECISION(15) |
                         (is_indented ? JSON_INDENT(2) : 0);
    char *text = value != NULL ? json_dumps(value, flags) : NULL;

    json_decref(value);
    if (text == NULL) {
        cli_error("out of memory");
        return false;
    }
    (void)fputs(text, stdout);
    free(text);
    return true;
}

int cli_flush(void)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return CLI_OK;
    /* An earlier write may have failed: then nobody knows why any more. */
    if (errno != 0)
        cli_error("cannot write the output: %s", strerror(errno));
    else
        cli_error("cannot write the output");
    return CLI_OUTPUT;
}

int cli_print_json(json_t *value)
{
    if (!cli_write_json(value, true))
        return CLI_SYSTEM;
    if (fputc('\n', stdout) == EOF) {
        cli_error("cannot write the output");
        return CLI_OUTPUT;
    }
    return CLI_OK;
}

int cli_print_count(const cli *app, const char *name, int64_t number)
{
    char text[CLI_NUMBER_SIZE];

    if (app->json)
        return cli_print_json(json_pack("{s:I}", name, (json_int_t)number));
    puts(cli_number_text(text, number));
    return CLI_OK;
}

bool cli_is_broken(const sqlock_info *row)
{
    static const char broken[] = "broken by ";

    return row->holder != NULL &&
           strncmp(row->holder, broken, sizeof broken - 1) == 0;
}
