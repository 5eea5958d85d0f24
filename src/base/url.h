/*
 * url.h - parse a database URL, and take parameters out of it
 *
 * No error text repeats any piece of the URL that might hold a user name or a
 * password.
 */
#ifndef LK_BASE_URL_H
#define LK_BASE_URL_H

#include <stdbool.h>
#include <stddef.h>

#include "sqlock.h"

struct lk_url_parameter {
    char *name;
    char *value; /* "" when there is none */
};

/* The components of a URL, percent-decoded.  One that is absent or empty is
 * NULL, except for the password and the path. */
struct lk_url {
    char *scheme; /* as written */
    char *user;
    char *password; /* "" is an empty one; NULL: there is none */
    char *host;     /* an IPv6 address without its brackets */
    char *port;     /* digits */
    char *path;     /* "" or with its leading slash */
    size_t count;
    struct lk_url_parameter *parameters; /* in the order of the query */
};

/**
 * Parse @p url as RFC 3986 defines it.  Refuse a text that is no URL, an
 * escaped NUL, and, in a URL with a host, a fragment or a bare '@' after the
 * host: these come from a password that was not percent-encoded.
 *
 * @param[out] out to be given to lk_url_clear(), also after a failure
 * @return 0, or SQLOCK_EINVAL or SQLOCK_ENOMEM
 */
int lk_url_parse(struct lk_url *out, const char *url, sqlock_error *err);

/** Return whether every '%' begins an escape, and no escape is a NUL. */
bool lk_url_escapes_are_sound(const char *url);

/** Return the value of the first parameter of that name, or NULL. */
const char *lk_url_parameter(const struct lk_url *url, const char *name);

/** Free the components, wipe the secret ones, and zero the struct. */
void lk_url_clear(struct lk_url *url);

/**
 * Copy @p url without its query parameter @p name.  All other bytes stay as
 * they are, and need not conform to RFC 3986: libpq allows a list of hosts.
 *
 * @param[out] rest  the copy, to be freed; holds the secrets that @p url holds;
 *                   NULL after a failure
 * @param[out] value of the parameter, percent-decoded, to be freed; NULL if it
 *                   is not given, or after a failure
 * @return 0; SQLOCK_EINVAL if the parameter is given twice, or has a malformed
 *         escape; SQLOCK_ENOMEM
 */
int lk_url_take(const char *url, const char *name, char **rest, char **value,
                sqlock_error *err);

#endif /* LK_BASE_URL_H */
