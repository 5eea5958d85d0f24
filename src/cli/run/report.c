/*
 * report.c - report the outcome of `sqlock run` to programs
 *
 * From the exit status alone, a program cannot know whether 75 is the command's
 * own or sqlock's (F76).
 */
#include "run.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

static json_t *text_or_null(const char *text)
{
    return text[0] != '\0' ? cli_json_text(text) : json_null();
}

static json_t *status_of_child(const run_report *report)
{
    if (!report->has_ended || !WIFEXITED(report->wait_status))
        return json_null();
    return json_integer(WEXITSTATUS(report->wait_status));
}

static json_t *signal_of_child(const run_report *report)
{
    if (!report->has_ended || !WIFSIGNALED(report->wait_status))
        return json_null();
    return json_integer(WTERMSIG(report->wait_status));
}

static void write_all(int fd, const char *text)
{
    size_t left = strlen(text);
    ssize_t written;

    while (left > 0) {
        written = write(fd, text, left);
        if (written <= 0)
            return; /* nobody reads: that is no reason to fail */
        text += written;
        left -= (size_t)written;
    }
}

static void write_line(int fd, json_t *value)
{
    char *text;

    text = value != NULL ? json_dumps(value, JSON_COMPACT | JSON_ENSURE_ASCII)
                         : NULL;
    if (text != NULL) {
        write_all(fd, text);
        write_all(fd, "\n");
    }
    free(text);
    json_decref(value);
}

static const char *region_of(const run_options *options)
{
    return options->registry.region != NULL ? options->registry.region : "";
}

/* Write that the lock is held, without waiting for a reader.  A writable pipe
 * takes PIPE_BUF bytes at once, and the line is shorter, since it has no name.
 */
void run_report_grant(const run_report *report, const run_options *options)
{
    struct pollfd file = {.fd = report->fd, .events = POLLOUT};

    if (report->fd < 0 || poll(&file, 1, 0) != 1 ||
        (file.revents & POLLOUT) == 0)
        return;
    write_line(report->fd,
               json_pack("{s:s, s:I, s:s, s:s, s:s}", "event", "granted",
                         "token", (json_int_t)report->token, "region",
                         region_of(options), "key", report->key, "client_id",
                         report->client_id));
}

void run_report_write(run_report *report, const run_options *options,
                      int status)
{
    json_t *value;

    if (report->fd < 0)
        return;
    value = json_pack(
        "{s:s, s:s, s:i, s:o, s:o, s:o, s:s, s:o, s:o, s:o}", "event", "ended",
        "cause", report->cause, "status", status, "command_status",
        status_of_child(report), "command_signal", signal_of_child(report),
        "name",
        options->name != NULL ? cli_json_text(options->name) : json_null(),
        "region", region_of(options), "key", text_or_null(report->key), "token",
        report->token != 0 ? json_integer(report->token) : json_null(),
        "client_id", text_or_null(report->client_id));
    write_line(report->fd, value);
    (void)close(report->fd);
    report->fd = -1;
}
