/*
 * perform.c - the steps of processes and of their threads: calls that actors
 * make, and what is seen of them from outside
 */
#include "play.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/server.h"

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

/* Fail a scene that cannot be played; skip one that another language's actor
 * has no call for. */
static void refuse(struct play *play, const struct call *call)
{
    if (call->rc != NOT_PLAYED)
        return;
    if (strncmp(call->message, "not for this actor", 18) != 0)
        play_fail(play, "%s", call->message);
    print_message("skipped: %s\n", call->message);
    play_abandon(play);
    skip();
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
        stage_url(play, url, step, 0), play->f->prefix, play->folder);
    for (int i = 1; i < SERVERS && step_option(step, "servers") != NULL; i++)
        at += (size_t)snprintf(words + at, sizeof words - at, " url%d=%s", i,
                               stage_url(play, url, step, i));
    for (size_t i = 0; i < step->option_count; i++)
        at += (size_t)snprintf(words + at, sizeof words - at, " %s",
                               step->options[i]);
    company_call(process, 0, words);
    if (!company_await(&play->company, process, 0))
        play_fail(play, "%s does not open a registry", id);
    refuse(play, &process->calls[0]);
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
    process = open_process(play, id, &opens);
    if (process->calls[0].rc != 0)
        play_fail(play, "%s cannot open a registry: %s", id,
                  process->calls[0].message);
    return process;
}

/* ---------------------------------------------------- what is looked at -- */

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
        if (strcmp(step->verb, "gives_up") == 0 && call->rc != SQLOCK_EOWNER)
            --*held;
        if (is_one_of(step->verb, gives) && call->rc != SQLOCK_EOWNER &&
            call->rc != SQLOCK_EINUSE && call->rc != SQLOCK_EINVAL)
            --*held;
    }
}

/* Return the lock whose token a step's call has; NULL if there is none. */
static struct named *with_token(struct play *play, const struct step *step)
{
    return step->name != NULL && strchr(step->name, ',') == NULL &&
                   step_option(step, "server") == NULL
               ? play_named(play, step->name)
               : NULL;
}

/* Check that a token is greater than one that was seen before the call.  A
 * nested acquire has the token of the lease, which may be lost already. */
static void check_token(struct play *play, const struct process *process,
                        const struct begun *begun, const struct call *call)
{
    struct named *named = with_token(play, begun->step);

    if (call->token == 0 || named == NULL ||
        named->held[process - play->company.all] > 0)
        return;
    if (call->token <= begun->token)
        play_fail(play, "the token %lld is not greater than one before, %lld",
                  (long long)call->token, (long long)begun->token);
    if (call->token > named->token)
        named->token = call->token;
}

/* ------------------------------------------------- the steps of a thread -- */

/* Note of how many losses the process may be told by what it takes. */
static void note_told(struct play *play, const struct step *step,
                      struct process *process)
{
    const char *count = step_option(step, "count");
    int times = count != NULL ? (int)strtol(count, NULL, 10) : 1;
    char names[256];
    char *save = NULL;

    if (step_option(step, "told") == NULL || step->name == NULL)
        return;
    process->counted = -1;
    (void)snprintf(names, sizeof names, "%s", step->name);
    for (char *name = strtok_r(names, ",", &save); name != NULL;
         name = strtok_r(NULL, ",", &save)) {
        const char *many = strchr(name, '*');

        process->to_tell +=
            times * (many != NULL ? (int)strtol(many + 1, NULL, 10) : 1);
        play_named(play, name)->is_kept[process - play->company.all] = false;
    }
}

/* Check that a process that has ended was told of no loss before the time, nor
 * twice, nor after it was asked. */
static void check_losses(struct play *play, const struct process *process)
{
    size_t index = (size_t)(process - play->company.all);
    char name[96];

    for (size_t i = 0; i < LOSSES_MAX; i++)
        if (process->losses[i].code == NOT_PLAYED)
            play_fail(play, "%s was told before the time that %s is lost",
                      process->id, process->losses[i].name);
    for (size_t i = 0; i < NAMES_MAX; i++)
        if (play->names[i].is_kept[index] &&
            company_loss(process, play_name(play, name, play->names[i].name))
                    ->times > 0)
            play_fail(play, "%s was told later that %s is lost", process->id,
                      play->names[i].name);
    if (process->told > process->to_tell ||
        (process->counted >= 0 && process->told != process->counted))
        play_fail(play, "%s was told of %d losses", process->id, process->told);
}

static void begin_call(struct play *play, const struct step *step,
                       struct process *process, int thread, const char *words)
{
    const struct named *named = with_token(play, step);

    if (process->calls[thread].is_made && !process->calls[thread].is_over)
        play_fail(play, "it is still busy");
    play->begun[process - play->company.all][thread] =
        (struct begun){.step = step, .token = named != NULL ? named->token : 0};
    note_told(play, step, process);
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
    refuse(play, call);
    check_token(play, process, begun, call);
    note(play, process, begun->step, call);
    if (call->rc == 0 && strcmp(begun->step->verb, "tells_id") == 0)
        (void)snprintf(play->lease_id, sizeof play->lease_id, "%s",
                       call->message);
    begun->step = NULL;
    return (struct result){.rc = call->rc, .message = call->message};
}

/* Write the words of a step, with the names that its locks have, to out. */
static void write_words(struct play *play, char out[1024],
                        const struct step *step)
{
    char names[256];
    char name[96];
    char *save = NULL;
    size_t at = (size_t)snprintf(out, 1024, "%s", step->verb);

    if (step->statement != NULL) {
        at += (size_t)snprintf(out + at, 1024 - at, ": ");
        at += stage_statement(play, out + at, 1024 - at, step->statement);
    }
    (void)snprintf(names, sizeof names, "%s",
                   step->name != NULL ? step->name : "");
    for (char *one = strtok_r(names, ",", &save); one != NULL;
         one = strtok_r(NULL, ",", &save))
        at += (size_t)snprintf(out + at, 1024 - at, "%s%s",
                               one == names ? " " : ",",
                               play_name(play, name, one));
    for (size_t i = 0; i < step->option_count; i++)
        at += (size_t)snprintf(out + at, 1024 - at, " %s",
                               strncmp(step->options[i], "order=", 6) == 0
                                   ? play_name(play, name, step->options[i])
                                   : step->options[i]);
    if (step_option(step, "id") != NULL)
        at += (size_t)snprintf(out + at, 1024 - at, " table=%s",
                               stage_stock(play));
    if (strstr(step->verb, "_by_id") != NULL)
        at +=
            (size_t)snprintf(out + at, 1024 - at, " lease=%s", play->lease_id);
    assert_in_range(at, 1, 1023);
}

/* "sleeps ms=MS": the thread does not wake meanwhile. */
static struct result watch_sleep(struct play *play, const struct step *step,
                                 const struct process *process, int thread)
{
    const char *ms = step_option(step, "ms");
    long before = company_sleeps(process, thread);
    long times;

    check_sleep(ms == NULL ? 2000 : strtoll(ms, NULL, 10));
    times = company_sleeps(process, thread) - before;
    if (before < 0 || times > 1)
        play_fail(play, "it woke %ld times", times);
    return (struct result){.rc = 0};
}

static struct result compare_trust(struct play *play, const struct step *step);
static struct result end_session(struct play *play, const struct step *step);

struct result play_thread(struct play *play, const struct step *step)
{
    int thread;
    struct process *process = need_process(play, step->actor, &thread);
    char words[1024];

    if (strcmp(step->verb, "waits") == 0) {
        if (!company_settle(&play->company, process, thread,
                            step_option(step, "now") == NULL))
            play_fail(play, "it does not wait: it gave %s",
                      result_name(process->calls[thread].rc));
        return (struct result){.rc = 0};
    }
    if (strcmp(step->verb, "sleeps") == 0)
        return watch_sleep(play, step, process, thread);
    if (strcmp(step->verb, "gets_signal") == 0)
        return (struct result){.rc = (int)syscall(SYS_tgkill, process->pid,
                                                  process->calls[thread].tid,
                                                  SIGUSR2)};
    if (strcmp(step->verb, "ends") == 0)
        return end_call(play, process, thread);
    if (strcmp(step->verb, "relies") == 0)
        return compare_trust(play, step);
    if (strcmp(step->verb, "loses_session") == 0)
        return end_session(play, step);
    write_words(play, words, step);
    begin_call(play, step, process, thread, words);
    if (!step->goes_on)
        return end_call(play, process, thread);
    (void)company_settle(&play->company, process, thread, false);
    if (process->calls[thread].is_over)
        refuse(play, &process->calls[thread]);
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

        left_us = INT64_C(1000) * SLOWNESS * play_thread(play, &asks).rc;
        row_us =
            fixture_row(play->f, name).expires_us - sql_now_us(&play->f->sql);
        took_us = (check_deadline_ns(0) - began_ns) / 1000;
    } while (took_us > SLOWNESS * INT64_C(25000));
    if (left_us <= 0)
        play_fail(play, "its lease is over");
    /* SQLite's clock tells milliseconds, and so does what remains. */
    if (left_us + margin_us > row_us + took_us + 3000 * SLOWNESS)
        play_fail(play, "it relies on %lld us, and the row lasts %lld us",
                  (long long)left_us, (long long)row_us);
    return (struct result){.rc = 0};
}

/* "loses_session": the server ends that of the thread's own connection. */
static struct result end_session(struct play *play, const struct step *step)
{
    struct step asks = *step;
    int64_t id;

    asks.verb = "tells_session";
    id = play_thread(play, &asks).rc;
    server_end_sessions(&play->f->sql, &id, 1);
    return (struct result){.rc = 0};
}

/* "tells -> N": it was told so many losses. */
static struct result count_losses(struct play *play, struct process *process)
{
    company_listen(&play->company, 10);
    process->counted = process->told;
    return (struct result){.rc = process->told, .is_undecided = true};
}

/* "knows_itself", "has_grown -> no": it has no more threads and descriptors
 * than it knew. */
static struct result compare_size(struct process *process,
                                  const struct step *step)
{
    char path[64];
    size_t threads;
    size_t fds;

    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)process->pid);
    threads = check_entries(path);
    (void)snprintf(path, sizeof path, "/proc/%d/fd", (int)process->pid);
    fds = check_entries(path);
    if (strcmp(step->verb, "has_grown") == 0)
        return (struct result){.rc = threads > process->threads ||
                                     fds > process->fds,
                               .is_undecided = true};
    process->threads = threads;
    process->fds = fds;
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
    play_named(play, step->name)->is_kept[process - play->company.all] =
        is_none;
    return (struct result){.rc = loss->code};
}

struct result play_end_process(struct play *play, struct process *process)
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
    check_losses(play, process);
    return result;
}

struct result play_kill(struct play *play, struct process *process)
{
    (void)kill(process->pid, SIGKILL);
    (void)company_end(&play->company, process);
    forget(play, process);
    play->somebody_died = true;
    return (struct result){.rc = 0};
}

/* Skip the scene where a waiter that does not poll is told of nothing, or where
 * a connection has no session of its own. */
static void need_sessions(struct play *play, const struct step *step)
{
    bool is_pooled = database_is_pooled(play->f->database);

    if (step_option(step, "patient") != NULL &&
        (is_pooled || database_is_polled(play->f->database)))
        skip();
    if (step_option(step, "unpooled") != NULL && is_pooled)
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

/* Stop a process, and wait until it runs no more: one that was rung meanwhile
 * would stop with SQLite's write lock. */
static int stop(pid_t pid)
{
    siginfo_t stopped = {.si_pid = 0};

    return kill(pid, SIGSTOP) == 0 &&
                   wait_until(waitid(P_PID, (id_t)pid, &stopped,
                                     WSTOPPED | WNOHANG) == 0 &&
                                  stopped.si_pid == pid,
                              PATIENCE_MS)
               ? 0
               : -1;
}

struct result play_process(struct play *play, const struct step *step)
{
    int thread;
    struct process *process;

    if (strcmp(step->verb, "starts") == 0) {
        (void)company_start(&play->company, step->actor);
        return (struct result){.rc = 0};
    }
    if (strcmp(step->verb, "opens") == 0) {
        need_sessions(play, step);
        process = open_process(play, step->actor, step);
        return (struct result){.rc = process->calls[0].rc,
                               .message = process->calls[0].message};
    }
    process = need_process(play, step->actor, &thread);
    if (strcmp(step->verb, "is_told") == 0)
        return hear_of_loss(play, step, process);
    if (strcmp(step->verb, "closes") == 0)
        return play_end_process(play, process);
    if (strcmp(step->verb, "tells") == 0)
        return count_losses(play, process);
    if (strcmp(step->verb, "knows_itself") == 0 ||
        strcmp(step->verb, "has_grown") == 0)
        return compare_size(process, step);
    if (strcmp(step->verb, "idles") == 0)
        return watch_idle(play, step, process);
    if (strcmp(step->verb, "dies") == 0)
        return play_kill(play, process);
    if (strcmp(step->verb, "stops") == 0)
        return (struct result){.rc = stop(process->pid)};
    if (strcmp(step->verb, "goes_on") == 0)
        return (struct result){.rc = kill(process->pid, SIGCONT)};
    return perform_at_once(play, step, process);
}
