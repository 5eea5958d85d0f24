/*
 * errors.c - classify errors of MySQL and MariaDB
 *
 * The number alone decides, never the text.  A server's error that is not in
 * the table is an error of the statement: the server has answered.  After an
 * error of the client library that is not in the table, the outcome is unknown.
 */
#include "drivers/mysql/errors.h"

#include <stddef.h>

#define UNKNOWN_COMMAND 1047
#define ERROR_DURING_COMMIT 1180
#define IDLE_SESSION_ENDED 4031

/* clang-format off */
static const struct {
    unsigned int number;
    int code;
} table[] = {
    /* The transaction was rolled back in favour of another. */
    {1213, SQLOCK_ERETRY},      /* deadlock */
    {1020, SQLOCK_ERETRY},      /* row changed since it was read */
    {1412, SQLOCK_ERETRY},      /* table changed since the snapshot */
    {ERROR_DURING_COMMIT, SQLOCK_ERETRY}, /* before a COMMIT (Galera) */
    {3101, SQLOCK_ERETRY},      /* the group refused the commit */
    /* The transaction could not begin: its wait for earlier transactions of
       the group failed. */
    {3781, SQLOCK_ERETRY},
    {3797, SQLOCK_ERETRY},
    {3798, SQLOCK_ERETRY},

    {1205, SQLOCK_EBUSY},       /* lock wait timeout; not rolled back */
    {3572, SQLOCK_EBUSY},       /* NOWAIT */
    {1062, SQLOCK_EBUSY},       /* duplicate key */
    {1586, SQLOCK_EBUSY},

    {1317, SQLOCK_ECANCELED},   /* KILL QUERY */
    {1969, SQLOCK_ECANCELED},   /* max_statement_time */
    {3024, SQLOCK_ECANCELED},   /* max_execution_time */
    {1028, SQLOCK_ECANCELED},   /* killed while sorting */
    {3782, SQLOCK_ECANCELED},   /* killed while it waited for the group */

    {1290, SQLOCK_EREADONLY},   /* --read-only */
    {1836, SQLOCK_EREADONLY},
    {1792, SQLOCK_EREADONLY},   /* tx_read_only */
    {UNKNOWN_COMMAND, SQLOCK_EREADONLY}, /* Galera node outside the primary
                                            component */
    /* The group does not let this member begin a transaction. */
    {3783, SQLOCK_EREADONLY},
    {3796, SQLOCK_EREADONLY},
    {3799, SQLOCK_EREADONLY},

    {1021, SQLOCK_ERESOURCE},   /* disk full */
    {1037, SQLOCK_ERESOURCE},
    {1038, SQLOCK_ERESOURCE},
    {1040, SQLOCK_ERESOURCE},   /* too many connections */
    {1041, SQLOCK_ERESOURCE},
    {1114, SQLOCK_ERESOURCE},   /* table is full */
    {1129, SQLOCK_ERESOURCE},   /* host blocked after many errors */
    {1135, SQLOCK_ERESOURCE},   /* cannot create a thread */
    {1203, SQLOCK_ERESOURCE},   /* too many connections of this user */
    {1206, SQLOCK_ERESOURCE},   /* lock table is full */
    {1226, SQLOCK_ERESOURCE},   /* user's quota */
    {1461, SQLOCK_ERESOURCE},   /* max_prepared_stmt_count */
    {1637, SQLOCK_ERESOURCE},   /* too many active transactions */

    {1044, SQLOCK_EACCESS},
    {1045, SQLOCK_EACCESS},
    {1130, SQLOCK_EACCESS},     /* this host may not connect */
    {1142, SQLOCK_EACCESS},
    {1143, SQLOCK_EACCESS},
    {1227, SQLOCK_EACCESS},
    {1251, SQLOCK_EACCESS},     /* authentication not supported by client */
    {1370, SQLOCK_EACCESS},
    {1524, SQLOCK_EACCESS},     /* authentication plugin not loaded */
    {1698, SQLOCK_EACCESS},
    {1820, SQLOCK_EACCESS},     /* password has expired */
    {1862, SQLOCK_EACCESS},
    {3118, SQLOCK_EACCESS},     /* account is locked */
    {3159, SQLOCK_EACCESS},     /* server requires TLS */
    {4151, SQLOCK_EACCESS},     /* account is locked, MariaDB */
    {2059, SQLOCK_EACCESS},     /* authentication plugin cannot be loaded */
    {2061, SQLOCK_EACCESS},     /* authentication plugin: no secure channel */

    {1049, SQLOCK_ESCHEMA},
    {1054, SQLOCK_ESCHEMA},
    {1146, SQLOCK_ESCHEMA},

    /* The server ended the idle session before it saw the statement. */
    {IDLE_SESSION_ENDED, SQLOCK_EUNREACHABLE},
    {3032, SQLOCK_EUNREACHABLE}, /* offline_mode */
    {9001, SQLOCK_EUNREACHABLE}, /* ProxySQL can reach no server */

    {1053, SQLOCK_EUNCERTAIN},  /* shutting down */
    {1152, SQLOCK_EUNCERTAIN},
    {1158, SQLOCK_EUNCERTAIN},  /* network, as the server sees it */
    {1159, SQLOCK_EUNCERTAIN},
    {1160, SQLOCK_EUNCERTAIN},
    {1161, SQLOCK_EUNCERTAIN},
    {1927, SQLOCK_EUNCERTAIN},  /* KILL CONNECTION */
    {3169, SQLOCK_EUNCERTAIN},
    /* The hook before a commit failed after the transaction had been sent to
       the group: other members may commit it. */
    {3100, SQLOCK_EUNCERTAIN},
};
/* clang-format on */

/* Return whether an error is one of the client library: 2000 to 2999 in both
 * libraries, 5000 to 5999 in MariaDB's; or 0, no number at all. */
static bool is_of_client(unsigned int number)
{
    return number == 0 || (number >= 2000 && number < 3000) ||
           (number >= 5000 && number < 6000);
}

static int look_up(unsigned int number)
{
    size_t i;

    for (i = 0; i < sizeof table / sizeof *table; i++) {
        if (table[i].number == number)
            return table[i].code;
    }
    return is_of_client(number) ? SQLOCK_EUNCERTAIN : SQLOCK_EDATABASE;
}

/* Return whether the error of a COMMIT proves that nothing was committed: the
 * transaction was rolled back, the server is read-only, or it had ended the
 * session before.  After any other error the commit may have happened. */
static bool denies_commit(unsigned int number, int code)
{
    if (number == ERROR_DURING_COMMIT || number == UNKNOWN_COMMAND)
        return false;
    return code == SQLOCK_ERETRY || code == SQLOCK_EREADONLY ||
           number == IDLE_SESSION_ENDED;
}

int lk_mysql_classify(unsigned int number, enum lk_mysql_stage stage)
{
    int code = look_up(number);

    switch (stage) {
    case LK_MYSQL_CONNECTING:
        /* A proxy may give any number for a server that it cannot reach. */
        if (code == SQLOCK_EDATABASE)
            return SQLOCK_EUNREACHABLE;
        /* fall through */
    case LK_MYSQL_PREPARING:
        return code == SQLOCK_EUNCERTAIN ? SQLOCK_EUNREACHABLE : code;
    case LK_MYSQL_AUTOCOMMIT:
        return number == ERROR_DURING_COMMIT ? SQLOCK_EUNCERTAIN : code;
    case LK_MYSQL_COMMITTING:
        return denies_commit(number, code) ? code : SQLOCK_EUNCERTAIN;
    case LK_MYSQL_RUNNING:
        break;
    }
    return code;
}

bool lk_mysql_breaks(unsigned int number)
{
    int code = look_up(number);

    return code == SQLOCK_EUNCERTAIN || code == SQLOCK_EUNREACHABLE;
}

const char *lk_mysql_hint(unsigned int number)
{
    switch (number) {
    case 1045:
        return " (give the password in ~/.my.cnf, or name its environment "
               "variable with password_env= in the URL)";
    case 2002:
    case 2003:
        return " (is the server running, and is the URL its address?)";
    case 2059:
        return " (the client library lacks this way to log in: see its plugin "
               "directory)";
    case 2061:
        return " (log in over TLS, tls=require, or over a Unix socket)";
    default:
        return "";
    }
}
