/*
 * shares.c - processes that are killed, paused and cut off share a lock in all
 * modes, while the server restarts, and a program checks the history of what
 * each believed: never a writer beside anybody, never more than there are
 * permits, and tokens that rise (tests/history)
 *
 * The control takes a condition out of the statement, and the check must fail.
 */
#include "stress.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"
#include "lease/pass_on.h"
#include "lease/share.h"
#include "support/history.h"
#include "support/server.h"

#define PROCESSES 16
#define EVENTS 20000
#define TTL_MS 250
#define LASTS_MS (check_scale(10, 60) * INT64_C(1000))
/* A history is no shorter, as long as it takes less than so many times
 * LASTS_MS. */
#define EVENTS_MIN 100
#define LASTS_MOST 6
/* How often the control is played until there is a fault. */
#define CONTROLS 5
/* From one restart of the server to the next, and what is granted meanwhile at
 * least: a slow server would come to nothing but its starts. */
#define RESTARTS_MS 4000
#define RESTARTS_GRANTS 20

/* A lease, as its holder believed it to be, or what it was downgraded to.
 * Times are CLOCK_BOOTTIME. */
struct event {
    const struct event *downgraded; /* NULL: it was granted */
    int64_t sent_ns, from_ns;
    _Atomic int64_t until_ns;
    uint32_t weight;       /* 0: exclusive */
    _Atomic int64_t token; /* 0: not all of it is known yet */
};

/* Their history, in memory that all processes share. */
struct shares {
    atomic_uint count;
    _Atomic int64_t ends_ns;
    uint32_t permits;
    bool is_control;
    struct event events[EVENTS];
};

/* Return a random number below `limit`. */
static unsigned below(unsigned limit)
{
    return (unsigned)lk_random_between(0, limit - 1);
}

/* --- the control --- */

/* In the statement by which one shares, what is replaced, for locks of readers
 * and those with permits, by database. */
static const struct {
    unsigned bit;
    const char *from[2], *to[2];
} controls[] = {
    {ON_POSTGRES,
     {"(F.is_shared OR F.is_over) AND", "ELSE F.permits END"},
     {"true AND", "ELSE F.permits + 9 END"}},
    {ON_SQLITE,
     {"(is_shared OR is_over) AND", "999999999) AS most"},
     {"1 AND", "999999999) + 9 AS most"}},
    {ON_MYSQL,
     {"OR CLIENT_ID IS NULL OR EXPIRED_AFTER < UTC_TIMESTAMP(6)) AND (SELECT",
      "999999999) - ?"},
     {"OR 1) AND (SELECT", "999999999) + 9 - ?"}},
};

static void replace_all(struct lk_statement *statement, const char *from,
                        const char *to)
{
    char *made = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&made, &size);
    const char *at = statement->text;
    const char *found = strstr(at, from);

    assert_non_null(found);
    while ((found = strstr(at, from)) != NULL) {
        (void)fprintf(out, "%.*s%s", (int)(found - at), at, to);
        at = found + strlen(from);
    }
    (void)fputs(at, out);
    (void)fclose(out);
    free(statement->text);
    statement->text = made;
    statement->sent.text = made;
}

static void spoil(struct lk_store *store, unsigned bit, bool has_permits)
{
    for (size_t i = 0; i < sizeof controls / sizeof *controls; i++)
        if (controls[i].bit == bit)
            replace_all(&store->statements[SQLOCK_SQL_SHARE],
                        controls[i].from[has_permits],
                        controls[i].to[has_permits]);
}

/* --- a process --- */

static struct event *begin_event(struct shares *history,
                                 const struct event *downgraded,
                                 const struct lk_lease *lease, int64_t sent_ns,
                                 int64_t from_ns)
{
    unsigned at = atomic_fetch_add(&history->count, 1);
    struct event *event = &history->events[at < EVENTS ? at : EVENTS - 1];

    event->downgraded = downgraded;
    event->sent_ns = sent_ns;
    event->from_ns = from_ns;
    event->weight = lease->asked.weight;
    atomic_store(&event->until_ns, lease->believed.until_boot_ns);
    atomic_store(&event->token, lease->answered.token);
    return event;
}

/* Claim until it is granted.  Return whether it was. */
static bool take(struct lk_store *store, struct shares *history,
                 struct lk_lease *lease, int64_t *sent_ns)
{
    while (lk_boottime_ns() < history->ends_ns) {
        struct lk_batch batch;
        struct lk_item item;
        int rc;

        if (lease->believed.fate != LK_CLAIM_IN_DOUBT) {
            /* A ticket keeps its CLIENT_ID; another claim gets a new one, as
             * the resolver frees what a late copy takes. */
            if (!lease->asked.may_wait)
                lease->client_id[0] = '\0';
            if (lease->believed.fate == LK_CLAIM_ANSWERED ||
                !lease->asked.may_wait)
                *sent_ns = lk_boottime_ns();
        }
        lk_batch_of_one(&batch, &item, lease, lk_store_deadline(store));
        rc = lk_batch_claim(store, &batch, NULL);
        *lease = item.lease;
        if (rc == 0 && item.rc == 0)
            return true;
        if (below(4) == 0) /* the one before may have died */
            (void)lk_row_pass_on(store, lease->key, lk_store_deadline(store));
        check_sleep(1 + below(4));
    }
    return false;
}

static void hold(struct lk_store *store, struct shares *history,
                 struct lk_lease *lease, int64_t sent_ns)
{
    struct event *event =
        begin_event(history, NULL, lease, sent_ns, lk_boottime_ns());
    struct lk_batch batch;
    struct lk_item item;

    check_sleep(below(4));
    if (below(3) == 0) {
        lk_batch_of_one(&batch, &item, lease, lk_store_deadline(store));
        if (lk_batch_renew(store, &batch, NULL) == 0 && item.rc == 0)
            atomic_store(&event->until_ns, item.lease.believed.until_boot_ns);
        *lease = item.lease;
    }
    if (lease->asked.weight == 0 && history->permits == 0 && below(2) == 0) {
        int64_t now = lk_boottime_ns();

        atomic_store(&event->until_ns,
                     lk_sooner(now, lease->believed.until_boot_ns));
        if (lk_share_downgrade(store, lease, NULL) != 0)
            return;
        event = begin_event(history, event, lease, now, lk_boottime_ns());
        check_sleep(below(4));
    }
    atomic_store(&event->until_ns,
                 lk_sooner(lk_boottime_ns(), lease->believed.until_boot_ns));
    lk_batch_of_one(&batch, &item, lease, lk_store_deadline(store));
    (void)lk_batch_release(store, &batch, NULL);
}

/* In a thread: break all connections now and then, and at last the process. */
static void *disturb(void *unused)
{
    (void)unused;
    for (unsigned i = below(16); i > 0; i--) {
        check_sleep(10 + below(90));
        for (int fd = 3; fd < 64; fd++)
            (void)shutdown(fd, SHUT_RDWR);
    }
    check_sleep(500 + below(8000));
    (void)raise(SIGKILL);
    return NULL;
}

static int work(struct fixture *fixture, struct shares *history,
                const char *key)
{
    sqlock_options options = fixture_options(fixture);
    sqlock_registry *registry = NULL;
    struct lk_store *store;
    pthread_t thread;

    if (sqlock_registry_open(&registry, fixture->url, &options, NULL) < 0 ||
        lk_store_of(registry, &store, NULL) < 0)
        return 1;
    if (history->is_control)
        spoil(store, fixture->database->bit, history->permits > 0);
    if (pthread_create(&thread, NULL, disturb, NULL) != 0)
        return 1;
    while (lk_boottime_ns() < history->ends_ns) {
        struct lk_lease lease = {
            .key = key,
            .asked.ttl_ms = TTL_MS,
            .asked.may_wait = below(4) == 0,
            .asked.permits = history->permits,
        };
        int64_t sent_ns = 0;

        if (below(6) > 0)
            lease.asked.weight = history->permits == 0 ? 1 : 1 + below(2);
        if (take(store, history, &lease, &sent_ns))
            hold(store, history, &lease, sent_ns);
    }
    return 0;
}

/* --- all processes --- */

static pid_t begin(struct fixture *fixture, struct shares *history,
                   const char *key)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0)
        _exit(work(fixture, history, key));
    return pid;
}

/* Crash the server, if it is ours to restart, and wait until it is back.
 * Return whether it was. */
static bool restart(const struct fixture *fixture)
{
    const struct database *database = fixture->database;
    struct sql sql;

    if (!server_can_restart(database))
        return false;
    assert_int_equal(sql_open(&sql, database, fixture->url), 0);
    server_restart(&sql, fixture->url,
                   database->bit == ON_POSTGRES ? SIGQUIT : SIGKILL);
    sql_close(&sql);
    return true;
}

/* Go on for longer where a busy machine has come to few grants yet, and end
 * before the history is full where it is fast. */
static void extend(struct shares *history, int64_t begun_ns)
{
    int64_t later_ns = lk_after_ms(history->ends_ns, LASTS_MS / 10);

    if (atomic_load(&history->count) > EVENTS - EVENTS / 20)
        history->ends_ns = lk_boottime_ns();
    if (atomic_load(&history->count) < EVENTS_MIN &&
        lk_boottime_ns() > history->ends_ns - LASTS_MS / 10 * LK_NS_PER_MS &&
        later_ns < lk_after_ms(begun_ns, LASTS_MOST * LASTS_MS))
        history->ends_ns = later_ns;
}

/* Keep as many processes at work as there should be, stop one of them for
 * longer than a lease lasts, and restart the server.  Return how often. */
static unsigned play(struct fixture *fixture, struct shares *history,
                     const char *key)
{
    int64_t begun_ns = lk_boottime_ns();
    int64_t next_ns = lk_after_ms(begun_ns, RESTARTS_MS);
    pid_t pids[PROCESSES] = {0};
    unsigned next_count = RESTARTS_GRANTS, deaths = 0, restarts = 0;

    while (lk_boottime_ns() < history->ends_ns) {
        for (unsigned i = 0; i < PROCESSES; i++) {
            if (pids[i] != 0 && waitpid(pids[i], NULL, WNOHANG) == 0)
                continue;
            deaths += pids[i] != 0;
            pids[i] = begin(fixture, history, key);
        }
        check_sleep(40);
        if (below(10) == 0) {
            pid_t paused = pids[below(PROCESSES)];

            (void)kill(paused, SIGSTOP);
            check_sleep(TTL_MS + 100);
            (void)kill(paused, SIGCONT);
        }
        if (lk_boottime_ns() >= next_ns &&
            atomic_load(&history->count) >= next_count) {
            restarts += restart(fixture);
            next_ns = lk_after_ms(lk_boottime_ns(), RESTARTS_MS);
            next_count = atomic_load(&history->count) + RESTARTS_GRANTS;
        }
        extend(history, begun_ns);
    }
    for (unsigned i = 0; i < PROCESSES; i++) {
        (void)kill(pids[i], SIGKILL);
        (void)waitpid(pids[i], NULL, 0);
    }
    assert_less(0, deaths);
    return restarts;
}

/* --- the check --- */

static void write_event(FILE *file, const struct shares *history,
                        const struct event *event)
{
    const struct event *first =
        event->downgraded != NULL ? event->downgraded : event;

    (void)fprintf(file, "%d %s L %.6f %.6f until=%.6f token=%lld weight=%u\n",
                  (int)(first - history->events),
                  first == event ? "acquire" : "downgrade",
                  history_ms(event->sent_ns), history_ms(event->from_ns),
                  history_ms(event->until_ns), (long long)event->token,
                  event->weight);
}

/* Return how often the history is not that of such a lock. */
static unsigned faults_of(const struct shares *history, unsigned count)
{
    char path[HISTORY_PATH];
    FILE *file = history_file(path);
    unsigned faults;

    if (history->permits > 0)
        (void)fprintf(file, "permits L %u\n", history->permits);
    for (unsigned i = 0; i < count; i++)
        if (history->events[i].token != 0)
            write_event(file, history, &history->events[i]);
    faults = history_faults(file, path, !history->is_control);
    (void)unlink(path);
    return faults;
}

/* Play once, and return how many faults the history has. */
static unsigned faults_in(const struct database *database, uint32_t permits,
                          bool is_control)
{
    struct fixture fixture = {0};
    struct shares *history = mmap(NULL, sizeof *history, PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char key[SQLOCK_KEY_SIZE];
    unsigned count, faults, restarts, exclusive = 0;

    assert_ptr_not_equal(history, MAP_FAILED);
    yard_open(&fixture, database, SQLOCK_LAYOUT_SQLOCK);
    assert_int_equal(sqlock_key_of(key, "shared", SQLOCK_KEY_CURRENT, NULL), 0);
    history->permits = permits;
    history->is_control = is_control;
    history->ends_ns = lk_after_ms(lk_boottime_ns(), LASTS_MS);
    restarts = play(&fixture, history, key);
    count = atomic_load(&history->count);
    assert_in_range(count, EVENTS_MIN / 5, EVENTS);
    for (unsigned i = 0; i < count; i++)
        exclusive += history->events[i].weight == 0;
    faults = faults_of(history, count);
    print_message("%s: %u permits%s: %u grants, %u of them exclusive, %u "
                  "restarts, %u faults\n",
                  database->name, permits, is_control ? ", control" : "", count,
                  exclusive, restarts, faults);
    yard_close(&fixture);
    (void)munmap(history, sizeof *history);
    return faults;
}

static void check_history(const struct database *database, uint32_t permits)
{
    assert_int_equal(faults_in(database, permits, false), 0);
}

/* On a busy machine few grants may meet each other. */
static void check_control(const struct database *database, uint32_t permits)
{
    unsigned faults = 0;

    for (unsigned i = 0; i < CONTROLS && faults == 0; i++)
        faults = faults_in(database, permits, true);
    assert_less(0, faults);
}

void test_readers_and_writers(const struct database *database)
{
    check_history(database, 0);
}

void test_permits(const struct database *database)
{
    check_history(database, 3);
}

void test_the_check_of_histories(const struct database *database)
{
    check_control(database, 0);
    check_control(database, 3);
}
