/*
 * main.c - several processes use a lock in long loops: counts are exact, and
 * tokens rise from one holder to the next (see support/program.h)
 *
 * SQLOCK_SCALE=campaign makes the loops many times longer.
 */
#include "stress.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/group.h"
#include "support/lanes.h"
#include "support/program.h"

static const struct database *current;

/* --- a counter that only the lock guards --- */

struct count_job {
    int file;
    unsigned rounds;
};

/* Return whether each holder's token must be greater than the last holder's.
 * With MySQL and Spring's layouts, a token is the time at which the claim
 * began, so a claim that waited for the row may get an older token. */
static bool tokens_rise(const struct hand *hand)
{
    return hand->fixture->layout == SQLOCK_LAYOUT_SQLOCK ||
           hand->fixture->database->bit != ON_MYSQL;
}

static int count_once(struct hand *hand, sqlock_lock *lock, int file)
{
    struct ledger ledger;
    int rc = sqlock_acquire(lock, SQLOCK_FOREVER, NULL, &hand->err);

    if (rc < 0)
        return hand_fail(hand, "acquire %d: %s", rc, hand->err.message);
    if (!ledger_read(file, &ledger))
        return hand_fail(hand, "cannot read the counter");
    if (tokens_rise(hand) && sqlock_token(lock) <= ledger.last_token)
        return hand_fail(hand, "token %lld after %lld",
                         (long long)sqlock_token(lock),
                         (long long)ledger.last_token);
    ledger.count++;
    ledger.last_token = sqlock_token(lock);
    if (ledger.last_hand != hand->index + 1)
        ledger.changes++;
    ledger.last_hand = hand->index + 1;
    (void)sched_yield();
    if (!ledger_write(file, &ledger))
        return hand_fail(hand, "cannot write the counter");
    rc = sqlock_release(lock, &hand->err);
    if (rc < 0)
        return hand_fail(hand, "release %d: %s", rc, hand->err.message);
    return 0;
}

static int count_up(struct hand *hand)
{
    const struct count_job *job = hand->context;
    sqlock_lock *lock;
    unsigned i;
    int rc =
        sqlock_obtain(&lock, hand->registry, hand->fixture->name, &hand->err);

    for (i = 0; rc == 0 && i < job->rounds; i++) {
        rc = count_once(hand, lock, job->file);
        (void)check_pause(INT64_MAX); /* other processes read every 2 ms */
    }
    return rc;
}

static void check_counter(sqlock_layout layout, unsigned processes,
                          unsigned rounds)
{
    struct fixture yard;
    struct count_job job = {.rounds = rounds};
    sqlock_options options;
    struct ledger ledger;
    struct crew crew;

    yard_open(&yard, current, layout);
    options = fixture_options(&yard);
    options.poll_ms = 2;
    options.peer_ttl_ms = LONG_TTL_MS;
    job.file = ledger_open(&yard);
    crew_start(&crew, &yard, &options, processes, count_up, &job);
    crew_join(&crew);
    assert_true(ledger_read(job.file, &ledger));
    assert_int_equal(ledger.count, processes * rounds);
    /* the processes did not run one after the other */
    assert_true(ledger.changes > processes * rounds / 20);
    (void)close(job.file);
    yard_close(&yard);
}

static void test_two_processes_count_exactly(void **state)
{
    (void)state;
    check_counter(SQLOCK_LAYOUT_SQLOCK, 2, check_scale(500, 10000));
}

static void test_two_processes_count_exactly_on_springs_tables(void **state)
{
    (void)state;
    check_counter(SQLOCK_LAYOUT_SPRING7, 2, check_scale(100, 10000));
    check_counter(SQLOCK_LAYOUT_SPRING6, 2, check_scale(100, 10000));
}

static void test_six_processes_count_exactly(void **state)
{
    (void)state;
    check_counter(SQLOCK_LAYOUT_SQLOCK, 6, check_scale(50, 5000));
}

/* --- the control: without the lock, counts must be lost --- */

struct control {
    int file;
    int meet[2][2]; /* a pipe to each of the two processes */
};

static int count_without_lock(struct hand *hand)
{
    const struct control *control = hand->context;
    struct ledger ledger;
    char byte = 'x';

    if (!ledger_read(control->file, &ledger))
        return hand_fail(hand, "cannot read the counter");
    /* both processes read the counter before either writes it */
    if (write(control->meet[1 - hand->index][1], &byte, 1) != 1 ||
        read(control->meet[hand->index][0], &byte, 1) != 1)
        return hand_fail(hand, "did not meet the other one");
    ledger.count++;
    return ledger_write(control->file, &ledger) ? 0 : 1;
}

static void test_control_without_the_lock_loses(void **state)
{
    struct fixture yard;
    struct control control;
    sqlock_options options;
    struct ledger ledger;
    struct crew crew;
    int i;

    (void)state;
    yard_open(&yard, current, SQLOCK_LAYOUT_SQLOCK);
    options = fixture_options(&yard);
    control.file = ledger_open(&yard);
    for (i = 0; i < 2; i++)
        assert_int_equal(pipe(control.meet[i]), 0);
    crew_start(&crew, &yard, &options, 2, count_without_lock, &control);
    crew_join(&crew);
    assert_true(ledger_read(control.file, &ledger));
    assert_int_equal(ledger.count, 1);
    for (i = 0; i < 2; i++) {
        (void)close(control.meet[i][0]);
        (void)close(control.meet[i][1]);
    }
    (void)close(control.file);
    yard_close(&yard);
}

/* --- F22: few keys, several processes, first acquisitions and reaping --- */

static int crowd_few_keys(struct hand *hand)
{
    unsigned rounds = check_scale(60, 5000);
    unsigned i;

    for (i = 0; i < rounds; i++) {
        char name[80];
        sqlock_lock *lock;
        int rc;

        (void)snprintf(name, sizeof name, "%s/%u", hand->fixture->name,
                       (hand->index + i) % 3);
        rc = sqlock_obtain(&lock, hand->registry, name, &hand->err);
        if (rc == 0)
            rc = sqlock_acquire(lock, SQLOCK_FOREVER, NULL, &hand->err);
        if (rc == 0)
            rc = sqlock_release(lock, &hand->err);
        if (rc == 0)
            rc = sqlock_drop(lock, &hand->err);
        if (rc == 0 && hand->index == 0)
            rc = sqlock_reap(hand->registry, 0, NULL, &hand->err);
        if (rc < 0)
            return hand_fail(hand, "round %u gave %d: %s", i, rc,
                             hand->err.message);
    }
    return 0;
}

static void test_F22_no_deadlock_surfaces_between_processes(void **state)
{
    struct fixture yard;
    sqlock_options options;
    struct crew crew;
    int layout;

    (void)state;
    for (layout = 0; layout < SQLOCK_LAYOUTS; layout++) {
        yard_open(&yard, current, (sqlock_layout)layout);
        options = fixture_options(&yard);
        options.poll_ms = 2;
        options.peer_ttl_ms = LONG_TTL_MS;
        crew_start(&crew, &yard, &options, 4, crowd_few_keys, NULL);
        crew_join(&crew);
        yard_close(&yard);
    }
}

/* --- a process that is killed while it holds --- */

#define KILLED_TTL_MS 400

static int hold_and_die(struct hand *hand)
{
    sqlock_acquire_options acquire = SQLOCK_ACQUIRE_INIT;
    sqlock_lock *lock;
    int rc =
        sqlock_obtain(&lock, hand->registry, hand->fixture->name, &hand->err);

    acquire.ttl_ms = KILLED_TTL_MS;
    if (rc == 0)
        rc = sqlock_acquire(lock, 0, &acquire, &hand->err);
    if (rc < 0)
        return hand_fail(hand, "%s", hand->err.message);
    (void)raise(SIGKILL);
    return 1;
}

static void test_a_killed_holder_blocks_no_longer_than_its_lease(void **state)
{
    struct fixture yard;
    sqlock_options options;
    struct crew crew;
    sqlock_lock *lock;
    struct row row;
    int status = 0;

    (void)state;
    yard_open(&yard, current, SQLOCK_LAYOUT_SQLOCK);
    options = fixture_options(&yard);
    crew_start(&crew, &yard, &options, 1, hold_and_die, NULL);
    assert_int_equal(waitpid(crew.pids[0], &status, 0), crew.pids[0]);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(sql_open(&yard.sql, current, yard.url), 0);
    row = fixture_row(&yard, yard.name);
    yard.a = fixture_registry(&yard, &options);
    lock = lock_obtain(yard.a, yard.name);
    assert_lock_ok(lock_try(lock, PATIENCE_MS, 0, &yard.err), &yard.err);
    assert_less(row.expires_us, sqlock_token(lock));
    assert_less(row.fence, sqlock_token(lock));
    lock_give(lock);
    registry_end(yard.a);
    sql_close(&yard.sql);
    yard_close(&yard);
}

/* --- shares --- */

static void test_histories_of_readers_and_writers(void **state)
{
    (void)state;
    test_readers_and_writers(current);
}

static void test_histories_of_permits(void **state)
{
    (void)state;
    test_permits(current);
}

static void test_control_of_histories(void **state)
{
    (void)state;
    test_the_check_of_histories(current);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_two_processes_count_exactly),
    cmocka_unit_test(test_two_processes_count_exactly_on_springs_tables),
    cmocka_unit_test(test_six_processes_count_exactly),
    cmocka_unit_test(test_control_without_the_lock_loses),
    cmocka_unit_test(test_F22_no_deadlock_surfaces_between_processes),
    cmocka_unit_test(test_a_killed_holder_blocks_no_longer_than_its_lease),
    cmocka_unit_test(test_histories_of_readers_and_writers),
    cmocka_unit_test(test_histories_of_permits),
    cmocka_unit_test(test_control_of_histories),
};

static int run_lane(const struct lane *lane)
{
    const struct group group = {
        .name = lane->database->name,
        .tests = tests,
        .count = sizeof tests / sizeof *tests,
        .test_seconds = TEST_SECONDS,
    };

    current = lane->database;
    return group_run(&group);
}

int main(int argc, char **argv)
{
    static const struct program program = {
        .name = "stress",
        .about = "long loops of several processes: counts are exact",
        .databases = ON_ALL,
    };
    static const struct lanes lanes = {.count = 1, .run = run_lane};

    program_read(&program, argc, argv);
    if (program_lists())
        return run_lane(&(struct lane){.database = &databases[0]});
    return lanes_run(&lanes);
}
