/*
 * observe.c - sqlock_observe(): what is seen of a leader, and that nothing is
 * sent while it is told of changes
 */
#include "conformance.h"

#include <sys/wait.h>
#include <unistd.h>

#include "sqlock/async.h"
#include "sqlock/leader.h"
#include "sqlock/shared.h"
#include "sqlock/stats.h"
#include "support/around.h"
#include "support/tap.h"
#include "support/workers.h"

#define NEVER_MS 600000 /* longer than any test */

static sqlock_lock *leader(struct fixture *f)
{
    sqlock_lock *lock = lock_obtain(f->a, f->name);

    lock_take(lock, LONG_TTL_MS);
    return lock;
}

static void publish(struct fixture *f, sqlock_lock *lock, const char *text)
{
    assert_ok(sqlock_publish(lock, text, &f->err));
}

static sqlock_lock *sharer(struct fixture *f)
{
    sqlock_lock *lock = lock_obtain(f->b, f->name);
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;

    options.mode = SQLOCK_SHARED;
    assert_ok(sqlock_acquire(lock, 0, &options, &f->err));
    return lock;
}

/* --- what is seen --- */

static int observe(struct fixture *f, int64_t wait_ms, sqlock_info **seen)
{
    return sqlock_observe(f->b, f->name, wait_ms, 0, seen, &f->err);
}

TEST(test_changes_are_observed)
{
    bool has_text = f->layout == SQLOCK_LAYOUT_SQLOCK;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    sqlock_info *seen = NULL;
    int64_t token;

    assert_fails(SQLOCK_ETIMEDOUT, observe(f, 0, &seen));
    assert_string_equal(f->err.message, "nobody leads, as before");
    lock_take(lock, LONG_TTL_MS);
    assert_ok(observe(f, 0, &seen));
    token = seen->token;
    assert_null(seen->text);
    lock_renew(lock, LONG_TTL_MS);
    assert_fails(SQLOCK_ETIMEDOUT, observe(f, 0, &seen));
    assert_string_equal(f->err.message, "the same one leads, as before");
    assert_fails(SQLOCK_ETIMEDOUT, observe(f, 10, &seen));
    assert_string_equal(f->err.message,
                        "the same one leads, after 10 ms as before");
    assert_true(seen->token == token);
    if (has_text) {
        publish(f, lock, "one");
        assert_ok(observe(f, 0, &seen));
        assert_string_equal(seen->text, "one");
        publish(f, lock, "one");
        assert_fails(SQLOCK_ETIMEDOUT, observe(f, 10, &seen));
        publish(f, lock, "");
        assert_ok(observe(f, 0, &seen));
        assert_string_equal(seen->text, "");
    }
    lock_give(lock);
    assert_ok(observe(f, 0, &seen));
    assert_null(seen);
    assert_fails(SQLOCK_ETIMEDOUT, observe(f, 0, &seen));
    lock_drop(lock);
}

/* Neither those who share a lock lead, nor who has broken a lease. */
TEST_ON(test_nobody_leads, ON_ALL, IN_SQLOCK)
{
    sqlock_lock *lock = leader(f);
    sqlock_lock *share;
    sqlock_info *seen = NULL;

    assert_ok(observe(f, 0, &seen));
    lock_break(f, lock, false);
    assert_ok(observe(f, 0, &seen));
    assert_null(seen);
    assert_fails(SQLOCK_ELOST, sqlock_release(lock, &f->err));
    fixture_expire(f, f->name);
    share = sharer(f);
    assert_fails(SQLOCK_ETIMEDOUT, observe(f, 0, &seen));
    lock_end(share);
    lock_drop(lock);
}

TEST(test_what_cannot_be_observed_is_refused)
{
    sqlock_info *seen = NULL;

    assert_fails(SQLOCK_EINVAL,
                 sqlock_observe(f->b, f->name, -2, 0, &seen, &f->err));
    assert_fails(SQLOCK_EINVAL,
                 sqlock_observe(f->b, f->name, 0, -1, &seen, &f->err));
    assert_fails(SQLOCK_EINVAL,
                 sqlock_observe(f->b, f->name, 0, 0, NULL, &f->err));
    assert_fails(SQLOCK_EINVAL,
                 sqlock_observe(NULL, f->name, 0, 0, &seen, &f->err));
    assert_null(seen);
}

static int cancel(struct worker *worker)
{
    const int *fd = worker->context;

    check_sleep(50);
    return write(*fd, "x", 1) == 1 ? 0 : worker_fail(worker, "write");
}

TEST(test_observing_is_cancelled)
{
    sqlock_info *seen = NULL;
    struct worker worker;
    int fds[2];

    assert_int_equal(pipe(fds), 0);
    worker_start(&worker, cancel, &fds[1]);
    assert_fails(SQLOCK_ECANCELED, sqlock_observe(f->b, f->name, PATIENCE_MS,
                                                  fds[0], &seen, &f->err));
    worker_join(&worker);
    (void)close(fds[0]);
    (void)close(fds[1]);
    assert_null(seen);
}

/* The child leads, and publishes two texts; the second one when it is told.  A
 * child may not open a SQLite file that its parent has open. */
static int lead_in_child(struct fixture *f, int told_fd)
{
    sqlock_options options = fixture_options(f);
    sqlock_registry *registry = NULL;
    sqlock_lock *lock = NULL;
    char told;

    if (sqlock_registry_open(&registry, f->url, &options, NULL) != 0 ||
        sqlock_obtain(&lock, registry, f->name, NULL) != 0 ||
        sqlock_acquire(lock, 0, NULL, NULL) != 0 ||
        sqlock_publish(lock, "first", NULL) != 0 ||
        read(told_fd, &told, 1) != 1)
        return 1;
    if (sqlock_publish(lock, "second", NULL) != 0 ||
        read(told_fd, &told, 1) != 1)
        return 2;
    return sqlock_release(lock, NULL) == 0 ? 0 : 3;
}

static void observe_text(struct fixture *f, sqlock_info **seen,
                         const char *text)
{
    do
        assert_ok(observe(f, PATIENCE_MS, seen));
    while (*seen == NULL || (*seen)->text == NULL);
    assert_string_equal((*seen)->text, text);
}

TEST_ON(test_another_process_is_observed, ON_POSTGRES | ON_MYSQL, IN_SQLOCK)
{
    sqlock_info *seen = NULL;
    pid_t parent = getpid();
    int status = -1;
    int fds[2];
    pid_t pid;

    if (!CHILD_MAY_OPEN)
        return;
    assert_int_equal(pipe(fds), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        check_end_with(parent);
        _exit(lead_in_child(f, fds[0]));
    }
    observe_text(f, &seen, "first");
    assert_int_equal(write(fds[1], "x", 1), 1);
    observe_text(f, &seen, "second");
    assert_int_equal(write(fds[1], "x", 1), 1);
    assert_ok(observe(f, PATIENCE_MS, &seen));
    assert_null(seen);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    (void)close(fds[0]);
    (void)close(fds[1]);
}

/* --- an outage --- */

static struct around away;
static int64_t back_ns; /* before that the database cannot be reached */

static int away_execute(void *connection, const sqlock_statement *statement,
                        const sqlock_value *parameters, size_t count,
                        int64_t deadline_ns, sqlock_result *result,
                        sqlock_error *err)
{
    if (sqlock_monotonic_ns() < back_ns)
        return sqlock_error_set(err, SQLOCK_EUNREACHABLE, 0, "", "away");
    return away.real->execute(connection, statement, parameters, count,
                              deadline_ns, result, err);
}

/* It may be longer than a statement. */
TEST(test_an_outage_is_waited_out)
{
    sqlock_options options = fixture_options(f);
    sqlock_lock *lock = leader(f);
    sqlock_registry *registry;
    sqlock_info *seen = NULL;
    char url[1024];

    back_ns = 0;
    if (around_make(&away, f, "away")) {
        away.driver.execute = away_execute;
        around_register(&away);
    }
    options.statement_timeout_ms = 100;
    registry = fixture_registry_at(f, around_url(url, &away, f), &options);
    back_ns = INT64_MAX;
    assert_fails(SQLOCK_EUNREACHABLE,
                 sqlock_observe(registry, f->name, 0, 0, &seen, &f->err));
    back_ns = check_deadline_ns(500);
    assert_ok(
        sqlock_observe(registry, f->name, PATIENCE_MS, 0, &seen, &f->err));
    assert_non_null(seen);
    sqlock_info_free(seen, 1);
    lock_end(lock);
    registry_end(registry);
}

/* --- what is sent --- */

static bool is_told(const struct fixture *f)
{
    return (f->database->bit & (ON_POSTGRES | ON_SQLITE)) != 0 &&
           !database_is_pooled(f->database) && !database_is_polled(f->database);
}

static sqlock_registry *observer(struct fixture *f, uint32_t poll_ms)
{
    sqlock_options options = fixture_options(f);

    options.poll_ms = poll_ms;
    return fixture_registry(f, &options);
}

/* Return how many statements the registry has sent. */
static uint64_t sent(struct fixture *f, sqlock_registry *registry)
{
    sqlock_stats stats = SQLOCK_STATS_INIT;

    assert_ok(sqlock_registry_stats(registry, &stats, &f->err));
    return stats.statement.count;
}

TEST_ON(test_nothing_is_sent_while_nothing_changes, ON_ALL, IN_SQLOCK)
{
    sqlock_registry *registry = observer(f, 1);
    sqlock_lock *lock = leader(f);
    sqlock_info *seen = NULL;
    int64_t late_ns;
    uint64_t before;

    publish(f, lock, "steady");
    assert_ok(sqlock_observe(registry, f->name, 0, 0, &seen, &f->err));
    assert_fails(SQLOCK_ETIMEDOUT,
                 sqlock_observe(registry, f->name, 10, 0, &seen, &f->err));
    before = sent(f, registry);
    late_ns = check_deadline_ns(PATIENCE_MS / 2);
    assert_fails(SQLOCK_ETIMEDOUT,
                 sqlock_observe(registry, f->name, 1500, 0, &seen, &f->err));
    /* and not when it looks again by itself, half a minute later */
    assert_true(sqlock_monotonic_ns() < late_ns);
    /* at once, if the bell was opened only now, and when the time is over */
    if (is_told(f))
        assert_true(sent(f, registry) <= before + 3);
    else
        assert_true(sent(f, registry) > before + 3);
    sqlock_info_free(seen, 1);
    lock_end(lock);
    registry_end(registry);
}

/* The end of a lease is told by nobody. */
TEST_ON(test_a_dead_leader_is_noticed, ON_ALL, IN_SQLOCK)
{
    sqlock_registry *registry = observer(f, 1);
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    sqlock_info *seen = NULL;
    uint64_t before;

    lock_take(lock, 1500);
    publish(f, lock, "dies");
    assert_ok(sqlock_observe(registry, f->name, 0, 0, &seen, &f->err));
    before = sent(f, registry);
    assert_ok(
        sqlock_observe(registry, f->name, PATIENCE_MS, 0, &seen, &f->err));
    assert_null(seen);
    if (is_told(f))
        assert_true(sent(f, registry) <= before + 6);
    assert_fails(SQLOCK_EEXPIRED, sqlock_release(lock, &f->err));
    lock_drop(lock);
    registry_end(registry);
}

/* A thread that observes. */
struct watch {
    struct fixture *fixture;
    sqlock_registry *registry; /* it never polls */
    sqlock_info *seen;
};

static int watch_leader(struct worker *worker)
{
    struct watch *w = worker->context;

    worker_expect(worker, 0,
                  sqlock_observe(w->registry, w->fixture->name, PATIENCE_MS, 0,
                                 &w->seen, &worker->err));
    return 0;
}

static sqlock_lock *seen_leader(struct watch *w)
{
    struct fixture *f = w->fixture;
    sqlock_lock *lock = leader(f);

    publish(f, lock, "one");
    assert_ok(sqlock_observe(w->registry, f->name, 0, 0, &w->seen, &f->err));
    assert_string_equal(w->seen->text, "one");
    return lock;
}

static void publish_another(struct fixture *f, sqlock_lock *lock)
{
    publish(f, lock, "another");
}

static void resign(struct fixture *f, sqlock_lock *lock)
{
    (void)f;
    lock_give(lock);
}

/* Hand it off to a request of this process, which leads then without a text. */
static void hand_off(struct fixture *f, sqlock_lock *lock)
{
    sqlock_request *request;

    assert_ok(sqlock_request_acquire(&request, lock, SQLOCK_FOREVER, NULL, 0,
                                     &f->err));
    assert_ok(sqlock_release(lock, &f->err));
    assert_becomes_true(
        sqlock_request_status(request) != SQLOCK_REQUEST_FETCHING, PATIENCE_MS);
    assert_ok(sqlock_request_finish(request, &f->err));
}

/* Lose the answers to one thread, which may have to connect before. */
static int lose_answers(void *context, const struct tap_event *event, int rc)
{
    const pthread_t *thread = context;

    return rc == 0 && event->call != TAP_OPEN &&
                   pthread_equal(*thread, pthread_self()) != 0
               ? SQLOCK_EUNCERTAIN
               : rc;
}

/* Lose the next answer to this thread. */
static int lose_one(void *context, const struct tap_event *event, int rc)
{
    pthread_t self = pthread_self();

    (void)context;
    tap_hooks(NULL, NULL, NULL);
    return lose_answers(&self, event, rc);
}

static void resign_unanswered(struct fixture *f, sqlock_lock *lock)
{
    pthread_t self = pthread_self();

    tap_hooks(NULL, lose_answers, &self);
    assert_fails(SQLOCK_EUNCERTAIN, sqlock_release(lock, &f->err));
    tap_hooks(NULL, NULL, NULL);
}

static void downgrade(struct fixture *f, sqlock_lock *lock)
{
    assert_ok(sqlock_downgrade(lock, &f->err));
}

/* A renewal finds that it was carried out. */
static void downgrade_unanswered(struct fixture *f, sqlock_lock *lock)
{
    pthread_t self = pthread_self();

    tap_hooks(NULL, lose_answers, &self);
    assert_fails(SQLOCK_EUNCERTAIN, sqlock_downgrade(lock, &f->err));
    tap_hooks(NULL, NULL, NULL);
    assert_ok(sqlock_renew(lock, 0, &f->err));
}

static void break_it(struct fixture *f, sqlock_lock *lock)
{
    lock_break(f, lock, false);
}

static void be_elected(struct fixture *f, sqlock_lock *lock)
{
    lock_take(lock, LONG_TTL_MS);
    publish(f, lock, "elected");
}

/* Assert that the observer is told of the change. */
static void tells(struct watch *w, sqlock_lock *lock,
                  void (*change)(struct fixture *, sqlock_lock *))
{
    int64_t end_ns = check_deadline_ns(PATIENCE_MS / 2);
    struct worker worker;

    worker_start(&worker, watch_leader, w);
    check_sleep(100); /* it sleeps by then, or does not miss it */
    change(w->fixture, lock);
    worker_join(&worker);
    /* not by its last look, when its time is over */
    assert_true(check_deadline_ns(0) < end_ns);
}

TEST_ON(test_changes_are_told, ON_POSTGRES | ON_SQLITE, IN_SQLOCK)
{
    struct watch w = {.fixture = f};
    sqlock_lock *lock;

    if (!is_told(f))
        skip_or_fail("nobody tells");
    w.registry = observer(f, NEVER_MS);
    lock = seen_leader(&w);
    tells(&w, lock, publish_another);
    assert_string_equal(w.seen->text, "another");
    tells(&w, lock, resign);
    assert_null(w.seen);
    tells(&w, lock, be_elected);
    if (w.seen->text == NULL) /* it looked between the two */
        worker_run(watch_leader, &w);
    assert_string_equal(w.seen->text, "elected");
    tells(&w, lock, break_it);
    assert_null(w.seen);
    assert_fails(SQLOCK_ELOST, sqlock_release(lock, &f->err));
    lock_drop(lock);
    fixture_next(f);
    lock = seen_leader(&w);
    tells(&w, lock, downgrade);
    assert_null(w.seen);
    lock_end(lock);
    fixture_next(f);
    lock = seen_leader(&w);
    tells(&w, lock, hand_off);
    assert_true(w.seen == NULL || w.seen->text == NULL);
    sqlock_info_free(w.seen, w.seen != NULL);
    lock_end(lock);
    registry_end(w.registry);
}

/* A release that got no answer is repeated in the background, which tells; also
 * where the claim's first copy got none.  A downgrade is told by the renewal
 * that finds it. */
TEST_ON(test_a_late_release_is_told, ON_POSTGRES | ON_SQLITE, IN_SQLOCK)
{
    struct watch w = {.fixture = f};
    sqlock_options options = fixture_options(f);
    sqlock_registry *registry;
    sqlock_lock *lock;

    if (!is_told(f))
        skip_or_fail("nobody tells");
    options.statement_timeout_ms = 1000;
    registry = fixture_tapped(f, &options);
    lock = lock_obtain(registry, f->name);
    w.registry = observer(f, NEVER_MS);
    for (int i = 0; i < 3; i++) {
        tap_hooks(NULL, i == 1 ? lose_one : NULL, NULL);
        be_elected(f, lock);
        assert_ok(sqlock_observe(w.registry, f->name, 0, 0, &w.seen, &f->err));
        tells(&w, lock, i == 2 ? downgrade_unanswered : resign_unanswered);
        assert_null(w.seen);
    }
    lock_end(lock);
    registry_end(registry);
    registry_end(w.registry);
}
