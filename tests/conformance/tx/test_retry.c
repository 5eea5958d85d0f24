/*
 * test_retry.c - sqlock_tx_retry(): how often and for how long it runs the
 * application's function again, each time in a new transaction, and when not
 */
#include "suite.h"

#include <stdatomic.h>
#include <stdio.h>

#include "support/tap.h"

struct script {
    const int *codes; /* results of the attempts, in order */
    unsigned calls;
};

static int follow_script(void *context, sqlock_tx *tx, sqlock_error *err)
{
    struct script *script = context;
    int rc = script->codes[script->calls++];

    (void)tx;
    if (rc < 0)
        (void)sqlock_error_set(err, rc, 0, NULL, "scripted");
    return rc;
}

TEST(test_retry_counts_and_gives_up)
{
    static const int codes[] = {SQLOCK_ECONFLICT, SQLOCK_ERETRY,
                                SQLOCK_ECONFLICT, 0};
    static const int fatal[] = {SQLOCK_EDATABASE};
    struct script script = {.codes = codes};
    sqlock_retry_options options = SQLOCK_RETRY_INIT;

    assert_ok(sqlock_tx_retry(f->a, follow_script, &script, &options, &f->err));
    assert_int_equal(script.calls, 4);

    script = (struct script){.codes = codes};
    options.attempts = 2;
    assert_fails(SQLOCK_ERETRY, sqlock_tx_retry(f->a, follow_script, &script,
                                                &options, &f->err));
    assert_int_equal(script.calls, 2);

    script = (struct script){.codes = fatal};
    assert_fails(SQLOCK_EDATABASE,
                 sqlock_tx_retry(f->a, follow_script, &script, NULL, &f->err));
    assert_int_equal(script.calls, 1);
    assert_fails(SQLOCK_EINVAL,
                 sqlock_tx_retry(f->a, NULL, NULL, NULL, &f->err));
}

/* Let each attempt end with a conflict. */
static int never_succeed(void *context, sqlock_tx *tx, sqlock_error *err)
{
    unsigned *attempts = context;

    (void)tx;
    ++*attempts;
    return sqlock_error_set(err, SQLOCK_ECONFLICT, 0, NULL, "scripted");
}

/* deadline_ms ends the attempts, not sooner than one pause before that time. */
TEST(test_retry_gives_up_at_its_deadline)
{
    sqlock_retry_options options = SQLOCK_RETRY_INIT;
    unsigned attempts = 0;
    int64_t began = sqlock_monotonic_ns();

    options.attempts = UINT32_MAX;
    options.deadline_ms = 400;
    options.pause_ms = 20;
    assert_fails(
        SQLOCK_ECONFLICT,
        sqlock_tx_retry(f->a, never_succeed, &attempts, &options, &f->err));
    /* Less the last pause, of 20 ms at most, which would have ended later. */
    assert_less(began + INT64_C(379) * 1000000, sqlock_monotonic_ns());
    assert_true(attempts > 1);
}

/* Just below half of the first pause of 1 ms, the shortest that is drawn. */
#define FIRST_PAUSE_LEAST_NS INT64_C(499999)

struct waits {
    unsigned attempts;
    int64_t last_ns;  /* when the last attempt ended */
    int64_t least_ns; /* the shortest pause */
};

static int note_the_pause(void *context, sqlock_tx *tx, sqlock_error *err)
{
    struct waits *waits = context;
    int64_t now = sqlock_monotonic_ns();

    (void)tx;
    if (++waits->attempts > 1 && now - waits->last_ns < waits->least_ns)
        waits->least_ns = now - waits->last_ns;
    waits->last_ns = sqlock_monotonic_ns();
    return sqlock_error_set(err, SQLOCK_ERETRY, 0, NULL, "scripted");
}

/* There is a pause before each attempt but the first. */
TEST(test_retry_pauses_before_each_attempt)
{
    struct waits waits = {.least_ns = INT64_MAX};
    sqlock_retry_options options = SQLOCK_RETRY_INIT;

    options.attempts = 12;
    options.pause_ms = 2;
    assert_fails(SQLOCK_ERETRY, sqlock_tx_retry(f->a, note_the_pause, &waits,
                                                &options, &f->err));
    assert_int_equal(waits.attempts, 12);
    assert_less(FIRST_PAUSE_LEAST_NS, waits.least_ns);
}

struct addition {
    struct fixture *fixture;
    unsigned attempts;
};

/* Add one to row 1: a function that succeeds, so that only the commit can be
 * the reason for another attempt. */
static int add_to_row(void *context, sqlock_tx *tx, sqlock_error *err)
{
    struct addition *addition = context;
    sqlock_value key = sqlock_integer(1);
    char text[160];

    addition->attempts++;
    (void)snprintf(text, sizeof text, "UPDATE %s SET a = a + 1 WHERE id = ?",
                   stock_name(addition->fixture));
    return sqlock_tx_execute(tx, text, &key, 1, NULL, err);
}

static int refuse_first_commit(void *context, const struct tap_event *event)
{
    atomic_int *left = context;

    return event->call == TAP_COMMIT && atomic_fetch_sub(left, 1) > 0
               ? SQLOCK_ERETRY
               : 0;
}

TEST(test_retry_of_a_refused_commit_and_none_of_a_lost_one)
{
    sqlock_registry *tapped = fixture_tapped(f, NULL);
    struct addition addition = {.fixture = f};
    atomic_int left = 2;

    tap_hooks(refuse_first_commit, NULL, &left);
    assert_ok(sqlock_tx_retry(tapped, add_to_row, &addition, NULL, &f->err));
    assert_int_equal(addition.attempts, 3);
    assert_int_equal(stock_value(f, 1), 101);
    tap_hooks(NULL, tap_lose_commit, NULL);
    assert_fails(SQLOCK_EUNCERTAIN,
                 sqlock_tx_retry(tapped, add_to_row, &addition, NULL, &f->err));
    assert_int_equal(addition.attempts, 4);
    tap_hooks(NULL, NULL, NULL);
    assert_int_equal(stock_value(f, 1), 102);
    registry_end(tapped);
}

static int add_and_refuse(void *context, sqlock_tx *tx, sqlock_error *err)
{
    int rc = add_to_row(context, tx, err);

    return rc == 0 ? 7 : rc;
}

static int refuse_with_text(void *context, sqlock_tx *tx, sqlock_error *err)
{
    (void)context;
    (void)tx;
    (void)sqlock_error_set(err, SQLOCK_ECONFLICT, 0, NULL, "too few");
    return 7;
}

/* The application's own result has its own text, and not that of an earlier
 * attempt. */
TEST(test_retry_hands_out_the_text_of_the_last_attempt)
{
    static const int codes[] = {SQLOCK_ERETRY, 7};
    struct script script = {.codes = codes};
    sqlock_error err = {0};

    assert_int_equal(sqlock_tx_retry(f->a, refuse_with_text, NULL, NULL, &err),
                     7);
    assert_string_equal(err.message, "too few");
    assert_int_equal(sqlock_tx_retry(f->a, follow_script, &script, NULL, &err),
                     7);
    assert_int_equal(script.calls, 2);
    assert_string_equal(err.message, "");
    assert_int_equal(err.code, 0);
}

/* A positive result is the application's own, and no success. */
TEST(test_retry_commits_nothing_after_a_positive_result)
{
    struct addition addition = {.fixture = f};

    assert_int_equal(
        sqlock_tx_retry(f->a, add_and_refuse, &addition, NULL, &f->err), 7);
    assert_int_equal(addition.attempts, 1);
    assert_int_equal(stock_value(f, 1), 100);
}
