/*
 * random.c - random steps of several owners at several locks, compared with a
 * model of one lock (model.h)
 *
 * A run that differs is cut down to the steps that it needs, and printed as a
 * scene with its seed; SQLOCK_TEST_SEED=N makes the same runs again.
 */
#include "random.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"
#include "play.h"

#define RUN_STEPS 24
#define LOCKS 3
#define STEPS_MAX 400 /* a run of RUN_STEPS, with what belongs to it */
#define LONG_MS (60000 * SLOWNESS)
#define SHORT_MS (200 * SLOWNESS)

enum deed {
    TAKE,
    TAKE_SHORT,
    TAKE_AND_WAIT, /* for a moment */
    TAKE_MANY,     /* the lock and the next one */
    WAIT,          /* in the background, until it gets the lock */
    GIVE,
    GIVE_MANY,
    RENEW,
    BREAK,
    FAIL, /* the network, at the next statement of the first process */
    PASS, /* time, longer than a short lease */
    DEEDS
};

/* How often each comes up. */
static const unsigned weights[DEEDS] = {8, 5, 3, 4, 4, 12, 3, 5, 2, 2, 2};

struct act {
    enum deed deed;
    int owner;
    int lock;
};

static const char *const owners[OWNERS] = {"a.1", "a.2", "b.1", "c.1"};
static const char *const names[LOCKS] = {"L", "M", "N"};

struct run {
    struct play play;
    struct model models[LOCKS];
    int waiters[LOCKS]; /* who waits in the background; -1: nobody */
    bool is_to_fail;    /* the next call of the first process */
    bool is_open;
    struct {
        struct step step;
        char words[200]; /* of which the step is made */
    } steps[STEPS_MAX];  /* that were played; some are still under way */
    size_t count;
    jmp_buf escape;
    char scene[8000]; /* the steps that were played */
    char difference[700];
};

static int64_t now_ns(void)
{
    return check_deadline_ns(0);
}

/* ------------------------------------------------------------ one step -- */

/* Play a step, whatever its result; write it down with what it gave. */
static int perform(struct run *run, const char *text, struct moment *at)
{
    struct result result;
    struct step *step = &run->steps[run->count].step;
    char *words = run->steps[run->count].words;
    char printed[512];
    size_t length = strlen(run->scene);

    (void)snprintf(words, sizeof run->steps->words, "%s", text);
    if (++run->count == STEPS_MAX || step_parse(step, words) != NULL)
        abort();
    at->began_ns = now_ns();
    (void)play_step(&run->play, step, &result);
    at->ended_ns = now_ns();
    if (run->is_to_fail && proxy_times(run->play.proxy) > 0)
        run->is_to_fail = false; /* it has failed */
    (void)snprintf(run->scene + length, sizeof run->scene - length,
                   "    %s -> %s\n", step_print(printed, step),
                   result_name(result.rc));
    (void)snprintf(run->difference, sizeof run->difference, "%s: %s", text,
                   result.message != NULL ? result.message : "");
    return result.rc;
}

/* Return whether the network may fail at this call of the owner. */
static bool fails_now(const struct run *run, int owner)
{
    return run->is_to_fail && owners[owner][0] == 'a';
}

static bool take(struct run *run, const struct act *act, int64_t ttl_ms,
                 int64_t wait_ms)
{
    struct model *model = &run->models[act->lock];
    struct moment at = {.has_failed = fails_now(run, act->owner)};
    char text[120];
    int rc;

    if (model->of[act->owner].count > 0)
        ttl_ms = model->of[act->owner].ttl_ms; /* nested: the same options */
    (void)snprintf(text, sizeof text, "%s takes %s ttl=%lld wait=%lld",
                   owners[act->owner], names[act->lock],
                   (long long)ttl_ms / SLOWNESS, (long long)wait_ms / SLOWNESS);
    rc = perform(run, text, &at);
    /* The player has made a claim that outlasted a short lease again. */
    if (!model_may_take(model, act->owner, wait_ms, &at, rc))
        return false;
    model_took(model, act->owner, ttl_ms, &at, rc);
    return true;
}

/* All are taken or none: a result of 0 must be right for each, another one for
 * some. */
static bool take_many(struct run *run, const struct act *act)
{
    int other = (act->lock + 1) % LOCKS;
    int locks[2] = {act->lock, other};
    struct moment at = {.has_failed = fails_now(run, act->owner)};
    bool is_right = false;
    bool is_wrong = false;
    char text[120];
    int rc;

    for (int i = 0; i < 2; i++)
        if (run->models[locks[i]].of[act->owner].count > 0)
            return true;
    (void)snprintf(text, sizeof text, "%s takes %s,%s ttl=%d",
                   owners[act->owner], names[act->lock], names[other],
                   LONG_MS / SLOWNESS);
    rc = perform(run, text, &at);
    for (int i = 0; i < 2; i++) {
        bool may =
            model_may_take(&run->models[locks[i]], act->owner, 0, &at, rc);

        is_right = is_right || may;
        is_wrong = is_wrong || !may;
    }
    if (rc == 0 ? is_wrong : !is_right)
        return false;
    for (int i = 0; i < 2; i++) {
        model_touched(&run->models[locks[i]], &at);
        model_took(&run->models[locks[i]], act->owner, LONG_MS, &at, rc);
    }
    return true;
}

static bool end_wait(struct run *run, int lock)
{
    int owner = run->waiters[lock];
    struct moment at = {0};
    char text[120];
    int rc;

    (void)snprintf(text, sizeof text, "%s ends", owners[owner]);
    rc = perform(run, text, &at);
    run->waiters[lock] = -1;
    /* It may have got the lock, for its long TTL, as soon as that was free. */
    if (rc == 0)
        model_took(&run->models[lock], owner, LONG_MS, &at, rc);
    return rc == 0;
}

static bool is_waiting(const struct run *run, int owner)
{
    for (int i = 0; i < LOCKS; i++)
        if (run->waiters[i] == owner)
            return true;
    return false;
}

/* Return whether the owner has any lock. */
static bool has_any(const struct run *run, int owner)
{
    for (int i = 0; i < LOCKS; i++)
        if (run->models[i].of[owner].count > 0)
            return true;
    return false;
}

/* Begin to wait, behind a holder whose lease is long.  An owner that has
 * something does not, so that no two wait for each other. */
static bool begin_wait(struct run *run, const struct act *act)
{
    struct model *model = &run->models[act->lock];
    struct moment at = {0};
    char text[120];

    if (has_any(run, act->owner) || run->waiters[act->lock] >= 0 ||
        run->is_to_fail || model->is_in_doubt ||
        !model_is_live(model, now_ns() + SHORT_MS * INT64_C(1000000)))
        return true;
    (void)snprintf(text, sizeof text, "%s takes %s ttl=%d wait=ever &",
                   owners[act->owner], names[act->lock], LONG_MS / SLOWNESS);
    run->waiters[act->lock] = act->owner;
    return perform(run, text, &at) == 0;
}

static bool give(struct run *run, const struct act *act, int other)
{
    struct moment at = {.has_failed = fails_now(run, act->owner)};
    struct model *model = &run->models[act->lock];
    bool is_many = other >= 0 && model->of[act->owner].count > 0 &&
                   run->models[other].of[act->owner].count > 0;
    struct model *second = is_many ? &run->models[other] : NULL;
    struct model before = *model;
    char text[120];
    int rc;

    (void)snprintf(text, sizeof text, "%s gives %s%s%s", owners[act->owner],
                   names[act->lock], is_many ? "," : "",
                   is_many ? names[other] : "");
    rc = perform(run, text, &at);
    if (!is_many)
        return model_give(model, act->owner, &at, rc);
    /* The call gives the first result that is not 0, in the locks' order. */
    if (rc == 0)
        return model_give(model, act->owner, &at, 0) &&
               model_give(second, act->owner, &at, 0);
    if (model_give(model, act->owner, &at, rc)) {
        (void)model_give(second, act->owner, &at, rc);
        second->is_in_doubt = second->is_in_doubt || second->holder < 0;
        return true;
    }
    *model = before;
    return model_give(model, act->owner, &at, 0) &&
           model_give(second, act->owner, &at, rc);
}

static bool renew(struct run *run, const struct act *act)
{
    struct moment at = {.has_failed = fails_now(run, act->owner)};
    char text[120];
    int rc;

    (void)snprintf(text, sizeof text, "%s renews %s", owners[act->owner],
                   names[act->lock]);
    rc = perform(run, text, &at);
    return model_renew(&run->models[act->lock], act->owner, &at, rc);
}

static bool break_lease(struct run *run, const struct act *act)
{
    struct model *model = &run->models[act->lock];
    struct moment at = {0};
    char text[120];
    int rc;

    /* A process does not notice: its own waiter would wait for the lease's
     * end. */
    if (model->is_in_doubt ||
        !model_is_live(model, now_ns() + SHORT_MS * INT64_C(1000000)) ||
        (run->waiters[act->lock] >= 0 &&
         model_are_siblings(model->holder, run->waiters[act->lock])))
        return true;
    (void)snprintf(text, sizeof text, "operator breaks %s now",
                   names[act->lock]);
    rc = perform(run, text, &at);
    model_break(model);
    return rc == 0;
}

static bool fail_network(struct run *run, int lock)
{
    struct moment at = {0};

    if (run->play.f->database->bit == ON_SQLITE || run->is_to_fail)
        return true;
    for (int i = 0; i < LOCKS; i++)
        if (run->waiters[i] >= 0)
            return true;
    if (perform(run,
                lock % 2 == 0 ? "network cuts when=carried_out"
                              : "network cuts",
                &at) != 0)
        return false;
    run->is_to_fail = true;
    return true;
}

/* Let those get their locks that wait for one which is, or may be, free. */
static bool end_waits(struct run *run)
{
    for (int i = 0; i < LOCKS; i++)
        if (run->waiters[i] >= 0 && !model_is_live(&run->models[i], now_ns()) &&
            !end_wait(run, i))
            return false;
    return true;
}

static bool act_out(struct run *run, const struct act *act)
{
    struct moment at = {0};

    if (!end_waits(run))
        return false;
    if (act->deed < BREAK && is_waiting(run, act->owner))
        return true;
    switch (act->deed) {
    case TAKE:
        return take(run, act, LONG_MS, 0);
    case TAKE_SHORT:
        return take(run, act, SHORT_MS, 0);
    case TAKE_AND_WAIT:
        return take(run, act, LONG_MS, 30 * SLOWNESS);
    case TAKE_MANY:
        return take_many(run, act);
    case WAIT:
        return begin_wait(run, act);
    case GIVE:
        return give(run, act, -1);
    case GIVE_MANY:
        return give(run, act, (act->lock + 1) % LOCKS);
    case RENEW:
        return renew(run, act);
    case BREAK:
        return break_lease(run, act);
    case FAIL:
        return fail_network(run, act->lock);
    case PASS:
        return perform(run, "time passes ms=260", &at) == 0;
    case DEEDS:
        break;
    }
    return false;
}

/* ------------------------------------------------------------- one run -- */

/* Release what the owners have, with the results that the model expects. */
static bool give_all_back(struct run *run)
{
    for (int i = 0; i < LOCKS; i++) {
        if (run->waiters[i] >= 0 && run->models[i].holder >= 0) {
            struct act last = {GIVE, run->models[i].holder, i};

            while (run->models[i].of[last.owner].count > 0)
                if (!give(run, &last, -1))
                    return false;
        }
        if (run->waiters[i] >= 0 && !end_wait(run, i))
            return false;
        for (int owner = 0; owner < OWNERS; owner++) {
            struct act last = {GIVE, owner, i};

            while (run->models[i].of[owner].count > 0)
                if (!give(run, &last, -1))
                    return false;
        }
    }
    return true;
}

/* Start the processes, unless they are there from the last run. */
static void open_run(struct run *run, struct fixture *f)
{
    static const char *const opens[] = {"a opens through=network", "b opens",
                                        "c opens"};

    for (size_t i = 0; !run->is_open && i < 3; i++) {
        bool is_file = f->database->bit == ON_SQLITE;
        struct moment at = {0};

        if (i == 0)
            play_open(&run->play, f);
        run->play.file = "random steps";
        run->play.escape = &run->escape;
        if (perform(run, i == 0 && is_file ? "a opens" : opens[i], &at) != 0)
            play_fail(&run->play, "%s", run->difference);
    }
    for (int owner = 1; run->is_open && owner < OWNERS; owner++) {
        struct moment at = {0};
        char text[40];

        (void)snprintf(text, sizeof text, "%s forgets", owners[owner]);
        (void)perform(run, text, &at);
    }
    run->is_open = true;
    fixture_next(f);
    memset(run->play.names, 0, sizeof run->play.names);
    run->scene[0] = '\0';
    run->count = 0;
    run->is_to_fail = false;
    for (int i = 0; i < LOCKS; i++) {
        model_begin(&run->models[i], f->layout == SQLOCK_LAYOUT_SQLOCK);
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
            is_right = act_out(run, &acts[i]);
        is_right = is_right && give_all_back(run);
    } else {
        is_right = false;
        (void)snprintf(run->difference, sizeof run->difference, "%s",
                       run->play.why);
    }
    if (!is_right) {
        play_abandon(&run->play);
        run->is_open = false;
    } else if (run->play.proxy != NULL) {
        proxy_heal(run->play.proxy);
    }
    return is_right;
}

/* ---------------------------------------------------------- cut it down -- */

/* Leave out what the difference does not need; return how many are left. */
static size_t cut_down(struct run *run, struct fixture *f, struct act *acts,
                       size_t count)
{
    for (size_t part = count / 2; part > 0; part /= 2)
        for (size_t at = 0; at + part <= count;) {
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
    struct act act = {.owner = (int)next(random, OWNERS),
                      .lock = (int)next(random, LOCKS)};
    unsigned sum = 0;
    unsigned point;

    for (int i = 0; i < DEEDS; i++)
        sum += weights[i];
    point = next(random, sum);
    while (point >= weights[act.deed])
        point -= weights[act.deed++];
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
    static const char *const closes[] = {"a closes", "b closes", "c closes"};
    struct moment at = {0};

    run->play.escape = NULL;
    for (size_t i = 0; i < 3; i++)
        (void)perform(run, closes[i], &at);
    play_close(&run->play);
}

static void test_random_steps_go_as_in_the_model(void **state)
{
    static struct run run;
    struct fixture *f = *state;
    int64_t until = check_deadline_ns(check_scale(4, 3600) * INT64_C(1000));
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

static const struct test tests[] = {
    TEST_ON(test_random_steps_go_as_in_the_model, ON_ALL, HAS_EXPIRY),
};
const struct topic topic_random = TOPIC(tests);
