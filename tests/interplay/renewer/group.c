/*
 * group.c - group commit on SQLite: the writes that queue up behind another one
 * are committed together, and a thread whose own write is done does not wait
 * for the file on behalf of the others
 */
#include "renewer.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "lock/registry.h"
#include "sqlock/lease.h"
#include "support/tap.h"
#include "support/workers.h"

/* Number of threads, each with a lock of its own. */
#define LOCKS 8
#define TAKEN 3 /* index of the lock that another registry holds */
/* Less than the second after which a statement stops waiting for the file. */
#define PATIENT_NS (900 * LK_NS_PER_MS)

struct gathering {
    struct fixture *f;
    struct workers workers;
    sqlock_lock *locks[LOCKS];
    int results[LOCKS];
    int64_t tokens[LOCKS];
    atomic_uint begun;  /* number of statements sent */
    bool takes_file;    /* f->sql takes the file after the first statement */
    atomic_bool may_go; /* the second statement need not wait any more */
    int64_t began_ns;   /* when the last begin was sent */
    int64_t gave_up_ns; /* when the last begin returned */
    atomic_int first;   /* thread that ran the first statement */
    atomic_int second;  /* thread that ran the second statement */
};

/* Return how many statements are in the queue.  A sleeping thread would be no
 * proof: a thread may sleep before its statement is queued. */
static unsigned queued(const struct gathering *g)
{
    struct lk_crew *group = &g->locks[0]->registry->store.db.group;
    unsigned count = 0;

    pthread_mutex_lock(&group->mutex);
    for (const struct lk_crew_member *at = group->first; at != NULL;
         at = at->next)
        count++;
    pthread_mutex_unlock(&group->mutex);
    return count;
}

/* Hold the first statement up until all others have queued up behind it; and,
 * with takes_file, the second until may_go. */
static int hold_up(void *context, const struct tap_event *event)
{
    struct gathering *g = context;
    int64_t until = check_deadline_ns(PATIENCE_MS);

    if (event->call == TAP_BEGIN)
        g->began_ns = sqlock_monotonic_ns();
    if (event->call != TAP_EXECUTE)
        return 0;
    switch (atomic_fetch_add(&g->begun, 1)) {
    case 0:
        atomic_store(&g->first, gettid());
        while (queued(g) + 1 < g->workers.count && check_pause(until))
            ;
        break;
    case 1:
        atomic_store(&g->second, gettid());
        while (g->takes_file && !atomic_load(&g->may_go) && check_pause(until))
            ;
        break;
    default:
        break;
    }
    return 0;
}

static int take_file(void *context, const struct tap_event *event, int rc)
{
    struct gathering *g = context;

    if (event->call == TAP_BEGIN)
        g->gave_up_ns = sqlock_monotonic_ns();
    if (g->takes_file && event->call == TAP_EXECUTE &&
        atomic_load(&g->begun) == 1)
        (void)sql_begin(&g->f->sql);
    return rc;
}

static int take_own(struct worker *worker)
{
    struct gathering *g = worker->context;

    g->results[worker->index] =
        lock_try(g->locks[worker->index], 0, 0, &worker->err);
    g->tokens[worker->index] = sqlock_token(g->locks[worker->index]);
    return 0;
}

static sqlock_registry *gather(struct gathering *g, struct fixture *f,
                               unsigned count, bool takes_file)
{
    sqlock_registry *tapped = renewer_tapped(f);

    memset(g, 0, sizeof *g);
    g->f = f;
    g->takes_file = takes_file;
    for (size_t i = 0; i < count; i++)
        g->locks[i] = nth_lock(f, tapped, i);
    tap_reset();
    tap_hooks(hold_up, take_file, g);
    workers_start(&g->workers, count, take_own, g);
    return tapped;
}

static void test_writes_that_gather_are_committed_together(void **state)
{
    struct fixture *f = *state;
    struct gathering g;
    char name[96];
    sqlock_lock *other = lock_obtain(f->b, nth_name(f, name, TAKEN));
    sqlock_registry *tapped;

    lock_take(other, 0);
    tapped = gather(&g, f, LOCKS, false);
    workers_join(&g.workers);
    /* The first write ran alone, all others in one transaction.  The first
     * thread's begin for the others may have been too late: then it was rolled
     * back, and another thread began again. */
    assert_int_equal(tap_count(TAP_COMMIT), 1);
    assert_int_equal(tap_count(TAP_BEGIN), 1 + tap_count(TAP_ROLLBACK));
    /* Each write has an outcome of its own. */
    for (unsigned i = 0; i < LOCKS; i++) {
        assert_int_equal(g.results[i], i == TAKEN ? SQLOCK_EBUSY : 0);
        assert_true(fixture_row(f, nth_name(f, name, i)).fence ==
                    (i == TAKEN ? sqlock_token(other) : g.tokens[i]));
    }
    tap_reset();
    lock_end(other);
    registry_end(tapped);
}

/* Another session takes the file after the first thread's statement.  The first
 * thread soon gives up its begin for the second, which waits for the file
 * itself. */
static void test_nobody_waits_for_the_file_for_another(void **state)
{
    struct fixture *f = *state;
    struct gathering g;
    sqlock_registry *tapped = gather(&g, f, 2, true);

    assert_becomes_true(atomic_load(&g.second) != 0, PATIENCE_MS);
    assert_true(atomic_load(&g.second) != atomic_load(&g.first));
    assert_less(g.gave_up_ns - g.began_ns, PATIENT_NS);
    assert_int_equal(sql_rollback(&f->sql), 0);
    atomic_store(&g.may_go, true);
    workers_join(&g.workers);
    assert_int_equal(g.results[0], 0);
    assert_int_equal(g.results[1], 0);
    assert_int_equal(tap_count(TAP_COMMIT), 0);
    tap_reset();
    registry_end(tapped);
}

/* --- a writer whose deadline passes --- */

/* The writers, in the order in which they enter the queue. */
enum { FIRST, LAST, LATE, WRITERS };

struct queue;
struct writer {
    struct queue *queue;
    struct worker worker;
    sqlock_lock *lock;
    char client[SQLOCK_KEY_SIZE];
    int64_t deadline_ns;
    int rc;
    int64_t affected;
    atomic_bool has_returned;
};

/* The point at which the group is held up until the late writer's deadline;
 * NOTHING: no writer is late, and the first begin is reported as failed. */
enum late { NOTHING, IN_THE_QUEUE, BEFORE_THE_BEGIN, AFTER_THE_BEGIN };

struct queue {
    sqlock_registry *registry;
    struct writer writers[WRITERS];
    enum late late;
    atomic_uint begun; /* number of statements sent */
};

/* With NOTHING, report the first begin as ended at its deadline, although the
 * database has carried it out. */
static int end_the_first_begin(void *context, const struct tap_event *event,
                               int rc)
{
    const struct queue *queue = context;

    return queue->late == NOTHING && rc == 0 && event->call == TAP_BEGIN &&
                   event->number == 1
               ? SQLOCK_ECANCELED
               : rc;
}

static bool has_returned(const struct writer *writer)
{
    return atomic_load(&writer->has_returned);
}

static bool is_in_queue(const struct writer *writer)
{
    return has_returned(writer) || worker_is_parked(&writer->worker);
}

/* Return whether the other writers have queued up behind the first statement
 * and, with IN_THE_QUEUE, the late writer has already returned. */
static bool may_the_first_go(const struct queue *queue)
{
    const struct writer *late = &queue->writers[LATE];

    return is_in_queue(&queue->writers[LAST]) &&
           (queue->late == IN_THE_QUEUE ? has_returned(late)
                                        : is_in_queue(late));
}

static int hold_up_for_the_late(void *context, const struct tap_event *event)
{
    struct queue *queue = context;
    const struct writer *late = &queue->writers[LATE];
    int64_t until = check_deadline_ns(PATIENCE_MS / 2);
    unsigned begun =
        event->call == TAP_EXECUTE ? atomic_fetch_add(&queue->begun, 1) + 1 : 0;

    if (begun == 1)
        while (!may_the_first_go(queue) && check_pause(until))
            ;
    if (event->call == TAP_BEGIN && queue->late == BEFORE_THE_BEGIN)
        while (!has_returned(late) && check_pause(until))
            ;
    if (begun == 2 && queue->late == AFTER_THE_BEGIN)
        while (sqlock_monotonic_ns() < late->deadline_ns && check_pause(until))
            ;
    return 0;
}

static int renew_by_deadline(struct worker *worker)
{
    struct writer *self = worker->context;
    struct lk_arguments arguments;
    struct lk_run run = {.arguments = &arguments,
                         .deadline_ns = self->deadline_ns};
    sqlock_registry *registry = self->queue->registry;
    sqlock_result result = {0};

    lk_store_arguments(&registry->store, sqlock_key(self->lock), &arguments);
    lk_argument_text(&arguments, SQLOCK_P_CLIENT, self->client);
    lk_argument_integer(&arguments, SQLOCK_P_TTL, INT64_C(1000) * LONG_TTL_MS);
    self->rc = lk_store_run(&registry->store, SQLOCK_SQL_RENEW, &run, &result,
                            &worker->err);
    self->affected = result.affected;
    sqlock_result_clear(&result);
    atomic_store(&self->has_returned, true);
    return 0;
}

static void start_writer(struct queue *queue, size_t i, int64_t timeout_ms)
{
    queue->writers[i].deadline_ns = check_deadline_ns(timeout_ms);
    worker_start(&queue->writers[i].worker, renew_by_deadline,
                 &queue->writers[i]);
}

/* Let each writer renew a lock of its own, all in one registry with a tap, and
 * wait for them; the late one has late_timeout_ms.  end_queue() cleans up. */
static void write_all(struct queue *queue, struct fixture *f, enum late late,
                      int64_t late_timeout_ms)
{
    memset(queue, 0, sizeof *queue);
    queue->registry = renewer_tapped(f);
    queue->late = late;
    for (size_t i = 0; i < WRITERS; i++) {
        struct writer *writer = &queue->writers[i];

        writer->queue = queue;
        writer->lock = nth_lock(f, queue->registry, i);
        lock_take(writer->lock, 0);
        sqlock_client_id(writer->lock, writer->client);
    }
    tap_reset();
    tap_hooks(hold_up_for_the_late, end_the_first_begin, queue);
    start_writer(queue, FIRST, PATIENCE_MS);
    assert_becomes_true(atomic_load(&queue->begun) > 0, PATIENCE_MS);
    start_writer(queue, LAST, PATIENCE_MS);
    assert_becomes_true(is_in_queue(&queue->writers[LAST]), PATIENCE_MS);
    start_writer(queue, LATE, late_timeout_ms);
    for (size_t i = 0; i < WRITERS; i++)
        worker_join(&queue->writers[i].worker);
}

static void check_written(struct queue *queue, size_t i)
{
    assert_lock_ok(queue->writers[i].rc, &queue->writers[i].worker.err);
    assert_int_equal(queue->writers[i].affected, 1);
}

static void end_queue(struct queue *queue)
{
    tap_reset();
    for (size_t i = 0; i < WRITERS; i++)
        lock_end(queue->writers[i].lock);
    registry_end(queue->registry);
}

/* The late writer's deadline passes in the middle of the group's transaction:
 * all statements of the group succeed, the late one, too. */
static void test_one_that_is_late_fails_nobody(void **state)
{
    struct queue queue;

    write_all(&queue, *state, AFTER_THE_BEGIN, 1000);
    for (size_t i = 0; i < WRITERS; i++)
        check_written(&queue, i);
    end_queue(&queue);
}

/* Hold the other writers up until the late one has returned.  It returns EBUSY
 * at its deadline, without waiting for them, and its statement is never
 * sent. */
static void leave_in_time(struct fixture *f, enum late late)
{
    struct queue queue;

    write_all(&queue, f, late, 50);
    check_written(&queue, FIRST);
    check_written(&queue, LAST);
    assert_code(SQLOCK_EBUSY, queue.writers[LATE].rc,
                &queue.writers[LATE].worker.err);
    assert_int_equal(queue.writers[LATE].affected, 0);
    assert_int_equal(tap_count(TAP_EXECUTE), WRITERS - 1);
    end_queue(&queue);
}

static void test_one_that_is_late_leaves_the_queue(void **state)
{
    leave_in_time(*state, IN_THE_QUEUE);
}

/* As above, but the late writer has been chosen for a group whose transaction
 * has not begun yet. */
static void test_one_that_is_late_leaves_what_has_not_begun(void **state)
{
    leave_in_time(*state, BEFORE_THE_BEGIN);
}

/* A begin that is reported as failed is rolled back.  Otherwise the next
 * statements on the connection would run in the open transaction, and be
 * reported as successes without a commit. */
static void test_begin_that_failed_is_rolled_back(void **state)
{
    struct queue queue;

    write_all(&queue, *state, NOTHING, PATIENCE_MS);
    assert_int_equal(tap_count(TAP_ROLLBACK), 1);
    for (size_t i = 0; i < WRITERS; i++)
        check_written(&queue, i);
    end_queue(&queue);
}

static const struct test tests[] = {
    TEST_ON(test_writes_that_gather_are_committed_together, ON_SQLITE,
            IN_SQLOCK),
    TEST_ON(test_nobody_waits_for_the_file_for_another, ON_SQLITE, IN_SQLOCK),
    TEST_ON(test_one_that_is_late_fails_nobody, ON_SQLITE, IN_SQLOCK),
    TEST_ON(test_one_that_is_late_leaves_the_queue, ON_SQLITE, IN_SQLOCK),
    TEST_ON(test_one_that_is_late_leaves_what_has_not_begun, ON_SQLITE,
            IN_SQLOCK),
    TEST_ON(test_begin_that_failed_is_rolled_back, ON_SQLITE, IN_SQLOCK),
};
const struct topic topic_group = TOPIC(tests);
