/*
 * test_bell.c - bells at which others ring: a ring is heard after its commit
 */
#include "drivers/hearing.h"

#include <string.h>

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
    if (subject.database->bit == ON_MYSQL)
        return;
    ADD(of_many_rings_none_is_missed_unnoticed);
    ADD(another_process_is_heard);
    if (subject.database->bit == ON_SQLITE)
        return;
    if (database_is_pooled(subject.database))
        ADD(behind_a_pooler_there_is_no_bell);
#undef ADD
}
