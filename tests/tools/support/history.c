/*
 * history.c - see history.h
 */
#include "history.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "check.h"

void history_init(struct history *history)
{
    memset(history, 0, sizeof *history);
    (void)pthread_mutex_init(&history->mutex, NULL);
}

void history_clear(struct history *history)
{
    (void)pthread_mutex_destroy(&history->mutex);
}

void history_add(struct history *history, const struct history_event *event)
{
    pthread_mutex_lock(&history->mutex);
    if (history->count == HISTORY_MAX)
        abort();
    history->events[history->count++] = *event;
    pthread_mutex_unlock(&history->mutex);
}

void history_granted(struct history *history, int who, int64_t asked_ns,
                     int64_t until_ns, int64_t token)
{
    struct history_event event = {.what = HISTORY_GRANTED,
                                  .who = who,
                                  .asked_ns = asked_ns,
                                  .at_ns = lk_boottime_ns(),
                                  .until_ns = until_ns,
                                  .token = token};

    history_add(history, &event);
}

void history_renewed(struct history *history, int who, int64_t asked_ns,
                     int64_t until_ns)
{
    struct history_event event = {.what = HISTORY_RENEWED,
                                  .who = who,
                                  .asked_ns = asked_ns,
                                  .at_ns = lk_boottime_ns(),
                                  .until_ns = until_ns};

    history_add(history, &event);
}

void history_ended(struct history *history, int who)
{
    int64_t now = lk_boottime_ns();
    struct history_event event = {
        .what = HISTORY_ENDED, .who = who, .asked_ns = now, .at_ns = now};

    history_add(history, &event);
}

size_t history_handoffs(struct history *history)
{
    size_t handoffs = 0;
    int last = -1;

    pthread_mutex_lock(&history->mutex);
    for (size_t i = 0; i < history->count; i++) {
        const struct history_event *event = &history->events[i];

        if (event->what != HISTORY_GRANTED)
            continue;
        handoffs += last >= 0 && last != event->who;
        last = event->who;
    }
    pthread_mutex_unlock(&history->mutex);
    return handoffs;
}

double history_ms(int64_t ns)
{
    return (double)ns / 1e6;
}

static void write_event(FILE *file, const struct history_event *event)
{
    static const char *const verbs[] = {"acquire", "renew", "gone"};

    (void)fprintf(file, "%d %s L %.6f %.6f", event->who, verbs[event->what],
                  history_ms(event->asked_ns), history_ms(event->at_ns));
    if (event->until_ns > 0)
        (void)fprintf(file, " until=%.6f", history_ms(event->until_ns));
    if (event->what == HISTORY_GRANTED)
        (void)fprintf(file, " token=%" PRId64, event->token);
    (void)fputc('\n', file);
}

FILE *history_file(char path[HISTORY_PATH])
{
    int fd;

    (void)snprintf(path, HISTORY_PATH, "/tmp/sqlock-history.XXXXXX");
    fd = mkstemp(path);
    assert_true(fd >= 0);
    return fdopen(fd, "w");
}

unsigned history_faults(FILE *file, const char *path, bool prints)
{
    char command[128];
    char line[600];
    unsigned faults = 0;
    FILE *checker;
    int status;

    assert_int_equal(fclose(file), 0);
    (void)snprintf(command, sizeof command,
                   "${PYTHON:-/usr/bin/python3} -IS tests/history/check.py %s",
                   path);
    checker = popen(command, "re"); /* NOLINT: of our own making */
    assert_non_null(checker);
    while (fgets(line, sizeof line, checker) != NULL) {
        faults++;
        if (prints)
            print_error("the history is wrong: %s", line);
    }
    status = pclose(checker);
    if ((status != 0) != (faults > 0))
        fail_msg("check.py: status %d, %u faults of %s", status, faults, path);
    return faults;
}

void history_check_at(struct history *history, const char *file, int line)
{
    char path[HISTORY_PATH];
    FILE *out = history_file(path);
    unsigned faults;

    pthread_mutex_lock(&history->mutex);
    for (size_t i = 0; i < history->count; i++)
        write_event(out, &history->events[i]);
    pthread_mutex_unlock(&history->mutex);
    faults = history_faults(out, path, true);
    if (faults > 0) {
        print_error("it is in %s\n", path);
        _fail(file, line);
    }
    (void)unlink(path);
}
