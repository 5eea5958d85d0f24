/*
 * test_epoch.c - which epochs of a server are reported as a change
 */
#include "support/test.h"

#include <stdio.h>

#include "base/clock.h"
#include "db/epoch.h"

struct told {
    unsigned times;
    char before[SQLOCK_EPOCH_SIZE], now[SQLOCK_EPOCH_SIZE];
};

static void tell(void *context, const char *before, const char *now)
{
    struct told *told = context;

    told->times++;
    (void)snprintf(told->before, sizeof told->before, "%s", before);
    (void)snprintf(told->now, sizeof told->now, "%s", now);
}

/* Note the epoch of a connection that is opened at once. */
static void note(struct lk_epoch *epoch, const char *now)
{
    uint32_t changes = epoch->changes;

    assert_true(lk_epoch_note(epoch, now, &changes));
    assert_int_equal(changes, epoch->changes);
}

TEST(test_F57_only_another_epoch_is_a_change)
{
    struct told told = {0};
    struct lk_epoch epoch;
    char last[SQLOCK_EPOCH_SIZE] = "x";

    lk_epoch_init(&epoch);
    epoch.changed = tell;
    epoch.context = &told;
    assert_int_equal(lk_epoch_last(&epoch, last), 0);
    assert_string_equal(last, "");
    note(&epoch, "first");
    note(&epoch, "first");
    note(&epoch, ""); /* unknown */
    assert_int_equal(lk_epoch_last(&epoch, last), 0);
    assert_int_equal(told.times, 0);
    note(&epoch, "second");
    assert_int_equal(lk_epoch_last(&epoch, last), 1);
    assert_string_equal(last, "second");
    assert_string_equal(told.before, "first");
    assert_string_equal(told.now, "second");
    note(&epoch, "first");
    assert_int_equal(told.times, 2);
    lk_epoch_clear(&epoch);
}

/* A login that began before another server had answered, and ends after. */
TEST(test_F57_a_late_login_does_not_lead_back)
{
    struct told told = {0};
    struct lk_epoch epoch;
    char last[SQLOCK_EPOCH_SIZE];
    uint32_t changes = 0;

    lk_epoch_init(&epoch);
    epoch.changed = tell;
    epoch.context = &told;
    note(&epoch, "former");
    note(&epoch, "new");
    assert_false(lk_epoch_note(&epoch, "former", &changes));
    assert_int_equal(lk_epoch_last(&epoch, last), 1);
    assert_string_equal(last, "new");
    assert_int_equal(told.times, 1);
    changes = 0;
    assert_true(lk_epoch_note(&epoch, "new", &changes));
    assert_int_equal(changes, 1);
    lk_epoch_clear(&epoch);
}

/* As of a PostgreSQL whose standby was promoted. */
TEST(test_F57_a_server_is_held_back_until_then)
{
    struct lk_epoch epoch;

    lk_epoch_init(&epoch);
    assert_int_equal(lk_epoch_held_ns(&epoch), 0);
    lk_epoch_hold_back(&epoch, lk_boottime_ns() + INT64_C(3600000000000));
    assert_true(lk_epoch_held_ns(&epoch) > 0);
    lk_epoch_hold_back(&epoch, lk_boottime_ns() - 1);
    assert_int_equal(lk_epoch_held_ns(&epoch), 0);
    lk_epoch_hold_back(&epoch, 0);
    assert_int_equal(lk_epoch_held_ns(&epoch), 0);
    lk_epoch_clear(&epoch);
}

static void note_forgetful(void *context, const char *settings)
{
    struct told *told = context;

    told->times++;
    (void)snprintf(told->now, sizeof told->now, "%s", settings);
}

/* Each connection finds them: they are told when they are others. */
TEST(test_F61_settings_are_told_once)
{
    static const struct {
        const char *settings;
        unsigned times;
    } found[] = {{"", 0}, {"fsync = off", 1}, {"fsync = off", 1},
                 {"", 1}, {"fsync = off", 2}, {"full_page_writes = off", 3},
                 {"", 3}, {"fsync = off", 4}};
    struct told told = {0};
    struct lk_epoch epoch;

    lk_epoch_init(&epoch);
    lk_epoch_note_settings(&epoch, "nobody is told");
    epoch.forgets = note_forgetful;
    epoch.context = &told;
    for (size_t i = 0; i < sizeof found / sizeof *found; i++) {
        lk_epoch_note_settings(&epoch, found[i].settings);
        assert_int_equal(told.times, found[i].times);
        if (*found[i].settings != '\0')
            assert_string_equal(told.now, found[i].settings);
    }
    lk_epoch_clear(&epoch);
}

TEST(test_F57_each_timeline_is_another_epoch)
{
    static const char *const timelines[] = {
        "7300000000000000001/00000001", "7300000000000000001/00000002",
        "7300000000000000001/00000010", "7300000000000000001/00000001"};
    char last[SQLOCK_EPOCH_SIZE];
    struct lk_epoch epoch;

    lk_epoch_init(&epoch);
    for (uint32_t i = 0; i < 4; i++) {
        note(&epoch, timelines[i]);
        assert_int_equal(lk_epoch_last(&epoch, last), i);
        assert_string_equal(last, timelines[i]);
    }
    lk_epoch_clear(&epoch);
}
