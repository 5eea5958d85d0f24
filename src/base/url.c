/*
 * url.c - parse a database URL, and take parameters out of it
 *
 * liburiparser finds the components; this file decodes, copies and wipes them,
 * whatever the scheme and the parameters are.  Errors name the component that
 * is wrong, never its text: a password that was not percent-encoded may turn up
 * in any component.
 */
#include "base/url.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <uriparser/Uri.h>

#include "base/error.h"
#include "base/secret.h"

static int out_of_memory(sqlock_error *err)
{
    return sqlock_error_set(err, SQLOCK_ENOMEM, 0, NULL, "out of memory");
}

/* Return whether every '%' begins an escape, and no escape is a NUL. */
static bool escapes_are_sound(const char *first, const char *end)
{
    const char *at;

    for (at = first; at < end; at++) {
        if (*at != '%')
            continue;
        if (end - at < 3 || !isxdigit((unsigned char)at[1]) ||
            !isxdigit((unsigned char)at[2]))
            return false;
        if (at[1] == '0' && at[2] == '0')
            return false;
    }
    return true;
}

bool lk_url_escapes_are_sound(const char *url)
{
    return escapes_are_sound(url, url + strlen(url));
}

/* Return a percent-decoded copy, to be freed by the caller, of a text whose
 * escapes are valid, or NULL when out of memory. */
static char *decode(const char *first, const char *end)
{
    char *copy = strndup(first, (size_t)(end - first));

    if (copy != NULL)
        uriUnescapeInPlaceExA(copy, URI_FALSE, URI_BR_DONT_TOUCH);
    return copy;
}

/* Set *out to a percent-decoded copy of the range, which lk_url_clear() frees.
 * For an empty or absent range *out stays as it is, NULL. */
static int decode_part(char **out, const UriTextRangeA *range,
                       sqlock_error *err)
{
    if (range->first == NULL || range->first == range->afterLast)
        return 0;
    *out = decode(range->first, range->afterLast);
    return *out == NULL ? out_of_memory(err) : 0;
}

static int decode_user_info(struct lk_url *out, const UriTextRangeA *range,
                            sqlock_error *err)
{
    UriTextRangeA user = *range;
    const char *colon;

    if (range->first == NULL)
        return 0;
    colon =
        memchr(range->first, ':', (size_t)(range->afterLast - range->first));
    if (colon != NULL) {
        user.afterLast = colon;
        out->password = decode(colon + 1, range->afterLast);
        if (out->password == NULL)
            return out_of_memory(err);
    }
    return decode_part(&out->user, &user, err);
}

/* Join the segments of the path.  They are copied one by one, because the
 * pointers of an empty segment may lie outside the URL's text. */
static int decode_path(struct lk_url *out, const UriUriA *uri,
                       sqlock_error *err)
{
    const UriPathSegmentA *segment;
    bool slash = uri->absolutePath || uri->hostText.first != NULL;
    size_t size = 1;
    char *to;

    for (segment = uri->pathHead; segment != NULL; segment = segment->next)
        size += 1 + (size_t)(segment->text.afterLast - segment->text.first);
    out->path = malloc(size);
    if (out->path == NULL)
        return out_of_memory(err);
    to = out->path;
    for (segment = uri->pathHead; segment != NULL; segment = segment->next) {
        size_t length = (size_t)(segment->text.afterLast - segment->text.first);

        if (slash)
            *to++ = '/';
        slash = true;
        memcpy(to, segment->text.first, length);
        to += length;
    }
    *to = '\0';
    uriUnescapeInPlaceExA(out->path, URI_FALSE, URI_BR_DONT_TOUCH);
    return 0;
}

static int copy_parameters(struct lk_url *out, const UriQueryListA *list,
                           size_t count, sqlock_error *err)
{
    out->parameters = calloc(count, sizeof *out->parameters);
    if (out->parameters == NULL)
        return out_of_memory(err);
    for (; list != NULL && out->count < count; list = list->next) {
        struct lk_url_parameter *to = &out->parameters[out->count++];

        to->name = strdup(list->key);
        to->value = strdup(list->value == NULL ? "" : list->value);
        if (to->name == NULL || to->value == NULL)
            return out_of_memory(err);
    }
    return 0;
}

static int decode_query(struct lk_url *out, const UriTextRangeA *range,
                        sqlock_error *err)
{
    UriQueryListA *list = NULL;
    int count = 0;
    int rc = 0;

    if (range->first == NULL || range->first == range->afterLast)
        return 0;
    if (uriDissectQueryMallocExA(&list, &count, range->first, range->afterLast,
                                 URI_FALSE, URI_BR_DONT_TOUCH) != URI_SUCCESS)
        return out_of_memory(err);
    if (count > 0)
        rc = copy_parameters(out, list, (size_t)count, err);
    uriFreeQueryListA(list);
    return rc;
}

/* Refuse a URL whose password seems to contain a '#', '/' or '?': this
 * character ends the host early, and the rest of the password would pass for a
 * path, a query or a fragment, which are no secrets. */
static int refuse_misplaced(const UriUriA *uri, const char *end,
                            sqlock_error *err)
{
    const char *at = uri->hostText.first;

    if (at == NULL)
        return 0;
    /* The pointers of an empty host may lie outside the URL's text. */
    if (at == uri->hostText.afterLast)
        at = uri->query.first;
    if (uri->fragment.first != NULL ||
        (at != NULL && memchr(at, '@', (size_t)(end - at)) != NULL))
        return sqlock_error_set(
            err, SQLOCK_EINVAL, 0, NULL,
            "the URL has a misplaced '#' or '@': in a user name or password "
            "write '#' as %%23, '/' as %%2F, '?' as %%3F, '@' as %%40");
    return 0;
}

int lk_url_parse(struct lk_url *out, const char *url, sqlock_error *err)
{
    const char *end = url + strlen(url);
    const char *bad = NULL;
    UriUriA uri;
    int rc;

    memset(out, 0, sizeof *out);
    if (!escapes_are_sound(url, end))
        return sqlock_error_set(
            err, SQLOCK_EINVAL, 0, NULL,
            "the URL has a '%%' that is not followed by two hexadecimal "
            "digits other than 00: write a plain '%%' as %%25");
    rc = uriParseSingleUriExA(&uri, url, end, &bad);
    if (rc == URI_ERROR_MALLOC)
        return out_of_memory(err);
    if (rc != URI_SUCCESS)
        return sqlock_error_set(
            err, SQLOCK_EINVAL, 0, NULL,
            "the URL is invalid from character %zu on: special characters in a "
            "user name or password must be percent-encoded",
            bad == NULL ? (size_t)1 : (size_t)(bad - url) + 1);
    rc = refuse_misplaced(&uri, end, err);
    if (rc < 0)
        goto out;
    rc = decode_part(&out->scheme, &uri.scheme, err);
    if (rc < 0)
        goto out;
    rc = decode_user_info(out, &uri.userInfo, err);
    if (rc < 0)
        goto out;
    rc = decode_part(&out->host, &uri.hostText, err);
    if (rc < 0)
        goto out;
    rc = decode_part(&out->port, &uri.portText, err);
    if (rc < 0)
        goto out;
    rc = decode_path(out, &uri, err);
    if (rc < 0)
        goto out;
    rc = decode_query(out, &uri.query, err);
out:
    uriFreeUriMembersA(&uri);
    return rc;
}

const char *lk_url_parameter(const struct lk_url *url, const char *name)
{
    size_t i;

    for (i = 0; i < url->count; i++) {
        if (strcmp(url->parameters[i].name, name) == 0)
            return url->parameters[i].value;
    }
    return NULL;
}

void lk_url_clear(struct lk_url *url)
{
    size_t i;

    free(url->scheme);
    lk_wipe_free(url->user);
    lk_wipe_free(url->password);
    free(url->host);
    free(url->port);
    free(url->path);
    for (i = 0; i < url->count; i++) {
        free(url->parameters[i].name);
        lk_wipe_free(url->parameters[i].value);
    }
    free(url->parameters);
    memset(url, 0, sizeof *url);
}

/* Return the start of the query, after its '?', or NULL.  User name and
 * password are skipped first, as in libpq, since they may contain a '?'. */
static const char *query_of(const char *url)
{
    const char *authority = strstr(url, "://");
    const char *at = url;

    if (authority != NULL) {
        at = authority + 3;
        at += strcspn(at, "@/");
        if (*at != '@')
            at = authority + 3;
    }
    at = strchr(at, '?');
    return at == NULL ? NULL : at + 1;
}

static bool is_named(const char *first, const char *end, const char *name)
{
    size_t length = strlen(name);

    return (size_t)(end - first) >= length &&
           memcmp(first, name, length) == 0 &&
           (first + length == end || first[length] == '=');
}

/* Remove the bytes from @p first to @p end, a parameter, from @p copy, with the
 * '&' after them or, if there is none, the separator before them. */
static void cut(char *copy, size_t first, size_t end)
{
    if (copy[end] == '&')
        end++;
    else
        first--;
    memmove(copy + first, copy + end, strlen(copy + end) + 1);
}

int lk_url_take(const char *url, const char *name, char **rest, char **value,
                sqlock_error *err)
{
    const char *first = query_of(url);
    const char *found = NULL;
    const char *found_end = NULL;

    *rest = NULL;
    *value = NULL;
    while (first != NULL) {
        const char *end = strchrnul(first, '&');

        if (is_named(first, end, name)) {
            if (found != NULL)
                return sqlock_error_set(err, SQLOCK_EINVAL, 0, NULL,
                                        "the URL gives %s twice", name);
            found = first;
            found_end = end;
        }
        first = *end == '&' ? end + 1 : NULL;
    }
    if (found != NULL) {
        const char *text = found + strlen(name);

        if (text < found_end)
            text++;
        if (!escapes_are_sound(text, found_end))
            return sqlock_error_set(
                err, SQLOCK_EINVAL, 0, NULL,
                "the URL has an invalid escape in %s: write '%%' as %%25",
                name);
        *value = decode(text, found_end);
        if (*value == NULL)
            return out_of_memory(err);
    }
    *rest = strdup(url);
    if (*rest == NULL) {
        lk_wipe_free(*value);
        *value = NULL;
        return out_of_memory(err);
    }
    if (found != NULL)
        cut(*rest, (size_t)(found - url), (size_t)(found_end - url));
    return 0;
}
