/*
 * options.c - check the option structs, and fill in the defaults
 *
 * A struct from an older header is shorter: its missing fields are zero, and
 * zero means the default.
 */
#include "lease/options.h"

#include <string.h>

#include "base/check.h"
#include "base/error.h"
#include "base/text.h"

#define TTL_DEFAULT_MS 10000u
/* However short the lease: an application may think for a while. */
#define LEAST_IDLE_MS 5000u
#define TIMEOUT_MIN_MS 10u
#define TIMEOUT_MAX_MS 3600000u
#define CONNECT_DEFAULT_MS 5000u
#define STATEMENT_MIN_MS 500u /* limits of the default, not of the option */
#define STATEMENT_MAX_MS 5000u
#define POOL_DEFAULT 4u
#define POOL_MAX 64u
#define POLL_DEFAULT_MS 100u

static int check_text(const char *name, const char *text, size_t most,
                      sqlock_error *err)
{
    if (strlen(text) > most)
        return lk_error(err, SQLOCK_EINVAL,
                        "%s has %zu bytes, at most %zu are allowed", name,
                        strlen(text), most);
    if (!lk_utf8_is_valid(text))
        return lk_error(err, SQLOCK_EINVAL, "%s is not valid UTF-8", name);
    return 0;
}

static int check_region(const char *region, sqlock_error *err)
{
    size_t length = strlen(region);
    size_t suffix = strlen(LK_NAMES_SUFFIX);

    if (length == 0)
        return lk_error(err, SQLOCK_EINVAL, "the region is empty");
    if (length >= suffix &&
        strcmp(region + length - suffix, LK_NAMES_SUFFIX) == 0)
        return lk_error(err, SQLOCK_EINVAL,
                        "regions that end with %s are reserved",
                        LK_NAMES_SUFFIX);
    /* Databases differ in whether trailing blanks count. */
    if (region[length - 1] == ' ')
        return lk_error(err, SQLOCK_EINVAL, "the region ends with a blank");
    return check_text("the region", region, LK_REGION_MAX, err);
}

static int check_times(sqlock_options *options, sqlock_error *err)
{
    uint32_t statement;
    int rc;

    rc = lk_check_number("ttl_ms", &options->ttl_ms, TTL_DEFAULT_MS,
                         LK_TTL_MIN_MS, LK_TTL_MAX_MS, err);
    if (rc < 0)
        return rc;
    rc = lk_check_number("peer_ttl_ms", &options->peer_ttl_ms, TTL_DEFAULT_MS,
                         LK_TTL_MIN_MS, LK_TTL_MAX_MS, err);
    if (rc < 0)
        return rc;
    if (options->margin_ms >= options->ttl_ms)
        return lk_error(err, SQLOCK_EINVAL,
                        "margin_ms is %u, but must be less than ttl_ms (%u)",
                        options->margin_ms, options->ttl_ms);
    rc = lk_check_number("connect_timeout_ms", &options->connect_timeout_ms,
                         CONNECT_DEFAULT_MS, TIMEOUT_MIN_MS, TIMEOUT_MAX_MS,
                         err);
    if (rc < 0)
        return rc;
    statement = options->ttl_ms / 8;
    if (statement < STATEMENT_MIN_MS)
        statement = STATEMENT_MIN_MS;
    if (statement > STATEMENT_MAX_MS)
        statement = STATEMENT_MAX_MS;
    rc = lk_check_number("statement_timeout_ms", &options->statement_timeout_ms,
                         statement, TIMEOUT_MIN_MS, TIMEOUT_MAX_MS, err);
    if (rc < 0)
        return rc;
    /* Period <= TTL / 3: two full attempts fit before any deadline. */
    if (options->renew_period_ms > options->ttl_ms / 3)
        return lk_error(
            err, SQLOCK_EINVAL,
            "renew_period_ms is %u, but must be at most a third of ttl_ms (%u)",
            options->renew_period_ms, options->ttl_ms);
    return lk_check_number("poll_ms", &options->poll_ms, POLL_DEFAULT_MS, 1,
                           TIMEOUT_MAX_MS, err);
}

static int check_choices(const sqlock_options *options, sqlock_error *err)
{
    if (options->ownership != SQLOCK_OWNED_BY_THREAD &&
        options->ownership != SQLOCK_OWNED_BY_REGISTRY &&
        options->ownership != SQLOCK_OWNED_BY_HANDLE)
        return lk_error(err, SQLOCK_EINVAL, "unknown ownership %d",
                        (int)options->ownership);
    if (options->waiting != SQLOCK_WAITING_AUTO &&
        options->waiting != SQLOCK_WAITING_POLL)
        return lk_error(err, SQLOCK_EINVAL, "unknown way of waiting %d",
                        (int)options->waiting);
    if ((int)options->event_level < SQLOCK_LEVEL_DEBUG ||
        (int)options->event_level > SQLOCK_LEVEL_ERROR)
        return lk_error(err, SQLOCK_EINVAL, "unknown level of events %d",
                        (int)options->event_level);
    if (options->key_rule != SQLOCK_KEY_CURRENT &&
        options->key_rule != SQLOCK_KEY_LEGACY &&
        options->key_rule != SQLOCK_KEY_RAW)
        return lk_error(err, SQLOCK_EINVAL, "unknown key rule %d",
                        (int)options->key_rule);
    return 0;
}

int lk_options_complete(sqlock_options *out, const sqlock_options *given,
                        sqlock_error *err)
{
    static const struct lk_sized sized = {"sqlock_options",
                                          "SQLOCK_OPTIONS_INIT", sizeof *out};
    int rc = lk_sized_read(out, &sized, given, err);

    if (rc < 0)
        return rc;
    if (out->region == NULL)
        out->region = "DEFAULT";
    if (out->table_prefix == NULL)
        out->table_prefix = "INT_";
    if (out->holder_note == NULL)
        out->holder_note = "";
    rc = check_region(out->region, err);
    if (rc < 0)
        return rc;
    rc = check_text("holder_note", out->holder_note, LK_NOTE_MAX, err);
    if (rc < 0)
        return rc;
    rc = lk_check_number("pool_size", &out->pool_size, POOL_DEFAULT, 1,
                         POOL_MAX, err);
    if (rc < 0)
        return rc;
    rc = check_choices(out, err);
    if (rc < 0)
        return rc;
    return check_times(out, err);
}

int lk_ttl_check(const sqlock_options *options, uint32_t *out, uint32_t given,
                 uint32_t otherwise, sqlock_error *err)
{
    int rc;

    *out = given;
    rc = lk_check_number("ttl_ms", out, otherwise, LK_TTL_MIN_MS, LK_TTL_MAX_MS,
                         err);
    if (rc == 0 && *out <= options->margin_ms)
        rc = lk_error(err, SQLOCK_EINVAL,
                      "ttl_ms is %u, but must be more than margin_ms (%u)",
                      *out, options->margin_ms);
    return rc;
}

uint32_t lk_margin_ms(const sqlock_options *options, uint32_t ttl_ms)
{
    uint32_t twentieth = ttl_ms / 20;

    if (options->margin_ms != 0)
        return options->margin_ms;
    return twentieth > 1 ? twentieth : 1;
}

uint32_t lk_idle_ms(uint32_t ttl_ms)
{
    if (ttl_ms < LEAST_IDLE_MS / 2)
        return LEAST_IDLE_MS;
    return ttl_ms < INT32_MAX / 2 ? 2 * ttl_ms : INT32_MAX;
}
