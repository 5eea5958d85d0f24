/*
 * main.c - the suite `chaos`: rounds of some seconds, each with a seed, after
 * which tests/history/check.py judges what the processes were told
 *
 *     make chaos MINUTES=30 SEED=4711
 *     build/tests/chaos --seconds 20 --seed 4711 sqlite
 *
 * A round that breaks a promise is told with its seed, and its history stays
 * in a file.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "chaos.h"
#include "support/cluster.h"
#include "support/group.h"
#include "support/history.h"
#include "support/lanes.h"
#include "support/program.h"

#define ROUND_MS 10000
/* After a round all leases of those who were killed run out. */
#define REST_MS 1500
/* No answer is later than that; a busy machine is late. */
#define LATE_MS 6000
/* No loss is told later than that. */
#define UNTOLD_MS 1500

static const struct database *current;
static int chaos_fd;
static int given_seconds, given_seed, given_processes = PROCESSES, shrinks;
static char *given_without, *given_picture;

const char *const chaos_words[WORDS] = {
    "once",      "both",    "sell",    "observe", "quorum", "briefly",
    "want",      "lead",    "killed",  "stopped", "cut",    "silent",
    "away",      "crashed", "forgot",  "stormed", "full",   "ended",
    "exhausted", "stepped", "promoted"};

/* --- what is shared --- */

/* As SplitMix64. */
static uint64_t next(struct dice *dice)
{
    uint64_t z = dice->state += UINT64_C(0x9E3779B97F4A7C15);

    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* Two seeds in a row have nothing in common. */
void dice_begin(struct dice *dice, uint64_t seed, uint64_t of)
{
    dice->state = seed;
    dice->state = next(dice) + of;
    dice->state = next(dice);
}

unsigned dice_below(struct dice *dice, unsigned limit)
{
    return (unsigned)(next(dice) % limit);
}

struct line *chaos_line(struct chaos *chaos, const char *verb, unsigned process,
                        unsigned life, unsigned owner, const char *lock)
{
    unsigned at = atomic_fetch_add(&chaos->count, 1);
    struct line *line = &chaos->lines[at < LINES_MAX ? at : LINES_MAX - 1];

    (void)snprintf(line->verb, sizeof line->verb, "%s", verb);
    line->process = process;
    line->life = life;
    line->owner = owner;
    line->wait_ms = -1;
    line->weight = -1;
    (void)snprintf(line->lock, sizeof line->lock, "%s", lock);
    line->from_ns = lk_boottime_ns();
    return line;
}

void chaos_note(struct chaos *chaos, const char *verb, unsigned process,
                unsigned life, int64_t from_ns, int64_t to_ns)
{
    struct line *line = chaos_line(chaos, verb, process, life, 0, "*");

    line->from_ns = from_ns;
    atomic_store(&line->to_ns, to_ns);
    atomic_store(&line->is_whole, true);
}

/* Return whether a call of that kind has succeeded, for that lock or, with
 * NULL, for any. */
static bool has_done(struct chaos *chaos, const char *verb, const char *lock)
{
    unsigned lines = atomic_load(&chaos->count);

    for (unsigned i = 0; i < lines && i < LINES_MAX; i++) {
        const struct line *line = &chaos->lines[i];

        if (atomic_load(&line->is_whole) && atomic_load(&line->to_ns) != 0 &&
            line->rc == 0 && strcmp(line->verb, verb) == 0 &&
            (lock == NULL || strcmp(line->lock, lock) == 0))
            return true;
    }
    return false;
}

bool chaos_has_begun(struct chaos *chaos)
{
    bool has_locks =
        !chaos_leaves_out(chaos, BRIEFLY) || !chaos_leaves_out(chaos, WANT);

    return (!has_locks || has_done(chaos, "acquire", NULL)) &&
           (chaos_leaves_out(chaos, SELL) || has_done(chaos, "sell", NULL));
}

bool chaos_leaves_out(const struct chaos *chaos, enum chaos_word word)
{
    return (chaos->scope.without >> word & 1) != 0;
}

const char *chaos_cluster(void)
{
    return current->bit != ON_SQLITE ? getenv("SQLOCK_TEST_PROMOTION") : NULL;
}

bool chaos_can_guard(void)
{
    const char *kind = chaos_cluster();

    return kind == NULL || strcmp(kind, "galera") != 0;
}

bool chaos_loses_commits(void)
{
    static const char *const kinds[] = {"standby", "replica", "patroni"};
    const char *kind = chaos_cluster();

    for (size_t i = 0; kind != NULL && i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kind, kinds[i]) == 0)
            return true;
    return false;
}

bool chaos_is_over(struct chaos *chaos)
{
    return lk_boottime_ns() >= chaos->ends_ns ||
           atomic_load(&chaos->count) >= LINES_MAX - 1000;
}

/* --- the history --- */

static const struct {
    int rc;
    const char *word;
} codes[] = {
    {0, "ok"},
    {DONE, "done"},
    {SQLOCK_EBUSY, "busy"},
    {SQLOCK_ETIMEDOUT, "timedout"},
    {SQLOCK_ELOST, "lost"},
    {SQLOCK_EEXPIRED, "expired"},
    {SQLOCK_EUNCERTAIN, "uncertain"},
    {SQLOCK_EUNREACHABLE, "unreachable"},
    {0, "failed"},
};
#define CODES (sizeof codes / sizeof *codes)

static size_t code_of(int rc)
{
    size_t i = 0;

    while (i < CODES - 1 && codes[i].rc != rc)
        i++;
    return i;
}

static void print_line(FILE *out, const struct line *line)
{
    bool has_ended = line->to_ns != 0;
    bool is_gone = strcmp(line->verb, "downgrade") == 0 &&
                   (!has_ended || line->rc == SQLOCK_EUNCERTAIN ||
                    line->rc == SQLOCK_EUNREACHABLE);

    (void)fprintf(out, "p%ui%u", line->process, line->life);
    if (line->owner > 0)
        (void)fprintf(out, ".%u", line->owner);
    /* It is not known whether others may share the lock from here on. */
    (void)fprintf(out, " %s %s %.6f ", is_gone ? "gone" : line->verb,
                  line->lock, history_ms(line->from_ns));
    if (has_ended)
        (void)fprintf(out, "%.6f", history_ms(line->to_ns));
    else
        (void)fputs("-", out);
    if (line->until_ns != 0)
        (void)fprintf(out, " until=%.6f", history_ms(line->until_ns));
    if (line->token != 0)
        (void)fprintf(out, " token=%" PRId64, line->token);
    if (line->wait_ms >= 0)
        (void)fprintf(out, " wait=%" PRId64, line->wait_ms);
    if (line->weight >= 0)
        (void)fprintf(out, " weight=%d", line->weight);
    if (line->queued_ns != 0)
        (void)fprintf(out, " queued=%.6f", history_ms(line->queued_ns));
    if (line->is_watched)
        (void)fputs(" watched=1", out);
    if (line->is_renewed)
        (void)fputs(" renewed=1", out);
    if (line->is_part)
        (void)fputs(" part=1", out);
    if (line->is_fenced)
        (void)fputs(" fenced=1", out);
    if (strcmp(line->verb, "write") == 0)
        (void)fprintf(out, " write=%u", line->number);
    else if (strcmp(line->verb, "publish") == 0 ||
             strcmp(line->verb, "observe") == 0)
        (void)fprintf(out, " text=%u", line->number);
    else if (strcmp(line->verb, "row") == 0)
        (void)fprintf(out, " held=%u", line->number);
    else if (strcmp(line->verb, "sell") == 0)
        (void)fprintf(out, " order=%u n=1", line->number);
    if (has_ended)
        (void)fprintf(out, " rc=%s", codes[code_of(line->rc)].word);
    (void)fputs("\n", out);
}

/* Draw a history in a file. */
static void draw(const char *path, const char *picture)
{
    char command[700];
    FILE *drawer;

    (void)snprintf(
        command, sizeof command,
        "${PYTHON:-/usr/bin/python3} -IS tests/history/picture.py %s >%s", path,
        picture);
    drawer = popen(command, "we"); /* NOLINT: of our own making */
    assert_non_null(drawer);
    if (pclose(drawer) != 0)
        print_error("no picture can be drawn: %s\n", command);
    else
        print_message("picture: %s\n", picture);
}

/* Return how many faults the history has; one that has some stays, and *path is
 * where. */
static unsigned judge(struct chaos *chaos, char path[HISTORY_PATH])
{
    FILE *out = history_file(path);
    char picture[512];
    unsigned count, faults;

    work_at_end(chaos);
    count = atomic_load(&chaos->count);
    (void)fprintf(
        out,
        "permits p %d\nlimit lease=%d slow=%d reserved=2000 wait=%d told=%d\n",
        PERMITS, TTL_MS + STATEMENT_MS, STATEMENT_MS / 4, LATE_MS, UNTOLD_MS);
    for (unsigned i = 0; i < count && i < LINES_MAX; i++)
        if (atomic_load(&chaos->lines[i].is_whole))
            print_line(out, &chaos->lines[i]);
    tables_print(chaos, out);
    if (!chaos_loses_commits())
        (void)fputs("limit written=1\n", out);
    faults = history_faults(out, path, true);
    if (faults > 0)
        (void)snprintf(picture, sizeof picture, "%s.svg", path);
    else if (given_picture != NULL)
        (void)snprintf(picture, sizeof picture, "%s-%s.svg", given_picture,
                       current->name);
    if (faults > 0 || given_picture != NULL)
        draw(path, picture);
    if (faults == 0)
        (void)unlink(path);
    return faults;
}

/* --- a round --- */

/* The calls of all rounds by their answers, and the harms. */
static struct {
    char verbs[20][12];
    unsigned calls[20][CODES];
    unsigned harms[WORDS];
} totals;

/* A campaign in which one of them never succeeded shows nothing about it. */
static struct {
    enum chaos_word act;
    const char *verb, *lock;
    bool is_done;
} expected[] = {
    {ONCE, "run", NULL, false},        {SELL, "sell", NULL, false},
    {OBSERVE, "observe", NULL, false}, {QUORUM, "acquire", "quorum", false},
    {WANT, "downgrade", NULL, false},  {WANT, "publish", NULL, false},
    {WANT, "write", NULL, false},      {LEAD, "acquire", "lead", false},
};
#define EXPECTED (sizeof expected / sizeof *expected)

static void check_each_act(struct scope scope)
{
    for (size_t i = 0; i < EXPECTED; i++)
        if (!expected[i].is_done && (scope.without >> expected[i].act & 1) == 0)
            fail_msg("no call of `%s %s` has succeeded", expected[i].verb,
                     expected[i].lock != NULL ? expected[i].lock : "*");
}

static void add_up(struct chaos *chaos)
{
    for (unsigned i = 0; i < chaos->count && i < LINES_MAX; i++) {
        const struct line *line = &chaos->lines[i];
        size_t at = 0;

        if (strcmp(line->lock, "*") == 0 || line->to_ns == 0)
            continue;
        while (totals.verbs[at][0] != '\0' &&
               strcmp(totals.verbs[at], line->verb) != 0)
            at++;
        (void)snprintf(totals.verbs[at], sizeof totals.verbs[at], "%s",
                       line->verb);
        totals.calls[at][code_of(line->rc)]++;
    }
    for (size_t i = KILL; i < WORDS; i++)
        totals.harms[i] += chaos->done[i];
    for (size_t i = 0; i < EXPECTED; i++)
        if (has_done(chaos, expected[i].verb, expected[i].lock))
            expected[i].is_done = true;
}

static void print_totals(void)
{
    unsigned all = 0, harms = 0;

    print_message("%-12s", current->name);
    for (size_t k = 0; k < CODES; k++)
        print_message("%12s", codes[k].word);
    for (size_t i = 0; totals.verbs[i][0] != '\0'; i++) {
        print_message("\n%-12s", totals.verbs[i]);
        for (size_t k = 0; k < CODES; k++) {
            print_message("%12u", totals.calls[i][k]);
            all += totals.calls[i][k];
        }
    }
    print_message("\n");
    for (size_t i = KILL; i < WORDS; i++) {
        harms += totals.harms[i];
        if (totals.harms[i] > 0)
            print_message("%-12s%12u\n", chaos_words[i], totals.harms[i]);
    }
    print_message("%u operations, %u harms\n", all, harms);
}

/* Play a round, and return how many faults its history has. */
static unsigned play(struct chaos *chaos, uint64_t seed, int64_t lasts_ms,
                     struct scope scope)
{
    struct proxy *proxies[PROXIES] = {NULL};
    char path[HISTORY_PATH];
    unsigned faults;
    bool has_begun;

    memset(chaos, 0, sizeof *chaos);
    (void)snprintf(chaos->path, sizeof chaos->path, "/proc/%ld/fd/%d",
                   (long)getpid(), chaos_fd);
    chaos->seed = seed;
    chaos->scope = scope;
    tables_open(chaos, current);
    for (size_t i = 0; i < PROXIES; i++) {
        (void)snprintf(chaos->urls[i], sizeof chaos->urls[i], "%s",
                       chaos->fixture.url);
        if (current->bit == ON_SQLITE || chaos_cluster() != NULL)
            continue;
        proxies[i] = proxy_open(current, chaos->fixture.url);
        assert_non_null(proxies[i]);
        (void)proxy_url(proxies[i], chaos->urls[i], chaos->fixture.url);
    }
    print_message("%-9s seed %-8" PRIu64 " begins\n", current->name, seed);
    chaos->ends_ns = lk_after_ms(lk_boottime_ns(), lasts_ms);
    nemesis_run(chaos, proxies);
    for (size_t i = 0; i < PROXIES; i++)
        if (proxies[i] != NULL)
            proxy_close(proxies[i]);
    check_sleep(REST_MS);
    has_begun = chaos_has_begun(chaos);
    faults = judge(chaos, path);
    add_up(chaos);
    print_message("%-9s seed %-8" PRIu64 " %6u calls, %3u forks, %6u lines",
                  current->name, seed, atomic_load(&chaos->calls),
                  atomic_load(&chaos->forks), atomic_load(&chaos->count));
    for (size_t i = KILL; i < WORDS; i++)
        if (chaos->done[i] > 0)
            print_message(", %u %s", chaos->done[i], chaos_words[i]);
    print_message(": %s\n", faults > 0 ? path : "every promise was kept");
    tables_drop(chaos);
    if (chaos->done[PROMOTE] > 0)
        cluster_act("repair", path, sizeof path);
    /* else nothing could go wrong */
    if (!has_begun)
        fail_msg("seed %" PRIu64 ": no lock was granted, or nothing sold",
                 seed);
    return faults;
}

/* --- which part of a round does it --- */

static void print_scope(const char *title, uint64_t seed, struct scope scope)
{
    const char *before = " --without ";

    print_message("%s: --seconds %d --seed %" PRIu64, title, ROUND_MS / 1000,
                  seed);
    if (scope.processes < PROCESSES)
        print_message(" --processes %u", scope.processes);
    for (size_t i = 0; i < WORDS; i++)
        if ((scope.without >> i & 1) != 0) {
            print_message("%s%s", before, chaos_words[i]);
            before = ",";
        }
    print_message(" %s\n", current->name);
}

/* Play the round with less and less, as long as its history stays wrong: with
 * fewer processes, and without each act and harm in turn.  Print each time how,
 * as a round may end the test. */
static void shrink(struct chaos *chaos, uint64_t seed, struct scope scope)
{
    for (unsigned i = 0; i < WORDS + 2; i++) {
        struct scope less = scope;

        if (i < 2)
            less.processes = scope.processes / 2;
        else
            less.without |= 1U << (i - 2);
        if (less.processes < 2 || (i >= 2 && less.without == scope.without))
            continue;
        print_scope("trying", seed, less);
        if (play(chaos, seed, ROUND_MS, less) == 0)
            continue;
        scope = less;
        print_scope("again", seed, scope);
    }
}

/* Return the bits of words, of which there may be none. */
static unsigned read_words(char *words)
{
    unsigned bits = 0;
    char *rest = NULL;

    for (char *word = words != NULL ? strtok_r(words, ",", &rest) : NULL;
         word != NULL; word = strtok_r(NULL, ",", &rest)) {
        unsigned i = 0;

        while (i < WORDS && strcmp(word, chaos_words[i]) != 0)
            i++;
        if (i == WORDS)
            fail_msg("nothing is called \"%s\"", word);
        bits |= 1U << i;
    }
    return bits;
}

/* Have the processes use all servers of the cluster, if there is one.  Where
 * its commits may be lost, no sale or work is judged; where no row can be
 * guarded, none is kept of what is done once. */
static void use_cluster(struct scope *scope)
{
    char name[64], url[1024];

    if (chaos_cluster() == NULL)
        return;
    cluster_act("url", url, sizeof url);
    (void)snprintf(name, sizeof name, "SQLOCK_TEST_%s_URL", current->variable);
    assert_int_equal(setenv(name, url, 1), 0);
    if (chaos_loses_commits())
        scope->without |= 1U << SELL | 1U << ONCE;
    if (!chaos_can_guard())
        scope->without |= 1U << ONCE;
}

/* Memory that services can map, which this program starts through another. */
static struct chaos *map_chaos(void)
{
    chaos_fd = memfd_create("chaos", MFD_CLOEXEC);
    assert_true(chaos_fd >= 0);
    assert_int_equal(ftruncate(chaos_fd, sizeof(struct chaos)), 0);
    return mmap(NULL, sizeof(struct chaos), PROT_READ | PROT_WRITE, MAP_SHARED,
                chaos_fd, 0);
}

static void test_what_is_promised_is_kept(void **state)
{
    struct chaos *chaos = map_chaos();
    int64_t left_ms = given_seconds > 0 ? given_seconds * INT64_C(1000)
                                        : check_scale(8, 1800) * INT64_C(1000);
    uint64_t seed = given_seed != 0 ? (uint64_t)given_seed
                                    : (uint64_t)lk_boottime_ns() % 1000000;
    struct scope scope = {.processes = (unsigned)given_processes,
                          .without = read_words(given_without)};
    unsigned faults = 0;
    bool is_long = left_ms >= 6 * (int64_t)ROUND_MS;

    (void)state;
    use_cluster(&scope);
    assert_ptr_not_equal(chaos, MAP_FAILED);
    assert_in_range(given_processes, 1, PROCESSES);
    for (; left_ms > 0 && faults == 0; left_ms -= ROUND_MS, seed++)
        faults =
            play(chaos, seed, left_ms < ROUND_MS ? left_ms : ROUND_MS, scope);
    print_totals();
    if (faults > 0) {
        print_scope("again", seed - 1, scope);
        if (shrinks)
            shrink(chaos, seed - 1, scope);
        fail_msg("the history of seed %" PRIu64 " is wrong", seed - 1);
    }
    if (is_long)
        check_each_act(scope);
    (void)munmap(chaos, sizeof *chaos);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_what_is_promised_is_kept),
};

static int run_lane(const struct lane *lane)
{
    const struct group group = {
        .name = lane->database->name,
        .tests = tests,
        .count = sizeof tests / sizeof *tests,
    };

    current = lane->database;
    return group_run(&group);
}

int main(int argc, char **argv)
{
    static const struct poptOption options[] = {
        {"seconds", 's', POPT_ARG_INT, &given_seconds, 0,
         "Play for so long, in rounds of 10 s", "N"},
        {"seed", 0, POPT_ARG_INT, &given_seed, 0,
         "The first round's seed; each next one has the next", "N"},
        {"processes", 0, POPT_ARG_INT, &given_processes, 0,
         "Of the eight processes only so many", "N"},
        {"without", 0, POPT_ARG_STRING, &given_without, 0,
         "Without these acts and harms: once sell killed ... as in the table",
         "WORD,..."},
        {"picture", 0, POPT_ARG_STRING, &given_picture, 0,
         "Draw the last round, if all is right, in PREFIX-DATABASE.svg",
         "PREFIX"},
        {"shrink", 0, POPT_ARG_NONE, &shrinks, 0,
         "Play a round that goes wrong again, with less and less", NULL},
        POPT_TABLEEND,
    };
    static const struct program program = {
        .name = "chaos",
        .about = "locks keep their promises while everything else fails",
        .databases = ON_ALL,
        .options = options,
    };
    static const struct lanes lanes = {.count = 1, .run = run_lane};

    if (argc == 4 && strcmp(argv[1], "serve") == 0)
        return lead_serve(argv[2], (unsigned)strtoul(argv[3], NULL, 10));
    program_read(&program, argc, argv);
    if (program_lists())
        return run_lane(&(struct lane){.database = &databases[0]});
    return lanes_run(&lanes);
}
