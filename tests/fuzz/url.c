/*
 * url.c - database URLs: the parts of one are those of the URL that they make,
 * no message has a piece of a password, and no program that is started gets one
 */
#include "fuzz.h"

#include <stdio.h>

#include "base/url.h"
#include "cli/cli.h"

#define SECRET "s3cr3tS3CR3T"

static void put_escaped(FILE *out, const char *text)
{
    for (; *text != '\0'; text++)
        (void)fprintf(out, "%%%02x", (unsigned)(unsigned char)*text);
}

/* Write the URL of these parts.  Hosts are not escaped: a ',' between them has
 * a meaning. */
static char *format(const struct lk_url *url)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    must(out != NULL);
    (void)fprintf(out, "%s:%s", url->scheme, url->has_authority ? "//" : "");
    if (url->user != NULL || url->password != NULL) {
        put_escaped(out, url->user != NULL ? url->user : "");
        if (url->password != NULL) {
            (void)fputc(':', out);
            put_escaped(out, url->password);
        }
        (void)fputc('@', out);
    }
    if (url->host != NULL)
        put_escaped(out, url->host);
    if (url->port != NULL)
        (void)fprintf(out, ":%s", url->port);
    for (const char *at = url->path; *at != '\0'; at++)
        (void)fprintf(out, *at == '/' ? "/" : "%%%02x",
                      (unsigned)(unsigned char)*at);
    for (size_t i = 0; i < url->count; i++) {
        (void)fputc(i == 0 ? '?' : '&', out);
        put_escaped(out, url->parameters[i].name);
        (void)fputc('=', out);
        put_escaped(out, url->parameters[i].value);
    }
    (void)fclose(out);
    return text;
}

static bool are_same(const char *one, const char *other)
{
    return one == NULL || other == NULL ? one == other
                                        : strcmp(one, other) == 0;
}

static void compare(const struct lk_url *one, const struct lk_url *other)
{
    must(are_same(one->scheme, other->scheme));
    must(one->has_authority == other->has_authority);
    must(are_same(one->user, other->user));
    must(are_same(one->password, other->password));
    must(are_same(one->host, other->host));
    must(are_same(one->port, other->port));
    must(are_same(one->path, other->path));
    must(one->count == other->count);
    for (size_t i = 0; i < one->count; i++) {
        must(are_same(one->parameters[i].name, other->parameters[i].name));
        must(are_same(one->parameters[i].value, other->parameters[i].value));
    }
}

/* The URL for a program that is started has no password, and the same host. */
static void check_child(const char *text, const struct lk_url *url)
{
    char *child = cli_url_for_child(text, false);
    struct lk_url parsed;

    if (child == NULL)
        return;
    must(!cli_has_password(child));
    must(lk_url_parse(&parsed, child, NULL) == 0);
    must(are_same(parsed.host, url->host));
    must(are_same(parsed.port, url->port));
    lk_url_clear(&parsed);
    free(child);
}

/* The same text behind a password: whatever is wrong with it, nobody reads the
 * password. */
static void check_secret(const char *text)
{
    struct lk_url url;
    sqlock_error err = {0};
    char *whole = NULL;

    must(asprintf(&whole, "x://user:%s%s", SECRET, text) > 0);
    if (lk_url_parse(&url, whole, &err) == 0)
        (void)lk_url_check_parameters(&url, "user|sslmode", &err);
    must(strstr(err.message, "s3cr3t") == NULL);
    must(strstr(err.message, "S3CR3T") == NULL);
    lk_url_clear(&url);
    free(whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    sqlock_error err = {0};
    struct lk_url url, again;
    int rc = lk_url_parse(&url, text, &err);

    must(rc == 0 || (rc == SQLOCK_EINVAL && err.message[0] != '\0'));
    /* one host with a ':' stood in brackets, or is no address at all */
    if (rc == 0 && (url.host == NULL || strpbrk(url.host, ":,") == NULL) &&
        (url.port == NULL || strchr(url.port, ',') == NULL) &&
        (url.has_authority || strncmp(url.path, "//", 2) != 0)) {
        char *formatted = format(&url);

        must(lk_url_parse(&again, formatted, NULL) == 0);
        compare(&url, &again);
        lk_url_clear(&again);
        free(formatted);
    }
    if (rc == 0)
        check_child(text, &url);
    lk_url_clear(&url);
    check_secret(text);
    cli_mask(text);
    free(text);
    return 0;
}
