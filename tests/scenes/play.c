/*
 * play.c - play a scene: give each step to whoever performs it, and compare
 * what comes of it with what is written
 *
 * Beside what is written, each scene checks that tokens rise, that nobody holds
 * a lock at its end, and that each lock's row is free then.
 */
#include "play.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sqlock/async.h"

void play_fail(struct play *play, const char *format, ...)
{
    char text[512];
    char why[512];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    if (play->escape != NULL) {
        (void)snprintf(play->why, sizeof play->why, "%.200s: %.300s",
                       step_print(text, play->step), why);
        longjmp(*play->escape, 1);
    }
    print_error("%s:%u: %s\n    %s\n", play->file, play->step->line,
                step_print(text, play->step), why);
    _fail(play->file, (int)play->step->line);
    abort();
}

const char *play_name(const struct play *play, char out[96], const char *name)
{
    (void)snprintf(out, 96, "%s@%s", name, play->f->name);
    return out;
}

/* --------------------------------------------------------------- results -- */

/* Return the number that a word stands for. */
static int number_of(const char *word, size_t length)
{
    static const struct {
        const char *word;
        int number;
    } words[] = {{"ok", 0},
                 {"no", 0},
                 {"yes", 1},
                 /* of a row */
                 {"free", 0},
                 {"held", 1},
                 {"expired", 2},
                 /* of a request */
                 {"ended", SQLOCK_REQUEST_FREE},
                 {"fetching", SQLOCK_REQUEST_FETCHING},
                 {"granted", SQLOCK_REQUEST_HELD},
                 {"releasing", SQLOCK_REQUEST_RELEASING},
                 {"lost", SQLOCK_REQUEST_LOST},
#define SQLOCK_X(name, value, text) {#name, (value)},
                 SQLOCK_ERRORS(SQLOCK_X)
#undef SQLOCK_X
    };

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i].word) == length &&
            strncmp(words[i].word, word, length) == 0)
            return words[i].number;
    return (int)strtol(word, NULL, 10);
}

bool result_is(const char *expected, int rc)
{
    for (;;) {
        size_t length = strcspn(expected, "|");

        if (number_of(expected, length) == rc)
            return true;
        if (expected[length] == '\0')
            return false;
        expected += length + 1;
    }
}

const char *result_name(int rc)
{
    static char text[24];

#define SQLOCK_X(name, value, text)                                            \
    if (rc == (value))                                                         \
        return #name;
    SQLOCK_ERRORS(SQLOCK_X)
#undef SQLOCK_X
    (void)snprintf(text, sizeof text, "%d", rc);
    return text;
}

/* ------------------------------------------------------------- processes -- */

static struct process *process_of(struct play *play, const char *actor,
                                  int *thread)
{
    const char *dot = strchr(actor, '.');
    char id[16];
    struct process *process;

    (void)snprintf(id, sizeof id, "%.*s",
                   dot != NULL ? (int)(dot - actor) : (int)strlen(actor),
                   actor);
    *thread = dot != NULL ? (int)strtol(dot + 1, NULL, 10) : 0;
    process = company_find(&play->company, id);
    return process;
}

/* Start a process, which opens its registry with the options of that step. */
static struct process *open_process(struct play *play, const char *id,
                                    const char *options, bool through)
{
    struct process *process = company_start(&play->company, id);
    char url[1024];
    char words[2048];

    (void)snprintf(words, sizeof words, "opens url=%s prefix=%s folder=%s%s",
                   stage_url(play, url, through), play->f->prefix, play->folder,
                   options);
    company_call(process, 0, words);
    if (!company_await(&play->company, process, 0) || process->calls[0].rc != 0)
        play_fail(play, "%s cannot open a registry: %s", id,
                  process->calls[0].message);
    return process;
}

/* Return the actor's process, which is opened with the defaults where the scene
 * does not say how. */
static struct process *need_process(struct play *play, const char *actor,
                                    int *thread)
{
    struct process *process = process_of(play, actor, thread);
    char id[16];

    if (process != NULL)
        return process;
    (void)snprintf(id, sizeof id, "%.*s", (int)strcspn(actor, "."), actor);
    return open_process(play, id, "", false);
}

/* ---------------------------------------------------- what is looked at -- */

struct named *play_named(struct play *play, const char *name)
{
    struct named *named = play->names;

    while (named->name[0] != '\0' && strcmp(named->name, name) != 0)
        if (++named == play->names + NAMES_MAX)
            play_fail(play, "too many locks");
    (void)snprintf(named->name, sizeof named->name, "%s", name);
    return named;
}

static bool is_one_of(const char *verb, const char *const *verbs)
{
    for (; *verbs != NULL; verbs++)
        if (strcmp(verb, *verbs) == 0)
            return true;
    return false;
}

/* Keep count of what a process holds. */
static void note(struct play *play, const struct process *process,
                 const struct step *step, const struct call *call)
{
    static const char *const takes[] = {"takes", "finishes", NULL};
    static const char *const gives[] = {"gives", "asks_release", NULL};
    size_t index = (size_t)(process - play->company.all);
    char names[256];
    char *save = NULL;

    if (step->name == NULL)
        return;
    (void)snprintf(names, sizeof names, "%s", step->name);
    for (char *name = strtok_r(names, ",", &save); name != NULL;
         name = strtok_r(NULL, ",", &save)) {
        struct named *named = play_named(play, name);
        int *held = &named->held[index];

        if (call->rc == 0 && is_one_of(step->verb, takes) &&
            (call->token != 0 || strcmp(step->verb, "takes") == 0))
            ++*held;
        if (is_one_of(step->verb, gives) && call->rc != SQLOCK_EOWNER &&
            call->rc != SQLOCK_EINUSE && call->rc != SQLOCK_EINVAL)
            --*held;
    }
}

/* Return the lock whose token a step's call has; NULL if there is none. */
static struct named *with_token(struct play *play, const struct step *step)
{
    return step->name != NULL && strchr(step->name, ',') == NULL &&
                   play->f->layout == SQLOCK_LAYOUT_SQLOCK
               ? play_named(play, step->name)
               : NULL;
}

/* Check that a token is not less than one that was seen before the call.  A
 * nested acquire has the token of the lease, which may be lost already. */
static void check_token(struct play *play, const struct process *process,
                        const struct begun *begun, const struct call *call)
{
    struct named *named = with_token(play, begun->step);

    if (call->token == 0 || named == NULL ||
        named->held[process - play->company.all] > 0)
        return;
    if (call->token < begun->token)
        play_fail(play, "the token %lld is less than one before it, %lld",
                  (long long)call->token, (long long)begun->token);
    if (call->token > named->token)
        named->token = call->token;
}

/* ------------------------------------------------- the steps of a thread -- */

static void begin_call(struct play *play, const struct step *step,
                       struct process *process, int thread, const char *words)
{
    const struct named *named = with_token(play, step);

    if (process->calls[thread].is_made && !process->calls[thread].is_over)
        play_fail(play, "it is still busy");
    play->begun[process - play->company.all][thread] =
        (struct begun){.step = step, .token = named != NULL ? named->token : 0};
    company_call(process, thread, words);
}

static struct result end_call(struct play *play, struct process *process,
                              int thread)
{
    struct call *call = &process->calls[thread];
    struct begun *begun = &play->begun[process - play->company.all][thread];

    if (begun->step == NULL)
        play_fail(play, "it has begun nothing");
    if (!company_await(&play->company, process, thread))
        play_fail(play, process->is_gone ? "its process has ended"
                                         : "it has not ended by now");
    if (call->rc == NOT_PLAYED)
        play_fail(play, "%s", call->message);
    check_token(play, process, begun, call);
    note(play, process, begun->step, call);
    begun->step = NULL;
    return (struct result){.rc = call->rc, .message = call->message};
}

/* Write the words of a step, with the names that its locks have, to out. */
static void write_words(const struct play *play, char out[1024],
                        const struct step *step)
{
    char names[256];
    char name[96];
    char *save = NULL;
    size_t at = (size_t)snprintf(out, 1024, "%s", step->verb);

    (void)snprintf(names, sizeof names, "%s",
                   step->name != NULL ? step->name : "");
    for (char *one = strtok_r(names, ",", &save); one != NULL;
         one = strtok_r(NULL, ",", &save))
        at += (size_t)snprintf(out + at, 1024 - at, "%s%s",
                               one == names ? " " : ",",
                               play_name(play, name, one));
    for (size_t i = 0; i < step->option_count; i++)
        at += (size_t)snprintf(out + at, 1024 - at, " %s", step->options[i]);
    assert_in_range(at, 1, 1023);
}

static struct result perform_in_thread(struct play *play,
                                       const struct step *step)
{
    int thread;
    struct process *process = need_process(play, step->actor, &thread);
    char words[1024];

    if (strcmp(step->verb, "waits") == 0) {
        if (!company_settle(&play->company, process, thread))
            play_fail(play, "it does not wait: it gave %s",
                      result_name(process->calls[thread].rc));
        return (struct result){.rc = 0};
    }
    if (strcmp(step->verb, "gets_signal") == 0)
        return (struct result){.rc = (int)syscall(SYS_tgkill, process->pid,
                                                  process->calls[thread].tid,
                                                  SIGUSR2)};
    if (strcmp(step->verb, "ends") == 0)
        return end_call(play, process, thread);
    write_words(play, words, step);
    begin_call(play, step, process, thread, words);
    if (!step->goes_on)
        return end_call(play, process, thread);
    (void)company_settle(&play->company, process, thread);
    return (struct result){.rc = 0};
}

/* ------------------------------------------------ the steps of a process -- */

static void forget(struct play *play, const struct process *process)
{
    for (size_t i = 0; i < NAMES_MAX; i++)
        play->names[i].held[process - play->company.all] = 0;
}

/* "is_told NAME -> CODE": the process is told once that its lease is lost. */
static struct result hear_of_loss(struct play *play, const struct step *step,
                                  const struct process *process)
{
    bool is_none = strcmp(step->expected, "no") == 0;
    int64_t until = check_deadline_ns(is_none ? 0 : PATIENCE_MS);
    char name[96];
    const struct loss *loss;

    (void)play_name(play, name, step->name);
    do {
        company_listen(&play->company, 10);
        loss = company_loss(process, name);
    } while (loss->times == 0 && check_deadline_ns(0) < until);
    if (loss->times > 1)
        play_fail(play, "it was told %d times", loss->times);
    return (struct result){.rc = loss->code};
}

static struct result close_process(struct play *play, struct process *process)
{
    static const struct step closes = {.verb = "closes"};
    struct result result;
    int status;

    begin_call(play, &closes, process, 0, "closes");
    result = end_call(play, process, 0);
    forget(play, process);
    status = company_end(&play->company, process);
    if (status != 0)
        play_fail(play, "%s ended with status %d", process->id, status);
    return result;
}

static struct result kill_process(struct play *play, struct process *process)
{
    (void)kill(process->pid, SIGKILL);
    (void)company_end(&play->company, process);
    forget(play, process);
    play->somebody_died = true;
    return (struct result){.rc = 0};
}

/* Skip the scene where a waiter that does not poll is told of nothing. */
static void need_bells(struct play *play, const struct step *step)
{
    if (step_option(step, "patient") != NULL &&
        (database_is_polled(play->f->database) ||
         database_is_pooled(play->f->database)))
        skip();
}

static struct result perform_as_process(struct play *play,
                                        const struct step *step)
{
    int thread;
    struct process *process;
    char options[512] = "";

    if (strcmp(step->verb, "opens") == 0) {
        need_bells(play, step);
        for (size_t i = 0, at = 0; i < step->option_count; i++)
            at += (size_t)snprintf(options + at, sizeof options - at, " %s",
                                   step->options[i]);
        (void)open_process(play, step->actor, options,
                           step_option(step, "through") != NULL);
        return (struct result){.rc = 0};
    }
    process = need_process(play, step->actor, &thread);
    if (strcmp(step->verb, "is_told") == 0)
        return hear_of_loss(play, step, process);
    if (strcmp(step->verb, "closes") == 0)
        return close_process(play, process);
    if (strcmp(step->verb, "dies") == 0)
        return kill_process(play, process);
    if (strcmp(step->verb, "stops") == 0)
        return (struct result){.rc = kill(process->pid, SIGSTOP)};
    if (strcmp(step->verb, "goes_on") == 0)
        return (struct result){.rc = kill(process->pid, SIGCONT)};
    return (struct result){.rc = NOT_PLAYED, .message = "no such verb"};
}

/* ------------------------------------------------------------- the scene -- */

static struct result perform(struct play *play, const struct step *step)
{
    if (stage_has(step->actor))
        return stage_perform(play, step);
    if (strchr(step->actor, '.') != NULL)
        return perform_in_thread(play, step);
    return perform_as_process(play, step);
}

/* Check that a step took no longer than within=MS. */
static void check_time(struct play *play, int64_t began_ns)
{
    const char *within = step_option(play->step, "within");
    int64_t took_ms = (check_deadline_ns(0) - began_ns) / 1000000;

    if (within != NULL && took_ms > SLOWNESS * strtoll(within, NULL, 10))
        play_fail(play, "it took %lld ms", (long long)took_ms);
}

bool play_step(struct play *play, const struct step *step,
               struct result *result)
{
    int64_t began_ns = check_deadline_ns(0);
    int64_t until = check_deadline_ns(PATIENCE_MS);
    const char *says = step_option(step, "says");

    play->step = step;
    do
        *result = perform(play, step);
    while (!result_is(step->expected, result->rc) && result->is_undecided &&
           check_pause(until));
    check_time(play, began_ns);
    if (says != NULL &&
        (result->message == NULL || strstr(result->message, says) == NULL))
        play_fail(play, "it says: %s",
                  result->message != NULL ? result->message : "nothing");
    return result_is(step->expected, result->rc);
}

void play_open(struct play *play, struct fixture *f)
{
    memset(play, 0, sizeof *play);
    play->f = f;
    (void)snprintf(play->folder, sizeof play->folder,
                   "/tmp/sqlock-scene.XXXXXX");
    assert_non_null(mkdtemp(play->folder));
}

/* Close what is still open, without errors, and without a lock that is held. */
static void close_processes(struct play *play)
{
    for (size_t i = 0; i < play->company.count; i++) {
        struct process *process = &play->company.all[i];

        if (process->pid == 0)
            continue;
        for (size_t n = 0; n < NAMES_MAX; n++)
            if (play->names[n].held[i] != 0)
                play_fail(play, "the scene ends, and %s holds %s", process->id,
                          play->names[n].name);
        if (close_process(play, process).rc != 0)
            play_fail(play, "closing %s gave %s", process->id,
                      process->calls[0].message);
    }
}

void play_abandon(struct play *play)
{
    for (size_t i = 0; i < play->company.count; i++)
        if (play->company.all[i].pid != 0)
            (void)kill_process(play, &play->company.all[i]);
    stage_close(play);
    (void)rmdir(play->folder);
}

void play_close(struct play *play)
{
    if (play->proxy != NULL)
        proxy_heal(play->proxy);
    close_processes(play);
    stage_close(play);
    for (size_t i = 0; !play->somebody_died && i < NAMES_MAX; i++) {
        char name[96];

        if (play->names[i].name[0] == '\0')
            continue;
        (void)play_name(play, name, play->names[i].name);
        if (!wait_until(fixture_is_free(play->f, name), PATIENCE_MS))
            play_fail(play, "the scene ends, and the row of %s is taken",
                      play->names[i].name);
    }
    (void)rmdir(play->folder);
}

void play_scene(struct fixture *f, const struct scene *scene)
{
    struct play play;
    struct result result;

    play_open(&play, f);
    play.file = scene->file;
    for (size_t i = 0; i < scene->count; i++)
        if (!play_step(&play, &scene->steps[i], &result))
            play_fail(&play, "gave %s: %s", result_name(result.rc),
                      result.message != NULL ? result.message : "");
    play_close(&play);
}
