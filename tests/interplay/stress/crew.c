/*
 * crew.c - see stress.h
 */
#include "stress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Pipes for a common start: each child writes a byte to `ready`, and reads `go`
 * until the parent closes it. */
struct start_line {
    int ready[2];
    int go[2];
};

int hand_fail(const struct hand *hand, const char *format, ...)
{
    va_list args;

    (void)fprintf(stderr, "process %u: ", hand->index);
    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    (void)fprintf(stderr, "\n");
    return 1;
}

static int run_child(struct hand *hand, const sqlock_options *options,
                     const struct start_line *line, hand_fn work)
{
    char byte = 'r';
    int result;
    int rc;

    (void)close(line->ready[0]);
    (void)close(line->go[1]);
    rc = sqlock_registry_open(&hand->registry, hand->fixture->url, options,
                              &hand->err);
    if (rc < 0)
        return hand_fail(hand, "open: %s", hand->err.message);
    /* read() returns when the parent closes its end: all children are ready */
    if (write(line->ready[1], &byte, 1) != 1 || read(line->go[0], &byte, 1) < 0)
        return hand_fail(hand, "the parent is gone");
    result = work(hand);
    rc = sqlock_registry_close(hand->registry, &hand->err);
    if (result == 0 && rc < 0)
        return hand_fail(hand, "close: %s", hand->err.message);
    return result;
}

void crew_start(struct crew *crew, struct fixture *fixture,
                const sqlock_options *options, unsigned count, hand_fn work,
                void *context)
{
    struct start_line line;
    pid_t parent = getpid();
    unsigned i;
    char byte;

    assert_true(count <= CREW_MAX);
    crew->count = count;
    assert_int_equal(pipe(line.ready), 0);
    assert_int_equal(pipe(line.go), 0);
    (void)fflush(NULL);
    for (i = 0; i < count; i++) {
        crew->pids[i] = fork();
        assert_true(crew->pids[i] >= 0);
        if (crew->pids[i] == 0) {
            struct hand hand = {
                .index = i, .context = context, .fixture = fixture};

            check_end_with(parent);
            _exit(run_child(&hand, options, &line, work));
        }
    }
    (void)close(line.ready[1]);
    (void)close(line.go[0]);
    for (i = 0; i < count; i++)
        if (read(line.ready[0], &byte, 1) != 1)
            break; /* all children have ended: crew_join() fails the test */
    (void)close(line.go[1]);
    (void)close(line.ready[0]);
}

void crew_join(struct crew *crew)
{
    bool ok = true;
    unsigned i;

    for (i = 0; i < crew->count; i++) {
        int status = -1;

        if (waitpid(crew->pids[i], &status, 0) != crew->pids[i] || status != 0)
            ok = false;
    }
    assert_true(ok);
}

void yard_open(struct fixture *fixture, const struct database *database,
               sqlock_layout layout)
{
    static unsigned serial;
    char prefix[32];

    (void)snprintf(prefix, sizeof prefix, "S%ld_%u_", (long)getpid(), ++serial);
    assert_lock_ok(fixture_create(fixture, database, layout, prefix),
                   &fixture->err);
    fixture_next(fixture);
}

void yard_close(struct fixture *fixture)
{
    assert_lock_ok(sql_open(&fixture->sql, fixture->database, fixture->url),
                   &fixture->sql.err);
    sql_drop_locks(&fixture->sql, fixture->prefix);
    sql_close(&fixture->sql);
}

int ledger_open(struct fixture *fixture)
{
    const struct ledger empty = {0};
    const char *directory = getenv("SQLOCK_TEST_DIR");
    char path[400];
    int file;

    (void)snprintf(path, sizeof path, "%s/%sledger.XXXXXX",
                   directory != NULL ? directory : "/tmp", fixture->prefix);
    file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(unlink(path), 0);
    assert_true(ledger_write(file, &empty));
    return file;
}

bool ledger_read(int file, struct ledger *out)
{
    return pread(file, out, sizeof *out, 0) == (ssize_t)sizeof *out;
}

bool ledger_write(int file, const struct ledger *ledger)
{
    return pwrite(file, ledger, sizeof *ledger, 0) == (ssize_t)sizeof *ledger;
}
