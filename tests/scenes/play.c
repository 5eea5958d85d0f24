/*
 * play.c - play a scene: give each step to whoever performs it, and compare
 * what comes of it with what is written
 *
 * Beside what is written, each scene checks that tokens rise, that nobody holds
 * a lock at its end, and that each lock's row is free then.
 */
#include "play.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

struct named *play_named(struct play *play, const char *name)
{
    struct named *named = play->names;

    while (named->name[0] != '\0' && strcmp(named->name, name) != 0)
        if (++named == play->names + NAMES_MAX)
            play_fail(play, "too many locks");
    (void)snprintf(named->name, sizeof named->name, "%s", name);
    return named;
}

/* ------------------------------------------------------------- the scene -- */

static struct result perform(struct play *play, const struct step *step)
{
    if (stage_has(step->actor))
        return stage_perform(play, step);
    if (strchr(step->actor, '.') != NULL)
        return play_thread(play, step);
    return play_process(play, step);
}

/* Check that a step took no longer than within=MS, and at least least=MS. */
static void check_time(struct play *play, int64_t began_ns)
{
    const char *within = step_option(play->step, "within");
    const char *least = step_option(play->step, "least");
    int64_t took_ms = (check_deadline_ns(0) - began_ns) / 1000000;

    if ((within != NULL && took_ms > SLOWNESS * strtoll(within, NULL, 10)) ||
        (least != NULL && took_ms < SLOWNESS * strtoll(least, NULL, 10) - 1))
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
        if (play_end_process(play, process).rc != 0)
            play_fail(play, "closing %s gave %s", process->id,
                      process->calls[0].message);
    }
}

void play_abandon(struct play *play)
{
    for (size_t i = 0; i < play->company.count; i++)
        if (play->company.all[i].pid != 0)
            (void)play_kill(play, &play->company.all[i]);
    stage_close(play);
    (void)rmdir(play->folder);
}

/* The name may be of several locks, "L*40", of which the first and the last are
 * looked at. */
static void expect_free(struct play *play, const char *name)
{
    size_t length = strcspn(name, "*");
    unsigned long count =
        name[length] == '*' ? strtoul(name + length + 1, NULL, 10) : 0;
    char one[32];
    char full[96];

    (void)snprintf(one, sizeof one, "%.*s%s", (int)length, name,
                   count > 0 ? "1" : "");
    if (!wait_until(fixture_is_free(play->f, play_name(play, full, one)),
                    PATIENCE_MS))
        play_fail(play, "the scene ends, and the row of %s is taken", one);
    if (count == 0)
        return;
    (void)snprintf(one, sizeof one, "%.*s%lu", (int)length, name, count);
    if (!wait_until(fixture_is_free(play->f, play_name(play, full, one)),
                    PATIENCE_MS))
        play_fail(play, "the scene ends, and the row of %s is taken", one);
}

void play_close(struct play *play)
{
    for (size_t i = 0; i < SERVERS; i++)
        if (play->proxies[i] != NULL)
            proxy_heal(play->proxies[i]);
    close_processes(play);
    stage_close(play);
    for (size_t i = 0; !play->somebody_died && i < NAMES_MAX; i++)
        if (play->names[i].name[0] != '\0')
            expect_free(play, play->names[i].name);
    (void)rmdir(play->folder);
}

/* Return whether a step uses the application's table, which is made before a
 * transaction may have the database's only write lock. */
static bool needs_stock(const struct step *step)
{
    return strcmp(step->actor, "stock") == 0 ||
           step_option(step, "id") != NULL ||
           (step->statement != NULL &&
            strstr(step->statement, "@stock") != NULL);
}

static void play_steps(struct play *play, const struct scene *scene)
{
    struct result result;

    play->is_left_out = (scene->of_oracle && !fixture_is_oracles(play->f)) ||
                        (scene->of_mariadb && fixture_is_oracles(play->f));
    for (size_t i = 0; i < scene->count && !play->is_left_out; i++)
        if (needs_stock(&scene->steps[i]))
            (void)stage_stock(play);
    for (size_t i = 0; i < scene->count && !play->is_left_out; i++)
        if (!play_step(play, &scene->steps[i], &result))
            play_fail(play, "gave %s: %s", result_name(result.rc),
                      result.message != NULL ? result.message : "");
    play_close(play);
}

/* Play a scene that may fail on a busy machine; return whether it did not. */
static bool try_scene(struct play *play, const struct scene *scene)
{
    static jmp_buf escape;

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
