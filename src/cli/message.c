/*
 * message.c - write messages of the command to stderr: "sqlock: " and one line,
 * in one write(), so that it does not mix with the output of a child
 *
 * A message never goes to stdout, never has more than one line, and contains
 * nothing that a terminal would interpret, and no password.
 */
#include "cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"

static bool is_quiet;
static bool is_verbose;

void cli_set_verbosity(bool quiet, bool verbose)
{
    is_quiet = quiet;
    is_verbose = verbose && !quiet;
}

bool cli_is_verbose(void)
{
    return is_verbose;
}

static void say(const char *format, va_list arguments)
    __attribute__((format(printf, 1, 0)));

static void say(const char *format, va_list arguments)
{
    static const char lost[] = "sqlock: out of memory\n";
    char text[1024];
    char *escaped;
    char *line = NULL;
    int length = -1;

    (void)vsnprintf(text, sizeof text, format, arguments);
    cli_mask(text);
    escaped = cli_escape(text);
    if (escaped != NULL)
        length = asprintf(&line, "sqlock: %s\n", escaped);
    /* The stream stderr is not used: exit() would wait for a thread that is
     * blocked in writing to it. */
    if (length < 0)
        (void)!write(STDERR_FILENO, lost, sizeof lost - 1);
    else
        (void)!write(STDERR_FILENO, line, (size_t)length);
    if (length >= 0)
        free(line);
    free(escaped);
}

void cli_error(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
}

void cli_note(const char *format, ...)
{
    va_list arguments;

    if (is_quiet)
        return;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
}

void cli_info(const char *format, ...)
{
    va_list arguments;

    if (!is_verbose)
        return;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
}

int cli_status_of(int code)
{
    switch (code) {
    case 0:
        return CLI_OK;
    case SQLOCK_EBUSY:
    case SQLOCK_ETIMEDOUT:
    case SQLOCK_EDEADLOCK:
    case SQLOCK_ERETRY:
        return CLI_BUSY;
    case SQLOCK_EUNCERTAIN:
        return CLI_UNCERTAIN;
    case SQLOCK_ELOST:
    case SQLOCK_EEXPIRED:
        return CLI_LOST;
    case SQLOCK_EACCESS:
        return CLI_DENIED;
    case SQLOCK_EINVAL:
    case SQLOCK_ENOTSUP:
        return CLI_USAGE;
    case SQLOCK_ENOTFOUND:
    case SQLOCK_ECONFLICT:
    case SQLOCK_EINUSE:
    case SQLOCK_EINSUFFICIENT:
    case SQLOCK_EORDER:
        return CLI_NO;
    case SQLOCK_ENOMEM:
        return CLI_SYSTEM;
    default:
        return CLI_DATABASE;
    }
}

int cli_status_of_error(const sqlock_error *err)
{
    return lk_error_is_limit(err) ? CLI_SYSTEM : cli_status_of(err->code);
}

int cli_fail(const sqlock_error *err)
{
    const char *text =
        err->message[0] != '\0' ? err->message : sqlock_strerror(err->code);

    cli_error("%s", text);
    if (err->code == SQLOCK_EACCESS && getenv("SQLOCK_CLIENT_ID") != NULL)
        cli_note(
            "`sqlock run` does not pass the URL's password to its command: "
            "keep it in PGPASSFILE, ~/.my.cnf or a configuration file");
    return cli_status_of_error(err);
}

int cli_fail_to(const char *what, int error)
{
    sqlock_error err = {0};

    (void)lk_error_limit(&err, what, error);
    return cli_fail(&err);
}
