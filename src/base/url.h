/*
 * url.h - read a database URL and take parameters out of it
 *
 * No error text repeats any part of a URL that might hold user info.
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

/* The parts of a URL, percent-decoded.  Absent or empty parts are NULL, except
 * the path.  Embed it zeroed. */
struct lk_url {
    char *scheme; /* as written */
    char *user;
    char *password; /* "" is a password, NULL is none */
    char *host;     /* an IPv6 address without its brackets */
    char *port;     /* digits */
    char *path;     /* "" or with its leading slash */
    size_t count;
    struct lk_url_parameter *parameters; /* in the order of the query */
};

/**
 * Read @p url by RFC 3986.  Refuses what is no URL, NUL characters, and, where
 * there is a host, fragments and a bare '@' behind it: both come from a
 * password that was not percent-encoded.
 *
 * @param[out] out to be given to lk_url_clear(), also after a failure
 * @return 0, EINVAL, ENOMEM
 */
int lk_url_parse(struct lk_url *out, const char *url, sqlock_error *err);

/** Tell whether every '%' begins an escape, and none of them is a NUL. */
bool lk_url_escapes_are_sound(const char *url);

/** Return the first parameter of that name, or NULL. */
const char *lk_url_parameter(const struct lk_url *url, const char *name);

/** Free the parts of a URL, wipe the secret ones, and zero the struct. */
void lk_url_clear(struct lk_url *url);

/**
 * Copy @p url without its query parameter @p name; everything else stays byte
 * for byte, also what RFC 3986 does not know, such as libpq's list of hosts.
 *
 * @param[out] rest  the copy, to be freed; holds what secrets @p url holds
 * @param[out] value percent-decoded, to be freed; NULL when there is none
 * @return 0, EINVAL (given twice, or a malformed escape in it), ENOMEM
 */
int lk_url_take(const char *url, const char *name, char **rest, char **value,
                sqlock_error *err);

#endif /* LK_BASE_URL_H */
