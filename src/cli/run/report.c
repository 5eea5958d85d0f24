/*
 * report.c - report the outcome of `sqlock run` to programs
 *
 * From the exit status alone, a program cannot know whether 75 is the command's
 * own or sqlock's (F76).
 */
#include "run.h"

#include <limits.h>
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

/* Return the value as a line, which the caller frees; NULL: out of memory. */
static char *line_of(json_t *value)
{
    char *text = value != NULL
                     ? json_dumps(value, JSON_COMPACT | JSON_ENSURE_ASCII)
                     : NULL;
    char *line = NULL;

    if (text != NULL && asprintf(&line, "%s\n", text) < 0)
        line = NULL;
    free(text);
    json_decref(value);
    return line;
}

/* Write what a writable pipe takes at once, and free the line; NULL: there is
 * none.  That nobody reads it is no reason to fail, nor to die of SIGPIPE,
 * which is blocked, or ignored. */
static void write_line(int fd, char *line)
{
    if (line != NULL && strlen(line) <= PIPE_BUF)
        (void)!write(fd, line, strlen(line));
    free(line);
}

static const char *region_of(const run_options *options)
{
    return options->registry.region != NULL ? options->registry.region : "";
}

void run_report_grant(const run_report *report, const run_options *options)
{
    if (run_takes_output(report->fd))
        write_line(report->fd,
                   line_of(json_pack(
                       "{s:s, s:I, s:s, s:s, s:s}", "event", "granted", "token",
                       (json_int_t)report->grant.token, "region",
                       region_of(options), "key", report->grant.key,
                       "client_id", report->grant.client_id)));
}

/* Return the line of the outcome, which the caller frees; NULL: out of
 * memory. */
static char *line_of_end(const run_report *report, const run_options *options,
                         int status, const char *name)
{
    bool has_exited = report->has_ended && WIFEXITED(report->wait_status);
    bool was_killed = report->has_ended && WIFSIGNALED(report->wait_status);
    const run_grant *grant = &report->grant;

    return line_of(json_pack(
        "{s:s, s:s, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "event", "ended",
        "cause", report->cause, "status", status, "command_status",
        cli_json_number(WEXITSTATUS(report->wait_status), has_exited),
        "command_signal",
        cli_json_number(WTERMSIG(report->wait_status), was_killed), "name",
        cli_json_text(name), "region", text_or_null(region_of(options)), "key",
        text_or_null(grant->key), "token",
        cli_json_number(grant->token, grant->token != 0), "client_id",
        text_or_null(grant->client_id)));
}

/* Write the outcome as one line, which is whole, or not there at all. */
static void write_end(const run_report *report, const run_options *options,
                      int status)
{
    char *line = line_of_end(report, options, status, options->name);

    /* A name may have 10,000 bytes, and each may become six. */
    if (line != NULL && strlen(line) > PIPE_BUF) {
        free(line);
        line = line_of_end(report, options, status, NULL);
    }
    write_line(report->fd, line);
}

void run_report_die(run_report *report, const run_options *options,
                    const run_signals *signals, int number)
{
    if (run_takes_output(report->fd))
        write_end(report, options, CLI_SIGNALLED + number);
    run_signals_die_of(signals, number);
}

void run_report_await(run_report *report, const run_options *options,
                      run_signals *signals, int fd)
{
    int number = run_signals_await_reader(signals, fd);

    if (number != 0)
        run_report_die(report, options, signals, number);
}

void run_report_write(run_report *report, const run_options *options,
                      run_signals *signals, int status)
{
    if (report->fd < 0)
        return;
    run_report_await(report, options, signals, report->fd);
    (void)signal(SIGPIPE, SIG_IGN); /* no program is started any more */
    write_end(report, options, status);
    (void)close(report->fd);
    report->fd = -1;
}
