/*
 * random.c - random steps of several owners at several locks, compared with a
 * model of one lock (model.h)
 *
 * A run that differs is cut down to the steps that it needs, and printed as a
 * scene with its seed; SQLOCK_TEST_SEED=N makes the same runs again.
 */
#include "support/suite_main.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "deeds.h"

#define RUN_STEPS 24
#define REPLAYS_MAX 60 /* to cut a difference down */

/* How often each comes up. */
static const unsigned weights[DEEDS] = {16, 10, 14, 12, 3, 14, 6, 28, 6, 20,
                                        4,  8,  6,  20, 4, 3,  1, 6,  1};

static int64_t now_ns(void)
{
    return check_deadline_ns(0);
}

/* ------------------------------------------------------------- one run -- */

/* Start the processes, unless they are there from the last run. */
static void open_run(struct run *run, struct fixture *f)
{
    static const char *const first[OWNERS] = {"a.1", "a.2", "b.1", "c.1"};

    if (!run->is_open) {
        play_open(&run->play, f);
        run->play.file = "random steps";
        run->deaths = 0;
        memset(run->shaken, 0, sizeof run->shaken);
    }
    run->play.escape = &run->escape;
    for (int i = 0; !run->is_open && i < OWNERS; i++) {
        char id[2] = {first[i][0], '\0'};

        (void)snprintf(run->owners[i], sizeof run->owners[i], "%s", first[i]);
        if (i != 1 && !run_open_process(run, id))
            play_fail(&run->play, "%s", run->difference);
    }
    for (int owner = 1; run->is_open && owner < OWNERS; owner++) {
        struct moment at = {0};
        char text[40];

        (void)snprintf(text, sizeof text, "%s forgets", run->owners[owner]);
        (void)run_step(run, text, &at);
    }
    run->is_open = true;
    fixture_next(f);
    memset(run->play.names, 0, sizeof run->play.names);
    for (size_t i = 0; i < run->play.company.count; i++)
        memset(run->play.company.all[i].losses, 0,
               sizeof run->play.company.all[i].losses);
    run->scene[0] = '\0';
    run->count = 0;
    run->is_to_fail = false;
    for (int i = 0; i < LOCKS; i++) {
        model_begin(&run->models[i], f->layout == SQLOCK_LAYOUT_SQLOCK);
        run->clients[i][0] = '\0';
        run->waiters[i] = -1;
    }
}

/* Play the acts on locks of their own; return whether all went as in the
 * model.  Otherwise the processes are killed: they may hold what they should
 * not. */
static bool play_acts(struct run *run, struct fixture *f,
                      const struct act *acts, size_t count)
{
    volatile bool is_right = false;

    if (setjmp(run->escape) == 0) {
        open_run(run, f);
        is_right = true;
        for (size_t i = 0; i < count && is_right; i++)
            is_right = run_act(run, &acts[i]);
        is_right = is_right && run_end(run);
    } else {
        is_right = false;
        (void)snprintf(run->difference, sizeof run->difference, "%s",
                       run->play.why);
    }
    if (!is_right) {
        play_abandon(&run->play);
        run->is_open = false;
    } else if (run->play.proxies[0] != NULL) {
        proxy_heal(run->play.proxies[0]);
    }
    return is_right;
}

/* ---------------------------------------------------------- cut it down -- */

/* Leave out what the difference does not need; return how many are left. */
static size_t cut_down(struct run *run, struct fixture *f, struct act *acts,
                       size_t count)
{
    unsigned replays = 0;

    for (size_t part = count / 2; part > 0; part /= 2)
        for (size_t at = 0; at + part <= count && replays < REPLAYS_MAX;
             replays++) {
            struct act less[RUN_STEPS];

            memcpy(less, acts, sizeof less);
            memmove(less + at, less + at + part,
                    (count - at - part) * sizeof *less);
            if (play_acts(run, f, less, count - part)) {
                at += part;
                continue;
            }
            memcpy(acts, less, sizeof less);
            count -= part;
        }
    return count;
}

static void report(struct run *run, struct fixture *f, struct act *acts,
                   unsigned long seed)
{
    char first[700];
    size_t count;

    (void)snprintf(first, sizeof first, "%s", run->difference);
    print_error("seed %lu differs from the model: %s\n%s", seed, first,
                run->scene);
    count = cut_down(run, f, acts, RUN_STEPS);
    if (play_acts(run, f, acts, count))
        print_error("cut down, it does not differ each time\n");
    else
        print_error("cut down to %zu steps: %s\n%s", count, run->difference,
                    run->scene);
    fail();
}

/* -------------------------------------------------------------- the test -- */

/* A generator of our own, so that a seed means the same everywhere. */
static unsigned next(unsigned long *random, unsigned below)
{
    *random = *random * 6364136223846793005UL + 1442695040888963407UL;
    return (unsigned)(*random >> 33) % below;
}

static struct act make_up(unsigned long *random)
{
    static const int locks[] = {0, 0, 0, 1, 1, 2};
    struct act act = {.owner = (int)next(random, OWNERS),
                      .lock = locks[next(random, 6)],
                      .is_apt = next(random, 4) != 0};
    unsigned sum = 0;
    unsigned point;

    for (int i = 0; i < DEEDS; i++)
        sum += weights[i];
    point = next(random, sum);
    while (point >= weights[act.deed])
        point -= weights[act.deed++];
    act.is_apt = act.is_apt && act.deed >= GIVE && act.deed <= HEAR;
    return act;
}

static unsigned long first_seed(void)
{
    const char *given = getenv("SQLOCK_TEST_SEED");

    return given != NULL ? strtoul(given, NULL, 10)
                         : (unsigned long)now_ns() % 1000000007;
}

/* Close the processes, which must end with status 0.  A release that is still
 * in doubt may turn out to be a loss. */
static void close_run(struct run *run)
{
    struct moment at = {0};

    run->play.escape = NULL;
    for (int owner = 0; owner < OWNERS; owner++) {
        char text[40];

        if (owner == 1)
            continue;
        (void)snprintf(text, sizeof text, "%.*s closes",
                       (int)strcspn(run->owners[owner], "."),
                       run->owners[owner]);
        (void)run_step(run, text, &at);
    }
    play_close(&run->play);
}

TEST_ON(test_random_steps_go_as_in_the_model, ON_ALL, HAS_EXPIRY)
{
    static struct run run;
    int64_t until = check_deadline_ns(check_scale(5, 3600) * INT64_C(1000));
    unsigned long seed = first_seed();
    unsigned runs = 0;

    print_message("seeds from %lu\n", seed);
    memset(&run, 0, sizeof run);
    do {
        unsigned long random = seed + runs;
        struct act acts[RUN_STEPS];

        for (size_t i = 0; i < RUN_STEPS; i++)
            acts[i] = make_up(&random);
        if (!play_acts(&run, f, acts, RUN_STEPS))
            report(&run, f, acts, seed + runs);
        runs++;
    } while (now_ns() < until);
    print_message("%u runs of %d steps\n", runs, RUN_STEPS);
    close_run(&run);
}
