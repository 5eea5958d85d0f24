/*
 * test_bell.c - bells at which others ring: a ring is heard after its commit
 */
#include "drivers/hearing.h"

#include <string.h>

/* With TLS, too: run this with SQLOCK_TEST_TLS. */
TEST_ON(test_of_many_rings_none_is_missed_unnoticed, ON_POSTGRES | ON_SQLITE, 0)
{
    struct session *a = hearer(f);
    const unsigned count = subject.database->bit == ON_SQLITE ? 1000 : 20000;
    static struct heard heard;
    static bool all[TEXTS_MAX];
    bool is_lossy = false;
    unsigned missing = count;

    memset(all, 0, sizeof all);
    session_run(&f->b,
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
    ring(&f->b, BELL, "after");
    hears(a, "after");
}

TEST_ON(test_behind_a_pooler_there_is_no_bell, ON_POSTGRES, 0)
{
    int rc = begin_hearing(&f->a, BELL, 0);

    if (database_is_pooled(subject.database))
        session_fails(SQLOCK_ENOTSUP, &f->a, rc);
    else
        session_ok(&f->a, rc);
    session_run(&f->a, "SELECT 1");
}

static int ring_as_child(struct session *session)
{
    char expression[160];

    return session_try(session, "SELECT %s",
                       ringing(expression, BELL, "a child"));
}

TEST_ON(test_another_process_is_heard, ON_POSTGRES | ON_SQLITE, 0)
{
    struct child child;

    skip_behind_a_pooler();
    close_both(f);
    start_child(&child, NULL, ring_as_child);
    session_open(&f->a);
    (void)hearer(f);
    end_child(&child, false);
    hears(&f->a, "a child");
}
