/*
 * test_mysql_bell.c - bells of MySQL and MariaDB: a session waits for the user
 * lock of the one before
 */
#include "drivers/hearing.h"

#include "support/workers.h"

/* The session of the test before may not have ended yet. */
#define PATIENTLY "10"

static void take(struct session *session, const char *name)
{
    session_run(session, "SELECT GET_LOCK('sqlock:%s', " PATIENTLY ")", name);
    assert_int_equal(cell_integer(session, 0, 0), 1);
}

static void give_up(struct session *session, const char *name)
{
    session_run(session, "SELECT RELEASE_LOCK('sqlock:%s')", name);
    assert_int_equal(cell_integer(session, 0, 0), 1);
}

static bool is_nobodys(struct session *session, const char *name)
{
    session_run(session, "SELECT IS_USED_LOCK('sqlock:%s') IS NULL", name);
    return cell_integer(session, 0, 0) != 0;
}

static bool is_waiting(struct session *session, int64_t id)
{
    session_run(session,
                "SELECT count(*) FROM information_schema.PROCESSLIST "
                "WHERE ID = %lld AND STATE = 'User lock'",
                (long long)id);
    return cell_integer(session, 0, 0) != 0;
}

/* Let b wait for a, which has the bell, and return b's session number. */
static int64_t let_b_wait(struct fixture *f, int64_t ms)
{
    int64_t id = session_integer(&f->b, subject.spelling->own_id);

    take(&f->a, BELL);
    session_ok(&f->b, begin_hearing(&f->b, BELL, ms));
    assert_becomes_true(is_waiting(&f->a, id), PATIENCE_MS);
    hears_nothing(&f->b);
    return id;
}

/* The session's own limit of statements, 2 s, does not end the wait. */
TEST_ON(test_a_limit_of_statements_does_not_end_a_wait, ON_MYSQL, 0)
{
    sqlock_connect how = {.deadline_ns = check_deadline_ns(DEADLINE_MS),
                          .statement_timeout_ms = 200};

    subject.driver->close(f->b.connection);
    session_ok(&f->b, driver_open(subject.driver, f->b.connection, subject.url,
                                  &how, &f->b.err));
    (void)let_b_wait(f, LONG_US / 1000);
    session_run(&f->a, "SELECT SLEEP(0.6)");
    hears_nothing(&f->b);
    give_up(&f->a, BELL);
    hears(&f->b, "free");
}

static int take_as_child(struct session *session)
{
    return session_try(session,
                       "SELECT GET_LOCK('sqlock:" BELL "', " PATIENTLY ")");
}

TEST_ON(test_the_death_of_the_holder_is_heard, ON_MYSQL, 0)
{
    struct child child;
    int64_t id = session_integer(&f->b, subject.spelling->own_id);

    start_child(&child, take_as_child, NULL);
    session_ok(&f->b, begin_hearing(&f->b, BELL, LONG_US / 1000));
    assert_becomes_true(is_waiting(&f->a, id), PATIENCE_MS);
    hears_nothing(&f->b);
    end_child(&child, true);
    hears(&f->b, "free");
}

/* Claim the lock with a bell, or leave a ticket. */
static int enqueue(struct session *session, const struct fixture *f,
                   const char *client, const char *bell)
{
    struct lk_arguments arguments = arguments_for(f, client, LONG_US);

    lk_argument_text(&arguments, SQLOCK_P_SHOWN, "somebody");
    lk_argument_text(&arguments, SQLOCK_P_BELL, bell);
    lk_argument_text(&arguments, SQLOCK_P_QUEUE, NULL);
    return statement_try(session, f, SQLOCK_SQL_ENQUEUE, &arguments);
}

/* A claim comes through a gate, which is the user lock of the key. */
TEST_ON(test_a_claim_leaves_its_gate_free, ON_MYSQL, 0)
{
    (void)claim(&f->a, f, f->client_a, LONG_US);
    assert_int_equal(release(&f->a, f, f->client_a), 1);
    session_ok(&f->a, enqueue(&f->a, f, f->client_a, "sqlock:a"));
    assert_true(is_nobodys(&f->b, f->key));
    for (int i = 0; i < 2; i++) { /* refused; and once more, with a ticket */
        session_ok(&f->b, enqueue(&f->b, f, f->client_b, "sqlock:b"));
        assert_true(is_nobodys(&f->a, f->key));
    }
    session_ok(&f->a, end_hearing(&f->a));
    session_ok(&f->b, end_hearing(&f->b));
}

struct arrival {
    struct fixture *f;
    struct session *session;
    const char *client;
    const char *bell;
};

static int arrive(struct worker *worker)
{
    const struct arrival *arrival = worker->context;
    int rc =
        enqueue(arrival->session, arrival->f, arrival->client, arrival->bell);

    return rc == 0 ? 0 : worker_fail(worker, "%d", rc);
}

/* Of those who come while the row is locked, one waits for the row. */
TEST_ON(test_those_who_come_wait_for_each_other_not_for_the_row, ON_MYSQL, 0)
{
    struct session c;
    struct arrival first = {f, &f->b, f->client_b, "sqlock:b"};
    struct arrival second = {f, &c, "cccccccc-cccc-4ccc-8ccc-cccccccccccc",
                             "sqlock:c"};
    struct worker workers[2];
    int64_t ids[2];

    /* On MySQL there is no gate. */
    if (session_integer(&f->a, "SELECT VERSION() LIKE '%%MariaDB%%'") == 0)
        return;
    session_open(&c);
    ids[0] = session_integer(&f->b, subject.spelling->own_id);
    ids[1] = session_integer(&c, subject.spelling->own_id);
    (void)claim(&f->a, f, f->client_a, LONG_US);
    session_ok(&f->a, session_begin(&f->a));
    (void)renew(&f->a, f, f->client_a, LONG_US);
    worker_start(&workers[0], arrive, &first);
    worker_start(&workers[1], arrive, &second);
    assert_becomes_true(is_waiting(&f->a, ids[0]) != is_waiting(&f->a, ids[1]),
                        2000);
    session_ok(&f->a, session_rollback(&f->a));
    worker_join(&workers[0]);
    worker_join(&workers[1]);
    session_ok(&f->b, end_hearing(&f->b));
    session_close(&c);
}
