/*
 * test_bell.c - bells at which others ring: a ring is heard after its commit
 */
#include "drivers/hearing.h"

#include <string.h>

static void test_what_is_no_name_is_refused(void **state)
{
    static const char *const names[] = {"",    BELL "0", "A",   "g",
                                        "a b", "a'--",   "../a"};
    struct test *test = *state;

    skip_behind_a_pooler();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        session_fails(SQLOCK_EINVAL, &test->a,
                      begin_hearing(&test->a, names[i], DEADLINE_MS));
    session_run(&test->a, "SELECT 1");
}

static void test_rings_are_heard_with_their_texts(void **state)
{
    struct test *test = *state;
    struct session *a = hearer(test);
    static struct heard heard;

    hears_nothing(a);
    ring(&test->b, BELL, "one");
    hears(a, "one");
    hears_nothing(a);
    ring(&test->b, BELL, "0a1b2c3d-0000-4000-8000-0a1b2c3d4e5f");
    hears(a, "0a1b2c3d-0000-4000-8000-0a1b2c3d4e5f");
    ring(&test->b, BELL, "1");
    ring(&test->b, BELL, "2");
    ring(&test->b, BELL, "3");
    for (unsigned missing = 3; missing > 0; missing -= heard.count)
        assert_int_equal(await_ring(a, &heard), 0);
    assert_string_equal(heard.last, "3");
    hears_nothing(a);
}

static void test_what_is_told_is_heard_at_all_bells(void **state)
{
    struct test *test = *state;
    struct session *a = hearer(test);
    struct session c;

    session_open(&c);
    session_ok(&c, begin_hearing(&c, OTHER, 0));
    session_run(&test->b, subject.database->bit == ON_SQLITE
                              ? "SELECT sqlock_tell('!key')"
                              : "SELECT pg_notify('sqlock_leaders', '!key')");
    hears(a, "!key");
    hears(&c, "!key");
    hears_nothing(a);
    session_close(&c);
}

/* Anybody may ring (F81). */
static void test_a_ring_at_another_bell_or_too_early_is_not_heard(void **state)
{
    struct test *test = *state;
    struct session *a;

    ring(&test->b, BELL, "early");
    a = hearer(test);
    ring(&test->b, OTHER, "other");
    ring(&test->b, BELL, "mine");
    hears(a, "mine");
    hears_nothing(a);
}

/* c rings later than b and is heard first, so b's ring was not sent before. */
static void test_a_ring_is_sent_by_the_commit(void **state)
{
    struct test *test = *state;
    struct session *a = hearer(test);
    struct session *b = &test->b;
    struct session c;

    session_open(&c);
    session_ok(b, session_begin(b));
    ring(b, BELL, "first");
    ring(b, BELL, "first");
    ring(&c, BELL, "second");
    hears(a, "second");
    session_ok(b, session_commit(b));
    hears(a, "first");
    session_ok(b, session_begin(b));
    ring(b, BELL, "undone");
    session_ok(b, session_rollback(b));
    ring(b, BELL, "third");
    hears(a, "third");
    hears_nothing(a);
    session_close(&c);
}

static void test_a_ring_goes_with_what_its_statement_writes(void **state)
{
    struct test *test = *state;
    struct session *a = hearer(test);
    struct session *b = &test->b;
    char rings[160];

    session_run(b, "INSERT INTO %s (K, T) SELECT '%s', %s",
                subject.values.quoted, test->key,
                ringing(rings, BELL, "written"));
    hears(a, "written");
    session_refuses(SQLOCK_EBUSY, b, "INSERT INTO %s (K, T) SELECT '%s', %s",
                    subject.values.quoted, test->key,
                    ringing(rings, BELL, "refused"));
    ring(b, BELL, "after");
    hears(a, "after");
    hears_nothing(a);
}

/* With TLS, too: run this with SQLOCK_TEST_TLS. */
static void test_of_many_rings_none_is_missed_unnoticed(void **state)
{
    struct test *test = *state;
    struct session *a = hearer(test);
    const unsigned count = subject.database->bit == ON_SQLITE ? 1000 : 20000;
    static struct heard heard;
    static bool all[TEXTS_MAX];
    bool is_lossy = false;
    unsigned missing = count;

    memset(all, 0, sizeof all);
    session_run(&test->b,
                subject.database->bit == ON_SQLITE
                    ? "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 "
                      "FROM n WHERE i + 1 < %u) "
                      "SELECT count(sqlock_ring('" BELL "', i)) FROM n"
                    : "SELECT count(pg_notify('sqlock_" BELL "', i::text)) "
                      "FROM generate_series(0, %u - 1) AS n (i)",
                count);
    while (missing > 0 && !is_lossy) {
        assert_int_equal(await_ring(a, &heard), 0);
        is_lossy = heard.is_lossy;
        for (unsigned i = 0; i < count; i++) {
            missing -= heard.numbers[i] && !all[i];
            all[i] |= heard.numbers[i];
        }
    }
    assert_true(!is_lossy || subject.database->bit == ON_SQLITE);
    ring(&test->b, BELL, "after");
    hears(a, "after");
}

static void test_after_the_end_the_connection_is_like_new(void **state)
{
    struct test *test = *state;
    struct session *a = hearer(test);

    ring(&test->b, BELL, "unheard");
    session_ok(a, end_hearing(a));
    assert_true(subject.driver->is_alive(a->connection));
    ring(&test->b, BELL, "too late");
    assert_int_equal(session_integer(a, "SELECT 4711"), 4711);
    session_ok(a, session_begin(a));
    session_ok(a, session_commit(a));
    session_ok(a, begin_hearing(a, BELL, 0));
    hears_nothing(a);
    ring(&test->b, BELL, "again");
    hears(a, "again");
    session_ok(a, end_hearing(a));
    assert_true(subject.driver->is_alive(a->connection));
}

static void test_in_a_transaction_nobody_listens(void **state)
{
    struct test *test = *state;

    skip_behind_a_pooler();
    session_ok(&test->a, session_begin(&test->a));
    session_fails(SQLOCK_EINVAL, &test->a, begin_hearing(&test->a, BELL, 0));
    session_ok(&test->a, session_rollback(&test->a));
}

static void test_a_killed_session_is_noticed(void **state)
{
    struct test *test = *state;
    int64_t id = session_integer(&test->a, subject.spelling->own_id);
    struct session *a = hearer(test);

    session_run(&test->b, "SELECT pg_terminate_backend(%lld)", (long long)id);
    loses_it(a);
    session_fails(SQLOCK_EUNREACHABLE, a, begin_hearing(a, BELL, 0));
}

static void test_behind_a_pooler_there_is_no_bell(void **state)
{
    struct test *test = *state;

    session_fails(SQLOCK_ENOTSUP, &test->a, begin_hearing(&test->a, BELL, 0));
    session_run(&test->a, "SELECT 1");
}

static int ring_as_child(struct session *session)
{
    char expression[160];

    return session_try(session, "SELECT %s",
                       ringing(expression, BELL, "a child"));
}

static void test_another_process_is_heard(void **state)
{
    struct test *test = *state;
    struct child child;

    skip_behind_a_pooler();
    close_both(test);
    start_child(&child, NULL, ring_as_child);
    session_open(&test->a);
    (void)hearer(test);
    end_child(&child, false);
    hears(&test->a, "a child");
}

void add_bell_tests(add_fn add)
{
#define ADD(name) add("bell: " #name, test_##name)
    ADD(what_is_no_name_is_refused);
    if (subject.database->bit == ON_MYSQL)
        return;
    ADD(rings_are_heard_with_their_texts);
    ADD(what_is_told_is_heard_at_all_bells);
    ADD(a_ring_at_another_bell_or_too_early_is_not_heard);
    ADD(a_ring_is_sent_by_the_commit);
    ADD(a_ring_goes_with_what_its_statement_writes);
    ADD(of_many_rings_none_is_missed_unnoticed);
    ADD(after_the_end_the_connection_is_like_new);
    ADD(another_process_is_heard);
    if (subject.database->bit == ON_SQLITE)
        return;
    ADD(in_a_transaction_nobody_listens);
    ADD(a_killed_session_is_noticed);
    if (database_is_pooled(subject.database))
        ADD(behind_a_pooler_there_is_no_bell);
#undef ADD
}
