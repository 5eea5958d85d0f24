/*
 * main.c - promotions of a cluster whose standbys lag, while the processes of
 * eight holders take locks and rely on them: with the table INT_LOCK_SERVER
 * never two at a time; beside them as many do so without that table
 *
 *     bash tests/faults/promotion/with.sh build/tests/promotion
 *
 * tests/tools/servers/promote.sh does what depends on the cluster.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"
#include "support/cluster.h"
#include "support/history.h"

#define HOLDERS 8 /* of each table */
#define LOCKS 4
#define ENOUGH 8 /* grants to wait for, before a promotion and after */
#define ROUNDS_MAX 1000
#define TELLING 20 /* rounds of which some must put leases at stake */
#define PROMOTION_MS (8 * (int64_t)PATIENCE_MS)

enum { GRACED, CONTROL, TABLES };
static const char *const prefixes[TABLES] = {"pr_", "no_"};
static char url[1024];
static unsigned longest_s = 5; /* the longest TTL */

/* A lease that its holder relies on, until the token is 0 again.  The token is
 * set last. */
struct belief {
    atomic_uint lock;
    _Atomic int64_t token;
    _Atomic int64_t until_ns;
};

/* Memory that the test shares with the processes it forks. */
static struct notes {
    atomic_bool over;
    struct holder {
        atomic_uint grants;
        _Atomic int64_t last_ns; /* when the last one was granted */
        struct belief belief;
    } holders[TABLES][HOLDERS];
} * notes;

/* The sums of all rounds. */
static struct {
    long rounds;
    unsigned forgotten, forgetful; /* leases, promotions */
    unsigned overlaps, overlapped; /* of the control */
    double first_ms[TABLES][ROUNDS_MAX];
} totals;

/* --- the cluster --- */

static const struct database *database(void)
{
    return &databases[strncmp(url, "postgres", 8) == 0 ? 0 : 1];
}

static int set_up(void **state)
{
    const char *longest = getenv("SQLOCK_TEST_LONGEST_S");
    struct sql sql;

    (void)state;
    if (longest != NULL)
        longest_s = (unsigned)strtoul(longest, NULL, 10);
    cluster_act("url", url, sizeof url);
    notes = mmap(NULL, sizeof *notes, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(notes != MAP_FAILED);
    cluster_create_table(url, prefixes[GRACED]);
    cluster_create_table(url, prefixes[CONTROL]);
    assert_lock_ok(sql_open(&sql, database(), url), &sql.err);
    (void)sql_run(&sql,
                  "UPDATE pr_LOCK_SERVER SET LONGEST_MS = %u,"
                  " ALLOWED_MS = %u",
                  longest_s * 1000, longest_s * 1000);
    (void)sql_run(&sql, "DROP TABLE no_LOCK_SERVER");
    sql_close(&sql);
    return 0;
}

/* --- a holder, in a process of its own --- */

static void rest(int64_t ms)
{
    int64_t end = check_deadline_ns(ms);

    while (!atomic_load(&notes->over) && check_pause(end))
        continue;
}

static void hold(struct holder *holder, FILE *file, int64_t asked_ns,
                 sqlock_lock *lock, uint32_t weight)
{
    int64_t now_ns = lk_boottime_ns();
    int64_t left_ms = sqlock_remaining_ms(lock);
    int64_t until_ns = now_ns + left_ms * LK_NS_PER_MS;
    int64_t token = sqlock_token(lock);
    long who = (long)getpid();

    (void)fprintf(file,
                  "%ld.1 acquire %u %.6f %.6f until=%.6f token=%lld "
                  "weight=%u\n",
                  who, holder->belief.lock, history_ms(asked_ns),
                  history_ms(now_ns), history_ms(until_ns), (long long)token,
                  weight);
    atomic_store(&holder->belief.until_ns, until_ns);
    atomic_store(&holder->belief.token, token);
    atomic_store(&holder->last_ns, now_ns);
    atomic_fetch_add(&holder->grants, 1);
    rest(lk_random_between(0, left_ms));
    atomic_store(&holder->belief.token, 0);
    now_ns = lk_boottime_ns();
    (void)fprintf(file, "%ld.1 gone %u %.6f %.6f\n", who, holder->belief.lock,
                  history_ms(now_ns), history_ms(now_ns));
}

static void take_once(struct holder *holder, FILE *file,
                      sqlock_lock *const locks[LOCKS])
{
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    bool is_reader = lk_random_between(0, 3) == 0;
    int64_t asked_ns = lk_boottime_ns();
    sqlock_lock *lock;

    holder->belief.lock = (unsigned)lk_random_between(0, LOCKS - 1);
    lock = locks[holder->belief.lock];
    options.mode = is_reader ? SQLOCK_SHARED : SQLOCK_EXCLUSIVE;
    if (sqlock_acquire(lock, lk_random_between(0, 2000 * longest_s), &options,
                       NULL) < 0) {
        rest(20);
        return;
    }
    hold(holder, file, asked_ns, lock, is_reader);
    (void)!sqlock_release(lock, NULL);
}

/* Open a registry, however busy its servers are, and obtain the locks. */
static int open_locks(const char *prefix, uint32_t ttl_ms,
                      sqlock_registry **registry, sqlock_lock *locks[LOCKS])
{
    sqlock_options options = SQLOCK_OPTIONS_INIT;
    sqlock_error err = {0};
    int rc;

    options.table_prefix = prefix;
    options.ttl_ms = ttl_ms;
    options.statement_timeout_ms = 2000;
    options.connect_timeout_ms = PATIENCE_MS; /* a dead server refuses */
    do
        rc = sqlock_registry_open(registry, url, &options, &err);
    while ((rc == SQLOCK_EUNREACHABLE || rc == SQLOCK_EREADONLY) &&
           !atomic_load(&notes->over));
    for (unsigned i = 0; i < LOCKS && rc == 0; i++) {
        char name[8];

        (void)snprintf(name, sizeof name, "%u", i);
        rc = sqlock_obtain(&locks[i], *registry, name, &err);
    }
    if (rc < 0)
        print_error("a holder cannot begin: %s\n", err.message);
    return rc;
}

/* Return the holder's exit status. */
static int run_holder(int table, unsigned number, FILE *file)
{
    sqlock_lock *locks[LOCKS];
    sqlock_registry *registry = NULL;

    if (open_locks(prefixes[table], longest_s * 1000 * (number + 1) / HOLDERS,
                   &registry, locks) < 0)
        return 1;
    while (!atomic_load(&notes->over))
        take_once(&notes->holders[table][number], file, locks);
    return fclose(file) == 0 ? 0 : 1;
}

/* --- a round --- */

static struct round {
    pid_t pids[TABLES][HOLDERS];
    char paths[TABLES][HISTORY_PATH];
    FILE *files[TABLES];
    int64_t promoted_ns;
} this_round;

static void start(int table)
{
    pid_t parent = getpid();

    this_round.files[table] = history_file(this_round.paths[table]);
    for (unsigned i = 0; i < HOLDERS; i++) {
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0) {
            FILE *file = fopen(this_round.paths[table], "a");

            check_end_with(parent);
            if (file == NULL || setvbuf(file, NULL, _IOLBF, 1024) != 0)
                _exit(1);
            _exit(run_holder(table, i, file));
        }
        this_round.pids[table][i] = pid;
    }
}

static unsigned grants(int table)
{
    unsigned count = 0;

    for (unsigned i = 0; i < HOLDERS; i++)
        count += (unsigned)atomic_load(&notes->holders[table][i].grants);
    return count;
}

static void await_more(void)
{
    for (int table = 0; table < TABLES; table++) {
        unsigned before = grants(table);

        if (!wait_until(grants(table) >= before + ENOUGH, PROMOTION_MS))
            fail_msg("%s: %u grants and no more", prefixes[table], before);
    }
}

/* Return when something was first granted after the promotion, 0: not yet. */
static int64_t first_grant(int table)
{
    int64_t first_ns = 0;

    for (unsigned i = 0; i < HOLDERS; i++) {
        int64_t last_ns = atomic_load(&notes->holders[table][i].last_ns);

        if (last_ns > this_round.promoted_ns &&
            (first_ns == 0 || last_ns < first_ns))
            first_ns = last_ns;
    }
    return first_ns;
}

static void await_first_grants(void)
{
    int64_t first_ns[TABLES] = {0};
    int64_t end_ns = check_deadline_ns(PROMOTION_MS);

    do {
        for (int table = 0; table < TABLES; table++)
            if (first_ns[table] == 0)
                first_ns[table] = first_grant(table);
    } while ((first_ns[GRACED] == 0 || first_ns[CONTROL] == 0) &&
             check_pause(end_ns));
    for (int table = 0; table < TABLES; table++) {
        if (first_ns[table] == 0)
            fail_msg("%s: nothing is granted", prefixes[table]);
        totals.first_ms[table][totals.rounds] =
            history_ms(first_ns[table] - this_round.promoted_ns);
    }
}

/* Copy a belief, all of it of one lease: of the one whose token is read before
 * the rest and after it. */
static void copy_belief(struct belief *to, const struct belief *from)
{
    do {
        to->token = atomic_load(&from->token);
        to->lock = atomic_load(&from->lock);
        to->until_ns = atomic_load(&from->until_ns);
    } while (to->token != atomic_load(&from->token));
}

/* Count the leases that are relied on, and of which the promoted server knows
 * nothing. */
static unsigned count_forgotten(void)
{
    struct belief beliefs[HOLDERS];
    unsigned count = 0;
    struct sql sql;

    for (unsigned i = 0; i < HOLDERS; i++)
        copy_belief(&beliefs[i], &notes->holders[GRACED][i].belief);
    assert_lock_ok(sql_open(&sql, database(), url), &sql.err);
    for (unsigned i = 0; i < HOLDERS; i++)
        if (beliefs[i].token > 0 &&
            beliefs[i].until_ns > this_round.promoted_ns &&
            sql_integer(&sql,
                        "SELECT COUNT(*) FROM pr_LOCK WHERE LOCK_NAME = '%u'"
                        " AND FENCE >= %lld",
                        beliefs[i].lock, (long long)beliefs[i].token) == 0)
            count++;
    sql_close(&sql);
    return count;
}

static void end_round(void)
{
    unsigned overlaps;

    atomic_store(&notes->over, true);
    for (int table = 0; table < TABLES; table++)
        for (unsigned i = 0; i < HOLDERS; i++) {
            int status = -1;

            assert_int_equal(waitpid(this_round.pids[table][i], &status, 0),
                             this_round.pids[table][i]);
            assert_int_equal(status, 0);
        }
    overlaps = history_faults(this_round.files[CONTROL],
                              this_round.paths[CONTROL], false);
    totals.overlaps += overlaps;
    totals.overlapped += overlaps > 0;
    (void)unlink(this_round.paths[CONTROL]);
    if (history_faults(this_round.files[GRACED], this_round.paths[GRACED],
                       true) > 0)
        fail_msg("that history is in %s", this_round.paths[GRACED]);
    (void)unlink(this_round.paths[GRACED]);
}

/* Wait until a server takes writes. */
static void await_promotion(void)
{
    int64_t end_ns = check_deadline_ns(PROMOTION_MS);
    struct sql sql;

    while (sql_open(&sql, database(), url) < 0) {
        sql_close(&sql);
        if (!check_pause(end_ns))
            fail_msg("no server is promoted: %s", sql.err.message);
    }
    this_round.promoted_ns = lk_boottime_ns();
    sql_close(&sql);
}

static void play_round(void)
{
    char answer[128];
    int64_t killed_ns;
    unsigned forgotten;

    memset(notes, 0, sizeof *notes);
    start(GRACED);
    start(CONTROL);
    await_more();
    cluster_act("lag", answer, sizeof answer);
    check_sleep(lk_random_between(300, 400 * longest_s));
    killed_ns = lk_boottime_ns();
    cluster_act("fail", answer, sizeof answer);
    await_promotion();
    forgotten = count_forgotten();
    totals.forgotten += forgotten;
    totals.forgetful += forgotten > 0;
    await_first_grants();
    await_more();
    end_round();
    print_message(
        "promotion %ld, %s was killed: promoted after %.0f ms, %u leases "
        "forgotten, first grant after %.0f ms, without the table %.0f ms, %u "
        "overlaps so far there\n",
        totals.rounds + 1, answer,
        history_ms(this_round.promoted_ns - killed_ns), forgotten,
        totals.first_ms[GRACED][totals.rounds],
        totals.first_ms[CONTROL][totals.rounds], totals.overlaps);
    cluster_act("repair", answer, sizeof answer);
}

static void test_F57_promotions_under_unguarded_holders(void **state)
{
    const char *text = getenv("SQLOCK_TEST_ROUNDS");
    long rounds = text != NULL ? strtol(text, NULL, 10) : 1;

    (void)state;
    for (; totals.rounds < rounds && totals.rounds < ROUNDS_MAX;
         totals.rounds++)
        play_round();
}

static int ascending(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;

    return (left > right) - (left < right);
}

/* Return whether enough promotions of a replica that lagged have put no lease
 * at stake, or have not let the control overlap: then they prove nothing. */
static bool proves_nothing(void)
{
    const char *kind = getenv("SQLOCK_TEST_PROMOTION");

    return totals.rounds >= TELLING && kind != NULL &&
           (strcmp(kind, "replica") == 0 || strcmp(kind, "standby") == 0) &&
           (totals.forgotten == 0 || totals.overlaps == 0);
}

static int sum_up(void **state)
{
    (void)state;
    if (totals.rounds == 0)
        return 0;
    print_message("%ld promotions: %u leases forgotten in %u of them; with the"
                  " table 0 overlaps, without it %u in %u\n",
                  totals.rounds, totals.forgotten, totals.forgetful,
                  totals.overlaps, totals.overlapped);
    for (int table = 0; table < TABLES; table++) {
        double *ms = totals.first_ms[table];

        qsort(ms, (size_t)totals.rounds, sizeof *ms, ascending);
        print_message("first grant after a promotion, %s: %.0f, %.0f, %.0f ms "
                      "(least, median, most)\n",
                      table == GRACED ? "with the table" : "without it", ms[0],
                      ms[totals.rounds / 2], ms[totals.rounds - 1]);
    }
    if (proves_nothing())
        print_error("promotions of a replica that lags forget leases, and "
                    "without the table two hold a lock\n");
    return proves_nothing();
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_F57_promotions_under_unguarded_holders),
    };
    static const struct group group = {.tests = tests,
                                       .count = sizeof tests / sizeof *tests,
                                       .open = set_up,
                                       .close = sum_up};
    static const struct program program = {
        .name = "promotion",
        .about = "promotions of a cluster under holders that rely on leases"};

    program_read(&program, argc, argv);
    if (!program_lists() && getenv("SQLOCK_TEST_PROMOTION") == NULL) {
        print_message("skipped: no cluster for promotion here\n");
        return 77;
    }
    return group_run(&group) == 0 ? 0 : 1;
}
