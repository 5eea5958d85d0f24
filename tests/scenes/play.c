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
    stage_close(play);
    _fail(play->file, (int)play->step->line);
    abort();
}

const char *play_name(const struct play *play, char out[96], const char *name)
{
    (void)snprintf(out, 96, "%s@%s", name, play->f->name);
    return out;
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

/* Open the registry of a process, which is started unless it is there, with the
 * options of that step. */
static struct process *open_process(struct play *play, const char *id,
                                    const struct step *step)
{
    struct process *process = company_find(&play->company, id);
    char url[1024];
    char words[2048];
    size_t at;

    if (process == NULL)
        process = company_start(&play->company, id);
    at = (size_t)snprintf(
        words, sizeof words, "opens url=%s prefix=%s folder=%s",
        stage_url(play, url, step), play->f->prefix, play->folder);
    for (size_t i = 0; i < step->option_count; i++)
        at += (size_t)snprintf(words + at, sizeof words - at, " %s",
                               step->options[i]);
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
    static const struct step opens = {.verb = "opens"};
    struct process *process = process_of(play, actor, thread);
    char id[16];

    if (process != NULL)
        return process;
    (void)snprintf(id, sizeof id, "%.*s", (int)strcspn(actor, "."), actor);
    return open_process(play, id, &opens);
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

static struct result compare_trust(struct play *play, const struct step *step);

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
    if (strcmp(step->verb, "relies") == 0)
        return compare_trust(play, step);
    write_words(play, words, step);
    begin_call(play, step, process, thread, words);
    if (!step->goes_on)
        return end_call(play, process, thread);
    (void)company_settle(&play->company, process, thread);
    return (struct result){.rc = 0};
}

/* "relies NAME [margin=MS]": the thread relies on its lease for no longer than
 * the row will last, less the margin.  A busy machine makes the times inexact:
 * then they are read again. */
static struct result compare_trust(struct play *play, const struct step *step)
{
    const char *margin = step_option(step, "margin");
    int64_t margin_us =
        margin == NULL ? 0 : 1000 * SLOWNESS * strtoll(margin, NULL, 10);
    struct step asks = *step;
    char name[96];
    int64_t took_us;
    int64_t left_us;
    int64_t row_us;

    asks.verb = "remains";
    asks.option_count = 0;
    (void)play_name(play, name, step->name);
    do {
        int64_t began_ns = check_deadline_ns(0);

        left_us = INT64_C(1000) * perform_in_thread(play, &asks).rc;
        row_us =
            fixture_row(play->f, name).expires_us - sql_now_us(&play->f->sql);
        took_us = (check_deadline_ns(0) - began_ns) / 1000;
    } while (took_us > SLOWNESS * INT64_C(25000));
    if (left_us <= 0)
        play_fail(play, "its lease is over");
    /* SQLite's clock tells milliseconds, and so does what remains. */
    if (left_us + margin_us > row_us + took_us + 3000)
        play_fail(play, "it relies on %lld us, and the row lasts %lld us",
                  (long long)left_us, (long long)row_us);
    return (struct result){.rc = 0};
}

/* "idles ms=MS": the process uses next to no processor time meanwhile. */
static struct result watch_idle(struct play *play, const struct step *step,
                                const struct process *process)
{
    const char *ms = step_option(step, "ms");
    int64_t all_ms = ms == NULL ? 300 : strtoll(ms, NULL, 10);
    int64_t before_ms = company_processor_ms(process);

    check_sleep(all_ms);
    before_ms = company_processor_ms(process) - before_ms;
    if (before_ms > all_ms / 5)
        play_fail(play, "it used %lld ms of the processor",
                  (long long)before_ms);
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

/* The process does this in its first thread: things that go wrong in its
 * driver. */
static struct result perform_at_once(struct play *play, const struct step *step,
                                     struct process *process)
{
    struct result result;
    char words[1024];

    write_words(play, words, step);
    begin_call(play, step, process, 0, words);
    result = end_call(play, process, 0);
    result.is_undecided =
        strncmp(step->verb, "has_", 4) == 0 && step_option(step, "now") == NULL;
    return result;
}

static struct result perform_as_process(struct play *play,
                                        const struct step *step)
{
    int thread;
    struct process *process;

    if (strcmp(step->verb, "starts") == 0) {
        (void)company_start(&play->company, step->actor);
        return (struct result){.rc = 0};
    }
    if (strcmp(step->verb, "opens") == 0) {
        need_bells(play, step);
        (void)open_process(play, step->actor, step);
        return (struct result){.rc = 0};
    }
    process = need_process(play, step->actor, &thread);
    if (strcmp(step->verb, "is_told") == 0)
        return hear_of_loss(play, step, process);
    if (strcmp(step->verb, "closes") == 0)
        return close_process(play, process);
    if (strcmp(step->verb, "idles") == 0)
        return watch_idle(play, step, process);
    if (strcmp(step->verb, "dies") == 0)
        return kill_process(play, process);
    if (strcmp(step->verb, "stops") == 0)
        return (struct result){.rc = kill(process->pid, SIGSTOP)};
    if (strcmp(step->verb, "goes_on") == 0)
        return (struct result){.rc = kill(process->pid, SIGCONT)};
    return perform_at_once(play, step, process);
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
    bool is_soon = step_option(step, "soon") != NULL;

    play->step = step;
    do
        *result = perform(play, step);
    while (!result_is(step->expected, result->rc) &&
           (is_soon || result->is_undecided) && check_pause(until));
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

static void play_steps(struct play *play, const struct scene *scene)
{
    struct result result;

    for (size_t i = 0; i < scene->count; i++)
        if (!play_step(play, &scene->steps[i], &result))
            play_fail(play, "gave %s: %s", result_name(result.rc),
                      result.message != NULL ? result.message : "");
    play_close(play);
}

/* Play a scene that may fail on a busy machine; return whether it did not. */
static bool try_scene(struct play *play, const struct scene *scene)
{
    jmp_buf escape;

    play->escape = &escape;
    if (setjmp(escape) != 0) {
        print_message("%s\n", play->why);
        play_abandon(play);
        return false;
    }
    play_steps(play, scene);
    return true;
}

void play_scene(struct fixture *f, const struct scene *scene)
{
    static struct play play;

    for (unsigned i = 1; i < scene->tries; i++) {
        play_open(&play, f);
        play.file = scene->file;
        if (try_scene(&play, scene))
            return;
        fixture_next(f);
    }
    play_open(&play, f);
    play.file = scene->file;
    play_steps(&play, scene);
}
