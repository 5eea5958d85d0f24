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
#include <sys/stat.h>
#include <unistd.h>

#include "spring.h"
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

static int take_turn(sqlock_lock *lock, unsigned number, int file,
                     sqlock_error *err)
{
    int rc = lock_try(lock, JVM_WAIT_MS, 0, err);

    if (rc < 0)
        return rc;
    if (note(file, "enter C%u %lld\n", number, (long long)sqlock_token(lock)) <
        0)
        return SQLOCK_EDATABASE;
    check_sleep(2);
    if (note(file, "leave C%u\n", number) < 0)
        return SQLOCK_EDATABASE;
    return sqlock_release(lock, err);
}

static int take_turns(struct worker *worker, struct contest *contest, int file)
{
    sqlock_lock *lock = contest->locks[worker->index];

    while (!atomic_load(&contest->is_over)) {
        worker_expect(worker, 0,
                      take_turn(lock, worker->index, file, &worker->err));
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

void contest_start(struct contest *contest, struct fixture *fixture,
                   struct service *first, struct service *second,
                   unsigned turns, const struct pace *pace)
{
    sqlock_options options = stage_options(fixture, STAYING_TTL_MS);

    memset(contest, 0, sizeof *contest);
    contest->fixture = fixture;
    contest->services[0] = first;
    contest->services[1] = second;
    make_file(contest);
    for (unsigned i = 0; i < CONTEST_SERVICES; i++)
        stage_open_peer(contest->services[i], fixture, "contest",
                        STAYING_TTL_MS, NULL);
    for (unsigned i = 0; i < CONTEST_WORKERS; i++) {
        contest->registries[i] = fixture_registry(fixture, &options);
        contest->locks[i] = lock_obtain(contest->registries[i], fixture->name);
    }
    contest->workers = calloc(1, sizeof *contest->workers);
    assert_non_null(contest->workers);
    workers_start(contest->workers, CONTEST_WORKERS, work, contest);
    for (unsigned i = 0; i < CONTEST_SERVICES; i++) {
        service_expect("ok", contest->services[i], "contest",
                       "pace contest %u %u", pace->idle_ms, pace->think_ms);
        service_tell(contest->services[i], "turns",
                     "turns contest %s %u J%u %s", fixture->name, turns, i,
                     contest->path);
    }
}

void contest_visit(struct contest *contest, sqlock_lock *lock)
{
    int file = open(contest->path, O_WRONLY | O_APPEND | O_CLOEXEC);
    sqlock_error err = {0};

    assert_true(file >= 0);
    assert_lock_ok(take_turn(lock, CONTEST_WORKERS, file, &err), &err);
    (void)close(file);
}

/* --- checking the file --- */

/* Numbers of the contenders: the workers, the caller of contest_visit(), the
 * services. */
#define FIRST_SERVICE (CONTEST_WORKERS + 1)
#define CONTENDERS (FIRST_SERVICE + CONTEST_SERVICES)

/* The state of the contest after the lines read so far. */
struct story {
    const struct contest *contest;
    char inside[8]; /* the holder; "": none */
    int64_t token;  /* the greatest */
    unsigned turns[CONTENDERS];
    unsigned falls; /* tokens that did not rise, where that is allowed */
};

/* Return whether each token must be greater than those before.  A service
 * deletes the row that keeps the last token; the next token is then the time,
 * which a claim on MySQL reads before it has the row locked. */
static bool tokens_must_rise(const struct fixture *fixture)
{
    return fixture->database->bit == ON_POSTGRES;
}

static void check_token(struct story *story, int64_t token, const char *line)
{
    if (token > story->token) {
        story->token = token;
        return;
    }
    if (tokens_must_rise(story->contest->fixture))
        fail_msg("the token was %lld before: %s", (long long)story->token,
                 line);
    story->falls++;
}

static void tell_turn(struct story *story, const char *line)
{
    char what[8];
    char who[8];
    long long token = 0;
    unsigned number;

    assert_true(sscanf(line, "%7s %7s %lld", what, who, &token) >= 2);
    if (strcmp(what, "leave") == 0) {
        if (strcmp(story->inside, who) != 0)
            fail_msg("%s is inside: %s", story->inside, line);
        story->inside[0] = '\0';
        return;
    }
    if (story->inside[0] != '\0')
        fail_msg("two holders: %s is inside: %s", story->inside, line);
    (void)snprintf(story->inside, sizeof story->inside, "%s", who);
    number = (unsigned)(who[1] - '0') + (who[0] == 'J' ? FIRST_SERVICE : 0);
    assert_true(number < CONTENDERS);
    story->turns[number]++;
    if (who[0] == 'C')
        check_token(story, token, line);
}

static void judge(struct contest *contest)
{
    struct story story = {.contest = contest};
    FILE *file = fopen(contest->path, "r");
    char line[80];

    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        long at = ftell(file);

        tell_turn(&story, line);
        if (at <= contest->from || at > contest->until || line[0] != 'e')
            continue;
        contest->ours += line[6] == 'C';
        contest->theirs += line[6] == 'J';
    }
    (void)fclose(file);
    assert_string_equal(story.inside, "");
    print_message("turns: Spring %s %u, Spring %s %u, ours %u %u %u %u%s\n",
                  contest->services[0]->version, story.turns[FIRST_SERVICE],
                  contest->services[1]->version, story.turns[FIRST_SERVICE + 1],
                  story.turns[0], story.turns[1], story.turns[2],
                  story.turns[3], story.falls != 0 ? ", a token fell" : "");
    for (unsigned i = 0; i < CONTENDERS; i++)
        assert_true(story.turns[i] > 0 || i == CONTEST_WORKERS);
}

static long size_of(const char *path)
{
    struct stat status;

    assert_int_equal(stat(path, &status), 0);
    return (long)status.st_size;
}

/* Return how many turns there were after so many bytes; 0: a service never had
 * one. */
static unsigned turns_after(const struct contest *contest, long from)
{
    bool has[CONTEST_SERVICES] = {false};
    unsigned turns = 0;
    char line[80];
    FILE *file = fopen(contest->path, "r");

    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        turns += line[0] == 'e' && ftell(file) > from;
        if (strncmp(line, "enter J", 7) == 0)
            has[line[7] - '0'] = true;
    }
    (void)fclose(file);
    return has[0] && has[1] ? turns : 0;
}

void contest_count(struct contest *contest, unsigned turns)
{
    while (turns_after(contest, 0) == 0)
        check_sleep(100);
    contest->from = size_of(contest->path);
    while (turns_after(contest, contest->from) < turns)
        check_sleep(100);
    contest->until = size_of(contest->path);
}

void contest_end(struct contest *contest, bool stops)
{
    for (unsigned i = 0; i < CONTEST_SERVICES; i++) {
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
    free(contest->workers);
    for (unsigned i = 0; i < CONTEST_WORKERS; i++)
        registry_end(contest->registries[i]);
    for (unsigned i = 0; i < CONTEST_SERVICES; i++)
        service_expect("ok", contest->services[i], "contest", "close contest");
    judge(contest);
    (void)unlink(contest->path);
}
