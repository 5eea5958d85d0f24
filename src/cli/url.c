/*
 * url.c - what a URL tells about passwords, and the URL that another program
 * gets: without its password, and with a path that holds in every folder
 *
 * The library's own parser says what the parts are; what is kept is copied as
 * the user has written it.
 */
#include "cli.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "base/url.h"
#include "base/writer.h"

/* Return whether the value of a parameter of libpq is a secret. */
static bool is_secret(const char *parameter)
{
    return lk_text_is_listed("password|sslpassword|scram_client_key|"
                             "scram_server_key|oauth_client_secret",
                             parameter, strlen(parameter));
}

/* Return whether a URL contains a password.  An empty one is none. */
static bool has_password(const struct lk_url *url)
{
    bool has_one = url->password != NULL && url->password[0] != '\0';
    size_t i;

    for (i = 0; i < url->count; i++)
        has_one = has_one || is_secret(url->parameters[i].name);
    return has_one;
}

bool cli_has_password(const char *text)
{
    struct lk_url url;
    bool is_url = lk_url_parse(&url, text, NULL) == 0;
    /* Nobody can tell what is in a text that is no URL. */
    bool has_one = is_url ? has_password(&url) : strpbrk(text, "@?") != NULL;

    lk_url_clear(&url);
    return has_one;
}

char *cli_password_variable(const char *text)
{
    struct lk_url url;
    const char *name = NULL;
    char *copy;

    if (lk_url_parse(&url, text, NULL) == 0)
        name = lk_url_parameter(&url, "password_env");
    copy = name != NULL ? strdup(name) : NULL;
    lk_url_clear(&url);
    return copy;
}

/* --------------------------------------------------------------- writing -- */

/* Write a path, with all percent-encoded that has a meaning in a URL, or is not
 * allowed there. */
static void write_path(FILE *out, const char *path)
{
    for (; *path != '\0'; path++) {
        if (isascii(*path) &&
            (isalnum((unsigned char)*path) || strchr("/-._~", *path) != NULL))
            (void)fputc(*path, out);
        else
            (void)fprintf(out, "%%%02X", (unsigned)(unsigned char)*path);
    }
}

/* Write the scheme, "//", the user and the hosts.  Return what follows. */
static const char *write_authority(FILE *out, const char *text,
                                   const struct lk_url *url)
{
    size_t scheme = strlen(url->scheme) + (url->has_authority ? 3 : 1);
    const char *user = text + scheme;
    size_t length = url->has_authority ? strcspn(user, "/?") : 0;
    const char *at = memchr(user, '@', length);

    (void)fprintf(out, "%.*s", (int)scheme, text);
    if (at != NULL && has_password(url)) {
        (void)fprintf(out, "%.*s", (int)strcspn(user, ":@"), user);
        length -= (size_t)(at - user);
        user = at;
    }
    (void)fprintf(out, "%.*s", (int)length, user);
    return user + length;
}

/* Write "?" and the parameters, as they stand behind it in `query`, but not
 * those that are passwords. */
static void write_query(FILE *out, const char *query, const struct lk_url *url)
{
    char sign = '?';
    size_t i;

    for (i = 0; i < url->count; i++) {
        size_t length = strcspn(++query, "&");

        if (!is_secret(url->parameters[i].name)) {
            (void)fprintf(out, "%c%.*s", sign, (int)length, query);
            sign = '&';
        }
        query += length;
    }
}

/* Return the URL for the environment of another program, or NULL if out of
 * memory. */
static char *write_url(const char *text, const struct lk_url *url)
{
    bool is_relative = strcmp(url->scheme, "sqlite") == 0 &&
                       !url->has_authority && url->path[0] != '/';
    char *folder = is_relative ? getcwd(NULL, 0) : NULL;
    struct lk_writer writer;
    FILE *out = lk_writer_open(&writer);
    const char *path;
    size_t length;

    if (out != NULL) {
        path = write_authority(out, text, url);
        length = strcspn(path, "?");
        if (folder != NULL) {
            write_path(out, folder);
            (void)fputc('/', out);
        }
        (void)fprintf(out, "%.*s", (int)length, path);
        write_query(out, path + length, url);
    }
    free(folder);
    return lk_writer_close(&writer);
}

char *cli_url_for_child(const char *text, bool is_of_file)
{
    struct lk_url url;
    char *written = NULL;

    if (lk_url_parse(&url, text, NULL) == 0 &&
        !(is_of_file && has_password(&url)))
        written = write_url(text, &url);
    lk_url_clear(&url);
    return written;
}
