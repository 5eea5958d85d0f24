/*
 * test_limits.c - deadlines, abort, and connections that break
 *
 * "In time" is proved by the outcome: the slow statement would succeed after a
 * minute, and a server ends it after 40 s (statement_timeout_ms).  No test lets
 * it succeed.
 */
#include "drivers/suite.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "support/endpoint.h"

/* A statement that a thread of its own runs. */
struct flight {
    struct session *session;
    int64_t deadline_ns;
    atomic_bool is_over;
    int rc;
};

static int fly(struct worker *worker)
{
    struct flight *flight = worker->context;
    const sqlock_statement slow = {.text = subject.spelling->slow};

    flight->rc =
        session_send(flight->session, &slow, NULL, 0, flight->deadline_ns);
    atomic_store(&flight->is_over, true);
    return 0;
}

static bool abort_once(struct flight *flight)
{
    if (atomic_load(&flight->is_over))
        return true;
    subject.driver->abort(flight->session->connection);
    return false;
}

/* Run a statement in a thread, and call `abort` until the statement ends. */
static void abort_in_flight(struct flight *flight,
                            int (*run)(struct worker *worker))
{
    struct worker worker;

    worker_start(&worker, run, flight);
    assert_becomes_true(abort_once(flight), PATIENCE_MS);
    worker_join(&worker);
}

static void check_ended(struct flight *flight)
{
    /* EUNREACHABLE: abort came before the statement was sent. */
    if (flight->rc != SQLOCK_EUNREACHABLE)
        assert_code_of(SQLOCK_ECANCELED, SQLOCK_EUNCERTAIN, flight->rc,
                       &flight->session->err);
    assert_int_equal(flight->session->result.rows, 0);
}

/* Assert that the connection works, or is known to be broken. */
static void check_state(struct session *session)
{
    int rc;

    if (!subject.driver->is_alive(session->connection)) {
        rc = session_try(session, "SELECT 1");
        if (rc != SQLOCK_ECANCELED)
            assert_code_of(SQLOCK_EUNREACHABLE, SQLOCK_EUNCERTAIN, rc,
                           &session->err);
        return;
    }
    assert_int_equal(session_integer(session, "SELECT 41 + 1"), 42);
}

TEST(test_nothing_is_sent_after_the_deadline)
{
    char text[1024];
    const sqlock_statement statement = {.text = text};
    int rc;

    (void)snprintf(text, sizeof text, "INSERT INTO %s (K) VALUES ('%s')",
                   subject.values.quoted, f->key);
    rc = session_send(&f->a, &statement, NULL, 0, sqlock_monotonic_ns() - 1);
    assert_code_of(SQLOCK_ECANCELED, SQLOCK_EUNREACHABLE, rc, &f->a.err);
    session_run(&f->b, "SELECT count(*) FROM %s WHERE K = '%s'",
                subject.values.quoted, f->key);
    assert_int_equal(cell_integer(&f->b, 0, 0), 0);
}

TEST(test_statement_ends_at_its_deadline)
{
    struct flight flight = {.session = &f->a};
    struct worker worker;

    flight.deadline_ns = check_deadline_ns(300);
    worker_start(&worker, fly, &flight);
    worker_join(&worker);
    check_ended(&flight);
    check_state(&f->a);
}

TEST(test_abort_ends_a_statement_in_flight)
{
    struct flight flight = {.session = &f->a, .deadline_ns = INT64_MAX};

    abort_in_flight(&flight, fly);
    check_ended(&flight);
    check_state(&f->a);
}

/* An abort before a statement begins is not lost: the statement ends. */
TEST(test_abort_ends_a_statement_that_is_about_to_begin)
{
    struct flight flight = {.session = &f->a, .deadline_ns = INT64_MAX};
    struct worker worker;
    bool is_lost;

    subject.driver->abort(f->a.connection);
    worker_start(&worker, fly, &flight);
    is_lost = !wait_until(atomic_load(&flight.is_over), PATIENCE_MS);
    (void)wait_until(abort_once(&flight), PATIENCE_MS);
    worker_join(&worker);
    assert_false(is_lost);
    check_ended(&flight);
    check_state(&f->a);
}

/* --- signals --- */

static atomic_int ticks;

static void tick(int number)
{
    (void)number;
    atomic_fetch_add(&ticks, 1);
}

/* Frequent signals, as a profiler sends them, break no connection and end no
 * transaction. */
TEST_ON(test_signals_break_nothing, ON_SERVERS, 0)
{
    static const struct itimerspec often = {{0, 100000}, {0, 100000}};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL,
                             .sigev_signo = SIGPROF};
    const struct sigaction action = {.sa_handler = tick,
                                     .sa_flags = SA_RESTART};
    struct sigaction before;
    timer_t timer;
    int rc = 0;

    atomic_store(&ticks, 0);
    assert_int_equal(sigaction(SIGPROF, &action, &before), 0);
    assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    session_ok(&f->a, session_begin(&f->a));
    assert_int_equal(timer_settime(timer, 0, &often, NULL), 0);
    for (int i = 0; rc == 0 && i < 5000; i++)
        rc = session_try(&f->a, "SELECT 1");
    (void)timer_delete(timer);
    (void)sigaction(SIGPROF, &before, NULL);
    session_ok(&f->a, rc);
    assert_less(100, atomic_load(&ticks));
    session_ok(&f->a, session_commit(&f->a));
}

/* --- a thread that stalls --- */

static int64_t stalled_until_ns;

static void stall(int number)
{
    (void)number;
    lk_sleep_until(stalled_until_ns);
}

struct stalled {
    pthread_t thread;
};

/* Let the thread stall when its statement was sent, in most cases. */
static int stall_soon(struct worker *worker)
{
    const struct stalled *stalled = worker->context;

    lk_sleep_until(sqlock_monotonic_ns() + 100000000);
    return pthread_kill(stalled->thread, SIGPROF);
}

/* The answer comes while the thread does not run, which goes on only after the
 * deadline: the answer is there, and so it is read. */
TEST_ON(test_an_answer_that_came_in_time_is_read, ON_SERVERS, 0)
{
    const struct sigaction action = {.sa_handler = stall};
    bool is_postgres = subject.database->bit == ON_POSTGRES;
    const sqlock_statement statement = {.text = is_postgres
                                                    ? "SELECT pg_sleep(0.5), 1"
                                                    : "SELECT SLEEP(0.5), 1"};
    int64_t deadline_ns = check_deadline_ns(3000);
    struct stalled stalled = {.thread = pthread_self()};
    struct sigaction before;
    struct worker worker;
    int rc;

    stalled_until_ns = deadline_ns + 100000000;
    assert_int_equal(sigaction(SIGPROF, &action, &before), 0);
    worker_start(&worker, stall_soon, &stalled);
    rc = session_send(&f->a, &statement, NULL, 0, deadline_ns);
    worker_join(&worker);
    (void)sigaction(SIGPROF, &before, NULL);
    if (rc == SQLOCK_ECANCELED) /* it stalled before it had sent anything */
        skip();
    session_ok(&f->a, rc);
    assert_int_equal(cell_integer(&f->a, 0, 1), 1);
}

/* --- forks --- */

#define FORKS 8

/* Threads that call `abort` again and again. */
struct hammer {
    void *connection; /* never opened */
    atomic_uint running;
    atomic_bool is_over;
};

static int abort_again_and_again(struct worker *worker)
{
    struct hammer *hammer = worker->context;

    (void)atomic_fetch_add(&hammer->running, 1);
    while (!atomic_load(&hammer->is_over))
        subject.driver->abort(hammer->connection);
    return 0;
}

#define HAMMERS 2

static bool all_hammer(const struct hammer *hammer)
{
    return atomic_load(&hammer->running) == HAMMERS;
}

/* Threads call `abort`, which takes mutexes, while the process forks: the child
 * must open connections nevertheless.  The threads have begun before: a new one
 * may have a mutex of AddressSanitizer, which the child cannot unlock. */
TEST_ON(test_F17_a_child_opens_connections_of_its_own, ON_SERVERS, 0)
{
    struct hammer hammer = {.connection =
                                calloc(1, subject.driver->connection_bytes)};
    int statuses[FORKS] = {0};
    struct workers workers;

    assert_non_null(hammer.connection);
    workers_start(&workers, HAMMERS, abort_again_and_again, &hammer);
    assert_becomes_true(all_hammer(&hammer), PATIENCE_MS);
    for (size_t i = 0; i < FORKS; i++) {
        pid_t child = fork();

        if (child == 0)
            _exit(-session_open_in_child());
        statuses[i] = -1;
        if (child > 0)
            (void)waitpid(child, &statuses[i], 0);
        if (statuses[i] != 0)
            break;
    }
    atomic_store(&hammer.is_over, true);
    workers_join(&workers);
    for (size_t i = 0; i < FORKS; i++)
        assert_int_equal(statuses[i], 0);
    free(hammer.connection);
}

/* Claim as b, which waits for a's row (SQLite: for the file). */
static int wait_for_lock(struct worker *worker)
{
    struct flight *flight = worker->context;
    struct fixture *f = (struct fixture *)(void *)((char *)flight->session -
                                                   offsetof(struct fixture, b));
    struct lk_arguments arguments = arguments_for(f, f->client_b, LONG_US);

    flight->rc =
        statement_try(flight->session, f, SQLOCK_SQL_CLAIM, &arguments);
    atomic_store(&flight->is_over, true);
    return 0;
}

TEST(test_abort_ends_a_wait_for_a_lock)
{
    struct flight flight = {.session = &f->b};

    assert_less(0, claim(&f->a, f, f->client_a, LONG_US));
    assert_lock_ok(session_begin(&f->a), &f->a.err);
    assert_int_equal(release(&f->a, f, f->client_a), 1);
    abort_in_flight(&flight, wait_for_lock);
    check_ended(&flight);
    assert_lock_ok(session_rollback(&f->a), &f->a.err);
    check_state(&f->b);
    assert_int_equal(renew(&f->a, f, f->client_a, LONG_US), 1);
}

/* A claim that was given up is not carried out later (F39): the server has
 * ended it, or it finds that the lock is held. */
TEST(test_abandoned_claim_is_not_granted_unseen)
{
    struct flight flight = {.session = &f->b};
    int64_t token;

    assert_less(0, claim(&f->a, f, f->client_a, LONG_US));
    assert_lock_ok(session_begin(&f->a), &f->a.err);
    assert_int_equal(renew(&f->a, f, f->client_a, LONG_US), 1);
    abort_in_flight(&flight, wait_for_lock);
    assert_lock_ok(session_commit(&f->a), &f->a.err);
    token = claim(&f->a, f, f->client_a, LONG_US);
    assert_less(0, token);
    assert_true(read_row(&f->a, f));
    assert_string_equal(cell_text(&f->a, 0, LK_INFO_CLIENT), f->client_a);
}

/* End a session from another one: users may end their own sessions. */
static void end_session(int64_t id)
{
    struct sql sql;

    assert_int_equal(sql_open(&sql, subject.database, subject.url), 0);
    (void)sql_try(&sql, NULL,
                  subject.database->bit == ON_POSTGRES
                      ? "SELECT pg_terminate_backend(%lld)"
                      : "KILL %lld",
                  (long long)id);
    sql_close(&sql);
}

static int64_t id_of(struct session *session)
{
    sqlock_description description;

    subject.driver->describe(session->connection, &description);
    assert_less(0, description.connection_id);
    return description.connection_id;
}

TEST_ON(test_idle_connection_that_was_ended_is_not_alive, ON_SERVERS, 0)
{
    int rc;

    end_session(id_of(&f->a));
    assert_becomes_true(!subject.driver->is_alive(f->a.connection),
                        PATIENCE_MS);
    rc = session_try(&f->a, "SELECT 1");
    assert_code_of(SQLOCK_EUNREACHABLE, SQLOCK_EUNCERTAIN, rc, &f->a.err);
    rc = session_begin(&f->a);
    assert_code_of(SQLOCK_EUNREACHABLE, SQLOCK_EUNCERTAIN, rc, &f->a.err);
}

static bool is_in_flight(struct session *session, int64_t id)
{
    if (session_try(session, "%s%lld", subject.spelling->in_flight,
                    (long long)id) < 0)
        return false;
    return cell_integer(session, 0, 0) > 0;
}

TEST_ON(test_connection_that_breaks_in_flight_is_uncertain, ON_SERVERS, 0)
{
    struct flight flight = {.session = &f->a};
    struct worker worker;
    int64_t id;

    flight.deadline_ns = check_deadline_ns(2 * PATIENCE_MS);
    id = id_of(&f->a);
    worker_start(&worker, fly, &flight);
    assert_becomes_true(is_in_flight(&f->b, id), PATIENCE_MS);
    end_session(id);
    worker_join(&worker);
    assert_code(SQLOCK_EUNCERTAIN, flight.rc, &f->a.err);
    assert_false(subject.driver->is_alive(f->a.connection));
}

#define DESCRIPTORS 1024

/* Shut down the sockets that were opened since: those of the connection. */
static void shut_new_sockets(const bool *was_socket)
{
    int type;
    socklen_t size = sizeof type;

    for (int fd = 0; fd < DESCRIPTORS; fd++)
        if (!was_socket[fd] &&
            getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0)
            (void)shutdown(fd, SHUT_WR);
}

/* In a child, with SIGPIPE's default action: write to a connection that was
 * cut.  Return 0 if the statement fails as it should, another status if not. */
static int write_to_cut_connection(void)
{
    bool was_socket[DESCRIPTORS];
    struct session session = {0};
    int type;
    socklen_t size = sizeof type;

    (void)signal(SIGPIPE, SIG_DFL);
    for (int fd = 0; fd < DESCRIPTORS; fd++)
        was_socket[fd] = getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0;
    if (session_open_at(&session, subject.url, LOCK_TIMEOUT_MS) < 0)
        return 2;
    /* The connection is known to be alive, so the statement is sent. */
    if (!subject.driver->is_alive(session.connection))
        return 3;
    shut_new_sockets(was_socket);
    if (session_try(&session, "SELECT 1") == 0)
        return 4;
    subject.driver->close(session.connection);
    return 0;
}

TEST_ON(test_writing_to_a_cut_connection_raises_no_signal, ON_SERVERS, 0)
{
    int status = 0;
    pid_t child;

    child = fork();
    assert_int_not_equal(child, -1);
    if (child == 0)
        _exit(write_to_cut_connection());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* Return the socket of a server that accepts connections and never answers. */
static int silent_server(int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_not_equal(fd, -1);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

/* Some client libraries count in whole seconds: opening must not end as late as
 * the next one.  As this machine may be busy, one of five attempts suffices. */
TEST_ON(test_opening_ends_at_its_deadline, ON_SERVERS, 0)
{
    void *connection = calloc(1, subject.driver->connection_bytes);
    int64_t least_ns = INT64_MAX;
    char url[1024];
    int port;
    int fd = silent_server(&port);

    if (strncmp(subject.driver->client(), "libmysqlclient", 14) == 0)
        skip();
    assert_non_null(connection);
    for (int i = 0; i < 5 && least_ns > 500000000; i++) {
        int64_t begun_ns = sqlock_monotonic_ns();
        const sqlock_connect how = {.deadline_ns = begun_ns + 20000000,
                                    .statement_timeout_ms = 100,
                                    .lock_timeout_ms = 100};
        sqlock_error err = {0};
        int rc =
            driver_open(subject.driver, connection,
                        endpoint_replace(url, subject.url, port), &how, &err);

        assert_code(SQLOCK_EUNREACHABLE, rc, &err);
        if (sqlock_monotonic_ns() - begun_ns < least_ns)
            least_ns = sqlock_monotonic_ns() - begun_ns;
        subject.driver->close(connection);
        memset(connection, 0, subject.driver->connection_bytes);
    }
    assert_less(least_ns, 500000000);
    (void)close(fd);
    free(connection);
}

static int option_of(int fd, int level, int name)
{
    int value = -1;
    socklen_t size = sizeof value;

    assert_int_equal(getsockopt(fd, level, name, &value, &size), 0);
    return value;
}

/* Our side of TCP probes an idle connection within the time after which it is
 * given up: a peer that has vanished says nothing. */
TEST_ON(test_an_idle_connection_is_probed, ON_POSTGRES, 0)
{
    const sqlock_connect how = {.deadline_ns = check_deadline_ns(DEADLINE_MS),
                                .statement_timeout_ms = 2 * DEADLINE_MS,
                                .lock_timeout_ms = 2 * DEADLINE_MS,
                                .idle_ms = 60000};
    void *connection = calloc(1, subject.driver->connection_bytes);
    sqlock_error err = {0};
    int fd;

    assert_non_null(connection);
    assert_lock_ok(
        driver_open(subject.driver, connection, subject.url, &how, &err), &err);
    fd = subject.driver->bell->descriptor(connection);
    assert_true(option_of(fd, SOL_SOCKET, SO_KEEPALIVE) != 0);
    assert_int_equal(option_of(fd, IPPROTO_TCP, TCP_KEEPIDLE), 30);
    assert_int_equal(option_of(fd, IPPROTO_TCP, TCP_KEEPINTVL), 10);
    assert_int_equal(option_of(fd, IPPROTO_TCP, TCP_KEEPCNT), 3);
    assert_int_equal(option_of(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 60000);
    subject.driver->close(connection);
    free(connection);
}
