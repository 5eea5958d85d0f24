/*
 * test_stranger.c - a queue lock that is held by a stranger, which is a session
 * or process of another program (F81): it costs time, and no more
 */
#include "suite.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "locks/registry.h"

struct stranger {
    struct fixture *f;
    int64_t queue;
    int file; /* with SQLite's queue locks; -1: none */
};

static void lock_byte(const struct stranger *stranger, short type)
{
    struct flock lock = {
        .l_type = type,
        .l_whence = SEEK_SET,
        .l_start = (off_t)stranger->queue,
        .l_len = 1,
    };

    assert_int_equal(fcntl(stranger->file, F_OFD_SETLKW, &lock), 0);
}

/* Take the queue lock of that lock.  The lock has been released before, so that
 * on SQLite the file of queue locks exists. */
static void come(struct stranger *stranger, struct fixture *f,
                 const sqlock_lock *lock)
{
    char path[1024];

    *stranger = (struct stranger){
        .f = f,
        .queue = lk_queue_number(&lock->registry->store, sqlock_key(lock)),
        .file = -1,
    };
    if (f->database->bit == ON_POSTGRES) {
        sql_run(&f->sql, "SELECT pg_advisory_lock(%lld)",
                (long long)stranger->queue);
    } else if (f->database->bit == ON_MYSQL) {
        assert_int_equal(sql_integer(&f->sql,
                                     "SELECT GET_LOCK(CONCAT('sqlock:%lld:', "
                                     "CRC32(DATABASE())), 10)",
                                     (long long)stranger->queue),
                         1);
    } else {
        (void)snprintf(path, sizeof path, "%s-sqlock",
                       f->url + strlen("sqlite:"));
        stranger->file = open(path, O_RDWR | O_CLOEXEC);
        assert_true(stranger->file >= 0);
        lock_byte(stranger, F_WRLCK);
    }
}

static void go(const struct stranger *stranger)
{
    if (stranger->f->database->bit == ON_POSTGRES)
        sql_run(&stranger->f->sql, "SELECT pg_advisory_unlock_all()");
    else if (stranger->f->database->bit == ON_MYSQL)
        assert_int_equal(sql_integer(&stranger->f->sql,
                                     "SELECT RELEASE_LOCK(CONCAT('sqlock:%lld:"
                                     "', CRC32(DATABASE())))",
                                     (long long)stranger->queue),
                         1);
    else
        (void)close(stranger->file);
}

/* The first acquisition finds the queue lock taken, so the next one waits in
 * the queue before it claims.  Those after it do not: the session with the
 * queue lock does not claim. */
static void test_F81_a_stranger_delays_one_acquisition(void **state)
{
    struct fixture *f = *state;
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    struct stranger stranger;
    int64_t deadline;

    lock_take(lock, 0);
    lock_give(lock);
    come(&stranger, f, lock);
    deadline = check_deadline_ns(12000); /* sixteen would take a second each */
    for (int i = 0; i < 20; i++) {
        assert_ok(sqlock_acquire(lock, SQLOCK_FOREVER, NULL, &f->err));
        lock_give(lock);
    }
    assert_true(check_pause(deadline));
    go(&stranger);
    lock_drop(lock);
}

struct stage {
    struct stranger stranger;
    struct relay relay;
};

/* Have a stranger take the queue lock before the holder claims the lock, and
 * have a contender wait for the lock. */
static void open_stage(struct stage *stage, struct fixture *f, uint32_t ttl_ms,
                       uint32_t poll_ms)
{
    struct relay *relay = &stage->relay;

    relay_open(relay, f, poll_ms);
    come(&stage->stranger, f, relay->held);
    lock_take(relay->held, ttl_ms);
    contender_queue(&relay->next, relay->next.lock, SQLOCK_FOREVER);
}

/* The stranger gives the queue lock up, which wakes the waiter as a release
 * would.  The waiter does not get the lock, which is held, and polls from then
 * on, since the holder, without the queue lock, will not notify it. */
static void test_F81_a_stranger_that_goes_notifies_falsely(void **state)
{
    struct stage stage;

    open_stage(&stage, *state, 0, 20);
    go(&stage.stranger);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(atomic_load(&stage.relay.next.rc), 1);
        (void)check_pause(INT64_MAX);
    }
    lock_give(stage.relay.held);
    relay_close(&stage.relay);
}

/* The stranger keeps the queue lock: the waiter reads the row at the end of the
 * lease, as it last saw it. */
static void
test_F81_a_stranger_that_stays_delays_to_the_leases_end(void **state)
{
    struct fixture *f = *state;
    struct stage stage;

    open_stage(&stage, f, 1500, 3600000);
    assert_code_of(0, SQLOCK_EEXPIRED,
                   sqlock_release(stage.relay.held, &f->err),
                   &f->err); /* a slow machine may be late */
    relay_close(&stage.relay);
    go(&stage.stranger);
}

static const struct test tests[] = {
    TEST(test_F81_a_stranger_delays_one_acquisition),
    TEST_ON(test_F81_a_stranger_that_goes_notifies_falsely,
            ON_MYSQL | ON_SQLITE, IN_SQLOCK),
    TEST_ON(test_F81_a_stranger_that_stays_delays_to_the_leases_end,
            ON_MYSQL | ON_SQLITE, IN_SQLOCK),
};

const struct topic topic_stranger = TOPIC(tests);
