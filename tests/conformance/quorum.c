/*
 * quorum.c - one lock in three registries: what is refused, and callbacks that
 * release or drop while others do; the stories are scenes
 */
#include "conformance.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sqlock/event.h"
#include "sqlock/quorum.h"
#include "support/tap.h"

#define SERVERS 3

/* Three files of SQLite, with two contenders. */
struct trio {
    struct fixture *f;
    char urls[SERVERS][1024];
    char prefix[32];
    sqlock_registry *a[SERVERS];
    sqlock_registry *b[SERVERS];
};

static sqlock_options trio_options(const struct trio *t)
{
    sqlock_options options = SQLOCK_OPTIONS_INIT;

    options.table_prefix = t->prefix;
    options.ownership = SQLOCK_OWNED_BY_HANDLE;
    options.renew_period_ms = 500;
    return options;
}

static struct trio *trio_open(struct fixture *f)
{
    static struct trio trio;
    const char *folder = getenv("SQLOCK_TEST_DIR");
    struct trio *t = &trio;
    sqlock_options options;

    *t = (struct trio){.f = f};
    (void)snprintf(t->prefix, sizeof t->prefix, "Q%d_", (int)getpid());
    options = trio_options(t);
    for (unsigned i = 0; i < SERVERS; i++) {
        (void)snprintf(t->urls[i], sizeof t->urls[i],
                       "sqlite:%s/quorum-%d-%u.db",
                       folder != NULL ? folder : "/tmp", (int)getpid(), i);
        assert_ok(sqlock_schema_create(t->urls[i], &options,
                                       SQLOCK_LAYOUT_SQLOCK, &f->err));
        assert_ok(
            sqlock_registry_open(&t->a[i], t->urls[i], &options, &f->err));
        assert_ok(
            sqlock_registry_open(&t->b[i], t->urls[i], &options, &f->err));
    }
    return t;
}

static void trio_close(struct trio *t)
{
    for (unsigned i = 0; i < SERVERS; i++) {
        (void)sqlock_registry_close(t->a[i], NULL);
        (void)sqlock_registry_close(t->b[i], NULL);
        assert_int_equal(unlink(strchr(t->urls[i], ':') + 1), 0);
    }
}

static sqlock_quorum *
quorum_obtain(struct trio *t, sqlock_registry *const *registries, bool all)
{
    struct fixture *f = t->f;
    sqlock_quorum_options options = SQLOCK_QUORUM_INIT;
    sqlock_quorum *quorum = NULL;

    options.all = all;
    assert_ok(sqlock_quorum_obtain(&quorum, registries, SERVERS, f->name,
                                   &options, &f->err));
    return quorum;
}

static int quorum_acquire(struct trio *t, sqlock_quorum *quorum,
                          int64_t wait_ms, int *results)
{
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;

    options.ttl_ms = LONG_TTL_MS;
    return sqlock_quorum_acquire(quorum, wait_ms, &options, results,
                                 &t->f->err);
}

static void quorum_end(struct trio *t, sqlock_quorum *quorum)
{
    struct fixture *f = t->f;

    assert_ok(sqlock_quorum_release(quorum, NULL, &f->err));
    assert_ok(sqlock_quorum_drop(quorum, &f->err));
}

static void trio_break(struct trio *t, unsigned i)
{
    struct fixture *f = t->f;
    sqlock_break_options how = SQLOCK_BREAK_INIT;
    sqlock_info *row = NULL;

    assert_ok(sqlock_show(t->b[i], f->name, &row, &f->err));
    how.client_id = row->client_id;
    how.now = true;
    assert_ok(sqlock_break(t->b[i], f->name, &how, &f->err));
    sqlock_info_free(row, 1);
}

/* --- what is refused --- */

TEST_ON(test_what_is_no_quorum_is_refused, ON_SQLITE, IN_SQLOCK)
{
    struct trio *t = trio_open(f);
    sqlock_options of_threads = trio_options(t);
    sqlock_registry *many[SQLOCK_QUORUM_MAX + 2] = {t->a[0], t->a[1], t->a[2]};
    sqlock_quorum_options all = SQLOCK_QUORUM_INIT;
    sqlock_quorum *q = (sqlock_quorum *)1;

    all.all = true;
    for (size_t count = 0; count <= SQLOCK_QUORUM_MAX + 2; count++)
        if (count != 3 &&
            (count < 3 || count % 2 == 0 || count > SQLOCK_QUORUM_MAX)) {
            assert_fails(
                SQLOCK_EINVAL,
                sqlock_quorum_obtain(&q, many, count, f->name, NULL, &f->err));
            assert_null(q);
            if (count > 3 && count < SQLOCK_QUORUM_MAX)
                assert_contains(f->err.message, "an even number");
        }
    assert_fails(SQLOCK_EINVAL,
                 sqlock_quorum_obtain(&q, many, 1, f->name, &all, &f->err));
    assert_fails(SQLOCK_EINVAL, sqlock_quorum_obtain(&q, many, 5, f->name, NULL,
                                                     &f->err)); /* NULL */
    assert_fails(SQLOCK_EINVAL,
                 sqlock_quorum_obtain(&q, NULL, 3, f->name, NULL, &f->err));
    assert_fails(SQLOCK_EINVAL,
                 sqlock_quorum_obtain(&q, many, 3, NULL, NULL, &f->err));
    assert_fails(SQLOCK_EINVAL,
                 sqlock_quorum_obtain(NULL, many, 3, f->name, NULL, &f->err));
    many[2] = t->a[0];
    assert_fails(SQLOCK_EINVAL,
                 sqlock_quorum_obtain(&q, many, 3, f->name, NULL, &f->err));
    assert_contains(f->err.message, "registry 2 is registry 0");
    many[2] = t->b[1];
    assert_fails(SQLOCK_EINVAL,
                 sqlock_quorum_obtain(&q, many, 3, f->name, NULL, &f->err));
    assert_contains(f->err.message, "registries 1 and 2 lead to one server");
    of_threads.ownership = SQLOCK_OWNED_BY_THREAD;
    assert_ok(sqlock_registry_open(&many[2], t->urls[2], &of_threads, &f->err));
    assert_fails(SQLOCK_EINVAL,
                 sqlock_quorum_obtain(&q, many, 3, f->name, NULL, &f->err));
    assert_contains(f->err.message, "SQLOCK_OWNED_BY_HANDLE");
    registry_end(many[2]);
    assert_ok(sqlock_quorum_obtain(&q, t->a, 2, f->name, &all, &f->err));
    assert_ok(sqlock_quorum_drop(q, &f->err));
    assert_ok(sqlock_quorum_drop(NULL, &f->err));
    trio_close(t);
}

TEST_ON(test_calls_out_of_turn_are_refused, ON_SQLITE, IN_SQLOCK)
{
    struct trio *t = trio_open(f);
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    sqlock_quorum *q;
    int input = dup(0);

    assert_int_equal(close(0), 0);
    q = quorum_obtain(t, t->a, false);
    assert_int_equal(dup(input), 0); /* it takes no standard descriptor */
    assert_int_equal(close(input), 0);
    assert_fails(SQLOCK_EOWNER, sqlock_quorum_release(q, NULL, &f->err));
    assert_fails(SQLOCK_EINVAL, quorum_acquire(t, q, -2, NULL));
    options.mode = SQLOCK_SHARED;
    options.permits = 2;
    assert_fails(SQLOCK_EINVAL,
                 sqlock_quorum_acquire(q, 0, &options, NULL, &f->err));
    assert_contains(f->err.message, "permits");
    options.permits = 0;
    options.ttl_ms = 1;
    assert_fails(SQLOCK_EINVAL,
                 sqlock_quorum_acquire(q, 0, &options, NULL, &f->err));
    assert_contains(f->err.message, "registry 0");
    assert_int_equal(sqlock_quorum_remaining_ms(q), 0);
    assert_ok(quorum_acquire(t, q, PATIENCE_MS, NULL));
    assert_fails(SQLOCK_EINUSE, quorum_acquire(t, q, 0, NULL));
    assert_fails(SQLOCK_EINUSE, sqlock_quorum_drop(q, &f->err));
    assert_true(sqlock_quorum_remaining_ms(q) > 0);
    assert_null(sqlock_quorum_lock(q, SERVERS));
    assert_null(sqlock_quorum_lock(NULL, 0));
    quorum_end(t, q);
    assert_int_equal(sqlock_quorum_remaining_ms(NULL), 0);
    assert_fails(SQLOCK_EINVAL, sqlock_quorum_release(NULL, NULL, &f->err));
    assert_fails(SQLOCK_EINVAL, quorum_acquire(t, NULL, 0, NULL));
    trio_close(t);
}

struct cancelled {
    struct trio *t;
    sqlock_quorum *q;
    int rc;
};

static __attribute__((noinline)) void wait_for_all(struct cancelled *c)
{
    c->rc = quorum_acquire(c->t, c->q, SQLOCK_FOREVER, NULL);
}

/* It dies in a function that has nothing on its stack: what guards the stack of
 * others stays there, and AddressSanitizer takes it for a fault. */
static void *wait_and_die(void *context)
{
    wait_for_all(context);
    pthread_testcancel();
    return NULL;
}

static bool is_waited_for(struct trio *t, unsigned i)
{
    struct fixture *f = t->f;
    sqlock_info *row = NULL;
    bool is;

    assert_ok(sqlock_show(t->b[i], f->name, &row, &f->err));
    is = row->waiters > 0;
    sqlock_info_free(row, 1);
    return is;
}

/* It has the quorum, which can be released and dropped. */
TEST_ON(test_a_cancelled_thread_finishes_its_call, ON_SQLITE, IN_SQLOCK)
{
    struct trio *t = trio_open(f);
    sqlock_quorum *theirs = quorum_obtain(t, t->b, false);
    struct cancelled c = {.t = t, .q = quorum_obtain(t, t->a, false), .rc = 1};
    pthread_t thread;
    void *ended = NULL;

    assert_ok(quorum_acquire(t, theirs, PATIENCE_MS, NULL));
    assert_int_equal(pthread_create(&thread, NULL, wait_and_die, &c), 0);
    assert_becomes_true(is_waited_for(t, 0) && is_waited_for(t, 1),
                        PATIENCE_MS);
    assert_int_equal(pthread_cancel(thread), 0);
    quorum_end(t, theirs);
    assert_int_equal(pthread_join(thread, &ended), 0);
    assert_ptr_equal(ended, PTHREAD_CANCELED);
    assert_ok(c.rc);
    quorum_end(t, c.q);
    trio_close(t);
}

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
TEST_ON(test_a_child_has_no_quorum, ON_SQLITE, IN_SQLOCK)
{
    struct trio *t = trio_open(f);
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

/* --- callbacks --- */

/* Uses the quorum in on_event of another lock. */
struct use {
    sqlock_quorum *quorum;
    int times;
    int acquired;
    int released;
    int dropped;
};

static void use_when_told(void *context, const sqlock_event *event)
{
    struct use *use = context;

    if (event->kind != SQLOCK_EVENT_ACQUIRED ||
        strcmp(event->lock, "another") != 0)
        return;
    use->times++;
    use->acquired = sqlock_quorum_acquire(use->quorum, 0, NULL, NULL, NULL);
    use->released = sqlock_quorum_release(use->quorum, NULL, NULL);
    use->dropped = sqlock_quorum_drop(use->quorum, NULL);
}

/* Use the quorum in on_event while it is free or held, which it stays. */
static void use_in_on_event(struct use *use, sqlock_registry *registry,
                            bool is_held)
{
    sqlock_lock *lock = lock_obtain(registry, "another");

    use->times = 0;
    lock_take_and_give(lock);
    assert_int_equal(use->times, 1);
    assert_int_equal(use->acquired, SQLOCK_EINUSE);
    assert_int_equal(use->released, SQLOCK_EINUSE);
    assert_int_equal(use->dropped, SQLOCK_EINUSE);
    for (unsigned i = 0; i < SERVERS; i++)
        assert_int_equal(sqlock_is_held(sqlock_quorum_lock(use->quorum, i)),
                         is_held);
    lock_drop(lock);
}

/* In on_event of the first or of another registry nothing is done. */
TEST_ON(test_on_event_of_a_member_uses_no_quorum, ON_SQLITE, IN_SQLOCK)
{
    struct trio *t = trio_open(f);

    for (unsigned i = 0; i < SERVERS; i++) {
        sqlock_registry *registries[SERVERS] = {t->a[0], t->a[1], t->a[2]};
        sqlock_options options = trio_options(t);
        struct use use = {.times = 0};

        options.on_event = use_when_told;
        options.event_context = &use;
        options.event_level = SQLOCK_LEVEL_DEBUG;
        assert_ok(sqlock_registry_open(&registries[i], t->urls[i], &options,
                                       &f->err));
        use.quorum = quorum_obtain(t, registries, true);
        use_in_on_event(&use, registries[i], false);
        assert_ok(quorum_acquire(t, use.quorum, PATIENCE_MS, NULL));
        use_in_on_event(&use, registries[i], true);
        quorum_end(t, use.quorum);
        registry_end(registries[i]);
    }
    trio_close(t);
}

/* --- who is late, beside callbacks --- */

/* The claim of the last registry, which is held up until the others are had. */
struct delay {
    atomic_bool has_come;
    atomic_bool is_over;
    atomic_bool has_passed;
};

static bool is_of_a_claim(const struct tap_event *event)
{
    return event->call == TAP_EXECUTE &&
           strstr(event->text, "EXPIRED_AFTER") != NULL &&
           strncmp(event->text, "SELECT", 6) != 0;
}

static int delay_a_claim(void *context, const struct tap_event *event)
{
    struct delay *delay = context;

    if (!is_of_a_claim(event) || atomic_load(&delay->is_over))
        return 0;
    atomic_store(&delay->has_come, true);
    while (!atomic_load(&delay->is_over))
        check_sleep(1);
    return 0;
}

static int note_a_claim(void *context, const struct tap_event *event, int rc)
{
    struct delay *delay = context;

    if (is_of_a_claim(event))
        atomic_store(&delay->has_passed, true);
    return rc;
}

/* Acquire the quorum while the claim of the last registry, which leads through
 * the tap, is held up. */
static void acquire_before_the_last(struct trio *t, sqlock_quorum *q,
                                    struct delay *delay, sqlock_lost_fn on_lost,
                                    void *lost_context)
{
    struct fixture *f = t->f;
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    int results[SERVERS];

    atomic_store(&delay->has_come, false);
    atomic_store(&delay->is_over, false);
    atomic_store(&delay->has_passed, false);
    tap_hooks(delay_a_claim, note_a_claim, delay);
    options.ttl_ms = LONG_TTL_MS;
    options.auto_renew = true;
    options.on_lost = on_lost;
    options.lost_context = lost_context;
    assert_ok(
        sqlock_quorum_acquire(q, PATIENCE_MS, &options, results, &f->err));
    assert_int_equal(results[0], 0);
    assert_int_equal(results[1], 0);
    assert_int_equal(results[2], SQLOCK_EUNCERTAIN);
    assert_becomes_true(atomic_load(&delay->has_come), PATIENCE_MS);
}

/* Let the claim pass; no other one is held up by the delay, which may end. */
static void let_pass(struct delay *delay)
{
    atomic_store(&delay->is_over, true);
    assert_becomes_true(atomic_load(&delay->has_passed), PATIENCE_MS);
    tap_reset();
}

/* Lead the last registry of a contender through the tap. */
static void tap_last(struct trio *t, const sqlock_options *options)
{
    struct fixture *f = t->f;
    char url[1024];

    registry_end(t->a[2]);
    tap_install();
    assert_ok(sqlock_registry_open(&t->a[2], tap_url(url, t->urls[2]), options,
                                   &f->err));
    tap_reset();
}

/* A callback has called something, at the same time as another one. */
struct within {
    sqlock_quorum *quorum; /* what it releases; NULL: the lock */
    sqlock_lock *lock;
    struct within *other; /* a callback that runs at the same time */
    atomic_bool is_running;
    atomic_bool has_ended;
    int rc;
};

/* on_lost of the quorum, or on_event of a registry of it, and that of the lock,
 * which wait for each other.  That of the lock releases the quorum, and the
 * other one mostly waits for it by then, so that this is refused. */
static void release_the_other(void *context, sqlock_lock *lock, int code)
{
    struct within *within = context;

    (void)lock;
    (void)code;
    atomic_store(&within->is_running, true);
    (void)wait_until(atomic_load(&within->other->is_running), PATIENCE_MS);
    if (within->quorum != NULL) {
        check_sleep(100);
        within->rc = sqlock_quorum_release(within->quorum, NULL, NULL);
    } else {
        within->rc = sqlock_release(within->lock, NULL);
    }
    atomic_store(&within->has_ended, true);
}

static void release_at_a_loss(void *context, const sqlock_event *event)
{
    if (event->kind == SQLOCK_EVENT_LOST)
        release_the_other(context, NULL, event->code);
}

/* Have two callbacks run at the same time: one of the quorum, because of its
 * last lock, and one of another lock, of which each releases what the other is
 * told of.  The one that would wait for ever is refused; return whether that
 * was the release of the quorum. */
static bool cross(struct trio *t, sqlock_quorum *q, struct within *ours)
{
    struct fixture *f = t->f;
    sqlock_lock *lock = lock_obtain(t->b[0], f->name);
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    struct within *theirs = ours->other;

    ours->lock = lock;
    *theirs = (struct within){.quorum = q, .other = ours, .rc = 1};
    options.ttl_ms = LONG_TTL_MS;
    options.auto_renew = true;
    options.on_lost = release_the_other;
    options.lost_context = theirs;
    assert_ok(sqlock_acquire(lock, 0, &options, &f->err));
    trio_break(t, 2);
    trio_break(t, 0);
    assert_becomes_true(atomic_load(&ours->has_ended) &&
                            atomic_load(&theirs->has_ended),
                        PATIENCE_MS);
    assert_code_of(SQLOCK_EINUSE, SQLOCK_ELOST, ours->rc, NULL);
    if (ours->rc == SQLOCK_EINUSE)
        assert_fails(SQLOCK_ELOST, sqlock_release(lock, &f->err));
    lock_drop(lock);
    return theirs->rc == SQLOCK_EINUSE;
}

TEST_ON(test_what_on_lost_may_not_release_is_released_later, ON_SQLITE,
        IN_SQLOCK)
{
    struct trio *t = trio_open(f);
    const sqlock_options options = trio_options(t);
    static struct delay delay; /* a hook may yet return from it */
    struct within theirs;
    struct within ours = {.other = &theirs, .rc = 1};
    sqlock_quorum *q;

    tap_last(t, &options);
    q = quorum_obtain(t, t->a, false);
    acquire_before_the_last(t, q, &delay, release_the_other, &ours);
    let_pass(&delay);
    assert_becomes_true(sqlock_is_held(sqlock_quorum_lock(q, 2)), PATIENCE_MS);
    assert_true(sqlock_quorum_remaining_ms(q) > 0);
    trio_break(t, 0);
    assert_becomes_true(!sqlock_is_held(sqlock_quorum_lock(q, 0)), PATIENCE_MS);
    if (cross(t, q, &ours))
        assert_fails(SQLOCK_ELOST, sqlock_quorum_release(q, NULL, &f->err));
    assert_ok(sqlock_quorum_drop(q, &f->err));
    tap_reset();
    trio_close(t);
}

/* The quorum was lost before the last lock was granted, which does not
 * count. */
TEST_ON(test_what_a_release_cannot_leave_is_left_later, ON_SQLITE, IN_SQLOCK)
{
    struct trio *t = trio_open(f);
    sqlock_options options = trio_options(t);
    struct within theirs;
    struct within ours = {.other = &theirs};
    struct delay delay;
    sqlock_quorum *q;

    options.on_event = release_at_a_loss;
    options.event_context = &ours;
    tap_last(t, &options);
    q = quorum_obtain(t, t->a, false);
    for (unsigned drops = 0; drops < 2; drops++) {
        check_row(drops != 0 ? "drops" : "acquires");
        atomic_store(&ours.is_running, false);
        atomic_store(&ours.has_ended, false);
        acquire_before_the_last(t, q, &delay, NULL, NULL);
        trio_break(t, 0);
        assert_becomes_true(!sqlock_is_held(sqlock_quorum_lock(q, 0)),
                            PATIENCE_MS);
        let_pass(&delay);
        assert_becomes_true(sqlock_is_held(sqlock_quorum_lock(q, 2)),
                            PATIENCE_MS);
        assert_false(cross(t, q, &ours));
        if (drops == 0) {
            assert_ok(quorum_acquire(t, q, PATIENCE_MS, NULL));
            assert_ok(sqlock_quorum_release(q, NULL, &f->err));
        }
    }
    check_row(NULL);
    assert_ok(sqlock_quorum_drop(q, &f->err));
    tap_reset();
    trio_close(t);
}
