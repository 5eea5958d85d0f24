/*
 * test_sqlite_errors.c - what an error of SQLite says of its statement: that it
 * was not carried out, and why, or that nobody knows
 */
#include "drivers/suite.h"

#ifdef SQLOCK_WITH_SQLITE

#include <errno.h>

#include <sqlite3.h>

/* SQLite's code, the system's error, and the driver's code of a statement that
 * writes, and of one that only reads. */
static const struct {
    int sqlite;
    int system;
    int writing;
    int reading;
} cases[] = {
    {SQLITE_IOERR, EIO, SQLOCK_EUNCERTAIN, SQLOCK_EUNREACHABLE},
    {SQLITE_IOERR_WRITE, EIO, SQLOCK_EUNCERTAIN, SQLOCK_EUNREACHABLE},
    {SQLITE_IOERR_FSYNC, EIO, SQLOCK_EUNCERTAIN, SQLOCK_EUNREACHABLE},
    {SQLITE_IOERR_WRITE, ENOSPC, SQLOCK_EUNCERTAIN, SQLOCK_ERESOURCE},
    {SQLITE_IOERR_WRITE, EDQUOT, SQLOCK_EUNCERTAIN, SQLOCK_ERESOURCE},
    {SQLITE_IOERR_WRITE, EFBIG, SQLOCK_ERESOURCE, SQLOCK_ERESOURCE},
    {SQLITE_IOERR_NOMEM, 0, SQLOCK_ERESOURCE, SQLOCK_ERESOURCE},
    {SQLITE_FULL, 0, SQLOCK_ERESOURCE, SQLOCK_ERESOURCE},
    {SQLITE_NOMEM, 0, SQLOCK_ERESOURCE, SQLOCK_ERESOURCE},
    {SQLITE_LOCKED, 0, SQLOCK_EBUSY, SQLOCK_EBUSY},
    {SQLITE_PROTOCOL, 0, SQLOCK_EBUSY, SQLOCK_EBUSY},
    {SQLITE_CONSTRAINT_PRIMARYKEY, 0, SQLOCK_EBUSY, SQLOCK_EBUSY},
    {SQLITE_CONSTRAINT_UNIQUE, 0, SQLOCK_EBUSY, SQLOCK_EBUSY},
    {SQLITE_CONSTRAINT_ROWID, 0, SQLOCK_EBUSY, SQLOCK_EBUSY},
    {SQLITE_CONSTRAINT_CHECK, 0, SQLOCK_EDATABASE, SQLOCK_EDATABASE},
    {SQLITE_INTERRUPT, 0, SQLOCK_ECANCELED, SQLOCK_ECANCELED},
    {SQLITE_READONLY, 0, SQLOCK_EREADONLY, SQLOCK_EREADONLY},
    {SQLITE_READONLY_DBMOVED, 0, SQLOCK_EREADONLY, SQLOCK_EREADONLY},
    {SQLITE_PERM, 0, SQLOCK_EACCESS, SQLOCK_EACCESS},
    {SQLITE_AUTH, 0, SQLOCK_EACCESS, SQLOCK_EACCESS},
    {SQLITE_CANTOPEN, EACCES, SQLOCK_EACCESS, SQLOCK_EACCESS},
    {SQLITE_CANTOPEN, EROFS, SQLOCK_EREADONLY, SQLOCK_EREADONLY},
    {SQLITE_CANTOPEN, EMFILE, SQLOCK_ERESOURCE, SQLOCK_ERESOURCE},
    {SQLITE_CANTOPEN, ENOENT, SQLOCK_EUNREACHABLE, SQLOCK_EUNREACHABLE},
    {SQLITE_MISMATCH, 0, SQLOCK_EDATABASE, SQLOCK_EDATABASE},
    {SQLITE_CORRUPT, 0, SQLOCK_EDATABASE, SQLOCK_EDATABASE},
};

/* The SQL function fails(CODE, ERRNO). */
static void fail_so(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    errno = sqlite3_value_int(values[1]);
    sqlite3_result_error_code(context, sqlite3_value_int(values[0]));
}

/* Fail in a statement.  After a doubt, or where there is no file any more, the
 * connection is not used again. */
static void check_failure(size_t i, bool reads)
{
    int expected = reads ? cases[i].reading : cases[i].writing;
    bool is_broken =
        expected == SQLOCK_EUNCERTAIN || expected == SQLOCK_EUNREACHABLE;
    struct session session;
    int rc;

    session_open(&session);
    rc = sqlite3_create_function(subject.driver->native(session.connection),
                                 "fails", 2, SQLITE_UTF8, NULL, fail_so, NULL,
                                 NULL);
    assert_int_equal(rc, SQLITE_OK);
    if (reads)
        rc = session_try(&session, "SELECT fails(%d, %d)", cases[i].sqlite,
                         cases[i].system);
    else
        rc = session_try(&session, "INSERT INTO %s (K) VALUES (fails(%d, %d))",
                         subject.values.quoted, cases[i].sqlite,
                         cases[i].system);
    if (rc != expected)
        print_error("case %zu\n", i);
    assert_code(expected, rc, &session.err);
    if (is_broken)
        assert_false(subject.driver->is_alive(session.connection));
    session_close(&session);
}

TEST_ON(test_what_an_error_of_sqlite_says, ON_SQLITE, 0)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_failure(i, false);
        check_failure(i, true);
    }
}

#endif
