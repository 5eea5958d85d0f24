/*
 * test_patience.c - how long a wait pauses after a failure
 */
#include "support/test.h"

#include <string.h>

#include "base/clock.h"
#include "db/driver.h"
#include "lock/patience.h"

#define FAILURES 12
#define SHORT_NS (20 * LK_NS_PER_MS)

static const sqlock_driver driver;
static const sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
static struct lk_store store;
static struct lk_slot slot;
static struct lk_waiter waiter;
static struct lk_part part;
static struct lk_retry retry;

static void setup(void)
{
    static char text[] = "there is one";

    memset(&slot, 0, sizeof slot);
    memset(&retry, 0, sizeof retry);
    store.statements[SQLOCK_SQL_ENQUEUE].text = text;
    store.db.driver = &driver;
    slot.store = &store;
    waiter = (struct lk_waiter){
        .wait_ms = 1, .options = &options, .deadline_ns = LK_NEVER};
    part = (struct lk_part){.slot = &slot, .waiter = &waiter};
}

/* Fail so many times.  Return when the next attempt is due, from now on. */
static int64_t pause_after(int failures, int rc)
{
    int64_t resume_ns = 0;

    for (int i = 0; i < failures; i++) {
        resume_ns = lk_patience_pause(&retry, &part, rc, NULL);
        assert_true(resume_ns > 0);
    }
    return resume_ns - sqlock_monotonic_ns();
}

#define SCENE_TEST(name_) TEST_WITH(name_, .open = setup)

SCENE_TEST(test_a_wait_without_a_ticket_pauses_briefly)
{
    assert_true(pause_after(FAILURES, SQLOCK_ERETRY) <= SHORT_NS);
    assert_true(pause_after(FAILURES, SQLOCK_EBUSY) <= SHORT_NS);
    (void)strcpy(slot.ticket, "a ticket that is not in the row");
    slot.place = -1;
    assert_true(pause_after(FAILURES, SQLOCK_ERETRY) <= SHORT_NS);
}

SCENE_TEST(test_a_wait_with_a_place_has_time)
{
    (void)strcpy(slot.ticket, "a ticket");
    slot.place = 3;
    assert_true(pause_after(FAILURES, SQLOCK_ERETRY) > SHORT_NS);
}

/* The database is away, or has too much to do. */
SCENE_TEST(test_a_database_without_an_answer_is_given_time)
{
    assert_true(pause_after(FAILURES, SQLOCK_EUNREACHABLE) > SHORT_NS);
    assert_true(pause_after(FAILURES, SQLOCK_ETIMEDOUT) > SHORT_NS);
}
