/*
 * failure.c - classify an error of SQLite: find the code of db/driver.h for
 * it.  SQLite's code decides, except in mistake(), where the message does.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "drivers/sqlite/connection.h"

static bool begins_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Classify SQLITE_ERROR, the code of every mistake in a statement.  A missing
 * table or column has no code of its own, so SQLite's message decides; its
 * wording has not changed since SQLite 3.0. */
static int mistake(const char *message)
{
    if (begins_with(message, "no such table") ||
        begins_with(message, "no such column") ||
        begins_with(message, "unknown database") ||
        (begins_with(message, "table ") && strstr(message, "has no column")))
        return SQLOCK_ESCHEMA;
    return SQLOCK_EDATABASE;
}

/* Classify a file that could not be opened, by the system's error number. */
static int unopened(int system_error)
{
    switch (system_error) {
    case EACCES:
    case EPERM:
        return SQLOCK_EACCESS;
    case EROFS:
        return SQLOCK_EREADONLY;
    case EMFILE:
    case ENFILE:
    case ENOSPC:
    case EDQUOT:
    case ENOMEM:
        return SQLOCK_ERESOURCE;
    default:
        return SQLOCK_EUNREACHABLE;
    }
}

/* Extended codes, and behind them those of a whole class. */
static const struct {
    int sqlite;
    int code;
} outcomes[] = {
    {SQLITE_BUSY_RECOVERY, SQLOCK_ERETRY},
    {SQLITE_BUSY_SNAPSHOT, SQLOCK_ERETRY},
    {SQLITE_IOERR_NOMEM, SQLOCK_ERESOURCE},
    {SQLITE_CONSTRAINT_PRIMARYKEY, SQLOCK_EBUSY},
    {SQLITE_CONSTRAINT_UNIQUE, SQLOCK_EBUSY},
    {SQLITE_CONSTRAINT_ROWID, SQLOCK_EBUSY},
    {SQLITE_BUSY, SQLOCK_EBUSY},
    {SQLITE_LOCKED, SQLOCK_EBUSY},
    {SQLITE_PROTOCOL, SQLOCK_EBUSY}, /* too many open the log at once */
    {SQLITE_INTERRUPT, SQLOCK_ECANCELED},
    {SQLITE_READONLY, SQLOCK_EREADONLY},
    {SQLITE_FULL, SQLOCK_ERESOURCE},
    {SQLITE_NOMEM, SQLOCK_ERESOURCE},
    {SQLITE_PERM, SQLOCK_EACCESS},
    {SQLITE_AUTH, SQLOCK_EACCESS},
    {SQLITE_IOERR, SQLOCK_EUNCERTAIN},
};

static int outcome_of(struct lk_sqlite *c, int extended, const char *message)
{
    for (size_t i = 0; i < sizeof outcomes / sizeof *outcomes; i++)
        if (outcomes[i].sqlite == extended ||
            outcomes[i].sqlite == (extended & 0xff))
            return outcomes[i].code;
    if ((extended & 0xff) == SQLITE_CANTOPEN)
        return unopened(sqlite3_system_errno(c->db));
    return (extended & 0xff) == SQLITE_ERROR ? mistake(message)
                                             : SQLOCK_EDATABASE;
}

static bool is_out_of_room(int system_error)
{
    return system_error == ENOSPC || system_error == EDQUOT ||
           system_error == EFBIG;
}

/* Fill in *err and return the code.  The system's error is added to SQLite's
 * message "disk I/O error", which says no more. */
static int tell(int code, int extended, const char *message, int system_error,
                sqlock_error *err)
{
    if ((extended & 0xff) != SQLITE_IOERR || system_error == 0)
        return sqlock_error_set(err, code, extended, NULL, "SQLite: %s",
                                message);
    return sqlock_error_set(err, code, extended, NULL, "SQLite: %s: %s",
                            message, strerror(system_error));
}

int lk_sqlite_failure(struct lk_sqlite *c, sqlock_error *err)
{
    int system_error = sqlite3_system_errno(c->db);
    int extended = sqlite3_extended_errcode(c->db);
    const char *message = sqlite3_errmsg(c->db);
    int code = outcome_of(c, extended, message);

    /* abort() has ended the wait for the file's lock. */
    if (code == SQLOCK_EBUSY && atomic_load(&c->is_aborted))
        code = SQLOCK_ECANCELED;
    if (code == SQLOCK_EUNCERTAIN || code == SQLOCK_EUNREACHABLE)
        c->is_broken = true;
    if ((extended & 0xff) == SQLITE_NOMEM || extended == SQLITE_IOERR_NOMEM)
        return lk_error_limit(err, "SQLite", ENOMEM);
    /* The log has no whole transaction then: nothing was committed. */
    if (code == SQLOCK_EUNCERTAIN && system_error == EFBIG)
        return lk_error_limit(err, message, EFBIG);
    return tell(code, extended, message, system_error, err);
}

int lk_sqlite_failure_to_read(struct lk_sqlite *c, sqlock_error *err)
{
    bool has_no_room = is_out_of_room(sqlite3_system_errno(c->db));
    sqlock_error cause;
    int code = lk_sqlite_failure(c, &cause);

    if (code == SQLOCK_EUNCERTAIN)
        code = has_no_room ? SQLOCK_ERESOURCE : SQLOCK_EUNREACHABLE;
    return sqlock_error_set(err, code, cause.native, NULL, "%s", cause.message);
}
