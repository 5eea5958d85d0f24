/*
 * quorum_servers.c - a quorum whose servers are away, and holders that are
 * killed
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sqlock/event.h"
#include "support/workers.h"
#include "trio.h"

/* --- servers that are away --- */

static void test_one_server_is_away(void **state)
{
    struct fixture *f = *state;
    struct trio *t = trio_open(f, HASTY_MS);
    sqlock_quorum *ours = quorum_obtain(t, t->a, false);
    sqlock_quorum *theirs = quorum_obtain(t, t->b, false);
    int results[SERVERS];

    for (unsigned i = 0; i < 2; i++) {
        for (unsigned hangs = 0; hangs < 2; hangs++) {
            check_row(hangs != 0 ? "hangs" : "refuses");
            if (hangs != 0)
                proxy_blackhole(t->proxies[i]);
            else
                proxy_down(t->proxies[i]);
            assert_ok(quorum_acquire(t, ours, PATIENCE_MS, results));
            assert_true(results[i] < 0);
            assert_int_equal(results[1 - i], 0);
            assert_int_equal(results[2], 0);
            assert_code_of(SQLOCK_EBUSY, SQLOCK_EUNCERTAIN,
                           quorum_acquire(t, theirs, 0, NULL), &f->err);
            assert_ok(sqlock_quorum_release(ours, NULL, &f->err));
            assert_ok(quorum_acquire(t, theirs, PATIENCE_MS, NULL));
            assert_ok(sqlock_quorum_release(theirs, NULL, &f->err));
            proxy_heal(t->proxies[i]);
        }
    }
    check_row(NULL);
    assert_ok(sqlock_quorum_drop(ours, &f->err));
    assert_ok(sqlock_quorum_drop(theirs, &f->err));
    trio_close(t);
}

static void test_two_servers_are_away(void **state)
{
    struct fixture *f = *state;
    struct trio *t = trio_open(f, HASTY_MS);
    sqlock_quorum *q = quorum_obtain(t, t->a, false);
    int results[SERVERS];

    proxy_down(t->proxies[0]);
    proxy_down(t->proxies[1]);
    for (unsigned waits = 0; waits < 2; waits++) {
        check_row(waits != 0 ? "waits" : "tries");
        assert_fails(SQLOCK_EUNREACHABLE,
                     quorum_acquire(t, q, waits != 0 ? 300 : 0, results));
        assert_int_equal(results[0], SQLOCK_EUNREACHABLE);
        assert_int_equal(results[1], SQLOCK_EUNREACHABLE);
        trio_assert_free(t, 2);
    }
    check_row(NULL);
    proxy_heal(t->proxies[0]);
    assert_ok(quorum_acquire(t, q, PATIENCE_MS, NULL));
    quorum_end(t, q);
    trio_close(t);
}

/* How long it queues: far longer than an acquisition takes on a busy machine,
 * and as long as the one that is away may delay it no more. */
#define QUEUED_MS 4000

struct wait {
    struct trio *t;
    sqlock_quorum *quorum;
    atomic_bool has_ended;
};

static int wait_for_quorum(struct worker *worker)
{
    struct wait *wait = worker->context;

    worker_expect(worker, 0,
                  quorum_acquire(wait->t, wait->quorum, SQLOCK_FOREVER, NULL));
    atomic_store(&wait->has_ended, true);
    return 0;
}

/* The one that is away gets no time for that which the others took to queue. */
static void test_one_is_away_while_it_queues_at_the_others(void **state)
{
    struct fixture *f = *state;
    struct trio *t = trio_open(f, HASTY_MS);
    struct wait wait = {.t = t, .quorum = quorum_obtain(t, t->a, false)};
    sqlock_lock *one = trio_rival(t, 1);
    sqlock_lock *two = trio_rival(t, 2);
    struct worker worker;

    proxy_down(t->proxies[0]);
    worker_start(&worker, wait_for_quorum, &wait);
    check_sleep(QUEUED_MS);
    assert_false(atomic_load(&wait.has_ended));
    lock_end(one);
    lock_end(two);
    assert_becomes_true(atomic_load(&wait.has_ended), QUEUED_MS - 500);
    worker_join(&worker);
    quorum_end(t, wait.quorum);
    trio_close(t);
}

static void test_servers_die_while_it_is_held(void **state)
{
    struct fixture *f = *state;
    struct trio *t = trio_open(f, HASTY_MS);
    struct told told = {.quorum = quorum_obtain(t, t->a, false)};
    sqlock_quorum *q = told.quorum;
    sqlock_acquire_options options = watched(&told);

    quorum_acquire_each(t, q, &options);
    proxy_down(t->proxies[0]);
    assert_becomes_true(!sqlock_is_held(sqlock_quorum_lock(q, 0)), PATIENCE_MS);
    assert_true(sqlock_quorum_remaining_ms(q) > 0);
    check_sleep(SHORT_TTL_MS); /* the others are renewed */
    assert_true(sqlock_quorum_remaining_ms(q) > 0);
    assert_int_equal(told.times, 0);
    proxy_blackhole(t->proxies[1]);
    assert_becomes_true(told.times == 1, PATIENCE_MS);
    assert_int_equal(told.code, SQLOCK_EEXPIRED);
    assert_int_equal(sqlock_quorum_remaining_ms(q), 0);
    assert_true(sqlock_is_held(sqlock_quorum_lock(q, 2)));
    assert_fails(SQLOCK_EEXPIRED, sqlock_quorum_release(q, NULL, &f->err));
    trio_assert_free(t, 2);
    assert_int_equal(told.times, 1);
    assert_ok(sqlock_quorum_drop(q, &f->err));
    trio_close(t);
}

/* --- processes --- */

/* A child may not open a file of SQLite that its parent has open.  It acquires
 * the quorum, says so, and holds it until it is killed. */
static pid_t hold_in_child(struct trio *t, int says)
{
    pid_t parent = getpid();
    pid_t pid = fork();
    sqlock_error err = {0};
    sqlock_quorum *q = NULL;
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;

    assert_true(pid >= 0);
    if (pid != 0)
        return pid;
    options.ttl_ms = SHORT_TTL_MS;
    options.auto_renew = true;
    check_end_with(parent);
    trio_connect(t, t->a);
    if (sqlock_quorum_obtain(&q, t->a, SERVERS, t->f->name, NULL, &err) != 0 ||
        sqlock_quorum_acquire(q, 0, &options, NULL, &err) != 0 ||
        write(says, "x", 1) != 1)
        _exit(2);
    (void)pause();
    _exit(3);
}

/* A holder that dies keeps it no longer than its leases. */
static void test_a_holder_is_killed(void **state)
{
    struct fixture *f = *state;
    struct trio t;
    sqlock_quorum *q;
    int status = -1;
    int ends[2];
    char byte;
    pid_t pid;

    if (!CHILD_MAY_OPEN)
        return;
    trio_create(&t, f, PATIENT_MS);
    assert_int_equal(pipe(ends), 0);
    pid = hold_in_child(&t, ends[1]);
    (void)close(ends[1]);
    trio_connect(&t, t.a);
    trio_connect(&t, t.b);
    q = quorum_obtain(&t, t.a, false);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    assert_fails(SQLOCK_EBUSY, quorum_acquire(&t, q, 0, NULL));
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_ok(quorum_acquire(&t, q, 2 * PATIENCE_MS, NULL));
    quorum_end(&t, q);
    (void)close(ends[0]);
    trio_close(&t);
}

#define TEST_OF_SERVERS(function) TEST_ON(function, ON_POSTGRES, IN_SQLOCK)

/* Return the step that is not refused, whatever the state of the quorum. */
static int ask_in_child(struct trio *t, sqlock_quorum *q)
{
    sqlock_quorum *another = (sqlock_quorum *)1;
    int results[SERVERS];

    if (sqlock_quorum_remaining_ms(q) != 0)
        return 1;
    if (quorum_acquire(t, q, 0, results) != SQLOCK_EFORK)
        return 2;
    if (sqlock_quorum_release(q, results, NULL) != SQLOCK_EFORK)
        return 3;
    if (sqlock_quorum_drop(q, &t->f->err) != SQLOCK_EFORK ||
        !check_one_line(t->f->err.message))
        return 4;
    if (sqlock_quorum_obtain(&another, t->a, SERVERS, t->f->name, NULL, NULL) !=
            SQLOCK_EFORK ||
        another != NULL)
        return 5;
    return 0;
}

/* A child touches nothing of its parent's. */
static void test_a_child_has_no_quorum(void **state)
{
    struct fixture *f = *state;
    struct trio *t = trio_open(f, PATIENT_MS);
    sqlock_quorum *held = quorum_obtain(t, t->a, false);
    sqlock_quorum *unused = quorum_obtain(t, t->a, false);
    int status = -1;
    pid_t pid;

    assert_ok(quorum_acquire(t, held, PATIENCE_MS, NULL));
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        status = ask_in_child(t, held);
        _exit(status != 0 ? status : ask_in_child(t, unused));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_true(sqlock_quorum_remaining_ms(held) > 0);
    quorum_end(t, held);
    assert_ok(sqlock_quorum_drop(unused, &f->err));
    trio_close(t);
}

/* Drops the quorum in the first on_event. */
struct dropping {
    sqlock_quorum *quorum;
    int times;
    int rc;
};

static void drop_when_told(void *context, const sqlock_event *event)
{
    struct dropping *dropping = context;

    if (event->kind == SQLOCK_EVENT_ACQUIRED && dropping->times++ == 0)
        dropping->rc = sqlock_quorum_drop(dropping->quorum, NULL);
}

/* In on_event of the first or of another registry: nothing is dropped. */
static void test_on_event_of_a_member_drops_no_quorum(void **state)
{
    struct fixture *f = *state;
    struct trio *t = trio_open(f, PATIENT_MS);

    for (unsigned i = 0; i < SERVERS; i++) {
        sqlock_registry *registries[SERVERS] = {t->a[0], t->a[1], t->a[2]};
        sqlock_options options = trio_options(t);
        struct dropping dropping = {.rc = 1};
        sqlock_lock *lock;

        options.on_event = drop_when_told;
        options.event_context = &dropping;
        options.event_level = SQLOCK_LEVEL_DEBUG;
        assert_ok(sqlock_registry_open(&registries[i], t->urls[i], &options,
                                       &f->err));
        dropping.quorum = quorum_obtain(t, registries, false);
        lock = lock_obtain(registries[i], "another");
        lock_take_and_give(lock);
        assert_int_equal(dropping.times, 1);
        assert_int_equal(dropping.rc, SQLOCK_EINUSE);
        assert_ok(quorum_acquire(t, dropping.quorum, PATIENCE_MS, NULL));
        quorum_end(t, dropping.quorum);
        lock_drop(lock);
        registry_end(registries[i]);
    }
    trio_close(t);
}

static const struct test tests[] = {
    TEST_OF_SERVERS(test_one_server_is_away),
    TEST_OF_SERVERS(test_two_servers_are_away),
    TEST_OF_SERVERS(test_one_is_away_while_it_queues_at_the_others),
    TEST_OF_SERVERS(test_servers_die_while_it_is_held),
    TEST_OF_SERVERS(test_a_holder_is_killed),
    TEST_OF_SERVERS(test_a_child_has_no_quorum),
    TEST_ON(test_on_event_of_a_member_drops_no_quorum, ON_SQLITE, IN_SQLOCK),
};
const struct topic topic_quorum_servers = TOPIC(tests);
