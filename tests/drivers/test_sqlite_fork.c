/*
 * test_sqlite_fork.c - a fork while SQLite opens or closes a file: in the child
 * SQLite's data may be inconsistent, so the driver opens no file there (F17)
 */
#include "drivers/suite.h"

#ifdef SQLOCK_WITH_SQLITE

#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

/* The statuses of children that were forked in the middle of a call. */
static struct {
    pid_t parent;
    int at_open; /* as from waitpid() */
    int at_close;
} seen;

static int fork_once(void)
{
    int status = -1;
    pid_t child = fork();

    if (child == 0)
        _exit(-session_open_in_child());
    if (child > 0)
        (void)waitpid(child, &status, 0);
    return status;
}

static int on_close(unsigned event, void *context, void *db, void *unused)
{
    (void)event;
    (void)context;
    (void)db;
    (void)unused;
    if (getpid() == seen.parent)
        seen.at_close = fork_once();
    return 0;
}

/* Callback of SQLite, in the middle of opening a file. */
static int on_open(sqlite3 *db, const char **message, const void *api)
{
    (void)message;
    (void)api;
    if (getpid() == seen.parent) {
        seen.at_open = fork_once();
        (void)sqlite3_trace_v2(db, SQLITE_TRACE_CLOSE, on_close, NULL);
    }
    return SQLITE_OK;
}

static void check_refused(int status)
{
    assert_true(WIFEXITED(status));
    assert_int_equal(-WEXITSTATUS(status), SQLOCK_EFORK);
}

TEST_ON(test_F17_a_child_knows_of_a_file_being_opened_or_closed, ON_SQLITE, 0)
{
    struct session session;

    session_close(&f->a);
    session_close(&f->b);
    assert_int_equal(fork_once(), 0); /* no file is open */
    seen.parent = getpid();
    (void)sqlite3_auto_extension((void (*)(void))on_open);
    session_open(&session);
    (void)sqlite3_cancel_auto_extension((void (*)(void))on_open);
    session_close(&session);
    check_refused(seen.at_open);
    check_refused(seen.at_close);
}

#endif
