/*
 * test_sqlite.c - what only SQLite's driver promises about files, the write
 * lock and transactions
 */
#include "drivers/suite.h"

#include <stdio.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* An internal function of the driver; weak, for builds without that driver,
 * which do not run these tests. */
bool lk_sqlite_is_network(unsigned long file_system) __attribute__((weak));

#define UNPRIVILEGED 65534

/* A directory of the test's own, and a path in it. */
struct place {
    char directory[256];
    char path[300];
    char url[320];
};

static void place_make(struct place *place)
{
    const char *parent = getenv("SQLOCK_TEST_DIR");

    (void)snprintf(place->directory, sizeof place->directory,
                   "%s/sqlite-XXXXXX",
                   parent != NULL && *parent != '\0' ? parent : "/tmp");
    assert_non_null(mkdtemp(place->directory));
    (void)snprintf(place->path, sizeof place->path, "%s/locks.db",
                   place->directory);
    (void)snprintf(place->url, sizeof place->url, "sqlite:%s", place->path);
}

static void place_remove(struct place *place)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal",
                                           ".old"};
    char path[400];

    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        (void)snprintf(path, sizeof path, "%s%s", place->path, suffixes[i]);
        (void)unlink(path);
    }
    assert_int_equal(rmdir(place->directory), 0);
}

static int open_and_close(const char *url, sqlock_error *err)
{
    struct session session;
    int rc = session_open_at(&session, url, LOCK_TIMEOUT_MS);

    *err = session.err;
    session_close(&session);
    return rc;
}

/* ------------------------------------------------------------------ URLs -- */

TEST_ON(test_every_way_to_write_a_path_is_the_same_file, ON_SQLITE, 0)
{
    struct place place;
    struct session session;
    char url[600];

    place_make(&place);
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(url, sizeof url, i == 0 ? "sqlite:%s" : "sqlite://%s",
                       place.path);
        session_open_url(&session, url);
        session_run(&session, "CREATE TABLE IF NOT EXISTS seen (i INTEGER)");
        session_run(&session, "INSERT INTO seen VALUES (1)");
        assert_int_equal(session_integer(&session, "SELECT count(*) FROM seen"),
                         i + 1);
        session_close(&session);
    }
    place_remove(&place);
}

TEST_ON(test_escapes_in_a_path_are_decoded, ON_SQLITE, 0)
{
    struct place place;
    struct stat status;
    char url[600], path[600];
    sqlock_error err;

    place_make(&place);
    (void)snprintf(url, sizeof url, "sqlite:%s/a%%20b%%3Fc%%25",
                   place.directory);
    (void)snprintf(path, sizeof path, "%s/a b?c%%", place.directory);
    assert_lock_ok(open_and_close(url, &err), &err);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(unlink(path), 0);
    place_remove(&place);
}

/* ----------------------------------------------------------------- files -- */

TEST_ON(test_missing_directory_is_a_wrong_url, ON_SQLITE, 0)
{
    sqlock_error err;

    assert_code(SQLOCK_EINVAL,
                open_and_close("sqlite:/no/such/directory/db", &err), &err);
    assert_contains(err.message, "/no/such/directory");
}

/* A mistyped path must not leave an empty database behind. */
TEST_ON(test_missing_file_is_not_made_by_the_way, ON_SQLITE, 0)
{
    struct place place;
    struct stat status;
    sqlock_registry *registry;
    sqlock_error err;

    place_make(&place);
    assert_code(SQLOCK_ESCHEMA,
                sqlock_registry_open(&registry, place.url, NULL, &err), &err);
    assert_contains(err.message, place.path);
    assert_contains(err.message, "sqlock init");
    assert_null(registry);
    assert_int_equal(stat(place.path, &status), -1);
    assert_lock_ok(
        sqlock_schema_create(place.url, NULL, SQLOCK_LAYOUT_SQLOCK, &err),
        &err);
    assert_lock_ok(sqlock_registry_open(&registry, place.url, NULL, &err),
                   &err);
    assert_lock_ok(sqlock_registry_close(registry, &err), &err);
    place_remove(&place);
}

TEST_ON(test_directory_is_no_database, ON_SQLITE, 0)
{
    struct place place;
    char url[600];
    sqlock_error err;

    place_make(&place);
    (void)snprintf(url, sizeof url, "sqlite:%s", place.directory);
    assert_code(SQLOCK_EDATABASE, open_and_close(url, &err), &err);
    assert_contains(err.message, "directory");
    place_remove(&place);
}

TEST_ON(test_other_file_is_no_database, ON_SQLITE, 0)
{
    struct place place;
    sqlock_error err;
    FILE *file;

    place_make(&place);
    file = fopen(place.path, "w");
    assert_non_null(file);
    for (size_t i = 0; i < 1000; i++)
        (void)fputs("this is no database\n", file);
    assert_int_equal(fclose(file), 0);
    assert_code(SQLOCK_EDATABASE, open_and_close(place.url, &err), &err);
    assert_contains(err.message, place.path);
    place_remove(&place);
}

/* Call `body` with the rights of an unprivileged user, and return its result.
 * This is not done in a child, where the driver opens no file while the parent
 * has one open (F17). */
static int unprivileged(int (*body)(const struct place *),
                        const struct place *place)
{
    bool is_root = geteuid() == 0;
    int rc;

    if (is_root)
        assert_true(setegid(UNPRIVILEGED) == 0 && seteuid(UNPRIVILEGED) == 0);
    rc = body(place);
    if (is_root)
        assert_true(seteuid(0) == 0 && setegid(0) == 0);
    return rc;
}

static int body_open(const struct place *place)
{
    sqlock_error err;

    return open_and_close(place->url, &err);
}

TEST_ON(test_directory_without_the_right_is_refused, ON_SQLITE, 0)
{
    struct place place;

    place_make(&place);
    assert_int_equal(chmod(place.directory, 0), 0);
    assert_int_equal(unprivileged(body_open, &place), SQLOCK_EACCESS);
    assert_int_equal(chmod(place.directory, 0555), 0);
    assert_int_equal(unprivileged(body_open, &place), SQLOCK_EACCESS);
    assert_int_equal(chmod(place.directory, 0755), 0);
    place_remove(&place);
}

TEST_ON(test_file_without_the_right_is_refused, ON_SQLITE, 0)
{
    struct place place;
    sqlock_error err;

    place_make(&place);
    assert_lock_ok(open_and_close(place.url, &err), &err);
    assert_int_equal(chmod(place.directory, 0755), 0);
    assert_int_equal(chmod(place.path, 0), 0);
    assert_int_equal(unprivileged(body_open, &place), SQLOCK_EACCESS);
    place_remove(&place);
}

/* Return 0 if the session is read-only, and a write returns EREADONLY. */
static int body_read_only(const struct place *place)
{
    struct session session;
    int rc = session_open_at(&session, place->url, LOCK_TIMEOUT_MS);

    if (rc == 0)
        rc = session_try(&session, "SELECT sqlock_readonly()");
    if (rc == 0 && session.result.cells[0].integer != 1)
        rc = -98;
    if (rc == 0) {
        rc = session_try(&session, "INSERT INTO t VALUES (1)");
        rc = rc == SQLOCK_EREADONLY ? 0 : rc == 0 ? -97 : rc;
    }
    session_close(&session);
    return rc;
}

TEST_ON(test_file_that_cannot_be_written_is_read_only, ON_SQLITE, 0)
{
    struct place place;
    struct session session;

    place_make(&place);
    session_open_url(&session, place.url);
    assert_int_equal(session_integer(&session, "SELECT sqlock_readonly()"), 0);
    session_run(&session, "CREATE TABLE t (i INTEGER)");
    session_close(&session);
    assert_int_equal(chmod(place.directory, 0755), 0);
    assert_int_equal(chmod(place.path, 0444), 0);
    assert_int_equal(unprivileged(body_read_only, &place), 0);
    place_remove(&place);
}

/* Connections to the old and the new file of one name do not exclude each
 * other, so one to the old file is no longer alive. */
TEST_ON(test_replaced_file_is_noticed, ON_SQLITE, 0)
{
    struct place place;
    struct session session;
    char old[400];

    place_make(&place);
    session_open_url(&session, place.url);
    session_run(&session, "CREATE TABLE t (i INTEGER)");
    assert_true(subject.driver->is_alive(session.connection));
    (void)snprintf(old, sizeof old, "%s.old", place.path);
    assert_int_equal(rename(place.path, old), 0);
    assert_false(subject.driver->is_alive(session.connection));
    session_close(&session);
    place_remove(&place);
}

TEST_ON(test_network_file_systems_are_known, ON_SQLITE, 0)
{
    static const struct {
        const char *name;
        unsigned long magic;
        bool is_network;
    } systems[] = {
        {"NFS", 0x6969, true},        {"SMB", 0x517b, true},
        {"SMB 2", 0xfe534d42, true},  {"CIFS", 0xff534d42, true},
        {"FUSE", 0x65735546, true},   {"VirtualBox", 0x786f4256, true},
        {"VMware", 0xbacbacbc, true}, {"ext4", 0xef53, false},
        {"tmpfs", 0x01021994, false}, {"overlayfs", 0x794c7630, false},
    };

    for (size_t i = 0; i < sizeof systems / sizeof *systems; i++)
        if (lk_sqlite_is_network(systems[i].magic) != systems[i].is_network)
            fail_msg("%s is not known", systems[i].name);
}

static int64_t synchronous_at(const char *url)
{
    struct session session;
    int64_t level;

    session_open_url(&session, url);
    level = session_integer(&session, "PRAGMA synchronous");
    session_close(&session);
    return level;
}

/* The parameter also stays in the URL when a relative path is resolved. */
TEST_ON(test_url_says_whether_commits_wait_for_the_disk, ON_SQLITE, 0)
{
    static const struct {
        const char *tail;
        int64_t level;
    } urls[] = {{"?synchronous=full", 2}, {"?synchronous=normal", 1}, {"", 1}};
    struct place place;
    sqlock_error err = {.code = 0};
    struct lk_url parts;
    char url[700];

    place_make(&place);
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        (void)snprintf(url, sizeof url, "%s%s", place.url, urls[i].tail);
        print_message("%s\n", url);
        assert_int_equal(synchronous_at(url), urls[i].level);
    }
    place_remove(&place);
    assert_lock_ok(lk_url_parse(&parts, "sqlite:a%3Fb?synchronous=full", &err),
                   &err);
    assert_lock_ok(subject.driver->check_url(&parts, &err), &err);
    assert_int_equal(parts.path[0], '/');
    assert_non_null(strstr(parts.path, "/a?b"));
    lk_url_clear(&parts);
}

struct wait {
    struct fixture *f;
    atomic_bool is_over;
};

static int claim_later(struct worker *worker)
{
    struct wait *wait = worker->context;
    struct lk_arguments arguments =
        arguments_for(wait->f, wait->f->client_b, LONG_US);
    int rc = statement_try(&wait->f->b, wait->f, SQLOCK_SQL_CLAIM, &arguments);

    atomic_store(&wait->is_over, true);
    return rc == 0 ? 0
                   : worker_fail(worker, "%d: %s", rc, wait->f->b.err.message);
}

static int become_wal(struct worker *worker)
{
    struct session *session = worker->context;
    int rc = session_try(session, "PRAGMA journal_mode=WAL");

    return rc == 0 ? 0
                   : worker_fail(worker, "%d: %s", rc, session->err.message);
}

/* Two programs may make the same new file at once.  SQLite itself would not
 * wait for the other transaction, but return SQLITE_BUSY at once. */
TEST_ON(test_change_to_wal_waits_for_the_file, ON_SQLITE, 0)
{
    struct place place;
    struct session first, second;
    struct worker worker;
    int64_t began;

    place_make(&place);
    session_open_url(&first, place.url);
    session_open_url(&second, place.url);
    session_run(&first, "CREATE TABLE t (i INTEGER)");
    assert_lock_ok(session_begin(&first), &first.err);
    worker_start(&worker, become_wal, &second);
    began = session_integer(&first, "SELECT sqlock_now()");
    assert_becomes_true(session_integer(&first, "SELECT sqlock_now()") >
                            began + SECOND_US / 10,
                        PATIENCE_MS);
    assert_lock_ok(session_commit(&first), &first.err);
    worker_join(&worker);
    assert_string_equal(cell_text(&second, 0, 0), "wal");
    session_close(&first);
    session_close(&second);
    place_remove(&place);
}

/* A claim waits while another connection has SQLite's write lock.  The lease is
 * counted from the time when the claim got the write lock, not from the time
 * when it asked. */
TEST_ON(test_clock_is_read_after_the_wait_for_the_file, ON_SQLITE, 0)
{
    struct wait wait = {.f = f};
    struct worker worker;
    int64_t began, ended;

    assert_lock_ok(session_begin(&f->a), &f->a.err);
    worker_start(&worker, claim_later, &wait);
    began = now_us(&f->a);
    assert_becomes_true(now_us(&f->a) > began + SECOND_US / 4, PATIENCE_MS);
    assert_false(atomic_load(&wait.is_over));
    ended = now_us(&f->a);
    assert_lock_ok(session_commit(&f->a), &f->a.err);
    worker_join(&worker);
    assert_int_equal(f->b.result.rows, 1);
    assert_less(ended - 1, cell_integer(&f->b, 0, 0));
    assert_true(read_row(&f->b, f));
    assert_less(ended - 1, cell_integer(&f->b, 0, LK_INFO_ACQUIRED));
    assert_less(ended + LONG_US - 1, cell_integer(&f->b, 0, LK_INFO_EXPIRES));
}
