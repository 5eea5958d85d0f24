/*
 * login.h - split URLs, and create users of a server with chosen rights
 */
#ifndef TESTS_LOGIN_H
#define TESTS_LOGIN_H

#include "fixture.h"

/* The password of the created users, which must not appear in any message. */
#define LOGIN_PASSWORD "c4naryPassw0rd"

/* The parts of scheme://user:password@host:port/database. */
struct url_parts {
    char scheme[16];
    char user[64];
    char password[64];
    char host[64];
    char port[8];
    char database[64];
};

/* Split a URL of that form, or join one; skip the test if a URL has another
 * form. */
void url_take_apart(const char *url, struct url_parts *parts);
const char *url_put_together(const struct url_parts *parts, char url[512]);

struct login {
    struct sql admin; /* the administrator's session */
    struct url_parts parts;
    char url[512];
};

/* Create a user without rights, whose name ends in `name`; login_drop() drops
 * it.  Skip the test if the environment has no administrator's URL. */
void login_make(struct login *login, struct fixture *f, const char *name);
void login_grant(struct login *login, const char *what, const char *table);
void login_drop(struct login *login, const struct fixture *f);

#endif
