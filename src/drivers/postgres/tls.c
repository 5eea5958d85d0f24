/*
 * tls.c - find out whether a connection has the TLS that the URL demands
 */
#include <string.h>
#include <sys/socket.h>

#include "base/error.h"
#include "drivers/postgres/session.h"

/* Return whether the connection is a Unix socket, on which libpq ignores
 * sslmode. */
static bool is_unix_socket(const lk_pg *session)
{
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof address;

    return getsockname(PQsocket(session->conn), (struct sockaddr *)&address,
                       &size) == 0 &&
           address.ss_family == AF_UNIX;
}

/* Return how far libpq checks the server's identity.  Return ENOMEM through
 * *rc. */
static sqlock_tls_check demanded(const lk_pg *session, int *rc)
{
    PQconninfoOption *used = PQconninfo(session->conn);
    const PQconninfoOption *entry = used;
    const char *mode = "";
    sqlock_tls_check check = SQLOCK_TLS_CHECK_NONE;

    *rc = used != NULL ? 0 : SQLOCK_ENOMEM;
    for (; entry != NULL && entry->keyword != NULL; entry++)
        if (strcmp(entry->keyword, "sslmode") == 0 && entry->val != NULL)
            mode = entry->val;
    if (strcmp(mode, "verify-full") == 0)
        check = SQLOCK_TLS_CHECK_FULL;
    else if (strcmp(mode, "verify-ca") == 0)
        check = SQLOCK_TLS_CHECK_AUTHORITY;
    else if (strcmp(mode, "require") == 0)
        check = SQLOCK_TLS_CHECK_DEMANDED;
    PQconninfoFree(used);
    return check;
}

/* If there are Kerberos tickets, libpq prefers the encryption of Kerberos,
 * whatever sslmode says (F77). */
int lk_pg_assert_tls(const lk_pg *session, sqlock_error *err)
{
    int rc;

    if (demanded(session, &rc) != SQLOCK_TLS_CHECK_NONE &&
        PQsslInUse(session->conn) == 0 && !is_unix_socket(session))
        return lk_error(err, SQLOCK_EACCESS,
                        "TLS is required by sslmode, but the connection does "
                        "not use it: try gssencmode=disable");
    return rc < 0 ? lk_error_nomem(err) : 0;
}

sqlock_tls_check lk_pg_tls_check(const lk_pg *session)
{
    int rc;

    return PQsslInUse(session->conn) != 0 ? demanded(session, &rc)
                                          : SQLOCK_TLS_CHECK_NONE;
}
