/*
 * quorum_late.c - a quorum whose servers answer late, or not: what counts, and
 * what an attempt or a release leaves
 */
#include <string.h>
#include <unistd.h>

#include "sqlock/event.h"
#include "support/tap.h"
#include "support/workers.h"
#include "trio.h"

/* Not of the short one, which finds no row that is new, unless `any` is. */
static bool is_of_a_claim(const struct tap_event *event, bool any)
{
    return event->call == TAP_EXECUTE &&
           strstr(event->text, "EXPIRED_AFTER") != NULL &&
           (any || strstr(event->text, "QUEUE IS NULL AND (CLI") == NULL) &&
           strncmp(event->text, "SELECT", 6) != 0;
}

struct after_claim {
    atomic_uint passed; /* calls come from several threads */
    int cancel_fd;
};

/* Pass the claim, and nothing after it: cancel the acquisition when the lock is
 * being released. */
static int pass_a_claim(void *context, const struct tap_event *event)
{
    struct after_claim *after = context;

    if (!is_of_a_claim(event, false) || after->passed++ == 0)
        return 0;
    (void)!write(after->cancel_fd, "x", 1);
    return SQLOCK_EUNREACHABLE;
}

/* Lead the registry at one place through the tap, and return the other one. */
static sqlock_registry *tap_with(struct trio *t, unsigned i,
                                 const sqlock_options *options)
{
    struct fixture *f = t->f;
    sqlock_registry *direct = t->a[i];
    char url[1024];

    tap_install();
    assert_ok(sqlock_registry_open(&t->a[i], tap_url(url, t->urls[i]), options,
                                   &f->err));
    tap_reset();
    return direct;
}

static sqlock_registry *tap_one(struct trio *t, unsigned i)
{
    const sqlock_options options = trio_options(t);

    return tap_with(t, i, &options);
}

static void untap_one(struct trio *t, unsigned i, sqlock_registry *direct)
{
    tap_reset();
    registry_end(t->a[i]);
    t->a[i] = direct;
}

static void test_what_may_be_left_is_told(void **state)
{
    struct fixture *f = *state;
    struct trio *t = trio_open(f, PATIENT_MS);
    sqlock_registry *direct = tap_one(t, 0);
    sqlock_quorum *q = quorum_obtain(t, t->a, false);
    sqlock_lock *one = trio_rival(t, 1);
    sqlock_lock *two = trio_rival(t, 2);
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    struct after_claim after = {.passed = 0};
    int fds[2];
    int results[SERVERS];

    assert_int_equal(pipe(fds), 0);
    after.cancel_fd = fds[1];
    options.cancel_fd = fds[0];
    tap_hooks(pass_a_claim, NULL, &after);
    assert_fails(
        SQLOCK_EUNCERTAIN,
        sqlock_quorum_acquire(q, PATIENCE_MS, &options, results, &f->err));
    assert_int_equal(results[0], SQLOCK_EUNCERTAIN);
    assert_int_equal(results[1], SQLOCK_ECANCELED);
    assert_contains(f->err.message, "registry 0");
    tap_reset();
    lock_end(one);
    lock_end(two);
    assert_ok(quorum_acquire(t, q, PATIENCE_MS, NULL));
    quorum_end(t, q);
    untap_one(t, 0, direct);
    (void)close(fds[0]);
    (void)close(fds[1]);
    trio_close(t);
}

/* --- grants that are late --- */

struct delay {
    sqlock_lock *rivals[2]; /* they give way when the claim has come */
    atomic_bool have_given_way;
    atomic_bool is_over;
    atomic_bool has_passed;
};

static int delay_a_claim(void *context, const struct tap_event *event)
{
    struct delay *delay = context;

    if (!is_of_a_claim(event, true) || atomic_load(&delay->is_over))
        return 0;
    for (unsigned i = 0; i < 2 && !atomic_load(&delay->have_given_way); i++) {
        int rc = sqlock_release(delay->rivals[i], NULL);

        if (rc < 0)
            return rc;
    }
    atomic_store(&delay->have_given_way, true);
    while (!atomic_load(&delay->is_over))
        check_sleep(1);
    return 0;
}

static int note_a_claim(void *context, const struct tap_event *event, int rc)
{
    struct delay *delay = context;

    if (is_of_a_claim(event, true))
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

    for (unsigned i = 0; i < 2; i++)
        delay->rivals[i] = trio_rival(t, i);
    atomic_store(&delay->have_given_way, false);
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
    /* Their releases may not have returned yet. */
    assert_becomes_true(atomic_load(&delay->have_given_way), PATIENCE_MS);
    for (unsigned i = 0; i < 2; i++)
        assert_ok(sqlock_drop(delay->rivals[i], &f->err));
}

/* Let the claim pass; no other one is held up by the delay, which may end. */
static void let_pass(struct delay *delay)
{
    atomic_store(&delay->is_over, true);
    assert_becomes_true(atomic_load(&delay->has_passed), PATIENCE_MS);
    tap_reset();
}

/* Have the last registry grant its lock after the others, so that its request
 * is still there. */
static void acquire_late(struct trio *t, sqlock_quorum *q,
                         sqlock_lost_fn on_lost, void *lost_context)
{
    static struct delay delay; /* a hook may yet return from it */

    acquire_before_the_last(t, q, &delay, on_lost, lost_context);
    let_pass(&delay);
    assert_becomes_true(sqlock_is_held(sqlock_quorum_lock(q, 2)), PATIENCE_MS);
}

/* Have the last registry grant its lock after the others, and the first one
 * lose its lock then.  Return whether the quorum is still held.  `asks`: ask
 * between the two for how long it is. */
static bool outlasts_a_loss(struct trio *t, sqlock_quorum *q, bool asks)
{
    acquire_late(t, q, NULL, NULL);
    if (asks)
        assert_true(sqlock_quorum_remaining_ms(q) > 0);
    trio_break(t, 0);
    assert_becomes_true(!sqlock_is_held(sqlock_quorum_lock(q, 0)), PATIENCE_MS);
    return sqlock_quorum_remaining_ms(q) > 0;
}

static void test_who_is_late_counts(void **state)
{
    struct fixture *f = *state;
    struct trio *t = trio_open(f, PATIENT_MS);
    sqlock_registry *direct = tap_one(t, 2);
    sqlock_quorum *q = quorum_obtain(t, t->a, false);
    int results[SERVERS];

    assert_true(outlasts_a_loss(t, q, true));
    assert_ok(sqlock_quorum_release(q, results, &f->err));
    assert_int_equal(results[0], SQLOCK_ELOST);
    assert_int_equal(results[1], 0);
    assert_int_equal(results[2], 0);
    trio_assert_free(t, 2);
    assert_ok(quorum_acquire(t, q, PATIENCE_MS, NULL));
    quorum_end(t, q);
    untap_one(t, 2, direct);
    trio_close(t);
}

/* So it does if nobody asks, but a thread has to notice it first, which a busy
 * machine may delay until after the loss. */
static void test_who_is_late_counts_by_itself(void **state)
{
    struct fixture *f = *state;
    struct trio *t = trio_open(f, PATIENT_MS);
    sqlock_registry *direct = tap_one(t, 2);
    sqlock_quorum *q = quorum_obtain(t, t->a, false);
    bool is_held = false;

    for (unsigned i = 0; i < 20 && !is_held; i++) {
        is_held = outlasts_a_loss(t, q, false);
        assert_code_of(is_held ? 0 : SQLOCK_ELOST, 0,
                       sqlock_quorum_release(q, NULL, &f->err), &f->err);
    }
    assert_true(is_held);
    assert_ok(sqlock_quorum_drop(q, &f->err));
    untap_one(t, 2, direct);
    trio_close(t);
}

/* Another may have had the lock since, with the server that was late. */
static void test_who_is_late_after_a_loss_does_not_count(void **state)
{
    struct fixture *f = *state;
    struct trio *t = trio_open(f, PATIENT_MS);
    sqlock_registry *direct = tap_one(t, 2);
    sqlock_quorum *q = quorum_obtain(t, t->a, false);
    struct delay delay;
    int results[SERVERS];

    acquire_before_the_last(t, q, &delay, NULL, NULL);
    trio_break(t, 0);
    assert_becomes_true(!sqlock_is_held(sqlock_quorum_lock(q, 0)), PATIENCE_MS);
    let_pass(&delay);
    assert_becomes_true(sqlock_is_held(sqlock_quorum_lock(q, 2)), PATIENCE_MS);
    assert_int_equal(sqlock_quorum_remaining_ms(q), 0);
    assert_fails(SQLOCK_ELOST, sqlock_quorum_release(q, results, &f->err));
    assert_int_equal(results[1], 0);
    assert_int_equal(results[2], SQLOCK_EOWNER);
    assert_ok(sqlock_quorum_drop(q, &f->err));
    untap_one(t, 2, direct); /* the registry has released it by then */
    trio_assert_free(t, 2);
    trio_close(t);
}

static void test_a_release_leaves_nothing_of_who_is_late(void **state)
{
    struct fixture *f = *state;
    struct trio *t = trio_open(f, PATIENT_MS);
    sqlock_registry *direct = tap_one(t, 2);
    sqlock_quorum *q = quorum_obtain(t, t->a, false);
    struct delay delay;
    sqlock_lock *late = lock_obtain(t->b[2], f->name);
    int results[SERVERS];

    acquire_before_the_last(t, q, &delay, NULL, NULL);
    assert_ok(sqlock_quorum_release(q, results, &f->err));
    assert_int_equal(results[2], SQLOCK_EOWNER);
    let_pass(&delay);
    assert_becomes_true(lock_try(late, 0, LONG_TTL_MS, &f->err) == 0,
                        PATIENCE_MS);
    lock_end(late);
    tap_reset();
    assert_ok(quorum_acquire(t, q, PATIENCE_MS, NULL));
    quorum_end(t, q);
    untap_one(t, 2, direct);
    trio_close(t);
}

/* Two threads share this; they release the quorum as soon as they can. */
struct releasing {
    sqlock_quorum *quorum;
    atomic_bool is_over; /* nobody acquires it any more */
    atomic_uint releases;
};

static int release_as_soon_as_held(struct releasing *both, sqlock_error *err)
{
    int rc;

    do
        rc = sqlock_quorum_release(both->quorum, NULL, err);
    while (rc == SQLOCK_EINUSE ||
           (rc == SQLOCK_EOWNER && !atomic_load(&both->is_over)));
    both->releases += rc == 0;
    return rc == SQLOCK_EOWNER ? 0 : rc;
}

static int release_beside(struct worker *worker)
{
    worker_expect(worker, 0, release_as_soon_as_held(worker->context, NULL));
    return 0;
}

/* It is not released before the call that acquires it has returned: that still
 * has to start the thread which waits for who is late. */
static void
test_a_quorum_that_two_threads_release_is_released_once(void **state)
{
    struct fixture *f = *state;
    struct trio *t = trio_open(f, PATIENT_MS);
    sqlock_registry *direct = tap_one(t, 2);
    static struct delay delay; /* a hook may yet return from it */

    for (unsigned i = 0; i < 10; i++) {
        struct releasing both = {.quorum = quorum_obtain(t, t->a, false)};
        struct worker worker;

        worker_start(&worker, release_beside, &both);
        acquire_before_the_last(t, both.quorum, &delay, NULL, NULL);
        atomic_store(&both.is_over, true);
        assert_ok(release_as_soon_as_held(&both, NULL));
        worker_join(&worker);
        assert_int_equal(both.releases, 1);
        let_pass(&delay);
        assert_ok(sqlock_quorum_drop(both.quorum, &f->err));
    }
    untap_one(t, 2, direct);
    trio_close(t);
}

/* A callback has called something, at the same time as another one. */
struct within {
    sqlock_quorum *quorum;
    sqlock_lock *lock;
    struct within *other; /* a callback that runs at the same time */
    atomic_bool is_running;
    atomic_bool has_ended;
    int rc;
};

static void release_when_told(void *context, const sqlock_event *event)
{
    struct within *within = context;

    if (event->kind != SQLOCK_EVENT_ACQUIRED ||
        strcmp(event->lock, "another") != 0)
        return;
    within->rc = sqlock_quorum_release(within->quorum, NULL, NULL);
    atomic_store(&within->has_ended, true);
}

/* Nothing is released, and so nothing is left of who was late. */
static void test_on_event_of_who_is_late_releases_no_quorum(void **state)
{
    struct fixture *f = *state;
    struct trio *t = trio_open(f, PATIENT_MS);
    struct within within = {.rc = 1};
    sqlock_options options = trio_options(t);
    sqlock_registry *direct;
    sqlock_lock *another;

    options.on_event = release_when_told;
    options.event_context = &within;
    options.event_level = SQLOCK_LEVEL_DEBUG;
    direct = tap_with(t, 2, &options);
    within.quorum = quorum_obtain(t, t->a, false);
    acquire_late(t, within.quorum, NULL, NULL);
    assert_true(sqlock_quorum_remaining_ms(within.quorum) > 0);
    another = lock_obtain(t->a[2], "another");
    lock_take_and_give(another);
    lock_drop(another);
    assert_true(atomic_load(&within.has_ended));
    assert_int_equal(within.rc, SQLOCK_EINUSE);
    for (unsigned i = 0; i < SERVERS; i++)
        assert_true(sqlock_is_held(sqlock_quorum_lock(within.quorum, i)));
    assert_ok(sqlock_quorum_release(within.quorum, NULL, &f->err));
    trio_assert_free(t, 2);
    assert_ok(sqlock_quorum_drop(within.quorum, &f->err));
    untap_one(t, 2, direct);
    trio_close(t);
}

/* on_lost of the quorum, or on_event of a registry of it, which waits for that
 * of the lock. */
static void release_the_lock(void *context, sqlock_lock *lock, int code)
{
    struct within *within = context;

    (void)lock;
    (void)code;
    atomic_store(&within->is_running, true);
    (void)wait_until(atomic_load(&within->other->is_running), PATIENCE_MS);
    within->rc = sqlock_release(within->lock, NULL);
    atomic_store(&within->has_ended, true);
}

static void release_at_a_loss(void *context, const sqlock_event *event)
{
    if (event->kind == SQLOCK_EVENT_LOST)
        release_the_lock(context, NULL, event->code);
}

/* on_lost of the lock; the other one mostly waits for it by the time of the
 * release, which is refused then. */
static void release_the_quorum(void *context, sqlock_lock *lock, int code)
{
    struct within *within = context;

    (void)lock;
    (void)code;
    atomic_store(&within->is_running, true);
    (void)wait_until(atomic_load(&within->other->is_running), PATIENCE_MS);
    check_sleep(100);
    within->rc = sqlock_quorum_release(within->quorum, NULL, NULL);
    atomic_store(&within->has_ended, true);
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
    options.on_lost = release_the_quorum;
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

static void test_what_on_lost_may_not_release_is_released_later(void **state)
{
    struct fixture *f = *state;
    struct trio *t = trio_open(f, PATIENT_MS);
    sqlock_registry *direct = tap_one(t, 2);
    sqlock_quorum *q = quorum_obtain(t, t->a, false);
    struct within theirs;
    struct within ours = {.other = &theirs, .rc = 1};

    acquire_late(t, q, release_the_lock, &ours);
    assert_true(sqlock_quorum_remaining_ms(q) > 0);
    trio_break(t, 0);
    assert_becomes_true(!sqlock_is_held(sqlock_quorum_lock(q, 0)), PATIENCE_MS);
    if (cross(t, q, &ours))
        assert_fails(SQLOCK_ELOST, sqlock_quorum_release(q, NULL, &f->err));
    assert_ok(sqlock_quorum_drop(q, &f->err));
    untap_one(t, 2, direct);
    trio_close(t);
}

/* The quorum was lost before the last lock was granted, which does not
 * count. */
static void test_what_a_release_cannot_leave_is_left_later(void **state)
{
    struct fixture *f = *state;
    struct trio *t = trio_open(f, PATIENT_MS);
    sqlock_options options = trio_options(t);
    struct within theirs;
    struct within ours = {.other = &theirs};
    struct delay delay;
    sqlock_registry *direct;
    sqlock_quorum *q;

    options.on_event = release_at_a_loss;
    options.event_context = &ours;
    direct = tap_with(t, 2, &options);
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
            quorum_acquire_each(t, q, NULL);
            assert_ok(sqlock_quorum_release(q, NULL, &f->err));
        }
    }
    check_row(NULL);
    assert_ok(sqlock_quorum_drop(q, &f->err));
    untap_one(t, 2, direct);
    trio_close(t);
}

/* --- who is not had --- */

/* Cancel the acquisition when its claim comes, and let that pass then. */
static int cancel_at_a_claim(void *context, const struct tap_event *event)
{
    struct after_claim *after = context;

    if (!is_of_a_claim(event, false) || after->passed++ > 0)
        return 0;
    (void)!write(after->cancel_fd, "x", 1);
    check_sleep(200); /* so that it is cancelled by then */
    return 0;
}

static void
test_what_is_granted_after_a_cancellation_is_given_back(void **state)
{
    struct fixture *f = *state;
    struct trio *t = trio_open(f, PATIENT_MS);
    sqlock_registry *direct = tap_one(t, 0);
    sqlock_quorum *q = quorum_obtain(t, t->a, false);
    sqlock_lock *one = trio_rival(t, 1);
    sqlock_lock *two = trio_rival(t, 2);
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    struct after_claim after = {.passed = 0};
    int fds[2];

    assert_int_equal(pipe(fds), 0);
    after.cancel_fd = fds[1];
    options.cancel_fd = fds[0];
    options.ttl_ms = LONG_TTL_MS;
    tap_hooks(cancel_at_a_claim, NULL, &after);
    assert_fails(
        SQLOCK_ECANCELED,
        sqlock_quorum_acquire(q, PATIENCE_MS, &options, NULL, &f->err));
    assert_less(0, (int64_t)after.passed);
    trio_assert_free(t, 0);
    tap_reset();
    lock_end(one);
    lock_end(two);
    assert_ok(sqlock_quorum_drop(q, &f->err));
    untap_one(t, 0, direct);
    (void)close(fds[0]);
    (void)close(fds[1]);
    trio_close(t);
}

static void test_who_has_failed_does_not_count(void **state)
{
    struct fixture *f = *state;
    struct trio *t = trio_open(f, PATIENT_MS);
    sqlock_quorum *q = quorum_obtain(t, t->a, false);
    sqlock_lock *one = trio_rival(t, 1);
    int results[SERVERS];

    assert_ok(quorum_acquire(t, q, 0, results));
    assert_int_equal(results[1], SQLOCK_EBUSY);
    assert_ok(sqlock_quorum_release(q, results, &f->err));
    assert_int_equal(results[0], 0);
    assert_int_equal(results[1], SQLOCK_EOWNER);
    assert_int_equal(results[2], 0);
    lock_end(one);
    assert_ok(sqlock_quorum_drop(q, &f->err));
    trio_close(t);
}

static const struct test tests[] = {
    TEST_OF_TRIO(test_what_may_be_left_is_told),
    TEST_OF_TRIO(test_who_is_late_counts),
    TEST_OF_TRIO(test_who_is_late_counts_by_itself),
    TEST_OF_TRIO(test_who_is_late_after_a_loss_does_not_count),
    TEST_OF_TRIO(test_a_release_leaves_nothing_of_who_is_late),
    TEST_OF_TRIO(test_a_quorum_that_two_threads_release_is_released_once),
    TEST_OF_TRIO(test_on_event_of_who_is_late_releases_no_quorum),
    TEST_OF_TRIO(test_what_on_lost_may_not_release_is_released_later),
    TEST_OF_TRIO(test_what_a_release_cannot_leave_is_left_later),
    TEST_OF_TRIO(test_what_is_granted_after_a_cancellation_is_given_back),
    TEST_OF_TRIO(test_who_has_failed_does_not_count),
};
const struct topic topic_quorum_late = TOPIC(tests);
