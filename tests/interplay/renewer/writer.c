/*
 * writer.c - a release while another session writes to SQLite's file: the
 * release is tried until its statement timeout
 *
 * The other session ends its transaction when less time is left than one try
 * may wait for the file.
 */
#include "renewer.h"

#include "support/tap.h"

#define STATEMENT_MS 2000
#define WAIT_MS (STATEMENT_MS / 2) /* longest wait of one try */

struct writing {
    struct fixture *fixture;
    const char *release;
    int64_t deadline_ns;
    atomic_int refused;
    atomic_bool is_over;
};

static int end_writing(void *context, const struct tap_event *event, int rc)
{
    struct writing *writing = context;
    int64_t left_ns = writing->deadline_ns - sqlock_monotonic_ns();

    if (event->text != writing->release || rc != SQLOCK_EBUSY)
        return rc;
    atomic_fetch_add(&writing->refused, 1);
    if (left_ns < WAIT_MS * INT64_C(1000000) &&
        !atomic_exchange(&writing->is_over, true))
        (void)sql_rollback(&writing->fixture->sql);
    return rc;
}

static void test_a_release_is_tried_until_its_deadline(void **state)
{
    struct fixture *f = *state;
    sqlock_options options = renewer_options(f);
    struct writing writing = {.fixture = f};
    sqlock_registry *registry;
    sqlock_lock *lock;

    options.statement_timeout_ms = STATEMENT_MS;
    registry = fixture_tapped(f, &options);
    lock = lock_obtain(registry, f->name);
    writing.release = census_text(registry, SQLOCK_SQL_RELEASE);
    lock_take(lock, RENEWED_MS);
    assert_int_equal(sql_begin(&f->sql), 0);
    tap_hooks(NULL, end_writing, &writing);
    writing.deadline_ns = check_deadline_ns(STATEMENT_MS);
    assert_ok(sqlock_release(lock, &f->err));
    assert_true(atomic_load(&writing.refused) > 0);
    assert_true(atomic_load(&writing.is_over));
    tap_reset();
    lock_drop(lock);
    registry_end(registry);
}

static const struct test tests[] = {
    TEST_ON(test_a_release_is_tried_until_its_deadline, ON_SQLITE, 0),
};
const struct topic topic_writer = TOPIC(tests);
