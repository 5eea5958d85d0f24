/*
 * test_sqlite_turns.c - connections of one process that write to one file take
 * turns: one asks for the write lock, the others sleep until it has written
 */
#include "drivers/suite.h"

#ifdef SQLOCK_WITH_SQLITE

#include <stdatomic.h>
#include <sys/resource.h>

#include <sqlite3.h>

#define TABLE "taken_in_turns"
#define WRITERS 4
#define PAUSE_MS 200 /* for all writers to begin, as a rule */
#define SHORT_MS 50
#define LONG_MS 1000
#define NAPS_MAX 1000 /* in LONG_MS; of 125 us on average there were 3,900 */

struct writer {
    struct session session;
    struct worker worker;
    atomic_bool is_over;
};

struct crowd {
    struct writer writers[WRITERS];
    atomic_int begun; /* statements that have begun and not ended */
    atomic_int most;
};

/* Callback of SQLite: a statement begins, and has not yet asked for the write
 * lock. */
static int on_begin(unsigned event, void *context, void *statement, void *text)
{
    struct crowd *crowd = context;
    int begun = atomic_fetch_add(&crowd->begun, 1) + 1;

    (void)event;
    (void)statement;
    (void)text;
    if (begun > atomic_load(&crowd->most))
        atomic_store(&crowd->most, begun);
    return 0;
}

/* Callback of SQLite: a statement has written, and still has the write lock. */
static int on_commit(void *context)
{
    struct crowd *crowd = context;

    atomic_fetch_sub(&crowd->begun, 1);
    return 0;
}

/* Create the table anew, as an earlier test may have left one. */
static void make_table(struct fixture *f)
{
    session_run(&f->a, "DROP TABLE IF EXISTS " TABLE);
    session_run(&f->a, "CREATE TABLE " TABLE " (i INTEGER)");
}

static int insert(struct session *session, int64_t deadline_ns)
{
    const sqlock_statement statement = {
        .text = "INSERT INTO " TABLE " VALUES (1)", .id = 1};

    return session_send(session, &statement, NULL, 0, deadline_ns);
}

static int write_once(struct worker *worker)
{
    struct writer *writer = worker->context;

    worker_expect(worker, 0,
                  insert(&writer->session, check_deadline_ns(DEADLINE_MS)));
    return 0;
}

static void start(struct crowd *crowd, size_t i,
                  int (*run)(struct worker *worker))
{
    struct writer *writer = &crowd->writers[i];
    sqlite3 *db;

    session_open(&writer->session);
    db = subject.driver->native(writer->session.connection);
    (void)sqlite3_trace_v2(db, SQLITE_TRACE_STMT, on_begin, crowd);
    (void)sqlite3_commit_hook(db, on_commit, crowd);
    worker_start(&writer->worker, run, writer);
}

static void end(struct crowd *crowd, size_t i)
{
    struct writer *writer = &crowd->writers[i];

    worker_join(&writer->worker);
    session_close(&writer->session);
}

static void await_begun(struct crowd *crowd)
{
    int64_t until = check_deadline_ns(DEADLINE_MS);

    while (atomic_load(&crowd->begun) == 0)
        assert_true(check_pause(until));
}

TEST_ON(test_one_writer_tries_at_a_time, ON_SQLITE, 0)
{
    struct crowd crowd = {.begun = 0};
    int64_t pause_ns;

    make_table(f);
    assert_lock_ok(session_begin(&f->a), &f->a.err);
    for (size_t i = 0; i < WRITERS; i++)
        start(&crowd, i, write_once);
    await_begun(&crowd);
    pause_ns = check_deadline_ns(PAUSE_MS);
    while (check_pause(pause_ns))
        continue;
    assert_lock_ok(session_rollback(&f->a), &f->a.err);
    for (size_t i = 0; i < WRITERS; i++)
        end(&crowd, i);
    assert_int_equal(atomic_load(&crowd.most), 1);
    assert_int_equal(session_integer(&f->a, "SELECT count(*) FROM " TABLE),
                     WRITERS);
    session_run(&f->a, "DROP TABLE " TABLE);
}

static int write_in_vain(struct worker *worker)
{
    struct writer *writer = worker->context;

    worker_expect(worker, SQLOCK_ECANCELED,
                  insert(&writer->session, INT64_MAX));
    atomic_store(&writer->is_over, true);
    return 0;
}

/* The first writer asks for the lock again and again, and the other one sleeps
 * until its turn: both end when they are aborted, the other one first. */
TEST_ON(test_an_abort_ends_a_wait_for_the_lock, ON_SQLITE, 0)
{
    struct crowd crowd = {.begun = 0};

    make_table(f);
    assert_lock_ok(session_begin(&f->a), &f->a.err);
    start(&crowd, 0, write_in_vain);
    await_begun(&crowd);
    start(&crowd, 1, write_in_vain);
    check_sleep(PAUSE_MS);
    for (size_t i = 2; i-- > 0;) {
        struct writer *writer = &crowd.writers[i];

        subject.driver->abort(writer->session.connection);
        assert_becomes_true(atomic_load(&writer->is_over), PATIENCE_MS);
    }
    assert_lock_ok(session_rollback(&f->a), &f->a.err);
    end(&crowd, 0);
    end(&crowd, 1);
    session_run(&f->a, "DROP TABLE " TABLE);
}

TEST_ON(test_a_writer_whose_turn_does_not_come_goes, ON_SQLITE, 0)
{
    struct crowd crowd = {.begun = 0};

    make_table(f);
    assert_lock_ok(session_begin(&f->a), &f->a.err);
    start(&crowd, 0, write_once);
    await_begun(&crowd);
    for (int i = 0; i < 3; i++) {
        int rc = insert(&f->b, check_deadline_ns(SHORT_MS));

        assert_true(rc == SQLOCK_EBUSY || rc == SQLOCK_ECANCELED);
    }
    assert_lock_ok(session_rollback(&f->a), &f->a.err);
    end(&crowd, 0);
    session_ok(&f->b, insert(&f->b, check_deadline_ns(DEADLINE_MS)));
    assert_int_equal(session_integer(&f->a, "SELECT count(*) FROM " TABLE), 2);
    session_run(&f->a, "DROP TABLE " TABLE);
}

static long count_sleeps(void)
{
    struct rusage usage;

    assert_int_equal(getrusage(RUSAGE_THREAD, &usage), 0);
    return usage.ru_nvcsw;
}

/* Each attempt takes a processor from the writer, and there may be hundreds of
 * processes. */
TEST_ON(test_a_refused_writer_tries_ever_less_often, ON_SQLITE, 0)
{
    long before;
    int rc;

    make_table(f);
    assert_lock_ok(session_begin(&f->a), &f->a.err);
    before = count_sleeps();
    rc = insert(&f->b, check_deadline_ns(LONG_MS));
    assert_true(rc == SQLOCK_EBUSY || rc == SQLOCK_ECANCELED);
    assert_in_range(count_sleeps() - before, 1, NAPS_MAX);
    assert_lock_ok(session_rollback(&f->a), &f->a.err);
    session_run(&f->a, "DROP TABLE " TABLE);
}

#endif
