/*
 * test_sqlite_identity.c - whoever opens a SQLite file by its name shares the
 * database with the connections that have it open, or these are refused
 */
#include "drivers/suite.h"

#ifdef SQLOCK_WITH_SQLITE

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include "support/workers.h"

/* A directory of the test's own with a directory in it, and a database there
 * with a write-ahead log, which `session` has open. */
struct home {
    char directory[256];
    char folder[280];
    char path[300];
    char url[320];
    struct session session;
};

static void home_make(struct home *home)
{
    const char *parent = getenv("SQLOCK_TEST_DIR");

    (void)snprintf(home->directory, sizeof home->directory,
                   "%s/identity-XXXXXX",
                   parent != NULL && *parent != '\0' ? parent : "/tmp");
    assert_non_null(mkdtemp(home->directory));
    (void)snprintf(home->folder, sizeof home->folder, "%s/f", home->directory);
    assert_int_equal(mkdir(home->folder, 0700), 0);
    (void)snprintf(home->path, sizeof home->path, "%s/a.db", home->folder);
    (void)snprintf(home->url, sizeof home->url, "sqlite:%s", home->path);
    session_open_url(&home->session, home->url);
    session_run(&home->session, "PRAGMA journal_mode=WAL");
    session_run(&home->session, "CREATE TABLE t (i INTEGER)");
    session_close(&home->session);
    session_open_url(&home->session, home->url);
}

static void home_remove(struct home *home)
{
    char command[400];

    session_close(&home->session);
    (void)snprintf(command, sizeof command, "rm -r '%s'", home->directory);
    assert_int_equal(system(command), 0); /* NOLINT: of our own making */
}

/* Return DIRECTORY/NAME. */
static char *at(const struct home *home, const char *name)
{
    static char paths[4][400];
    static unsigned next;
    char *path = paths[next++ % 4];

    (void)snprintf(path, sizeof paths[0], "%s/%s", home->directory, name);
    return path;
}

static bool is_alive(const struct home *home)
{
    return subject.driver->is_alive(home->session.connection);
}

/* Open the file NAME of the directory, and close it.  Return the code. */
static int open_name(const struct home *home, const char *name,
                     sqlock_error *err)
{
    struct session session;
    char url[420];
    int rc;

    (void)snprintf(url, sizeof url, "sqlite:%s", at(home, name));
    rc = session_open_at(&session, url, LOCK_TIMEOUT_MS);
    *err = session.err;
    session_close(&session);
    return rc;
}

TEST_ON(test_hard_link_is_refused_and_noticed, ON_SQLITE, 0)
{
    struct home home;
    sqlock_error err;

    home_make(&home);
    assert_int_equal(link(home.path, at(&home, "f/b.db")), 0);
    assert_code(SQLOCK_ENOTSUP, open_name(&home, "f/b.db", &err), &err);
    assert_contains(err.message, "hard link");
    assert_code(SQLOCK_ENOTSUP, open_name(&home, "f/a.db", &err), &err);
    assert_false(is_alive(&home));
    assert_int_equal(unlink(at(&home, "f/b.db")), 0);
    assert_true(is_alive(&home));
    assert_lock_ok(open_name(&home, "f/a.db", &err), &err);
    assert_int_equal(link(at(&home, "f/a.db-wal"), at(&home, "f/b")), 0);
    assert_false(is_alive(&home));
    assert_int_equal(unlink(at(&home, "f/b")), 0);
    assert_true(is_alive(&home));
    home_remove(&home);
}

/* The link, or a directory on the way, leads to another file by now; the file
 * that is open has not moved. */
TEST_ON(test_symbolic_link_that_is_changed_is_noticed, ON_SQLITE, 0)
{
    static const struct {
        const char *link;
        const char *before, *after;
        const char *database;
    } links[] = {{"l.db", "f/a.db", "g/a.db", "l.db"},
                 {"d", "f", "g", "d/a.db"}};
    struct home home;
    struct session session;
    sqlock_error err;
    char url[420];

    home_make(&home);
    assert_int_equal(mkdir(at(&home, "g"), 0700), 0);
    assert_lock_ok(open_name(&home, "g/a.db", &err), &err);
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        const char *path = at(&home, links[i].link);

        assert_int_equal(symlink(links[i].before, path), 0);
        (void)snprintf(url, sizeof url, "sqlite:%s",
                       at(&home, links[i].database));
        session_open_url(&session, url);
        assert_true(subject.driver->is_alive(session.connection));
        assert_int_equal(session_integer(&session, "SELECT count(*) FROM t"),
                         0);
        assert_int_equal(unlink(path), 0);
        assert_false(subject.driver->is_alive(session.connection));
        assert_int_equal(symlink(links[i].after, path), 0);
        assert_false(subject.driver->is_alive(session.connection));
        session_close(&session);
    }
    home_remove(&home);
}

TEST_ON(test_link_to_nothing_creates_nothing, ON_SQLITE, 0)
{
    struct home home;
    sqlock_error err;

    home_make(&home);
    assert_int_equal(symlink("f/new.db", at(&home, "l.db")), 0);
    assert_code(SQLOCK_EUNREACHABLE, open_name(&home, "l.db", &err), &err);
    assert_contains(err.message, "symbolic link");
    assert_int_equal(access(at(&home, "f/new.db"), F_OK), -1);
    home_remove(&home);
}

/* Another process would make a new log, and not see what is in this one.  The
 * connections of this process share it, so that a new one is refused, too,
 * until all are closed. */
TEST_ON(test_log_that_is_removed_or_replaced_is_noticed, ON_SQLITE, 0)
{
    static const char *const names[] = {"f/a.db-wal", "f/a.db-shm"};

    for (size_t i = 0; i < 2 * (sizeof names / sizeof *names); i++) {
        bool is_replaced = i % 2 == 1;
        struct home home;
        sqlock_error err;
        FILE *file;

        home_make(&home);
        assert_true(is_alive(&home));
        assert_int_equal(unlink(at(&home, names[i / 2])), 0);
        if (is_replaced) {
            file = fopen(at(&home, names[i / 2]), "w");
            assert_non_null(file);
            assert_int_equal(fclose(file), 0);
        }
        assert_false(is_alive(&home));
        assert_code(SQLOCK_EUNREACHABLE, open_name(&home, "f/a.db", &err),
                    &err);
        assert_contains(err.message, "removed or replaced");
        session_close(&home.session);
        assert_lock_ok(open_name(&home, "f/a.db", &err), &err);
        home_remove(&home);
    }
}

/* The transaction would be committed into a file that nobody finds. */
TEST_ON(test_commit_to_a_replaced_file_is_refused, ON_SQLITE, 0)
{
    static const char *const names[] = {"f/a.db", "f/a.db-wal"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct home home;

        home_make(&home);
        session_ok(&home.session, session_begin(&home.session));
        session_run(&home.session, "INSERT INTO t VALUES (1)");
        assert_int_equal(rename(at(&home, names[i]), at(&home, "old")), 0);
        session_fails(SQLOCK_EUNREACHABLE, &home.session,
                      session_commit(&home.session));
        home_remove(&home);
    }
}

/* A log that nobody else sees is not copied into the database when the
 * connection is closed: that would undo what others have committed. */
TEST_ON(test_log_that_was_removed_is_not_copied, ON_SQLITE, 0)
{
    struct home home;
    struct session session;

    home_make(&home);
    session_run(&home.session, "PRAGMA wal_checkpoint(TRUNCATE)");
    session_run(&home.session, "INSERT INTO t VALUES (1)");
    assert_int_equal(unlink(at(&home, "f/a.db-wal")), 0);
    assert_int_equal(unlink(at(&home, "f/a.db-shm")), 0);
    session_close(&home.session);
    session_open_url(&session, home.url);
    assert_int_equal(session_integer(&session, "SELECT count(*) FROM t"), 0);
    session_close(&session);
    home_remove(&home);
}

/* The application may have chosen a VFS that takes no locks. */
TEST_ON(test_default_vfs_of_the_application_is_not_used, ON_SQLITE, 0)
{
    sqlite3_vfs *before = sqlite3_vfs_find(NULL);
    struct home home;
    char *name = NULL;

    assert_int_equal(sqlite3_vfs_register(sqlite3_vfs_find("unix-none"), 1),
                     SQLITE_OK);
    home_make(&home);
    assert_int_equal(sqlite3_vfs_register(before, 1), SQLITE_OK);
    assert_int_equal(
        sqlite3_file_control(subject.driver->native(home.session.connection),
                             "main", SQLITE_FCNTL_VFSNAME, (void *)&name),
        SQLITE_OK);
    assert_string_equal(name, "unix");
    sqlite3_free(name);
    home_remove(&home);
}

#define OPENINGS 300

/* Body of a worker: open the file again and again, and close it. */
static int open_and_close(struct worker *worker)
{
    const struct home *home = worker->context;

    for (int i = 0; i < OPENINGS; i++) {
        struct session session;
        bool lives;
        int rc = session_open_at(&session, home->url, LOCK_TIMEOUT_MS);

        if (rc < 0)
            return worker_fail(worker, "opening %d: %s", i,
                               session.err.message);
        lives = subject.driver->is_alive(session.connection);
        session_close(&session);
        if (!lives)
            return worker_fail(worker, "opening %d: taken for replaced", i);
    }
    return 0;
}

/* SQLite removes the log when the last connection is closed, also while another
 * one is being opened. */
TEST_ON(test_log_that_is_removed_by_closing_is_not_replaced, ON_SQLITE, 0)
{
    struct home home;
    struct workers workers;

    home_make(&home);
    session_close(&home.session);
    workers_start(&workers, 4, open_and_close, &home);
    workers_join(&workers);
    session_open_url(&home.session, home.url);
    home_remove(&home);
}

static int close_it(struct worker *worker)
{
    struct home *home = worker->context;

    session_close(&home->session);
    return 0;
}

/* Until the last connection with a log that was removed is closed, none is
 * opened that would share it. */
TEST_ON(test_log_that_was_removed_is_not_joined, ON_SQLITE, 0)
{
    for (int i = 0; i < 50; i++) {
        struct worker worker;
        struct session session;
        struct home home;

        home_make(&home);
        assert_int_equal(unlink(at(&home, "f/a.db-wal")), 0);
        assert_int_equal(unlink(at(&home, "f/a.db-shm")), 0);
        worker_start(&worker, close_it, &home);
        while (session_open_at(&session, home.url, LOCK_TIMEOUT_MS) < 0)
            session_close(&session);
        worker_join(&worker);
        assert_int_equal(access(at(&home, "f/a.db-wal"), F_OK), 0);
        assert_int_equal(access(at(&home, "f/a.db-shm"), F_OK), 0);
        home.session = session;
        home_remove(&home);
    }
}

#endif
