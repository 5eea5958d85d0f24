/*
 * diagnose_tls.c - check whether the connection is encrypted, and whether the
 * server's certificate is verified: encryption alone does not keep another
 * server from posing as this one
 */
#include "admin/diagnose.h"

#define HOW_TO                                                                 \
    "have it checked: sslmode=verify-full&sslrootcert=FILE (PostgreSQL), "     \
    "tls=verify&ca=FILE (MySQL) in the URL"

static void report_certificate(struct lk_checks *checks,
                               const sqlock_description *description,
                               bool is_local)
{
    switch (description->tls_check) {
    case SQLOCK_TLS_CHECK_FULL:
        lk_check(checks, "tls", SQLOCK_FINE, NULL,
                 "%s, the server's certificate is checked", description->tls);
        return;
    case SQLOCK_TLS_CHECK_AUTHORITY:
        lk_check(checks, "tls", SQLOCK_WARNING, HOW_TO,
                 "%s, but the server's name is not checked: a server with any "
                 "certificate of the same authority could pose as it",
                 description->tls);
        return;
    case SQLOCK_TLS_CHECK_NONE:
        if (is_local) {
            lk_check(checks, "tls", SQLOCK_FINE, NULL,
                     "%s, not checked and not needed: the server is on this "
                     "machine",
                     description->tls);
            return;
        }
        break;
    case SQLOCK_TLS_CHECK_DEMANDED:
        break;
    }
    lk_check(checks, "tls", SQLOCK_WARNING, HOW_TO,
             "%s, but the server's certificate is not checked: an attacker on "
             "the network could pose as the server",
             description->tls);
}

void lk_diagnose_tls(struct lk_checks *checks,
                     const sqlock_description *description, bool is_local)
{
    if (description->tls[0] != '\0')
        report_certificate(checks, description, is_local);
    else if (is_local)
        lk_check(checks, "tls", SQLOCK_FINE, NULL,
                 "none, and none needed: the server is on this machine");
    else
        lk_check(checks, "tls", SQLOCK_WARNING,
                 "require TLS in the URL: sslmode=verify-full (PostgreSQL), "
                 "tls=verify (MySQL)",
                 "the connection is not encrypted: password and locks can be "
                 "read and changed on the network");
}
