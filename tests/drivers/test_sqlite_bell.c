/*
 * test_sqlite_bell.c - bells of SQLite: sockets beside the database
 */
#include "drivers/hearing.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static const char *bell_file(char path[1024], const char *name)
{
    (void)snprintf(path, 1024, "%s-sqlock-%s.bell",
                   subject.url + strlen("sqlite:"), name);
    return path;
}

static bool is_there(const char *name)
{
    char path[1024];

    return access(bell_file(path, name), F_OK) == 0;
}

static int hear_as_child(struct session *session)
{
    return begin_hearing(session, OTHER, 0);
}

static void leave_a_dead_bell(struct fixture *f)
{
    struct child child;

    close_both(f);
    start_child(&child, hear_as_child, NULL);
    end_child(&child, true);
    assert_true(is_there(OTHER));
    session_open(&f->a);
    session_open(&f->b);
}

TEST_ON(test_the_socket_of_a_dead_process_is_removed, ON_SQLITE, 0)
{
    leave_a_dead_bell(f);
    ring(&f->b, OTHER, "in vain");
    assert_false(is_there(OTHER));
    leave_a_dead_bell(f);
    (void)hearer(f);
    assert_false(is_there(OTHER));
    assert_true(is_there(BELL));
    session_ok(&f->b, begin_hearing(&f->b, OTHER, 0));
    assert_true(is_there(BELL));
}

/* Bind a socket, as a process does before it gives it a name. */
static int bind_unnamed(char path[1024], const char *name)
{
    const char *file = subject.url + strlen("sqlite:");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int out = socket(AF_UNIX, SOCK_DGRAM, 0);

    (void)snprintf(path, 1024, "%.*s/.sqlock-%s",
                   (int)(strrchr(file, '/') - file), file, name);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    assert_true(out >= 0);
    assert_int_equal(bind(out, (struct sockaddr *)&address, sizeof address), 0);
    return out;
}

TEST_ON(test_a_dead_process_leaves_no_socket_without_a_name, ON_SQLITE, 0)
{
    char dead[1024];
    char living[1024];
    int out = bind_unnamed(living, "a");

    (void)close(bind_unnamed(dead, "b"));
    (void)hearer(f);
    assert_int_equal(access(dead, F_OK), -1);
    assert_int_equal(access(living, F_OK), 0);
    assert_int_equal(unlink(living), 0);
    (void)close(out);
}

/* The kernel keeps more datagrams than are taken at once, and has refused one:
 * the hearer is told to look at all. */
TEST_ON(test_lost_rings_are_told_of_a_long_queue, ON_SQLITE, 0)
{
    static struct heard heard;
    bool is_told = false;
    struct session *a;
    char text[16];
    FILE *file;

    if (unshare(CLONE_NEWNET) < 0)
        skip();
    file = fopen("/proc/sys/net/unix/max_dgram_qlen", "we");
    if (file == NULL || fputs("300", file) < 0 || fclose(file) != 0)
        skip();
    a = hearer(f);
    for (int i = 0; i < 310; i++) {
        (void)snprintf(text, sizeof text, "%d", i);
        ring(&f->b, BELL, text);
    }
    while (hear(a, &heard) == 0)
        is_told |= heard.is_lossy;
    assert_true(is_told);
}

TEST_ON(test_the_socket_goes_with_its_connection, ON_SQLITE, 0)
{
    struct session *a = hearer(f);
    struct stat database, found;
    char path[1024];

    assert_int_equal(stat(bell_file(path, BELL), &found), 0);
    assert_true(S_ISSOCK(found.st_mode));
    assert_int_equal(stat(subject.url + strlen("sqlite:"), &database), 0);
    assert_int_equal(found.st_mode & 0777, database.st_mode & 0666);
    assert_int_equal(found.st_uid, database.st_uid);
    assert_int_equal(found.st_gid, database.st_gid);
    session_fails(SQLOCK_EINVAL, a, begin_hearing(a, OTHER, 0));
    session_ok(a, end_hearing(a));
    assert_false(is_there(BELL));
    session_ok(a, begin_hearing(a, BELL, 0));
    session_close(a);
    assert_false(is_there(BELL));
}

TEST_ON(test_a_socket_that_is_removed_is_noticed, ON_SQLITE, 0)
{
    struct session *a = hearer(f);
    static struct heard heard;
    char path[1024];

    assert_int_equal(unlink(bell_file(path, BELL)), 0);
    assert_int_equal(hear(a, &heard), SQLOCK_EUNREACHABLE);
    session_ok(a, end_hearing(a));
    session_ok(a, begin_hearing(a, BELL, 0));
    ring(&f->b, BELL, "again");
    hears(a, "again");
}

/* The path of a socket has 107 bytes at most, a database's may have more; but
 * the name of an entry of a directory has 255, and the bell's is longer than
 * the database's. */
TEST_ON(test_a_long_path_is_no_hindrance, ON_SQLITE, 0)
{
    char folder[1024];
    char url[2048];
    struct session one = {0};
    struct session other = {0};

    (void)snprintf(folder, sizeof folder, "%s-%0150d",
                   subject.url + strlen("sqlite:"), 0);
    assert_int_equal(mkdir(folder, 0700), 0);
    for (int length = 200; length <= 220; length += 20) {
        (void)snprintf(url, sizeof url, "sqlite:%s/%0*d", folder, length, 0);
        session_open_url(&one, url);
        session_open_url(&other, url);
        if (length == 200) {
            session_ok(&one, begin_hearing(&one, BELL, 0));
            ring(&other, BELL, "far away");
            hears(&one, "far away");
        } else {
            session_fails(SQLOCK_ENOTSUP, &one, begin_hearing(&one, BELL, 0));
            assert_int_equal(session_integer(&one, "SELECT 1"), 1);
        }
        session_close(&one);
        session_close(&other);
        assert_int_equal(unlink(url + strlen("sqlite:")), 0);
    }
    assert_int_equal(rmdir(folder), 0); /* nothing is left */
}

/* A name is no path. */
TEST_ON(test_a_name_leads_nowhere_else, ON_SQLITE, 0)
{
    struct session *a = hearer(f);
    const char *file = subject.url + strlen("sqlite:");
    char here[1024];
    char there[1024];

    (void)snprintf(there, sizeof there, "%s-sqlock-x", file);
    assert_int_equal(mkdir(there, 0700), 0);
    (void)snprintf(there, sizeof there, "%s-sqlock-x/y.bell", file);
    assert_int_equal(rename(bell_file(here, BELL), there), 0);
    ring(&f->b, "x/y", "there");
    assert_int_equal(rename(there, here), 0);
    ring(&f->b, BELL, "here");
    hears(a, "here");
    (void)snprintf(there, sizeof there, "%s-sqlock-x", file);
    assert_int_equal(rmdir(there), 0);
}

TEST_ON(test_what_is_no_bell_is_not_rung, ON_SQLITE, 0)
{
    struct session *a = hearer(f);
    struct session *b = &f->b;
    char path[1024];
    FILE *file = fopen(bell_file(path, OTHER), "w");

    assert_non_null(file);
    (void)fclose(file);
    ring(b, OTHER, "a file");
    assert_true(is_there(OTHER));
    assert_int_equal(unlink(path), 0);
    ring(b, "", "x");
    session_run(b, "SELECT sqlock_ring(NULL, 'x'), sqlock_ring(7.5, 'x')");
    session_run(b, "SELECT sqlock_ring('" BELL "', NULL)");
    hears(a, "");
    session_run(b, "SELECT sqlock_ring('" BELL "', '%070d')", 0);
    hears(a, "");
    hears_nothing(a);
}
