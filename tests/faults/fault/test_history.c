/*
 * test_history.c - history_is_good() refuses bad histories, and no others
 */
#include "fault.h"

#include <string.h>

#define EVENTS_MAX 8

/* An event; times are in ms. */
struct line {
    enum history_what what;
    int who;
    int asked;
    int at;
    int until;
    int token;
};

struct story {
    const char *name;
    const char *complaint; /* part of the text; NULL: the history is good */
    struct line lines[EVENTS_MAX];
};

#define GRANTED(who, asked, at, until, token)                                  \
    {                                                                          \
        HISTORY_GRANTED, (who), (asked), (at), (until), (token)                \
    }
#define RENEWED(who, asked, at, until)                                         \
    {                                                                          \
        HISTORY_RENEWED, (who), (asked), (at), (until), 0                      \
    }
#define ENDED(who, at)                                                         \
    {                                                                          \
        HISTORY_ENDED, (who), (at), (at), 0, 0                                 \
    }
#define TOLD(who, at)                                                          \
    {                                                                          \
        HISTORY_TOLD, (who), (at), (at), 0, 0                                  \
    }

static const struct story stories[] = {
    {"nothing happened", NULL, {{0}}},
    {"one after the other",
     NULL,
     {GRANTED(1, 1, 2, 100, 7), ENDED(1, 50), GRANTED(2, 10, 51, 150, 8)}},
    {"after the deadline, though not released",
     NULL,
     {GRANTED(1, 1, 2, 100, 7), GRANTED(2, 10, 100, 200, 8), ENDED(1, 120),
      ENDED(2, 130)}},
    {"a deadline moved forth by a renewal",
     NULL,
     {GRANTED(1, 1, 2, 100, 7), RENEWED(1, 60, 61, 160),
      GRANTED(2, 10, 160, 200, 8)}},
    {"a lease shortened by a renewal",
     NULL,
     {GRANTED(1, 1, 2, 100, 7), RENEWED(1, 10, 11, 20),
      GRANTED(2, 12, 21, 200, 8)}},
    {"told in time",
     NULL,
     {GRANTED(1, 1, 2, 100, 7), TOLD(1, 101), GRANTED(2, 10, 105, 200, 8)}},
    {"lines written out of order",
     NULL,
     {GRANTED(2, 10, 51, 150, 8), ENDED(1, 50), GRANTED(1, 1, 2, 100, 7)}},
    {"granted while another believes",
     "believed at one time",
     {GRANTED(1, 1, 2, 100, 7), GRANTED(2, 10, 99, 200, 8)}},
    {"granted inside a longer belief",
     "believed at one time",
     {GRANTED(1, 1, 2, 300, 7), GRANTED(2, 10, 50, 60, 8)}},
    {"granted while a renewed lease lasts",
     "believed at one time",
     {GRANTED(1, 1, 2, 100, 7), RENEWED(1, 60, 61, 160),
      GRANTED(2, 10, 120, 200, 8)}},
    {"a release that came too late",
     "believed at one time",
     {GRANTED(1, 1, 2, 100, 7), GRANTED(2, 10, 40, 200, 8), ENDED(1, 45)}},
    {"revived after another had it",
     "believed at one time",
     {GRANTED(1, 1, 2, 100, 7), GRANTED(2, 10, 110, 200, 8),
      RENEWED(1, 120, 121, 220)}},
    {"a token that falls",
     "token 6",
     {GRANTED(1, 1, 2, 100, 7), ENDED(1, 50), GRANTED(2, 51, 52, 150, 6)}},
    {"a token that comes twice",
     "token 7",
     {GRANTED(1, 1, 2, 100, 7), ENDED(1, 50), GRANTED(2, 51, 52, 150, 7)}},
    {"one's own token that falls",
     "token 6",
     {GRANTED(1, 1, 2, 100, 7), ENDED(1, 50), GRANTED(1, 51, 52, 150, 6)}},
    {"told after another was granted",
     "was told",
     {GRANTED(1, 1, 2, 100, 7), GRANTED(2, 10, 105, 200, 8), TOLD(1, 106)}},
    {"granted twice",
     "while having",
     {GRANTED(1, 1, 2, 100, 7), GRANTED(1, 3, 4, 100, 8)}},
    {"renewed without a grant", "without having", {RENEWED(1, 1, 2, 100)}},
    {"released twice",
     "without having",
     {GRANTED(1, 1, 2, 100, 7), ENDED(1, 50), ENDED(1, 51)}},
    {"told without a grant", "without having", {TOLD(1, 5)}},
};

static void tell(struct history *history, const struct story *story)
{
    for (size_t i = 0; i < EVENTS_MAX && story->lines[i].who != 0; i++) {
        const struct line *line = &story->lines[i];
        struct history_event event = {
            .what = line->what,
            .who = line->who,
            .asked_ns = line->asked * INT64_C(1000000),
            .at_ns = line->at * INT64_C(1000000),
            .until_ns = line->until * INT64_C(1000000),
            .token = line->token};

        history_add(history, &event);
    }
}

static void test_good_histories_pass_and_bad_ones_are_caught(void **state)
{
    size_t bad = 0;

    (void)state;
    for (size_t i = 0; i < sizeof stories / sizeof *stories; i++) {
        const struct story *story = &stories[i];
        char why[HISTORY_TEXT] = "";
        struct history history;
        bool good;

        history_init(&history);
        tell(&history, story);
        good = history_is_good(&history, why);
        if (good != (story->complaint == NULL))
            fail_msg("\"%s\": %s", story->name, good ? "not caught" : why);
        if (!good)
            assert_contains(why, story->complaint);
        bad += !good;
        history_clear(&history);
    }
    assert_int_equal(bad, 13);
}

/* Size of a good history, and its times in ns.  It is damaged in five ways, at
 * places that depend on the seed, and must be found bad. */
enum { ROUNDS = 60, HOLD = 1000000, PERIOD = 1500000 };

static void good_history(struct history *history)
{
    for (int i = 0; i < ROUNDS; i++) {
        int64_t from = (int64_t)i * PERIOD;
        struct history_event granted = {.what = HISTORY_GRANTED,
                                        .who = 1 + i % 3,
                                        .asked_ns = from,
                                        .at_ns = from + 100000,
                                        .until_ns = from + HOLD,
                                        .token = 10 + i};
        struct history_event ended = {.what = HISTORY_ENDED,
                                      .who = 1 + i % 3,
                                      .asked_ns = from + HOLD,
                                      .at_ns = from + HOLD};

        history_add(history, &granted);
        history_add(history, &ended);
    }
}

static void test_seeded_damage_is_always_caught(void **state)
{
    unsigned caught = 0;
    unsigned seed;

    (void)state;
    for (seed = 0; seed < 300; seed++) {
        struct history history;
        char why[HISTORY_TEXT];
        struct history_event *event;
        size_t i = 2 * (((size_t)seed * 7 + 3) % (ROUNDS - 3) + 1);

        history_init(&history);
        good_history(&history);
        assert_true(history_is_good(&history, why));
        event = &history.events[i];
        switch (seed % 5) {
        case 0: /* the next party was granted the lock too early */
            event[2].asked_ns = event->at_ns;
            event[2].at_ns = event->at_ns + HOLD / 2;
            break;
        case 1: /* the deadline was too late, and so was the release */
            event->until_ns += PERIOD;
            event[1].at_ns = event[2].at_ns + HOLD / 2;
            break;
        case 2: /* the token of the grant before */
            event->token = event[-2].token;
            break;
        case 3: /* a token that does not rise */
            event->token = 5;
            break;
        default: /* the loss was told after the next party's grant */
            event[1].at_ns = event[2].at_ns + 2;
            event[1].what = HISTORY_ENDED;
            history_add(&history,
                        &(struct history_event){.what = HISTORY_TOLD,
                                                .who = event->who,
                                                .at_ns = event[2].at_ns + 1});
            break;
        }
        if (history_is_good(&history, why))
            fail_msg("seed %u: not caught", seed);
        caught++;
        history_clear(&history);
    }
    assert_int_equal(caught, 300);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_good_histories_pass_and_bad_ones_are_caught),
    cmocka_unit_test(test_seeded_damage_is_always_caught),
};
const struct suite suite_history = SUITE("history", tests);
