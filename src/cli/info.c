/*
 * info.c - rows of the lock table as words and as JSON.  The JSON members and
 * their types are a contract: members may be added, none goes away.
 */
#include "cli.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jansson.h>

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

char *cli_time_text(int64_t at_us, bool exact)
{
    time_t seconds = (time_t)(at_us / 1000000);
    char text[48];
    char *whole = NULL;
    struct tm utc;

    if (at_us <= 0 || gmtime_r(&seconds, &utc) == NULL)
        return NULL;
    if (exact) {
        (void)strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
        if (asprintf(&whole, "%s.%06" PRId64 "Z", text, at_us % 1000000) < 0)
            return NULL;
        return whole;
    }
    (void)strftime(text, sizeof text, "%Y-%m-%d %H:%M:%SZ", &utc);
    return strdup(text);
}

char *cli_duration_text(int64_t ms)
{
    char *text = NULL;
    int rc;

    if (ms < 60000)
        rc = asprintf(&text, "%" PRId64 ".%" PRId64 "s", ms / 1000,
                      ms % 1000 / 100);
    else if (ms < 3600000)
        rc = asprintf(&text, "%" PRId64 "m%02" PRId64 "s", ms / 60000,
                      ms / 1000 % 60);
    else
        rc = asprintf(&text, "%" PRId64 "h%02" PRId64 "m", ms / 3600000,
                      ms / 60000 % 60);
    return rc < 0 ? NULL : text;
}

char *cli_number_text(int64_t number)
{
    char *text = NULL;

    return asprintf(&text, "%" PRId64, number) < 0 ? NULL : text;
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

static json_t *json_time(int64_t at_us)
{
    char *text = cli_time_text(at_us, true);
    json_t *value = cli_json_text(text);

    free(text);
    return value;
}

json_t *cli_info_json(const sqlock_info *row)
{
    bool has_client = row->client_id[0] != '\0';

    return json_pack(
        "{s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:I, s:I}", "key",
        cli_json_text(row->key), "name", cli_json_text(row->name), "state",
        cli_state_name(row->state), "holder", cli_json_text(row->holder),
        "client_id", cli_json_text(has_client ? row->client_id : NULL), "token",
        row->token != 0 ? json_integer(row->token) : json_null(), "acquired_at",
        json_time(row->acquired_at_us), "expires_at",
        json_time(row->expires_at_us), "remaining_ms",
        (json_int_t)row->remaining_ms, "ahead_ms", (json_int_t)row->ahead_ms);
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
