/*
 * passed_on.c - a row that nobody has taken is passed on to the first who gives
 * a sign of life, and only those lose their tickets who were called and gave
 * none: by a queue that is written into the row
 */
#include "conformance.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "lease/pass_on.h"
#include "lease/ticket.h"
#include "lock/registry.h"

#define QUEUE_SIZE 1024

/* Return now plus so many s, in us since 1970. */
static int64_t in_us(int seconds)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (now.tv_sec + seconds) * INT64_C(1000000);
}

/* Write a queue whose tickets were called to end at called_us: one ticket for
 * each letter.  A 'd' is of who has given no sign, an 'l' of who lives. */
static void write_queue(char queue[QUEUE_SIZE], const char *kinds,
                        int64_t called_us)
{
    size_t length = (size_t)snprintf(
        queue, QUEUE_SIZE, "{\"e\":%016" PRId64 ",\"q\":[", called_us);

    for (size_t i = 0; kinds[i] != '\0'; i++)
        length += (size_t)snprintf(
            queue + length, QUEUE_SIZE - length,
            "[\"00000000-0000-4000-8000-00000000000%zu\",%016" PRId64
            ",%016" PRId64 ",\"000000\",\"somebody\"],",
            i, kinds[i] == 'd' ? called_us : in_us(60), in_us(-60));
    (void)snprintf(queue + length, QUEUE_SIZE - length, "0]}");
}

/* Let the lock's row have that queue, and pass it on.  Expect that to return
 * that. */
static void pass_on(struct fixture *f, sqlock_lock *lock, const char *kinds,
                    int called_s, int expected)
{
    char queue[QUEUE_SIZE];

    write_queue(queue, kinds, in_us(called_s));
    assert_int_equal(sql_run(&f->sql,
                             "UPDATE %s SET QUEUE = '%s' WHERE LOCK_KEY = '%s'",
                             f->table, queue, sqlock_key(lock)),
                     1);
    assert_int_equal(lk_row_pass_on(&f->a->store, sqlock_key(lock),
                                    lk_store_deadline(&f->a->store)),
                     expected);
}

/* Pass on the row of a lock that is free.  Expect it to be reserved for the
 * ticket of that number, and so many to be left behind it. */
static void check(struct fixture *f, const char *kinds, int called_s,
                  int reserved, int left)
{
    sqlock_lock *lock = lock_obtain(f->a, f->name);
    char wanted[SQLOCK_KEY_SIZE];
    char text[QUEUE_SIZE];

    lock_take(lock, 0);
    lock_give(lock);
    pass_on(f, lock, kinds, called_s, 1);
    (void)snprintf(wanted, sizeof wanted,
                   "00000000-0000-4000-8000-00000000000%d", reserved);
    assert_true(sql_text(&f->sql, text, sizeof text,
                         "SELECT CLIENT_ID FROM %s WHERE LOCK_KEY = '%s'",
                         f->table, sqlock_key(lock)));
    assert_string_equal(text, wanted);
    assert_int_equal(
        sql_integer(&f->sql,
                    "SELECT (length(coalesce(QUEUE, '')) - "
                    "length(replace(coalesce(QUEUE, ''), '\"],', ''))) / 3 "
                    "FROM %s WHERE LOCK_KEY = '%s'",
                    f->table, sqlock_key(lock)),
        left);
    lock_drop(lock);
    fixture_next(f);
}

TEST_ON(test_only_who_gave_no_sign_loses_its_ticket, ON_ALL, IN_SQLOCK)
{
    check(f, "ddld", -5, 2, 1); /* behind the living, one is called again */
    check(f, "lddl", -5, 0, 3);
    check(f, "dddl", -5, 3, 0);
}

TEST_ON(test_who_was_called_just_now_has_its_second, ON_ALL, IN_SQLOCK)
{
    check(f, "ddl", 60, 0, 2);
}

/* Behind those who share the lock, who waits has a second from a call to the
 * next.  A call from farther ahead is of a clock that was set back since. */
TEST_ON(test_a_call_is_repeated_after_a_second_at_most, ON_ALL, IN_SQLOCK)
{
    sqlock_acquire_options shared = SQLOCK_ACQUIRE_INIT;
    sqlock_lock *lock = lock_obtain(f->a, f->name);

    shared.mode = SQLOCK_SHARED;
    assert_ok(sqlock_acquire(lock, 0, &shared, &f->err));
    pass_on(f, lock, "l", -1, 1);
    pass_on(f, lock, "l", 60, 1);
    lock_end(lock);
}
