/*
 * url.c - parse a database URL (see url.h)
 *
 * A URL as RFC 3986 defines it, but with a list of hosts, as libpq has it, and
 * with plain UTF-8.  Errors name the part that is wrong, never its text: a
 * password that was not percent-encoded may turn up in any part.
 */
#include "base/url.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/secret.h"
#include "base/text.h"

/* Return the first character that no URL has, or the NUL at the end. */
static const char *find_bad(const char *url)
{
    while ((unsigned char)*url > ' ' && strchr("\"<>\\^`{|}\x7f", *url) == NULL)
        url++;
    return url;
}

static int digit_of(char c)
{
    return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
}

/* Return whether every '%' begins an escape, and no escape is a NUL. */
static bool are_escapes_sound(const char *text)
{
    for (; *text != '\0'; text++)
        if (*text == '%' && (!isxdigit((unsigned char)text[1]) ||
                             !isxdigit((unsigned char)text[2]) ||
                             (text[1] == '0' && text[2] == '0')))
            return false;
    return true;
}

/* Decode the escapes in place.  Return the text, or NULL if it is empty. */
static char *decode(char *text)
{
    char *to = text;

    for (const char *from = text; *from != '\0'; from++) {
        char c = *from;

        if (c == '%') {
            c = (char)(digit_of(from[1]) << 4 | digit_of(from[2]));
            from += 2;
        }
        *to++ = c;
    }
    *to = '\0';
    return *text != '\0' ? text : NULL;
}

static int check_text(const char *url, sqlock_error *err)
{
    size_t length;

    if (url == NULL)
        return lk_error(err, SQLOCK_EINVAL, "the database URL is missing");
    length = strspn(url, "abcdefghijklmnopqrstuvwxyz"
                         "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-");
    if (length == 0 || url[length] != ':')
        return lk_error(err, SQLOCK_EINVAL,
                        "the database URL has no scheme: begin with "
                        "postgresql://, mysql:// or sqlite:");
    if (*find_bad(url) != '\0' || !lk_utf8_is_valid(url))
        return lk_error(err, SQLOCK_EINVAL,
                        "the URL is invalid from character %zu on: special "
                        "characters must be percent-encoded",
                        lk_utf8_prefix(url, (size_t)(find_bad(url) - url)) + 1);
    if (!are_escapes_sound(url))
        return lk_error(err, SQLOCK_EINVAL,
                        "the URL has a '%%' that is not followed by two "
                        "hexadecimal digits other than 00: write a plain '%%' "
                        "as %%25");
    return 0;
}

static int misplaced(sqlock_error *err)
{
    return lk_error(err, SQLOCK_EINVAL,
                    "the URL has a misplaced '#' or '@': write '#' as %%23 and "
                    "'?' as %%3F, and in a user name or password also '/' as "
                    "%%2F and '@' as %%40");
}

/* Split "one:1,[::2]:2,three" into the lists "one,::2,three", in place, and
 * "1,2,".  Return false if it is no such list. */
static bool split_hosts(char *hosts, char *ports)
{
    const char *at = hosts;

    for (;;) {
        bool is_in_brackets = *at == '[';
        size_t length;

        at += is_in_brackets;
        length = strcspn(at, is_in_brackets ? "]" : ":,[]");
        if (is_in_brackets && at[length] != ']')
            return false;
        memmove(hosts, at, length);
        hosts += length;
        at += length + is_in_brackets;
        if (*at == ':')
            for (at++; isdigit((unsigned char)*at); at++)
                *ports++ = *at;
        if (*at != ',')
            break;
        at++;
        *hosts++ = ',';
        *ports++ = ',';
    }
    *ports = '\0';
    if (*at != '\0')
        return false;
    *hosts = '\0';
    return true;
}

/* Read digits, and move *at behind them.  Return their value, or 65536 if it is
 * larger. */
static unsigned read_port(const char **at)
{
    unsigned port = 0;

    for (; isdigit((unsigned char)**at); (*at)++)
        port = port <= 65535 ? port * 10 + (unsigned)(**at - '0') : 65536;
    return port;
}

unsigned lk_url_port(const char *text)
{
    unsigned port = read_port(&text);

    return *text == '\0' && port <= 65535 ? port : 0;
}

bool lk_url_is_port_list(const char *ports)
{
    while (*ports != '\0') {
        bool is_given = isdigit((unsigned char)*ports);
        unsigned port = read_port(&ports);

        if ((is_given && (port < 1 || port > 65535)) ||
            (*ports != ',' && *ports != '\0'))
            return false;
        ports += *ports == ',';
    }
    return true;
}

size_t lk_url_entries(const char *list)
{
    size_t count = 1;

    for (; list != NULL && *list != '\0'; list++)
        count += *list == ',';
    return count;
}

bool lk_url_entry(char **out, const char *list, size_t index)
{
    *out = NULL;
    if (list == NULL)
        return true;
    if (lk_url_entries(list) == 1)
        index = 0;
    for (; index > 0; index--)
        list = strchr(list, ',') + 1;
    *out = strndup(list, strcspn(list, ","));
    return *out != NULL;
}

/* Return the list of hosts, or NULL; a parameter takes precedence, as in
 * libpq. */
static const char *host_list(const struct lk_url *url)
{
    const char *list = lk_url_parameter(url, "host");

    return list != NULL ? list : url->host;
}

size_t lk_url_hosts(const struct lk_url *url)
{
    return lk_url_entries(host_list(url));
}

bool lk_url_at_host(struct lk_url *out, const struct lk_url *url, size_t index,
                    char **host, char **port)
{
    const char *ports = lk_url_parameter(url, "port");

    *out = *url;
    if (ports == NULL)
        ports = url->port;
    (void)lk_url_take(out, "host");
    (void)lk_url_take(out, "hostaddr");
    (void)lk_url_take(out, "port");
    (void)lk_url_take(out, "target_session_attrs");
    *port = NULL;
    if (!lk_url_entry(host, host_list(url), index) ||
        !lk_url_entry(port, ports, index))
        return false;
    out->host = *host;
    out->port = *port != NULL && **port != '\0' ? *port : NULL;
    return true;
}

/* Read "user:password@hosts".  The ports go to `ports`. */
static int read_authority(struct lk_url *out, char *authority, char *ports,
                          sqlock_error *err)
{
    char *at = strchr(authority, '@');
    char *hosts = at != NULL ? at + 1 : authority;

    if (at != NULL) {
        char *colon = memchr(authority, ':', (size_t)(at - authority));

        *at = '\0';
        if (colon != NULL) {
            *colon = '\0';
            (void)decode(colon + 1);
            out->password = colon + 1;
        }
        out->user = decode(authority);
    }
    if (strchr(hosts, '@') != NULL)
        return misplaced(err);
    if (!split_hosts(hosts, ports) || !lk_url_is_port_list(ports))
        return lk_error(err, SQLOCK_EINVAL,
                        "the host or port in the URL is invalid: a port is 1 "
                        "to 65535, an IPv6 address has brackets, and user and "
                        "password end with @");
    out->host = decode(hosts);
    if (strspn(ports, ",") < strlen(ports))
        out->port = ports;
    return 0;
}

static int read_query(struct lk_url *out, char *query, sqlock_error *err)
{
    char *next;

    for (; query != NULL; query = next) {
        char *value;

        next = strchr(query, '&');
        if (next != NULL)
            *next++ = '\0';
        value = strchrnul(query, '=');
        if (*value == '=')
            *value++ = '\0';
        (void)decode(query);
        (void)decode(value);
        if (lk_url_parameter(out, query) != NULL ||
            out->count == LK_URL_PARAMETERS_MAX)
            return lk_error(err, SQLOCK_EINVAL,
                            "the URL's parameter number %zu after its '?' is "
                            "there twice, or one too many",
                            out->count + 1);
        out->parameters[out->count++] =
            (struct lk_url_parameter){.name = query, .value = value};
    }
    return 0;
}

int lk_url_parse(struct lk_url *out, const char *url, sqlock_error *err)
{
    size_t length;
    char *rest, *path, *query;
    int rc;

    memset(out, 0, sizeof *out);
    rc = check_text(url, err);
    if (rc < 0)
        return rc;
    length = strlen(url) + 1;
    out->size = 2 * length; /* the ports have a place of their own */
    out->text = malloc(out->size);
    if (out->text == NULL)
        return lk_error_nomem(err);
    memcpy(out->text, url, length);
    out->scheme = out->text;
    rest = strchr(out->text, ':');
    *rest++ = '\0';
    query = strchr(rest, '?');
    if (query != NULL)
        *query++ = '\0';
    out->has_authority = strncmp(rest, "//", 2) == 0;
    path = out->has_authority ? rest + 2 + strcspn(rest + 2, "/") : rest;
    if (strchr(url, '#') != NULL ||
        (out->has_authority && strchr(path, '@') != NULL))
        return misplaced(err);
    out->path = strdup(path);
    if (out->path == NULL)
        return lk_error_nomem(err);
    (void)decode(out->path);
    *path = '\0';
    if (out->has_authority)
        rc = read_authority(out, rest + 2, out->text + length, err);
    return rc == 0 ? read_query(out, query, err) : rc;
}

const char *lk_url_parameter(const struct lk_url *url, const char *name)
{
    for (size_t i = 0; i < url->count; i++)
        if (strcmp(url->parameters[i].name, name) == 0)
            return url->parameters[i].value;
    return NULL;
}

bool lk_url_is_fast(const struct lk_url *url)
{
    const char *durability = lk_url_parameter(url, "durability");

    return durability != NULL && strcmp(durability, "fast") == 0;
}

const char *lk_url_take(struct lk_url *url, const char *name)
{
    const char *value = lk_url_parameter(url, name);
    size_t kept = 0;

    for (size_t i = 0; i < url->count; i++)
        if (strcmp(url->parameters[i].name, name) != 0)
            url->parameters[kept++] = url->parameters[i];
    url->count = kept;
    return value;
}

int lk_url_check_parameters(const struct lk_url *url, const char *known,
                            sqlock_error *err)
{
    for (size_t i = 0; i < url->count; i++) {
        const char *name = url->parameters[i].name;

        if (!lk_text_is_listed(known, name, strlen(name)))
            return lk_error(err, SQLOCK_EINVAL,
                            "the URL's parameter number %zu after its '?' is "
                            "unknown: sqlock-databases(7) lists them",
                            i + 1);
        if (url->parameters[i].value[0] == '\0')
            return lk_error(err, SQLOCK_EINVAL,
                            "the parameter %s of the URL has no value", name);
    }
    return 0;
}

int lk_url_password(const struct lk_url *url, const char **password,
                    sqlock_error *err)
{
    const char *variable = lk_url_parameter(url, "password_env");

    *password = url->password;
    if (variable == NULL)
        return 0;
    if (url->password != NULL)
        return lk_error(err, SQLOCK_EINVAL,
                        "the URL has both a password and password_env");
    *password = getenv(variable);
    if (*password == NULL)
        return lk_error(err, SQLOCK_EINVAL,
                        "the environment variable %s, which password_env in "
                        "the URL names, is not set",
                        variable);
    return 0;
}

void lk_url_clear(struct lk_url *url)
{
    if (url->text != NULL)
        lk_wipe(url->text, url->size);
    free(url->text);
    free(url->path);
    memset(url, 0, sizeof *url);
}
