/*
 * contest.c - two Spring services and four workers of ours on one lock
 *
 * A turn here is one acquisition with its release.  Each holder appends "enter
 * WHO TOKEN" to a file before it does anything and "leave WHO" at the end.  A
 * line is one write(), so that the file has the lines in the order in which
 * they were written, whatever the clocks say.  If another contender enters
 * before the holder leaves, two have held the lock at a time.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "spring.h"
#include "sqlock/many.h"
#include "sqlock/shared.h"
#include "support/peer.h"
#include "support/workers.h"

const struct pace contest_pace = {.idle_ms = 100};

static int note(int file, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static int note(int file, const char *format, ...)
{
    char line[80];
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    return write(file, line, (size_t)length) == length ? 0 : -1;
}

static int note_enter(int file, char side, unsigned number, unsigned key,
                      int64_t token)
{
    return note(file, "enter %c%u %u %lld %lld\n", side, number, key,
                (long long)token, (long long)sqlock_monotonic_ns());
}

/* --- workers of ours --- */

/* Acquire as the contest's kind does.  The other lock of a call for two has a
 * key of its own for each worker. */
static int acquire(const struct contest *contest, sqlock_lock *const *locks,
                   sqlock_error *err)
{
    sqlock_acquire_options how = SQLOCK_ACQUIRE_INIT;

    if (contest->pace.kind == CONTEST_MANY)
        return sqlock_acquire_many(locks, 2, JVM_WAIT_MS, NULL, NULL, err);
    how.mode =
        contest_shares(contest->pace.kind) ? SQLOCK_SHARED : SQLOCK_EXCLUSIVE;
    how.permits = contest->pace.kind == CONTEST_PERMITS ? 2 : 0;
    return sqlock_acquire(locks[0], JVM_WAIT_MS, &how, err);
}

static int take_turn(const struct contest *contest, sqlock_lock *const *locks,
                     unsigned number, unsigned key, int file, sqlock_error *err)
{
    int rc = acquire(contest, locks, err);

    if (rc < 0)
        return rc;
    if (note_enter(file, 'C', number, key, sqlock_token(locks[0])) < 0)
        return SQLOCK_EDATABASE;
    check_sleep(2);
    if (note(file, "leave C%u %u\n", number, key) < 0)
        return SQLOCK_EDATABASE;
    return contest->pace.kind == CONTEST_MANY
               ? sqlock_release_many(locks, 2, NULL, err)
               : sqlock_release(locks[0], err);
}

static int take_fresh_turn(struct worker *worker, const struct contest *contest,
                           int file)
{
    sqlock_lock *lock = NULL;

    worker_expect(worker, 0,
                  sqlock_obtain(&lock, contest->registries[worker->index],
                                contest->names[0], &worker->err));
    worker_expect(
        worker, 0,
        take_turn(contest, &lock, worker->index, 0, file, &worker->err));
    worker_expect(worker, 0, sqlock_drop(lock, &worker->err));
    return 0;
}

static int take_turns(struct worker *worker, struct contest *contest, int file)
{
    sqlock_lock *const *locks = contest->locks[worker->index];
    unsigned keys = contest_keys(contest->pace.kind);

    for (unsigned turn = worker->index; !atomic_load(&contest->is_over);
         turn++) {
        unsigned key = turn % keys;

        if (contest->pace.kind == CONTEST_FRESH)
            worker_expect(worker, 0, take_fresh_turn(worker, contest, file));
        else
            worker_expect(worker, 0,
                          take_turn(contest, &locks[key], worker->index, key,
                                    file, &worker->err));
        check_sleep(1);
    }
    return 0;
}

static int work(struct worker *worker)
{
    struct contest *contest = worker->context;
    int file = open(contest->path, O_WRONLY | O_APPEND | O_CLOEXEC);
    int rc;

    if (file < 0)
        return worker_fail(worker, "cannot open %s", contest->path);
    rc = take_turns(worker, contest, file);
    (void)close(file);
    return rc;
}

/* --- services by rows, where there is no Java --- */

static int take_row_turn(struct worker *worker, struct contest *contest,
                         const struct peer *peer, unsigned key, int file)
{
    int rc = 0;

    while (rc != 1 && !atomic_load(&contest->is_over)) {
        rc = peer_acquire(peer, contest->names[key]);
        if (rc < 0 && rc != SQLOCK_ERETRY && rc != SQLOCK_EBUSY)
            return worker_fail(worker, "acquire gave %d: %s", rc,
                               peer->sql->err.message);
        if (rc == 0)
            check_sleep(contest->pace.idle_ms);
    }
    if (rc != 1)
        return 0;
    if (note_enter(file, 'J', worker->index, key, 0) < 0)
        return worker_fail(worker, "cannot write %s", contest->path);
    check_sleep(2);
    if (note(file, "leave J%u %u\n", worker->index, key) < 0)
        return worker_fail(worker, "cannot write %s", contest->path);
    do
        rc = peer_release(peer, contest->names[key]);
    while (rc == SQLOCK_ERETRY || rc == SQLOCK_EBUSY);
    return rc == 1 ? 0 : worker_fail(worker, "release gave %d", rc);
}

static int serve(struct worker *worker)
{
    struct contest *contest = worker->context;
    const char *const clients[] = {"11111111-aaaa-4aaa-8aaa-111111111111",
                                   "22222222-bbbb-4bbb-8bbb-222222222222"};
    struct fixture *f = contest->fixture;
    struct sql sql;
    struct peer peer = {.fixture = f,
                        .sql = &sql,
                        .client = clients[worker->index],
                        .ttl_ms = STAYING_TTL_MS};
    int file = open(contest->path, O_WRONLY | O_APPEND | O_CLOEXEC);
    int rc = sql_open(&sql, f->database, f->url);

    if (file < 0 || rc < 0)
        return worker_fail(worker, "no session: %s", sql.err.message);
    for (unsigned turn = worker->index;
         rc == 0 && !atomic_load(&contest->is_over); turn++) {
        rc = take_row_turn(worker, contest, &peer,
                           turn % contest_keys(contest->pace.kind), file);
        check_sleep(contest->pace.think_ms);
    }
    sql_close(&sql);
    (void)close(file);
    return rc;
}

static void make_file(struct contest *contest)
{
    const char *dir = getenv("SQLOCK_TEST_DIR");
    int file;

    (void)snprintf(contest->path, sizeof contest->path, "%s/turns.XXXXXX",
                   dir != NULL ? dir : "/tmp");
    file = mkstemp(contest->path);
    assert_true(file >= 0);
    (void)close(file);
}

static bool is_emulated(const struct contest *contest)
{
    return contest->services[0] == NULL;
}

static void start_service(struct contest *contest, unsigned number,
                          unsigned turns)
{
    struct service *service = contest->services[number];
    const struct pace *pace = &contest->pace;
    char names[600];
    size_t length = 0;

    for (unsigned i = 0; i < contest_keys(pace->kind); i++)
        length += (size_t)snprintf(names + length, sizeof names - length,
                                   "%s%s", i > 0 ? "," : "", contest->names[i]);
    service_expect("ok", service, "contest", "pace contest %u %u",
                   pace->idle_ms, pace->think_ms);
    service_tell(service, "turns", "turns contest %s %u J%u %s", names, turns,
                 number, contest->path);
}

/* Begin with our side; without services of Java threads act as them. */
static void start_ours(struct contest *contest)
{
    sqlock_options options = stage_options(contest->fixture, STAYING_TTL_MS);

    for (unsigned i = 0; i < CONTEST_KEYS; i++)
        (void)snprintf(contest->names[i], sizeof contest->names[i], "%s%.*s",
                       contest->fixture->name, (int)i, "/////");
    for (unsigned i = 0; i < CONTEST_WORKERS; i++) {
        contest->registries[i] = fixture_registry(contest->fixture, &options);
        for (unsigned k = 0;
             k < CONTEST_KEYS && contest->pace.kind != CONTEST_FRESH; k++)
            contest->locks[i][k] =
                lock_obtain(contest->registries[i], contest->names[k]);
    }
    contest->workers = calloc(2, sizeof *contest->workers);
    assert_non_null(contest->workers);
    contest->began_ns = sqlock_monotonic_ns();
    workers_start(contest->workers, CONTEST_WORKERS, work, contest);
    if (is_emulated(contest))
        workers_start(contest->workers + 1, CONTEST_SERVICES, serve, contest);
}

void contest_start(struct contest *contest, struct fixture *fixture,
                   struct service *first, struct service *second,
                   unsigned turns, const struct pace *pace)
{
    memset(contest, 0, sizeof *contest);
    contest->fixture = fixture;
    contest->pace = *pace;
    contest->services[0] = first;
    contest->services[1] = second;
    make_file(contest);
    for (unsigned i = 0; i < CONTEST_SERVICES && !is_emulated(contest); i++)
        stage_open_peer(contest->services[i], fixture, "contest",
                        STAYING_TTL_MS, NULL);
    start_ours(contest);
    for (unsigned i = 0; i < CONTEST_SERVICES && !is_emulated(contest); i++)
        start_service(contest, i, turns);
}

void contest_visit(struct contest *contest, sqlock_lock *lock)
{
    int file = open(contest->path, O_WRONLY | O_APPEND | O_CLOEXEC);
    sqlock_error err = {0};

    assert_true(file >= 0);
    assert_lock_ok(take_turn(contest, &lock, CONTEST_WORKERS, 0, file, &err),
                   &err);
    (void)close(file);
}

/* --- checking the file --- */

/* Numbers of the contenders: the workers, the caller of contest_visit(), the
 * services. */
#define FIRST_SERVICE (CONTEST_WORKERS + 1)
#define CONTENDERS (FIRST_SERVICE + CONTEST_SERVICES)

/* The state of the contest after the lines read so far. */
struct story {
    struct contest *contest;
    char inside[CONTEST_KEYS][8]; /* the holder; "": none, or of ours that
                                      share the lock */
    unsigned sharers[CONTEST_KEYS];
    int64_t token; /* the greatest */
    unsigned turns[CONTENDERS];
    int64_t last_ns[CONTEST_SERVICES]; /* the last turn; 0: none */
    unsigned falls; /* tokens that did not rise, where that is allowed */
};

/* Return whether each token must be greater than those before.  A service
 * deletes the row that keeps the last token; the next token is then the time,
 * which a claim on MySQL reads before it has the row locked.  Tokens of several
 * locks, or of those who share one, are not compared. */
static bool tokens_must_rise(const struct contest *contest)
{
    return contest->fixture->database->bit == ON_POSTGRES &&
           contest->pace.kind == CONTEST_ALONE;
}

static void check_token(struct story *story, int64_t token, const char *line)
{
    if (token > story->token) {
        story->token = token;
        return;
    }
    if (tokens_must_rise(story->contest))
        fail_msg("the token was %lld before: %s", (long long)story->token,
                 line);
    story->falls++;
}

static void note_service(struct story *story, unsigned number, int64_t at_ns)
{
    struct contest *contest = story->contest;
    int64_t wait_ms = (at_ns - story->last_ns[number]) / LK_NS_PER_MS;

    if (story->last_ns[number] == 0)
        contest->first_ms[number] = (at_ns - contest->began_ns) / LK_NS_PER_MS;
    else if (wait_ms > contest->longest_ms)
        contest->longest_ms = wait_ms;
    story->last_ns[number] = at_ns;
}

static void tell_leave(struct story *story, const char *who, unsigned key,
                       const char *line)
{
    if (who[0] == 'C' && contest_shares(story->contest->pace.kind)) {
        assert_true(story->sharers[key]-- > 0);
        return;
    }
    if (strcmp(story->inside[key], who) != 0)
        fail_msg("%s is inside: %s", story->inside[key], line);
    story->inside[key][0] = '\0';
}

static void tell_enter(struct story *story, const char *who, unsigned key,
                       const char *line)
{
    bool shares = who[0] == 'C' && contest_shares(story->contest->pace.kind);

    if (story->inside[key][0] != '\0' || (!shares && story->sharers[key] > 0))
        fail_msg("two holders: %s is inside: %s", story->inside[key], line);
    if (shares)
        story->sharers[key]++;
    else
        (void)snprintf(story->inside[key], sizeof story->inside[key], "%s",
                       who);
}

static void tell_turn(struct story *story, const char *line)
{
    char what[8];
    char who[8];
    unsigned key;
    long long token = 0;
    long long at_ns = 0;
    unsigned number;

    assert_true(sscanf(line, "%7s %7s %u %lld %lld", what, who, &key, &token,
                       &at_ns) >= 3);
    assert_true(key < CONTEST_KEYS);
    if (strcmp(what, "leave") == 0) {
        tell_leave(story, who, key, line);
        return;
    }
    tell_enter(story, who, key, line);
    number = (unsigned)(who[1] - '0') + (who[0] == 'J' ? FIRST_SERVICE : 0);
    assert_true(number < CONTENDERS);
    story->turns[number]++;
    if (at_ns > story->contest->until_ns && story->contest->until_ns != 0)
        return;
    if (who[0] == 'C') {
        check_token(story, token, line);
        story->contest->ours++;
    } else {
        note_service(story, number - FIRST_SERVICE, at_ns);
        story->contest->theirs++;
    }
}

static void judge(struct contest *contest)
{
    struct story story = {.contest = contest};
    FILE *file = fopen(contest->path, "r");
    char line[80];

    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL)
        tell_turn(&story, line);
    (void)fclose(file);
    for (unsigned i = 0; i < CONTEST_KEYS; i++)
        assert_string_equal(story.inside[i], "");
    print_message("turns: services %u %u, ours %u %u %u %u%s\n",
                  story.turns[FIRST_SERVICE], story.turns[FIRST_SERVICE + 1],
                  story.turns[0], story.turns[1], story.turns[2],
                  story.turns[3], story.falls != 0 ? ", a token fell" : "");
    for (unsigned i = 0; i < CONTEST_SERVICES; i++) {
        int64_t left_ms = (contest->until_ns - story.last_ns[i]) / LK_NS_PER_MS;

        if (story.last_ns[i] == 0)
            contest->first_ms[i] = INT64_MAX;
        else if (left_ms > contest->longest_ms)
            contest->longest_ms = left_ms;
    }
    for (unsigned i = 0; i < CONTENDERS && contest->until_ns == 0; i++)
        assert_true(story.turns[i] > 0 || i == CONTEST_WORKERS);
}

void contest_end(struct contest *contest, bool stops)
{
    if (stops)
        contest->until_ns = sqlock_monotonic_ns();
    for (unsigned i = 0; i < CONTEST_SERVICES && !is_emulated(contest); i++) {
        struct answer answer;

        if (stops) /* and let the services have the lock at once */
            atomic_store(&contest->is_over, true);
        if (stops)
            service_expect("ok", contest->services[i], "stop", "stop contest");
        service_hear(contest->services[i], "turns", &answer);
        if (strspn(answer.text, "0123456789") != strlen(answer.text))
            fail_msg("Spring %s: %s", contest->services[i]->version,
                     answer.text);
    }
    atomic_store(&contest->is_over, true);
    workers_join(contest->workers);
    if (is_emulated(contest))
        workers_join(contest->workers + 1);
    free(contest->workers);
    for (unsigned i = 0; i < CONTEST_WORKERS; i++)
        registry_end(contest->registries[i]);
    for (unsigned i = 0; i < CONTEST_SERVICES && !is_emulated(contest); i++)
        service_expect("ok", contest->services[i], "contest", "close contest");
    judge(contest);
    (void)unlink(contest->path);
}
