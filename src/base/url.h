/*
 * url.h - parse a database URL
 *
 * It is read once, when a registry is opened: drivers get its parts.  No error
 * text repeats any piece of the URL that might hold a user name or a password.
 */
#ifndef LK_BASE_URL_H
#define LK_BASE_URL_H

#include <stdbool.h>
#include <stddef.h>

#include "sqlock.h"

#define LK_URL_PARAMETERS_MAX 32

struct lk_url_parameter {
    const char *name;
    const char *value; /* "" when there is none */
};

/* The parts of a URL, percent-decoded.  One that is absent or empty is NULL,
 * except for the password and the path. */
struct lk_url {
    const char *scheme; /* as written */
    bool has_authority; /* "//" follows the scheme */
    const char *user;
    const char *password; /* "" is an empty one; NULL: there is none */
    const char *host; /* or several, with ',' between, IPv6 addresses without
                             their brackets */
    const char *port; /* of each host, with ',' between: "5432,,5433" */
    char *path;       /* "" or with its leading slash; malloc'd */
    size_t count;
    struct lk_url_parameter parameters[LK_URL_PARAMETERS_MAX];
    char *text; /* which the members above point into */
    size_t size;
};

/* Parse a URL, which may be NULL: SQLOCK_EINVAL.  Refuse a text that is no URL,
 * an escaped NUL, a parameter that is given twice, and a '#' or a bare '@'
 * behind the host: these come from a password that was not percent-encoded.
 * *out is to be given to lk_url_clear(), also after a failure.  Return 0,
 * SQLOCK_EINVAL or SQLOCK_ENOMEM. */
int lk_url_parse(struct lk_url *out, const char *url, sqlock_error *err);

/* Return the value of the parameter of that name, or NULL. */
const char *lk_url_parameter(const struct lk_url *url, const char *name);

/* Return the value as lk_url_parameter(), and remove the parameter. */
const char *lk_url_take(struct lk_url *url, const char *name);

/* Return whether the URL has durability=fast. */
bool lk_url_is_fast(const struct lk_url *url);

/* Check that all parameters have a value, and are in `known`: "a|b|c".  Return
 * 0, or SQLOCK_EINVAL; its text has the number of a parameter that is unknown,
 * whose name may belong to a password. */
int lk_url_check_parameters(const struct lk_url *url, const char *known,
                            sqlock_error *err);

/* Set *password to that of the URL, or of the environment variable that its
 * parameter password_env names; NULL if there is none.  Return 0, or
 * SQLOCK_EINVAL if there are both, or the variable is not set. */
int lk_url_password(const struct lk_url *url, const char **password,
                    sqlock_error *err);

/* Return the value of a port, 1 to 65535, or 0 if the text is none. */
unsigned lk_url_port(const char *text);

/* Return how many elements a list with ',' between has; one, if it is NULL. */
size_t lk_url_entries(const char *list);

/* Copy element `index` of a list to *out, or NULL if `list` is NULL; a single
 * element stands for all.  Return false if out of memory: NULL would mean
 * another server. */
bool lk_url_entry(char **out, const char *list, size_t index);

/* Return how many hosts the URL names; one, if it names none. */
size_t lk_url_hosts(const struct lk_url *url);

/* Make *out a URL of one of the hosts, by its name and whatever it may do,
 * which shares the texts of `url` and is not cleared.  *host and *port are to
 * be freed.  Return false if out of memory. */
bool lk_url_at_host(struct lk_url *out, const struct lk_url *url, size_t index,
                    char **host, char **port);

/* Return whether a text is a list of ports, 1 to 65535, some of which may be
 * missing. */
bool lk_url_is_port_list(const char *ports);

/* Free the parts, wipe them, and zero the struct. */
void lk_url_clear(struct lk_url *url);

#endif /* LK_BASE_URL_H */
